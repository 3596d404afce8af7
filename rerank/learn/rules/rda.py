"""Regularised dual averaging and its voted form (Xu et al. 2011, Alg. 1; Gao et al. 2013, Fig. 1; Xiao 2010).

With s the sum of subgradients after k updates,

    w_j = −sign(s_j) · max(|s_j| − k·λ₁, 0) · d_k,   d_k = 1 / (k·λ₂ + η·√k),   w = 0 for k = 0:

a weight is read from s_j and k when a feature is touched, and nothing loops over all columns. Free columns of a corpus
have λ₁ = λ₂ = 0: w_j = −s_j·f_k with f_k = 1 / (η·√k).

The average is exact and lazy. While s_j stays the same for the predictors a..b,

    Σ_k c_k w_kj = −sign(s_j) · (|s_j|·(P_e − P_{a−1}) − λ₁·(Q_e − Q_{a−1})),   P = Σ c_k d_k, Q = Σ c_k k d_k,

where e is the last k ≤ b with k·λ₁ < |s_j|; and −s_j·(F_b − F_{a−1}), F = Σ c_k f_k, for free columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.learn.base import DualRule, Learner, Weights, learners, require, require_common
from rerank.learn.judge import base_of, judge, look_ahead, score_list, squared_radius, subgradient
from rerank.learn.log import LogRoom, UpdateLog, record
from rerank.learn.losses import LOSSES
from rerank.learn.rules.additive import count_update
from rerank.learn.rules.lazy import (
    ALIVE,
    DUAL,
    FREE,
    PENDING,
    K,
    Prefix,
    close_predictor,
    count_active,
    first_penalised,
    lazy_sums,
    penalty,
    set_free,
    summed_average,
    summed_free,
    summed_weight,
)
from rerank.learn.scoring import dot
from rerank.learn.voting.votes import Replay, Updates, VoteRoom, Votes, emit, emit_free, free_slopes, load
from rerank.learn.workspace import ListArrays, Scratch


class RDAState(NamedTuple):
    """What training changes; D columns."""

    s: np.ndarray  # float64 [D]: sum of subgradients
    total: np.ndarray  # float64 [D]: Σ c_k w_k
    counts: np.ndarray  # int64 [5]: see ``lazy``
    base: np.ndarray  # float64 [2]: s and total of the base score


class RDASettings(NamedTuple):
    """The parameters for kernels."""

    loss: int
    eta: float
    l1: float
    l2: float
    base: float
    base_rate: float
    always: bool
    any_ties: bool


@kernel
def scale(k: int, eta: float, l2: float) -> float:
    """d_k; f_k for l2 = 0."""
    return 1.0 / (k * l2 + eta * math.sqrt(k)) if k > 0 else 0.0


@kernel
def shrunk_dot(
    s: np.ndarray, threshold: float, columns: np.ndarray, values: np.ndarray, first: int, last: int
) -> float:
    """Σ_j φ_j sign(s_j) max(|s_j| − threshold, 0) for the row at first..last: −w·φ / d_k."""
    total = 0.0
    for p in range(np.uint64(first), np.uint64(last)):
        x = s[columns[p]]
        total += (max(x - threshold, 0.0) + min(x + threshold, 0.0)) * values[p]
    return total


@kernel
def score_apart(
    data: ListArrays, i: int, s: np.ndarray, threshold: float, d: float, f: float, beta: float, scores: np.ndarray
) -> None:
    """``score_shrunk`` of lists with free columns."""
    first, last = data.lists[i], data.lists[i + 1]
    for y in range(first, last):
        middle = first_penalised(data, y)
        free = dot(s, data.columns, data.values, data.rows[y], middle)
        shrunk = shrunk_dot(s, threshold, data.columns, data.values, middle, data.rows[y + 1])
        scores[y - first] = beta * data.base[y] - (f * free + d * shrunk)


@kernel
def score_shrunk(
    data: ListArrays, i: int, s: np.ndarray, threshold: float, d: float, f: float, beta: float, scores: np.ndarray
) -> None:
    """β·b(y) + w·φ(y) for the candidates of list i; where nothing is shrunk, by a plain sum."""
    if data.free > 0 and (threshold > 0.0 or d != f):
        score_apart(data, i, s, threshold, d, f, beta, scores)
        return
    if threshold == 0.0:
        score_list(data, i, s, 0.0, scores)
    first, last = data.lists[i], data.lists[i + 1]
    for y in range(first, last):
        if threshold > 0.0:
            scores[y - first] = shrunk_dot(s, threshold, data.columns, data.values, data.rows[y], data.rows[y + 1])
        scores[y - first] = beta * data.base[y] - d * scores[y - first]


@kernel
def settle(state: RDAState, j: int, k: int, prefix: Prefix, free: int, l1: float) -> None:
    """Enter what column j weighed, up to predictor k, into its total."""
    if state.s[j] != 0.0:
        if j < free:
            state.total[j] += summed_free(state.s[j], prefix.since[j], k, prefix)
        else:
            state.total[j] += summed_weight(state.s[j], l1, prefix.since[j], k, prefix)
    prefix.since[j] = k + 1


@kernel
def rda_epoch(
    data: ListArrays,
    order: np.ndarray,
    state: RDAState,
    prefix: Prefix,
    t: Scratch,
    log: LogRoom,
    tally: np.ndarray,
    q: RDASettings,
) -> None:
    """Pass over ``order``: predict, and on a mistake (or, always, a loss) s ← s + g, k ← k + 1 (Gao et al., Fig. 1)."""
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        i = order[at]
        k = state.counts[K]
        d, f = scale(k, q.eta, q.l2), scale(k, q.eta, 0.0)
        beta = q.base - q.base_rate * f * state.base[DUAL]
        score_shrunk(data, i, state.s, k * q.l1, d, f, beta, t.scores)
        n = judge(data, i, t, q.loss, q.always, q.any_ties, tally)
        if n > 0:
            record(log, i, t.who, t.a, n, data.weight[i], state.counts[ALIVE])
            close_predictor(state, prefix, d, f, beta)
            update(data, state, prefix, t, n, data.weight[i], tally, q)
            state.counts[ALIVE] = 0
        state.counts[ALIVE] += 1  # the list on which a predictor errs is the first that the next one counts
        state.counts[PENDING] += 1


@kernel
def update(
    data: ListArrays,
    state: RDAState,
    prefix: Prefix,
    t: Scratch,
    n: int,
    weight: float,
    tally: np.ndarray,
    q: RDASettings,
) -> None:
    """s ← s + weight·g, k ← k + 1; what a coordinate has weighed so far goes into the total just before it changes."""
    k = state.counts[K]
    count, g_base = subgradient(data, t, n), q.base_rate * base_of(data, t, n)
    count_update(tally, squared_radius(t, count, g_base, q.loss))
    for r in range(count):
        j = t.column[r]
        settle(state, j, k, prefix, data.free, q.l1)
        state.s[j] += weight * t.value[r]
    state.base[DUAL] += weight * g_base
    state.counts[K] = k + 1


@kernel
def replay_rda(data: ListArrays, log: Updates, s: np.ndarray, t: Scratch, room: VoteRoom, q: RDASettings) -> None:
    """Repeat the updates s ← s + rate·g of ``log``; votes are cast with −s, and for free columns with −s·f_k/d_k."""
    s_base = 0.0
    for k in range(log.lists.shape[0]):
        n = load(log, k, t)
        count = subgradient(data, t, n)
        for r in range(count):
            s[t.column[r]] += log.rate[k] * t.value[r]
        s_base += log.rate[k] * (q.base_rate * base_of(data, t, n))
        beta = q.base - q.base_rate * scale(k + 1, q.eta, 0.0) * s_base
        emit(room, k, t, count, s, -1.0, beta)
        if room.slope.shape[0] > 0:
            free_slopes(room, k, data.free)
        if data.free > 0 and q.l2 > 0.0:
            emit_free(room, k, s, scale(k + 1, q.eta, 0.0) / scale(k + 1, q.eta, q.l2), data.free)


@kernel
def flush(state: RDAState, prefix: Prefix, q: RDASettings) -> None:
    """Bring every coordinate's total up to date; nothing lazy is left."""
    k = state.counts[K]
    f = scale(k, q.eta, 0.0)
    beta = q.base - q.base_rate * f * state.base[DUAL]
    close_predictor(state, prefix, scale(k, q.eta, q.l2), f, beta)
    for j in range(state.s.shape[0]):
        settle(state, j, k, prefix, state.counts[FREE], q.l1)


