"""What became of a list that a test has damaged."""

from rerank.readers.base import NBestList, Problem, SkippedList


def problem_of(found: NBestList | SkippedList) -> Problem | SkippedList:
    """The list, if it is bad as a whole, or the one candidate that was left out of it."""
    if isinstance(found, SkippedList):
        return found
    (bad,) = found.bad
    return bad


def outcome(found: NBestList | SkippedList) -> tuple[str, object]:
    """A list's id with the reason of what is bad in it or, where nothing is, the number of its candidates."""
    whole = isinstance(found, NBestList) and not found.bad
    return found.id, len(found) if isinstance(found, NBestList) and whole else problem_of(found).reason
