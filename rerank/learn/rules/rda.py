"""Regularised dual averaging and its voted form (Xu et al. 2011, Alg. 1; Gao et al. 2013, Fig. 1; Xiao 2010).

With s the sum of subgradients after k updates,

    w_j = −sign(s_j) · max(|s_j| − k·λ₁, 0) · d_k,   d_k = 1 / (k·λ₂ + η·√k),   w = 0 for k = 0:

a weight is read from s_j and k when a feature is touched, and nothing loops over all columns (see ``lazy``). Free
columns of a corpus have λ₁ = λ₂ = 0: w_j = −s_j·f_k with f_k = 1 / (η·√k).
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.by_type import body
from rerank.kernels.compile import kernel
from rerank.learn.apart import ByColumn, TrainedApart
from rerank.learn.base import DualRule, learners
from rerank.learn.judge import look_up, score_list
from rerank.learn.losses import Loss
from rerank.learn.scoring import dot, single
from rerank.learn.settings import NotNegative, Positive, Update
from rerank.learn.skeletons.lazy import (
    AT,
    FREE,
    Lazy,
    PredictorSums,
    first_penalised,
    free_scale,
    summed,
    summed_column,
)
from rerank.learn.steps import (
    UPDATES,
    beta,
    coordinate,
    emit,
    look_up_weights,
    put,
    scale_of,
    score,
    step,
    threshold_of,
)
from rerank.learn.voting.votes import VoteRoom
from rerank.learn.workspace import ListArrays, Scratch

DUAL = 0  # index of RDAState.base, before SUM


class RDAState(NamedTuple):
    """What training changes; D columns."""

    s: ByColumn  # float64 [D]: sum of subgradients
    total: ByColumn  # float64 [D]: Σ c_k w_k
    counts: np.ndarray  # int64 [5]: see ``lazy``
    base: np.ndarray  # float64 [2]: s and total of the base score


@learners.add("rda")
@dataclass(frozen=True, kw_only=True)
class RDA(Lazy):
    """Regularised dual averaging with L1, L2 or both.

    Parameters
    ----------
    loss: one of LOSSES.
    eta: > 0; larger means smaller weights compared with the base score.
    l1, l2: ≥ 0; strength of the regularisers λ₁‖w‖₁ and (λ₂/2)‖w‖², which spare the base score.
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "rda"
    mixes: ClassVar[tuple[str, ...]] = ("sum",)

    loss: Loss = "hinge"
    eta: Positive = 1.0
    l1: NotNegative = 0.0
    l2: NotNegative = 0.0
    update: Update = "always"

    def init(self, columns: int, candidates: int = 0) -> RDAState:  # noqa: ARG002
        return RDAState(np.zeros(columns), np.zeros(columns), np.zeros(5, np.int64), np.zeros(2))

    def weights(self, state: RDAState) -> np.ndarray:
        q = self.settings(state)
        size = np.maximum(np.abs(state.s) - self.penalised(state, state.counts[UPDATES] * self.l1), 0.0)
        free = np.arange(state.s.size) < state.counts[FREE]
        return np.asarray(-np.sign(state.s) * size * np.where(free, free_scale(state, q), scale_of(state, q)))

    def nonzero_weights(self, state: RDAState) -> int:
        return count_active(state.s, state.counts[UPDATES] * self.l1, int(state.counts[FREE]))

    def vote_room(self, corpus: Corpus) -> dict[str, Any]:
        """See ``Learner.vote_room``: a_j = −s_j, τ_k = k·λ₁, and d_k.

        Free columns have v_j = 0, and a_j = −s_j·f_k/d_k: where f_k and d_k differ, every update touches all of them.
        """
        return {"slopes": corpus.free > 0 and self.l1 > 0, "more": corpus.free if self.l2 > 0 else 0}

    def dual_rule(self) -> DualRule:
        return DualRule(*(float(x) for x in (self.eta, self.l1, self.l2, self.base, self.base_rate)))

    def combined(self, apart: TrainedApart, rule: str) -> RDAState:  # noqa: ARG002
        """See ``Learner.combined``: s = Σ s_s, k = Σ k_s, as if one learner had seen all these subgradients."""
        s, total = apart.summed(lambda end: end.s), apart.summed(lambda end: end.total)
        return RDAState(s, total, self.counted(apart), apart.summed(lambda end: end.base))


@kernel
def count_active(s: np.ndarray, threshold: float, free: int) -> int:
    """How many coordinates have a weight."""
    count = 0
    for j in range(free):
        count += s[j] != 0.0
    for j in range(free, s.shape[0]):
        count += abs(s[j]) > threshold
    return count


@body(scale_of, RDA)
def scale(state: Any, q: Any) -> float:
    """d_k = 1 / (k·λ₂ + η·√k)."""
    k = state.counts[UPDATES]
    return 1.0 / (k * q.l2 + q.eta * math.sqrt(k)) if k > 0 else 0.0


