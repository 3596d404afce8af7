"""Errors that nobody foresaw, reported like any other: where, what, and the traceback separately."""

import os
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Self

from rerank.base.errors import RunError, placed

PACKAGE = __name__.partition(".")[0]
MEMORY = "out of memory; use fewer lists, examples or features (a larger features.min_lists leaves out more)"


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
        place, what = _at_hand(error), _described(error)
        return cls(placed("" if what.startswith(place) else place, what), details)


def _described(error: BaseException) -> str:
    """What happened."""
    if isinstance(error, MemoryError):
        return MEMORY
    if isinstance(error, OSError) and error.strerror:
        return f"{os.fspath(error.filename)!s}: {error.strerror}" if error.filename else error.strerror
    try:
        text = str(error)
    except Exception:
        text = ""
    name = type(error).__name__
    return f"unexpected {name}: {text}" if text else f"unexpected {name}"


def _at_hand(error: BaseException) -> str:
    """The list or file that was being processed by the innermost function of the package that knows of one.

    It is read off the functions' variables, so that nothing needs to be recorded while all goes well.
    """
    file = ""
    for frame in reversed([frame for frame, _ in traceback.walk_tb(error.__traceback__)]):
        if str(frame.f_globals.get("__name__")).partition(".")[0] == PACKAGE:
            for path, line, name in _lists(frame):
                if not file or file == path:
                    return f"{path}:{line}: list {name}"
            file = file or next(_files(frame), "")
    return file


def _lists(frame: FrameType) -> Iterator[tuple[str, int, str]]:
    """Path, line and id of the lists among the variables of a function."""
    for value in frame.f_locals.values():
        nbest = getattr(value, "nbest", value)  # the list itself, or something that holds it
        path, line, name = (getattr(nbest, key, None) for key in ("path", "line", "id"))
        if isinstance(path, str) and isinstance(line, int) and isinstance(name, str):
            yield path, line, name


def _files(frame: FrameType) -> Iterator[str]:
    """The paths among the variables of a function."""
    for name in ("path", "nbest", "file", "entry", "directory"):
        if isinstance(value := frame.f_locals.get(name), str | os.PathLike):
            yield os.fspath(value)
