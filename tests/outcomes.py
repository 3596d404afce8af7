"""What became of a list that a test has damaged, and what is written of a list."""

import io
from collections.abc import Iterable
from typing import Any, cast

from rerank.readers.base import Lists, Problem, Reader


def problem_of(found: Lists) -> Problem:
    """The problem of a list that is bad as a whole, or of the one candidate that was left out of it."""
    if found.problem is not None:
        return cast(Problem, found.problem)
    (bad,) = found.bad
    return bad


def good(found: Lists) -> Any:
    """The list, which is not bad."""
    assert found.problem is None, found
    return found


def outline(found: Iterable[Lists]) -> list[tuple[str, object]]:
    """The ids of lists, each with the reason of what is bad in it or, where nothing is, the number of candidates."""
    return [(one.id, len(one) if one.problem is None and not one.bad else problem_of(one).reason) for one in found]


def written(reader: Reader, *what: Any) -> bytes:
    """A list, in some order and with some scores if these are given."""
    out = io.BytesIO()
    reader.write(out, *what)
    return out.getvalue()
