"""What became of a list that a test has damaged, and what is written of a list."""

import io
from collections.abc import Iterable, Iterator
from typing import Any, cast

from rerank.readers.lists import one_by_one
from rerank.readers.problems import OnBadList
from rerank.readers.reader import Lists, Problem, Reader, SkipCount, count_usable, filter_usable, lists_of
from rerank.storage.streams import PathLike


def read_lists(
    reader: Reader, path: PathLike, on_bad_list: OnBadList = "error", count: SkipCount | None = None
) -> Iterator[Lists]:
    """The usable lists of ``path``; bad ones are errors, or skipped and counted in ``count``.

    ``count``, if given, also sets the policy, and ``on_bad_list`` is ignored.
    """
    count = count if count is not None else SkipCount(on_bad_list)
    yield from filter_usable(one_by_one(lists_of(reader, path)), count_usable, count)


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
