"""Errors in lists of a program, which have neither a file nor lines."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from rerank.base.errors import DataError, RecipeError
from rerank.readers.problems import Problem


class GivenError(DataError):
    """What a program has given cannot be used; ``field`` says where that is, as "candidates[3].score"."""

    def __init__(self, message: str, field: str, *, list_id: str | None = None) -> None:
        super().__init__(message, list_id=list_id)
        self.field = field


def each_of(given: Any, expected: str, field: str, *, list_id: str | None = None) -> Iterator[Any]:
    """Go through what is given; ``expected`` and ``field`` say in errors what that should be, and where.

    Raises
    ------
    GivenError: it is one thing, not several.
    """
    with suppress(TypeError):
        if not isinstance(given, str | bytes | Mapping):
            return iter(given)
    raise GivenError(f"found {type(given).__name__}; expected {expected}", field, list_id=list_id)


def check_for_files(found: str, **given: Any) -> None:
    """Raises a ``RecipeError`` that names what only files can have, where ``found`` was given in place of one."""
    for name, value in given.items():
        if value is not None:
            raise RecipeError(f"found {value!r}, which is for files, and {found}; leave one of them out", key=name)


def refusal(problem: Problem) -> GivenError:
    """A list or a candidate that was given and cannot be used, as an error."""
    k = 0 if problem.path else problem.line or 0  # the lines of a list that has no file are its candidates
    k = k if problem.place is None else problem.place + 1
    message = f"candidate {k}: {problem.message}" if k else problem.message
    return GivenError(message, f"candidates[{k - 1}]" if k else "candidates", list_id=problem.list_id or None)


@contextmanager
def told(folder: str | None = None) -> Iterator[None]:
    """Within the block, errors in lists that have no file, or one in ``folder``, name the list and the candidate."""
    try:
        yield
    except Problem as problem:
        raise problem if problem.path else refusal(problem) from None
    except DataError as error:
        if error.path and not (folder and error.path.startswith(folder)):
            raise
        raise DataError(error.message, list_id=error.list_id) from None
