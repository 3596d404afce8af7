"""What became of a list that a test has damaged, and what is written of a list."""

import io
from collections.abc import Iterable
from typing import Any

from rerank.readers.base import NBestList, Problem, Reader, SkippedList


def problem_of(found: NBestList | SkippedList) -> Problem | SkippedList:
    """The list, if it is bad as a whole, or the one candidate that was left out of it."""
    if isinstance(found, SkippedList):
        return found
    (bad,) = found.bad
    return bad


def good(found: NBestList | SkippedList) -> Any:
    """The list, which is not bad."""
    assert isinstance(found, NBestList), found
    return found


def outline(found: Iterable[NBestList | SkippedList]) -> list[tuple[str, object]]:
    """The ids of lists, each with the reason of what is bad in it or, where nothing is, the number of candidates."""
    return [
        (one.id, len(one) if isinstance(one, NBestList) and not one.bad else problem_of(one).reason) for one in found
    ]


def written(reader: Reader, *what: Any) -> bytes:
    """A list, in some order and with some scores if these are given."""
    out = io.BytesIO()
    reader.write(out, *what)
    return out.getvalue()
