"""Free columns: dense scores, which no L1 penalty touches, brought to a common scale.

A feature's unit decides how fast its weight moves. Indicators have the unit one; scores are divided by their standard
deviation within lists (only differences within a list count). Weights apply to the scaled values; multiplied by the
scale, they apply to the scores as the file has them.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from rerank.data.corpus import Corpus, concatenate
from rerank.data.shards import Lists, parts

FAINT = 1e-6  # what is so much smaller is lost


def free_values(corpus: Corpus) -> np.ndarray:
    """float64 [N, F]: the free columns of every candidate."""
    dense, (at, candidate) = np.zeros((corpus.candidate_count, corpus.free)), _free_entries(corpus)
    dense[candidate, corpus.columns[at]] = corpus.values[at]
    return dense


def _free_entries(corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """int64 each: the entries of free columns, and their candidates."""
    at = np.flatnonzero(corpus.columns < corpus.free)
    return at, np.searchsorted(corpus.rows, at, side="right") - 1


def dense_alone(lists: Lists) -> Corpus:
    """The lists with their free columns alone, in memory."""
    taken = [part.keep_columns(np.arange(part.width) < part.free) for _, part in parts(lists)]
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

    def add(self, corpus: Corpus) -> None:
        """Add further lists, whose values must not be scaled yet; a column that is missing from a row is 0 there."""
        sizes, free, (at, candidate) = np.diff(corpus.lists)[:, None], self._squares.size, _free_entries(corpus)
        number, columns = np.searchsorted(corpus.lists, candidate, side="right") - 1, corpus.columns[at]
        cell, values, room = number * free + columns, corpus.values[at].astype(np.float64), (sizes.size, free)
        mean = np.bincount(cell, values, sizes.size * free).reshape(room) / np.maximum(sizes, 1)
        absent = (sizes - np.bincount(cell, minlength=mean.size).reshape(room)) * mean**2
        squares = np.append((values - mean.ravel()[cell]) ** 2, absent)
        in_order = np.argsort(np.append(number, np.repeat(np.arange(sizes.size), free)), kind="stable")
        of = np.append(columns, np.tile(np.arange(free), sizes.size))
        np.add.at(self._squares, of[in_order], squares[in_order])
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
