"""The one way to say that a list or a candidate cannot be used: its fault and, once its place is known, what is bad."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rerank.base.errors import DataError

NUL = "a NUL byte; the file is damaged or not a text file"


class Fault(DataError):  # noqa: N818 - a value as often as an error
    """Why a list or a candidate cannot be used, as a format finds it; ``Bad`` adds which one it is.

    Parameters
    ----------
    reason: a key of the table in ``rerank.readers.base``.
    message: what was found, what was expected and what to do.
    line: where, if it is not the line of the candidate or, for a list, its first.
    path: the file, if it is not that of the list.
    list_id: the list, where the fault is reported by itself.
    """

    def __init__(
        self, reason: str, message: str, line: int | None = None, *, path: str | None = None, list_id: str | None = None
    ) -> None:
        super().__init__(message, path=path, line=line, list_id=list_id)
        self.reason = reason


@dataclass(frozen=True)
class Bad:
    """What cannot be used, and why. ``reason`` is a key of the table in ``rerank.readers.base``."""

    id: str  # of the list
    path: str
    line: int
    reason: str
    message: str

    what: ClassVar[str] = "list"

    def error(self, advice: str | None = None) -> "UnusableError":
        """It as an error, with advice: what the file seems to be or else, by default, how to continue without it."""
        advice = getattr(self, "other", "") or advice
        if advice is None:
            advice = f"fix or remove the {self.what}, or leave out such {self.what}s with --on-bad-list skip "
            advice += "(in a recipe: data.on_bad_list: skip)"
        error = UnusableError(f"{self.message}; {advice}", path=self.path, line=self.line, list_id=self.id)
        error.bad = self
        return error

    def __str__(self) -> str:
        return str(DataError(self.message, path=self.path, line=self.line, list_id=self.id))


class UnusableError(DataError):
    """A list or a candidate cannot be used; ``bad`` is it."""

    bad: Bad


@dataclass(frozen=True)
class BadCandidate(Bad):
    """A candidate that was left out of its list; ``place`` is its place among the list's candidates, from 0."""

    place: int

    what: ClassVar[str] = "candidate"

    @staticmethod
    def of(fault: Fault, name: str, path: str, line: int, place: int) -> "BadCandidate":
        """A candidate of the list ``name`` at a place, where the fault does not name another."""
        line, path = fault.line or line, fault.path or path
        return BadCandidate(name, path, line, fault.reason, fault.message, place)


@dataclass(frozen=True)
class BadList(Bad):
    """Takes the place of a list that cannot be used.

    size: the number of its candidates, if known. other: what the whole file seems to be, and what to do about it.
    """

    size: int | None = None
    other: str = ""

    @staticmethod
    def of(fault: Fault, name: str, path: str, line: int) -> "BadList":
        """The list ``name`` at a place, where the fault does not name another."""
        return BadList(name, fault.path or path, fault.line or line, fault.reason, fault.message)

    @staticmethod
    def of_all(bad: Sequence[BadCandidate]) -> "BadList":
        """A list without a usable candidate; the first of those found ``bad`` gives the reason."""
        first = bad[0]
        return BadList(first.id, first.path, first.line, first.reason, first.message, len(bad))

    @property
    def name(self) -> str:
        """An id for a list that takes its place, different from all others in the file."""
        return nameless(self.line) if self.reason in ("header", "duplicate id") else self.id


def nameless(line: int) -> str:
    """A substitute for the id of a list whose own is unknown."""
    return f"line-{line}"
