"""Free columns: dense scores, which no L1 penalty touches, brought to a common scale.

A feature's unit decides how fast its weight moves. Indicators have the unit one; scores are divided by their standard
deviation within lists (only differences within a list count). Weights apply to the scaled values; multiplied by the
scale, they apply to the scores as the file has them.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from rerank.data.corpus import Corpus, concatenate
from rerank.kernels.compile import kernel

FAINT = 1e-6  # what is so much smaller is lost


@kernel
def add_squares(
    lists: np.ndarray, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, sums: np.ndarray, squares: np.ndarray
) -> None:
    """Add (value − mean of its list)² over all candidates to ``squares``, for the first columns (float64 [free]).

    A column that is missing from a row is 0 there. ``sums`` is scratch (float64 [2, free]).
    """
    free, total, present = squares.shape[0], sums[0], sums[1]
    for i in range(lists.shape[0] - 1):
        size = lists[i + 1] - lists[i]
        for j in range(free):
            total[j] = present[j] = 0.0
        for y in range(lists[i], lists[i + 1]):
            for p in range(rows[y], rows[y + 1]):
                j = columns[p]
                if j >= free:
                    break
                total[j] += values[p]
                present[j] += 1
        for y in range(lists[i], lists[i + 1]):
            for p in range(rows[y], rows[y + 1]):
                j = columns[p]
                if j >= free:
                    break
                away = values[p] - total[j] / size
                squares[j] += away * away
        for j in range(free):
            if size > present[j]:
                mean = total[j] / size
                squares[j] += (size - present[j]) * (mean * mean)


def free_values(corpus: Corpus) -> np.ndarray:
    """float64 [N, F]: the free columns of every candidate."""
    dense, at = np.zeros((corpus.candidate_count, corpus.free)), np.flatnonzero(corpus.columns < corpus.free)
    dense[np.searchsorted(corpus.rows, at, side="right") - 1, corpus.columns[at]] = corpus.values[at]
    return dense


def dense_alone(lists: Corpus) -> Corpus:
    """The lists with their free columns alone, in memory."""
    taken = [part.keep_columns(np.arange(part.width) < part.free) for part in lists.parts()]
    return concatenate([replace(part, width=part.free, trusted=True) for part in taken])


def said_of(name: str, low: np.ndarray, high: np.ndarray, deviation: float = 0.0) -> list[str]:
    """What is wrong with a column's numbers, given the least and the greatest in every list (float64 [L]).

    deviation: within these lists and others that are not among them.
    """
    spread, size = high - low, np.maximum(high, -low)
    if not (varied := spread > 0).any():
        return []
    spread, size, deviation = spread[varied], size[varied], max(deviation, np.sqrt(np.square(spread).mean()))
    typical, lines = float(np.median(spread)), list[str]()
    if np.median(spread / size) < FAINT:
        shown = f"varies by {typical:.3g} in lists, but has the size {np.median(size):.3g}"
        lines.append(f"{name} {shown}: is it an id or a time? Leave it out, or write the differences alone")
    if typical < FAINT * deviation:
        shown = f"varies by {typical:.3g} in most lists, but has the deviation {deviation:.3g}"
        lines.append(f"{name} {shown}: is some value an error? All others become equal beside it")
    return lines


def said_of_all(names: Iterable[str], columns: np.ndarray, lists: np.ndarray) -> list[str]:
    """``said_of`` columns (float64 [K, N]) of the lists lists[i]..lists[i + 1]."""
    low, high = (extreme.reduceat(columns, lists[:-1], axis=1) for extreme in (np.minimum, np.maximum))
    return [line for column in zip(names, low, high, strict=False) for line in said_of(*column)]


class ColumnSpread:
    """The spread of free columns within lists, summed corpus by corpus: the sums are as over all lists in one go."""

    def __init__(self, free: int) -> None:
        self._squares, self._candidates = np.zeros(free), 0
        self._sums = np.empty((2, free))

    def add(self, corpus: Corpus) -> None:
        """Add further lists, whose values must not be scaled yet."""
        add_squares(corpus.lists, corpus.rows, corpus.columns, corpus.values, self._sums, self._squares)
        self._candidates += corpus.candidate_count

    def scale(self) -> np.ndarray:
        """float64 [free]: 1 / standard deviation of every free column within lists; 1 where that is 0."""
        deviation = np.sqrt(self._squares / max(self._candidates, 1))
        scale = np.ones(self._squares.size)
        usable = (deviation > 0) & np.isfinite(deviation)
        scale[usable] = 1 / deviation[usable]
        return scale


def standard_scale(corpus: Corpus) -> np.ndarray:
    """float64 [free]: 1 / standard deviation of every free column within the lists of ``corpus``; 1 where that is 0."""
    spread = ColumnSpread(corpus.free)
    spread.add(corpus)
    return spread.scale()
