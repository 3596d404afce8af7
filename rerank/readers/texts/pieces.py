"""What the readers of texts keep of a list for writing it back, and which of its candidates are repeated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from rerank.readers.nbest import BadCandidate

T = TypeVar("T")
U = TypeVar("U")


class Pieces(NamedTuple):
    """A list taken apart: ``candidates`` can be reordered, or appended to those of another list.

    | field      | meaning |
    |------------|---------|
    | head       | what the list has once: its JSON object, or its lines before the first candidate |
    | candidates | N entries: what it has for every candidate |
    """

    head: Any
    candidates: list[Any]

    def some(self, places: Sequence[int]) -> Pieces:
        """The pieces with only the candidates at ``places``."""
        return Pieces(self.head, [self.candidates[place] for place in places])


class ListError(Exception):
    """A list, or one of its candidates, turns out to be bad, with a ``reason`` and a ``message``."""

    def __init__(self, reason: str, message: str, line: int | None = None) -> None:
        self.reason, self.message, self.line = reason, message, line
        super().__init__(message)


def each(items: Sequence[T], make: Callable[[T, int], U]) -> tuple[dict[int, U], dict[int, ListError]]:
    """The results of ``make`` (of an item and its number, from 1) for the candidates of a list, and its errors; both by
    place."""
    good: dict[int, U] = {}
    bad: dict[int, ListError] = {}
    for place, item in enumerate(items):
        try:
            good[place] = make(item, place + 1)
        except ListError as fault:
            bad[place] = fault
    return good, bad


def left_out(bad: dict[int, ListError], name: str, path: str, lines: Sequence[int]) -> list[BadCandidate]:
    """The bad candidates of the list ``name``; ``lines`` are those of all its candidates."""
    return [
        BadCandidate(name, path, lines[place] if fault.line is None else fault.line, fault.reason, fault.message, place)
        for place, fault in sorted(bad.items())
    ]


def first_places(texts: Sequence[bytes]) -> list[int]:
    """The places of the texts that do not repeat an earlier one."""
    first: dict[bytes, int] = {}
    for place, text in enumerate(texts):
        first.setdefault(text, place)
    return list(first.values())
