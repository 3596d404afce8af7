"""What became of a list that a test has damaged."""

from rerank.readers.base import Bad, BadList, NBestList


def fault_of(found: NBestList | BadList) -> Bad:
    """The list, if it is bad as a whole, or the one candidate that was left out of it."""
    if isinstance(found, BadList):
        return found
    (bad,) = found.bad
    return bad


def outcome(found: NBestList | BadList) -> tuple[str, object]:
    """A list's id with the reason of what is bad in it or, where nothing is, the number of its candidates."""
    whole = isinstance(found, NBestList) and not found.bad
    return found.id, len(found) if isinstance(found, NBestList) and whole else fault_of(found).reason
