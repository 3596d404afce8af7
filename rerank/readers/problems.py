"""The one way to say that a list or a candidate cannot be used."""

import copyreg
from copy import copy
from typing import Any

from rerank.base.errors import DataError

NUL = "a NUL byte; the file is damaged or not a text file"
UNJUDGED = "unjudged"  # the reason of lists that are left out whatever becomes of bad ones


class Problem(DataError):  # noqa: N818 - a value as often as an error
    """The reason why a list or a candidate cannot be used. A format gives the reason; ``at`` adds which list or
    candidate it is.

    Parameters
    ----------
    reason: a key of the table in ``rerank.readers.base``.
    message: what was found and what was expected.
    path, line: where it is; by default the place of the list or candidate.
    list_id: the list.
    place: the candidate's place in its list, from 0; None for the list as a whole.
    advice: what to do about it, which ``advised`` adds to the message.
    size: the number of candidates of the list, if it is known.
    """

    def __init__(
        self, reason: str, message: str, line: int | None = None, *, path: str | None = None,
        list_id: str | None = None, place: int | None = None, advice: str = "", size: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message, path=path, line=line, list_id=list_id)
        self.reason, self.place, self.advice, self.size = reason, place, advice, size

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: exceptions forget keyword arguments."""
        return copyreg.__newobj__, (Problem, *self.args), vars(self)  # type: ignore[attr-defined]

    def at(self, list_id: str, path: str, line: int, place: int | None = None, *, size: int | None = None) -> "Problem":
        """The problem of a list or candidate, with its place where the format has named no other."""
        line, path = self.line or line, self.path or path
        return Problem(
            self.reason, self.message, line, path=path, list_id=list_id, place=place, advice=self.advice, size=size
        )

    @property
    def id(self) -> str:
        """The id of the list."""
        return self.list_id or ""

    @property
    def name(self) -> str:
        """An id for a list that takes the place of a bad one, different from all others in the file."""
        return nameless(self.line or 0) if self.reason in ("header", "duplicate id") else self.id

    @property
    def concerns(self) -> str:
        """The part that cannot be used: a "list" or a "candidate"."""
        return "list" if self.place is None else "candidate"

    def advised(self, advice: str = "") -> "Problem":
        """The same as an error that ends with advice: its own or else, by default, how to continue without it."""
        without = f"fix or remove the {self.concerns}, or leave out such {self.concerns}s with --on-bad-list skip "
        advice = self.advice or advice or f"{without}(in a recipe: data.on_bad_list: skip)"
        advised = copy(self)
        advised.args = DataError(f"{self.message}; {advice}", path=self.path, line=self.line, list_id=self.list_id).args
        return advised


def nameless(line: int) -> str:
    """A substitute for the id of a list whose own is unknown."""
    return f"line-{line}"
