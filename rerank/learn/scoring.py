"""Scores of candidates under a predictor, linear or trees, and the best of every list."""

import math
from typing import NamedTuple, Protocol

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.metrics.metric import Metric
from rerank.metrics.oracle import best_of_lists, scored_rows


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


def weighed_rows(lists: Corpus, weights: Weights, metric: Metric) -> np.ndarray:
    """float64 [L, K]: what the candidates that ``weights`` score highest are worth, or their orders."""
    return scored_rows(lists, metric, scores(lists, weights))


def corpus_score(lists: Corpus, weights: Weights, metric: Metric) -> float:
    """The metric of what ``weights`` choose."""
    return metric.score(weighed_rows(lists, weights, metric), lists.reference)


@kernel
def add_scores(
    weight: np.ndarray, first: np.ndarray, candidate: np.ndarray, value: np.ndarray, scores: np.ndarray
) -> None:
    """Add weight[i] × value of every feature i of a list to the scores of its candidates."""
    for i in range(weight.shape[0]):
        for e in range(first[i], first[i + 1]):
            scores[candidate[e]] += weight[i] * value[e]
