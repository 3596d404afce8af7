"""Numbers written in a text file."""

from __future__ import annotations

import math

from rerank.readers.base import Fault, excerpt


def numbers(text: bytes) -> list[float] | None:
    """The white-space separated numbers of ``text``; None if there are none, or there is something else."""
    words = text.split()
    try:
        return [float(word) for word in words] if words and b"_" not in text else None  # Python reads 1_000
    except ValueError:
        return None


def scores_of(text: bytes, expected: str, line: int | None = None, path: str | None = None) -> list[float]:
    """The numbers of ``text``, which are those of a candidate; line, path: see ``Fault``.

    Raises
    ------
    Fault: there are none, there is something else ("score"), or one is not finite ("infinite score").
    """
    found = numbers(text)
    if found is None:
        raise Fault("score", f"found {excerpt(text)}; expected {expected}", line, path=path)
    if not all(map(math.isfinite, found)):
        raise Fault("infinite score", f"found {excerpt(text)}; expected finite scores", line, path=path)
    return found