@body(free_scale, RDA)
def scale_of_free(state: Any, q: Any) -> float:
    """f_k = 1 / (η·√k)."""
    k = state.counts[UPDATES]
    return 1.0 / (k * 0.0 + q.eta * math.sqrt(k)) if k > 0 else 0.0


@body(threshold_of, RDA)
def threshold(state: Any, q: Any) -> float:
    """k·λ₁."""
    return float(state.counts[UPDATES] * q.l1)


@body(step, RDA)
def add_subgradient(
    state: Any, t: Scratch, count: int, n: int, rate: float, g_base: float, free: int, q: Any
) -> None:  # fmt: skip
    """s ← s + g, k ← k + 1 (Gao et al., Fig. 1); the weight of a list multiplies g."""
    for r in range(count):
        state.s[t.column[r]] += rate * t.value[r]
    state.base[DUAL] += rate * g_base
    state.counts[UPDATES] += 1


@body(look_up_weights, RDA)
def look_up_sums(data: ListArrays, order: np.ndarray, at: int, state: Any, lazy: Any, q: Any) -> None:
    """The sums of subgradients, and those of predictors where every list is learned from."""
    look_up(data, order, at, state.s)
    if q.always:
        look_up(data, order, at, lazy.cells)


@body(beta, RDA)
def beta_rda(state: Any, q: Any) -> float:
    """The base score's coordinate has no regulariser."""
    return float(q.base - q.base_rate * free_scale(state, q) * state.base[DUAL])


@body(summed_column, RDA)
def summed_rda(state: Any, j: int, last: int, sums: PredictorSums, free: int, q: Any) -> float:
    """Weights have the sign of −s."""
    if j < free:
        return float(-state.s[j] * (sums.F[last] - sums.F[int(sums.cells[j, AT])]))
    return -summed(state.s[j], q.l1, sums.cells[j], last, sums)


@body(coordinate, RDA)
def coordinate_rda(state: Any, j: int, free: int, q: Any) -> tuple[float, float]:
    """Votes are cast with −s, and for free columns with −s·f_k/d_k."""
    if j < free:
        return -state.s[j] * (free_scale(state, q) / scale_of(state, q)), 0.0
    return -state.s[j], np.sign(-state.s[j])


@body(emit, RDA)
def emit_rda(room: VoteRoom, k: int, t: Scratch, count: int, state: Any, lazy: Any, free: int, q: Any) -> None:
    """With λ₂, f_k/d_k grows with every update, which therefore leaves something new in all free columns."""
    at = room.first[k]
    for r in range(count):
        if t.column[r] >= free or q.l2 == 0.0:
            at = put(room, at, t.column[r], state, free, q)
    for j in range(free if q.l2 > 0.0 else 0):
        at = put(room, at, j, state, free, q)
    room.first[k + 1] = at


@kernel
def shrunk_dot(
    s: np.ndarray, threshold: float, columns: np.ndarray, values: np.ndarray, first: int, last: int
) -> float:
    """Σ_j φ_j sign(s_j) max(|s_j| − threshold, 0) for the row at first..last: −w·φ / d_k."""
    total = 0.0
    for p in range(np.uint64(first), np.uint64(last)):
        x = s[columns[p]]
        total += (max(x - threshold, 0.0) + min(x + threshold, 0.0)) * single(values[p])
    return total


@kernel
def score_apart(
    data: ListArrays, i: int, s: np.ndarray, threshold: float, d: float, f: float, weight: float, scores: np.ndarray
) -> None:
    """The scores of lists with free columns."""
    first, last = data.lists[i], data.lists[i + 1]
    for y in range(first, last):
        middle = first_penalised(data, y)
        free = dot(s, data.columns, data.values, data.rows[y], middle)
        shrunk = shrunk_dot(s, threshold, data.columns, data.values, middle, data.rows[y + 1])
        scores[y - first] = weight * data.base[y] - (f * free + d * shrunk)


@body(score, RDA)
def score_shrunk(data: ListArrays, i: int, state: Any, q: Any, scores: np.ndarray) -> None:
    """Where nothing is shrunk, by a plain sum."""
    d, f, k = scale_of(state, q), free_scale(state, q), state.counts[UPDATES]
    threshold, weight = k * q.l1, beta(state, q)
    if data.free > 0 and (threshold > 0.0 or d != f):
        score_apart(data, i, state.s, threshold, d, f, weight, scores)
        return
    if threshold == 0.0:
        score_list(data, i, state.s, 0.0, scores)
    first, last = data.lists[i], data.lists[i + 1]
    for y in range(first, last):
        if threshold > 0.0:
            scores[y - first] = shrunk_dot(
                state.s, threshold, data.columns, data.values, data.rows[y], data.rows[y + 1]
            )  # fmt: skip
        scores[y - first] = weight * data.base[y] - d * scores[y - first]
