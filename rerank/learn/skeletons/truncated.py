"""Weights that all move toward 0 at times, without a loop over them: truncated gradient and FOBOS.

With G_k the sum of the truncations up to update k, a column keeps

    a_j = w_j + sign(w_j)·G_k as it was last touched, and weighs shrink(a_j, G_k) = sign(a_j)·max(|a_j| − G_k, 0) since.

A column can be exempt: it keeps a_j = w_j until an update touches it. Free columns of a corpus are always exempt.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.by_type import body, by_type
from rerank.learn.apart import ByColumn, TrainedApart
from rerank.learn.judge import look_up, score_list
from rerank.learn.scoring import dot, single
from rerank.learn.settings import NotNegative, Positive
from rerank.learn.skeletons.lazy import (
    FREE,
    SUM,
    Lazy,
    PredictorSums,
    first_penalised,
    level_of,
    shrink,
    summed,
    summed_column,
)
from rerank.learn.steps import UPDATES, beta, coordinate, look_up_weights, rate_of, score, step, threshold_of
from rerank.learn.workspace import ListArrays, Scratch

WEIGHT = 0  # index of TruncatedState.base, before SUM


class TruncatedState(NamedTuple):
    """What training changes; D columns."""

    a: ByColumn  # float64 [D]
    exempt: ByColumn  # bool [D]: is |w_j| above θ? [0] without a θ
    total: ByColumn  # float64 [D]: Σ c_k w_k
    threshold: np.ndarray  # float64 [1]: G_k
    counts: np.ndarray  # int64 [5]: see ``lazy``
    base: np.ndarray  # float64 [2]: learned weight of the base score, and Σ c_k β_k


@dataclass(frozen=True, kw_only=True)
class Truncating(Lazy):
    """A learner with a TruncatedState."""

    mixes: ClassVar[tuple[str, ...]] = ("updates", "mean")
    local: ClassVar[bool] = False  # thresholds start again for all columns

    eta: Positive = 1.0
    l1: NotNegative = 0.0

    def limit(self) -> float | None:
        """Weights above it are exempt; None for no limit."""
        return None

    def init(self, columns: int, candidates: int = 0) -> TruncatedState:  # noqa: ARG002
        exempt = np.zeros(0 if self.limit() is None else columns, np.bool_)
        a, total = np.zeros(columns), np.zeros(columns)
        return TruncatedState(a, exempt, total, np.zeros(1), np.zeros(5, np.int64), np.zeros(2))

    def weights(self, state: TruncatedState) -> np.ndarray:
        shrunk = np.sign(state.a) * np.maximum(np.abs(state.a) - state.threshold[0], 0.0)
        exempt = np.arange(state.a.size) < state.counts[FREE]
        return np.where(exempt | state.exempt if state.exempt.size else exempt, state.a, shrunk)

    def vote_room(self, corpus: Corpus) -> dict[str, Any]:
        """See ``Learner.vote_room``: a_j, τ_k = G_k, and for exempt columns v_j = 0."""
        return {"slopes": self.limit() is not None or corpus.free > 0}

    def combined(self, apart: TrainedApart, rule: str) -> TruncatedState:  # noqa: ARG002
        """See ``Learner.combined``: w = Σ share·w_s; the thresholds start again from 0, so that a_j = w_j."""
        w = apart.mean(lambda end: self.last(end).w)
        limit = self.limit()
        exempt = np.zeros(0, np.bool_) if limit is None else np.abs(w) > limit
        base = np.array([apart.mean(lambda end: end.base[WEIGHT]), apart.summed(lambda end: end.base[SUM])])
        total = apart.summed(lambda end: end.total)
        return TruncatedState(w, exempt, total, np.zeros(1), self.counted(apart), base)


@by_type
def step_size(k: int, q: Any) -> float:
    """α_k = η/√k."""
    return float(q.eta / math.sqrt(k))


@by_type
def truncation(k: int, q: Any) -> float:
    """How far update k moves weights toward 0."""
    return 0.0


@by_type
def becomes_exempt(w: float, q: Any) -> bool:
    """Does this weight leave the reach of truncation?"""
    return False


@body(rate_of, Truncating)
def rate(state: Any, weight: float, q: Any) -> float:
    """α_k."""
    return step_size(state.counts[UPDATES] + 1, q) * weight


@body(step, Truncating)
def move(state: Any, t: Scratch, count: int, n: int, rate: float, g_base: float, free: int, q: Any) -> None:
    """w ← w − α_k·g, then the truncation.

    The weights of the touched columns, as they are before the truncation, decide which of them it reaches.
    """
    for r in range(count):
        j = t.column[r]
        w = weight_of(state, j) - rate * t.value[r]
        if state.exempt.shape[0] > 0:
            state.exempt[j] = becomes_exempt(w, q)
        state.a[j] = w if is_exempt(state, j) or w == 0.0 else w + math.copysign(state.threshold[0], w)
    state.base[WEIGHT] -= rate * g_base
    state.counts[UPDATES] += 1
    state.threshold[0] += truncation(state.counts[UPDATES], q)


@by_type
def is_exempt(state: Any, j: int) -> bool:
    """Is column j beyond the reach of truncation?"""
    return bool(j < state.counts[FREE] or (state.exempt.shape[0] > 0 and state.exempt[j]))


@by_type
def weight_of(state: Any, j: int) -> float:
    """w_j."""
    return state.a[j] if is_exempt(state, j) else shrink(state.a[j], state.threshold[0])


@body(score, Truncating)
def score_truncated(data: ListArrays, i: int, state: Any, q: Any, scores: np.ndarray) -> None:
    """Where nothing was truncated, by a plain sum."""
    weight, G = beta(state, q), state.threshold[0]
    if G == 0.0:
        score_list(data, i, state.a, weight, scores)
        return
    first, last = data.lists[i], data.lists[i + 1]
    for y in range(first, last):
        middle = first_penalised(data, y) if data.free > 0 else data.rows[y]
        total = dot(state.a, data.columns, data.values, data.rows[y], middle)
        for p in range(middle, data.rows[y + 1]):
            j = data.columns[p]
            exempt = state.exempt.shape[0] > 0 and state.exempt[j]
            total += shrink(state.a[j], 0.0 if exempt else G) * single(data.values[p])
        scores[y - first] = weight * data.base[y] + total


@body(look_up_weights, Truncating)
def look_up_truncated(data: ListArrays, order: np.ndarray, at: int, state: Any, lazy: Any, q: Any) -> None:
    """The weights, and their sums where every list is learned from."""
    look_up(data, order, at, state.a)
    if q.always:
        look_up(data, order, at, lazy.cells)


@body(beta, Truncating)
def beta_truncated(state: Any, q: Any) -> float:
    """The base score's weight is not truncated."""
    return float(q.base + q.base_rate * state.base[WEIGHT])


@body(level_of, Truncating)
def level(state: Any, q: Any) -> float:
    """G_k."""
    return float(state.threshold[0])


@body(threshold_of, Truncating)
def threshold(state: Any, q: Any) -> float:
    """G_k."""
    return float(state.threshold[0])


@body(summed_column, Truncating)
def summed_truncated(state: Any, j: int, last: int, sums: PredictorSums, free: int, q: Any) -> float:
    """Exempt columns have v_j = 0."""
    return summed(state.a[j], 0.0 if is_exempt(state, j) else 1.0, sums.cells[j], last, sums)


@body(coordinate, Truncating)
def coordinate_truncated(state: Any, j: int, free: int, q: Any) -> tuple[float, float]:
    """Exempt columns have v_j = 0."""
    return state.a[j], 0.0 if is_exempt(state, j) else np.sign(state.a[j])