@learners.add("rda")
@dataclass(frozen=True)
class RDA(Learner):
    """Regularised dual averaging with L1, L2 or both.

    Parameters
    ----------
    loss: one of LOSSES.
    eta: > 0; larger means smaller weights compared with the base score.
    l1, l2: ≥ 0; strength of the regularisers λ₁‖w‖₁ and (λ₂/2)‖w‖².
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 learns it as the weight of
        a feature ρ·b(y) without regulariser.
    """

    name: ClassVar[str] = "rda"

    loss: str = "hinge"
    eta: float = 1.0
    l1: float = 0.0
    l2: float = 0.0
    update: Literal["always", "mistakes"] = "always"
    base: float = 1.0
    base_rate: float = 0.0

    def __post_init__(self) -> None:
        require("eta", self.eta, low=0.0, strict=True)
        require_common(self)
        require("l1", self.l1, low=0.0)
        require("l2", self.l2, low=0.0)

    def settings(self, any_ties: bool = False) -> RDASettings:
        """The parameters for kernels."""
        return RDASettings(
            loss=LOSSES[self.loss],
            eta=float(self.eta),
            l1=float(self.l1),
            l2=float(self.l2),
            base=float(self.base),
            base_rate=float(self.base_rate),
            always=self.update == "always",
            any_ties=any_ties,
        )

    def init(self, columns: int, candidates: int = 0) -> RDAState:  # noqa: ARG002
        """See ``Learner.init``."""
        return RDAState(np.zeros(columns), np.zeros(columns), np.zeros(5, np.int64), np.zeros(2))

    def begin(self, corpus: Corpus, order: np.ndarray, state: RDAState) -> Prefix:
        """See ``Learner.begin``."""
        set_free(state.counts, corpus)
        return lazy_sums(corpus, order, int(state.counts[K]))

    def walk(
        self,
        data: ListArrays,
        part: np.ndarray,
        state: RDAState,
        lazy: Prefix,
        space: Scratch,
        room: LogRoom,
        tally: np.ndarray,
        any_ties: bool,
    ) -> None:
        """See ``Learner.walk``."""
        rda_epoch(data, part, state, lazy, space, room, tally, self.settings(any_ties))

    def finish(self, state: RDAState, lazy: Prefix) -> None:
        """See ``Learner.finish``."""
        flush(state, lazy, self.settings())

    def alive(self, state: RDAState) -> int:
        """See ``Learner.alive``."""
        return int(state.counts[ALIVE])

    def nonzero_weights(self, state: RDAState) -> int:
        """See ``Learner.nonzero_weights``."""
        return count_active(state.s, state.counts[K] * self.l1, int(state.counts[FREE]))

    def last(self, state: RDAState) -> Weights:
        """See ``Learner.last``."""
        k, free, D = int(state.counts[K]), int(state.counts[FREE]), state.s.size
        size = np.maximum(np.abs(state.s) - penalty(k * self.l1, D, free), 0.0)
        d, f = scale(k, self.eta, self.l2), scale(k, self.eta, 0.0)
        beta = self.base - self.base_rate * f * state.base[DUAL]
        return Weights(-np.sign(state.s) * size * np.where(np.arange(D) < free, f, d), float(beta))

    def average(self, state: RDAState) -> Weights:
        """See ``Learner.average``."""
        return summed_average(state, self.base, self.base_rate)

    def votes(self, log: UpdateLog, corpus: Corpus) -> Votes:
        """See ``Learner.votes``: a_j = −s_j, τ_k = k·λ₁, and d_k.

        Free columns have v_j = 0, and a_j = −s_j·f_k/d_k: where f_k and d_k differ, every update touches all of them.
        """
        more = corpus.free if self.l2 > 0 else 0
        replay = Replay(log, corpus, self.base, slopes=corpus.free > 0 and self.l1 > 0, more=more)
        replay_rda(replay.data, replay.updates, np.zeros(corpus.width), replay.space, replay.room, self.settings())
        k = np.arange(replay.updates.lists.size + 1)
        with np.errstate(divide="ignore"):
            d = np.where(k > 0, 1.0 / (k * self.l2 + self.eta * np.sqrt(k)), 0.0)
        return replay.votes(scale=d, threshold=k * self.l1 if self.l1 > 0 else None)

    def dual_rule(self) -> DualRule:
        """See ``Learner.dual_rule``."""
        return DualRule(*(float(x) for x in (self.eta, self.l1, self.l2, self.base, self.base_rate)))

    def updates(self, state: RDAState) -> int:
        """See ``Learner.updates``."""
        return int(state.counts[K])


@learners.add("vrda")
@dataclass(frozen=True)
class VotedRDA(RDA):
    """Voted RDA: dual averaging that updates on mistakes only; see RDA for the parameters."""

    name: ClassVar[str] = "vrda"

    update: Literal["always", "mistakes"] = "mistakes"
