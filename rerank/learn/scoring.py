"""Scores of candidates under a predictor, linear or trees, and the best of every list.

Columns of numbers have scores without compiled code too, which takes longer to load than a list to rank. A column of
many numbers is an array (float64 [N]). Of few it is a tuple: numpy takes longer to begin than these to be added up.
"""

import math
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

import numpy as np

from rerank.data.corpus import Corpus
from rerank.features.sink import MIN_SPREAD
from rerank.kernels.compile import kernel
from rerank.metrics.metric import Metric, best_of_lists, owners, scored_rows

MIN_PRECISE = 1e-37  # below this float32 is coarse


class TreePredictor(Protocol):
    """A predictor that is no sum of weights.

    text: uint8, all of it, as its learner writes it; gains: float64 [D + 1], by how much each column, and the base
    score, bettered what was optimised.
    """

    @property
    def text(self) -> np.ndarray: ...

    @property
    def gains(self) -> np.ndarray: ...

    def scores(self, corpus: Corpus) -> np.ndarray:
        """float64 [N]: of every candidate."""

    def parts(self, corpus: Corpus, y: int) -> np.ndarray:
        """float64 [D + 1]: by how much each column, and the base score, changes the score of candidate y."""


class Weights(NamedTuple):
    """A predictor: score(y) = base · b(y) + w · φ(y), or base · b(y) + what ``trees`` give it."""

    w: np.ndarray  # float64 [D], 0 where there are trees
    base: float
    trees: TreePredictor | None = None

    @property
    def norm(self) -> float:
        """‖w‖; np.sum adds in the same order everywhere, BLAS in one that its threads and the processor decide."""
        return math.sqrt(float(np.square(self.w).sum()))

    @property
    def strength(self) -> np.ndarray:
        """float64 [D]: what says of every column how much it matters: w, or by how much it bettered the trees."""
        return self.w if self.trees is None else self.trees.gains[:-1]


# Numbers and loops of an unsigned type spare the hottest loops a check for negative indices.
ONE, TWO, THREE = np.uint64(1), np.uint64(2), np.uint64(3)


@kernel
def single(value: float) -> float:
    """A feature value, which is in single precision, for sums and products in double precision."""
    return float(value)


@kernel
def dot(a: np.ndarray, columns: np.ndarray, values: np.ndarray, first: int, last: int) -> float:
    """a · φ for the row at first..last; columns of an unsigned type are looked up fastest."""
    total = 0.0
    for p in range(np.uint64(first), np.uint64(last)):
        total += a[columns[p]] * single(values[p])
    return total


@kernel
def score_rows(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, w: np.ndarray, scores: np.ndarray) -> None:
    """w · φ(y) for all candidates."""
    for y in range(rows.shape[0] - 1):
        scores[y] = dot(w, columns, values, rows[y], rows[y + 1])


def scores(corpus: Corpus, weights: Weights) -> np.ndarray:
    """float64 [N]: the score of every candidate."""
    if weights.trees is not None:
        return weights.trees.scores(corpus) + weights.base * corpus.base
    out, at = np.empty(corpus.candidate_count), 0
    for part in corpus.parts():
        score_rows(part.rows, part.columns, part.values, weights.w, out[at : at + part.candidate_count])
        at += part.candidate_count
    return out + weights.base * corpus.base


def best(corpus: Corpus, scores: np.ndarray) -> np.ndarray:
    """int64 [L]: the candidate of highest score; ties to the higher base score, then the lower index; -1 for none."""
    return best_of_lists(corpus.lists, scores, corpus.base)


def choices(lists: Corpus, weights: Weights) -> np.ndarray:
    """int64 [L]: the candidate of every list that ``weights`` score highest, -1 for empty lists."""
    return best(lists, scores(lists, weights))


def rows_of_weights(lists: Corpus, weights: Weights, metric: Metric) -> np.ndarray:
    """float64 [L, K]: what the candidates that ``weights`` score highest are worth, or their orders."""
    return scored_rows(lists, metric, scores(lists, weights))


