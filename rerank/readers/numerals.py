"""Numbers written in a text file."""

import math
from collections.abc import Sequence

from rerank.readers.base import Problem, excerpt


def numbers(text: bytes) -> list[float] | None:
    """The white-space separated numbers of ``text``; None if there are none, or there is something else."""
    words = text.split()
    try:
        return [float(word) for word in words] if words and b"_" not in text else None  # Python reads 1_000
    except ValueError:
        return None


def scores_of(text: bytes, expected: str, line: int | None = None, path: str | None = None) -> list[float]:
    """The numbers of ``text``, which are those of a candidate; line, path: see ``Problem``."""
    found = numbers(text)
    if found is None:
        raise Problem("score", f"found {excerpt(text)}; expected {expected}", line, path=path)
    if not all(map(math.isfinite, found)):
        raise Problem("infinite score", f"found {excerpt(text)}; expected finite scores", line, path=path)
    return found


def word_scores(scores: Sequence[float]) -> list[float]:
    """The sum of the scores of a candidate's words, their mean, the least of them, and their number."""
    total, count = sum(scores), len(scores)
    if not math.isfinite(total):
        raise Problem("infinite score", "the scores of the candidate's words have no finite sum")
    return [total, total / count, min(scores), float(count)] if count else [0.0, 0.0, 0.0, 0.0]
