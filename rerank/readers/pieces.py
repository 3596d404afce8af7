"""What the readers of texts keep of a list for writing it back, and which of its candidates repeat others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Pieces(NamedTuple):
    """A list taken apart: ``candidates`` can be put into another order, or after those of another list.

    | field      | meaning |
    |------------|---------|
    | head       | what the list has once: its JSON object, its lines before the first candidate |
    | candidates | N entries, what it has of every candidate |
    """

    head: Any
    candidates: list[Any]


class ListError(Exception):
    """A list turns out to be bad; ``reason`` and ``message`` are those of the BadList to come."""

    def __init__(self, reason: str, message: str, line: int | None = None) -> None:
        self.reason, self.message, self.line = reason, message, line
        super().__init__(message)


def first_places(texts: Sequence[bytes]) -> list[int]:
    """The places of the texts that repeat none before them."""
    first: dict[bytes, int] = {}
    for place, text in enumerate(texts):
        first.setdefault(text, place)
    return list(first.values())
