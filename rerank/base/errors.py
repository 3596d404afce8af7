"""The errors a user can cause or meet; each says where it is, what was found and what was expected.

``RerankError`` is the common base: the command line prints its message without a traceback.
Exit codes of the command line: 1 for a failed run (``RunError``), 2 for everything the user can fix in
a recipe, a data file, a model or a command line, 128 + n if signal n stopped it.
"""

import copyreg
import errno
import logging
import os
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from rerank.base.encoding import hide_secrets, plain

DISK_FULL = errno.ENOSPC, errno.EDQUOT
MAX_NAME = 100  # characters of an id or key in a message
MAX_MESSAGE = 2000
NO_MEMORY = "out of memory; use fewer lists, examples or features (a larger features.min_lists leaves out more)"
Warnings = list[tuple[int, str]]  # level and message


def _start(text: str, longest: int = MAX_NAME, safe: str = "") -> str:
    """The start of a text, as a message shows it."""
    start = plain(text[:longest], safe)
    return start if len(text) <= longest else f"{start}..."


def with_place(place: str, message: str, safe: str = "\t") -> str:
    """A message preceded by its place, both made plain except for the characters ``safe``, and without secrets."""
    message = _start(hide_secrets(message), MAX_MESSAGE, safe)
    return f"{_start(place, MAX_MESSAGE)}: {message}" if place else message


class RerankError(Exception):
    """Base of all errors that are reported to the user as one message."""

    exit_code = 2

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: a pool whose worker raises what cannot be read back waits for ever."""
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


class DataError(RerankError):
    """A data file holds something that no reader or metric can use.

    Parameters
    ----------
    message: what was found, what was expected and what to do.
    path: the file, as the user named it.
    line: 1-based line number in that file.
    list_id: the id of the N-best list concerned.
    """

    def __init__(
        self, message: str, *, path: str | None = None, line: int | None = None, list_id: str | None = None
    ) -> None:
        self.message, self.path, self.line, self.list_id = message, path, line, list_id
        place = ":".join(str(part) for part in (path and hide_secrets(path), line) if part)
        if list_id is not None:
            place = f"{place}: list {_start(list_id)}" if place else f"list {_start(list_id)}"
        super().__init__(with_place(place, message))


class RecipeError(RerankError):
    """A recipe or a ``--set`` value is wrong; ``key`` is the dotted path of the setting."""

    def __init__(self, message: str, *, key: str | None = None, path: str | None = None) -> None:
        self.message, self.key, self.path = message, key, path
        place = ": ".join(part for part in (hide_secrets(path or ""), _start(key or "")) if part)
        super().__init__(with_place(place, message, safe="\n\t"))  # YAML's own messages have several lines


class ModelError(RerankError):
    """A model directory is missing, damaged, or of another version or task."""

    def __init__(self, message: str, *, path: str | None = None) -> None:
        self.message, self.path = message, path
        super().__init__(with_place(hide_secrets(path or ""), message))


class RunError(RerankError):
    """A run could not be carried out for reasons outside the user's input (disk full, unwritable output)."""

    exit_code = 1


class StoppedError(RunError):
    """A signal stopped the command; ``exit_code`` is 128 plus its number."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class UnforeseenError(RunError):
    """Wraps an exception that is not a ``RerankError``; can be pickled, whatever that exception holds.

    traceback: the full traceback, as Python prints it.
    """

    def __init__(self, message: str, traceback: str = "") -> None:
        super().__init__(message)
        self.traceback = traceback

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """The wrapper of an ``error`` that was raised; its message says which list or file was being processed."""
        if isinstance(error, cls):
            return error
        try:
            details = "".join(traceback.format_exception(error))
        except Exception as another:  # out of memory, or an exception of a user's part that cannot even be shown
            details = f"{type(error).__name__}, which cannot be shown: {type(another).__name__}\n"
        place, what = _at_hand(error), _describe(error)
        return cls(with_place("" if what.startswith(place) else place, what), details)


def _describe(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return NO_MEMORY
    if isinstance(error, OSError) and error.strerror:
        return f"{os.fspath(error.filename)!s}: {error.strerror}" if error.filename else error.strerror
    try:
        text = str(error)
    except Exception:
        text = ""
    return f"unexpected {type(error).__name__}{': ' if text else ''}{text}"


def _at_hand(error: BaseException) -> str:
    """The list or file that was being processed by the innermost function of the package that knows of one.

    It is read off the functions' variables, so that nothing needs to be recorded while all goes well.
    """
    file = ""
    for frame in reversed([frame for frame, _ in traceback.walk_tb(error.__traceback__)]):
        if str(frame.f_globals.get("__name__")).startswith("rerank."):
            for value in frame.f_locals.values():
                nbest = getattr(value, "nbest", value)  # the list itself, or something that holds it
                path, line, name = (getattr(nbest, key, None) for key in ("path", "line", "id"))
                is_list = isinstance(path, str) and isinstance(line, int) and isinstance(name, str)
                if is_list and file in ("", path):
                    return f"{path}:{line}: list {name}"
            variables = map(frame.f_locals.get, ("path", "nbest", "file", "entry", "directory"))
            file = file or next((os.fspath(value) for value in variables if isinstance(value, str | os.PathLike)), "")
    return file


class _Collector(logging.Filter):
    """Takes warnings out of the log of threads that collect them."""

    thread = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        warnings: Warnings | None = getattr(self.thread, "warnings", None)
        if warnings is None or record.levelno < logging.WARNING:
            return True
        warnings.append((record.levelno, record.getMessage()))
        return False


logging.getLogger("rerank").addFilter(_Collector())


@contextmanager
def collected_warnings() -> Iterator[Warnings]:
    """The warnings that this thread logs within the block, for whoever is to show them: once, or in order of tasks."""
    before, warnings = getattr(_Collector.thread, "warnings", None), Warnings()
    _Collector.thread.warnings = warnings
    try:
        yield warnings
    finally:
        _Collector.thread.warnings = before
