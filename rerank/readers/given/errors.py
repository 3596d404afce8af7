"""Errors in lists of a program, which have neither a file nor lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rerank.base.errors import DataError
from rerank.readers.faults import Bad, BadCandidate, UnusableError


def refusal(bad: Bad) -> DataError:
    """A list or a candidate that was given and cannot be used, as an error."""
    which = f"candidate {bad.place + 1}: " if isinstance(bad, BadCandidate) else ""
    return DataError(f"{which}{bad.message}", list_id=bad.id or None)


@contextmanager
def told(folder: str | None = None) -> Iterator[None]:
    """Within the block, errors in lists that have no file, or one in ``folder``, name the list and the candidate."""
    try:
        yield
    except UnusableError as error:
        raise error if error.bad.path else refusal(error.bad) from None
    except DataError as error:
        if error.path and not (folder and error.path.startswith(folder)):
            raise
        raise DataError(error.message, list_id=error.list_id) from None