def corpus_score(lists: Corpus, weights: Weights, metric: Metric) -> float:
    """The metric of what ``weights`` choose."""
    return metric.score(rows_of_weights(lists, weights, metric), lists.reference)


def deviation_within(lists: np.ndarray, values: np.ndarray) -> float:
    """The standard deviation of the ``values`` of candidates (float64 [N]) from the means of their lists; squares are
    added one after the other."""
    sizes, owner = np.diff(lists), owners(lists)
    distances = values - values[lists[owner]]  # exactly 0 where all are alike
    distances -= np.bincount(owner, distances / sizes[owner], sizes.size)[owner]
    return math.sqrt(float(np.cumsum(np.append(0.0, distances**2))[-1]) / max(values.size, 1))


def base_unit(lists: Corpus) -> float | None:
    """1/σ, with which base scores of ``lists`` have unit deviation; None where they are all alike within lists."""
    deviation = deviation_within(lists.lists, lists.base)
    unit = 1 / deviation if deviation > 0 else math.inf
    return unit if math.isfinite(unit) and math.isfinite(deviation) else None


@kernel
def add_scores(
    weight: np.ndarray, first: np.ndarray, candidate: np.ndarray, value: np.ndarray, scores: np.ndarray
) -> None:
    """Add weight[i] × value of every feature i of a list to the scores of its candidates."""
    for i in range(weight.shape[0]):
        for e in range(first[i], first[i + 1]):
            scores[candidate[e]] += weight[i] * value[e]


def dense_scores(
    factor: float, base: Any, features: Sequence[tuple[float | None, Any]], *, relative: bool
) -> tuple[Any, int]:
    """The scores of a list, ``factor`` times their base scores and the weighted ``features``, to the bit those of
    ``flat_features``; and how many features vary whose weight is None, as the model does not know them. relative: see
    ``narrow``."""
    few, unknowns = isinstance(base, tuple), 0
    scores = [factor * score for score in base] if few else factor * base
    columns = [exact for _, exact in features]
    for (weight, exact), (low, high, values) in zip(features, _round(columns, few=few), strict=True):
        if high - low <= max(MIN_PRECISE, MIN_SPREAD * max(high, -low)):
            values = _narrow(exact, relative=relative)
            if min(values) == max(values):
                continue
        unknowns, weight = unknowns + (weight is None), float(weight or 0.0)
        if few:
            scores = [score + weight * (value + 0.0) for score, value in zip(scores, values, strict=True)]
        else:
            scores += weight * np.asarray(values, np.float64)
    return scores, unknowns


def _round(columns: Sequence[Any], *, few: bool) -> Iterable[tuple[float, float, Any]]:
    """The least and the greatest number of each column, and all of them rounded to float32."""
    if few or not columns:
        return [(min(exact), max(exact), array("f", exact)) for exact in columns]
    numbers = np.array(columns)
    singles = numbers.astype(np.float32) + np.float64(0.0)  # no -0.0, as in ``narrow``
    return zip(numbers.min(axis=1).tolist(), numbers.max(axis=1).tolist(), singles, strict=True)


def _narrow(exact: Sequence[float], *, relative: bool) -> "array[float]":
    """Numbers that float32 may not tell apart: see ``narrow``."""
    low, high, values = min(exact), max(exact), array("f", exact)
    if not relative or high - low >= MIN_SPREAD * max(high, -low) or list(values) == list(exact):
        return values
    offsets = [value - exact[0] for value in exact]
    *_, total = accumulate(offsets)
    return array("f", [value - total / len(offsets) for value in offsets])


def softmax(scores: Sequence[float]) -> list[float]:
    """Probabilities in proportion to e^score."""
    highest = max(scores, default=0.0)
    exponentials = [math.exp(score - highest) for score in scores]
    total = math.fsum(exponentials)
    return [each / total for each in exponentials]
