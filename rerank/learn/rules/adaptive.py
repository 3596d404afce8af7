"""Dual averaging with a step size per column: adaptive RDA (Duchi, Hazan & Singer 2011, eq. 3, diagonal, with L1).

With s_j = Σ g_j and H_j = δ + √(Σ g_j²) after k updates, the weights are

    w = argmin ⟨s, w⟩ + k·λ₁‖w‖₁ + wᵀ diag(H) w / 2η,   w_j = −sign(s_j)·max(|s_j| − k·λ₁, 0)·η / H_j.

A column whose subgradients are rare keeps large steps. A weight is read from s_j, e_j = η/H_j and k when a feature is
touched; the average is that of ``rda``, times e_j, which changes when s_j does.

When normalised, all this is done with φ_j/c_j in place of φ_j, e_j = η/(H_j·c_j), and all weights are multiplied by
d_k = √(t/N): see ``units``, also for how rounding is kept out. Where c_j grows, s_j and √(Σ g_j²) are multiplied by the
ratio of the old c_j to the new, as if it had always been the new one. The base score's coordinate has no regulariser
and is not normalised. Free columns of a corpus have λ₁ = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.learn.base import Learner, Weights, learners, require, require_common, require_switch
from rerank.learn.judge import judge, look_ahead, squared_radius
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
    summed_weight,
)
from rerank.learn.rules.units import (
    NOISE,
    Extremes,
    count_size,
    extremes,
    largest_coefficient,
    pace,
    spread_base,
    spread_subgradient,
)
from rerank.learn.voting.votes import Replay, Updates, VoteRoom, Votes, emit, load
from rerank.learn.workspace import ListArrays, Scratch, scratch

# Indices of AdaptiveState.cells (a column's numbers lie together) and, after DUAL and SUM, .base.
CELL_DUAL, CELL_STEP, CELL_NORM, CELL_SCALE = range(4)
BASE_NORM = 2
LARGEST = 1e150  # the largest step size of a column: products with it stay finite


class AdaptiveState(NamedTuple):
    """What training changes; D columns."""

    cells: np.ndarray  # float64 [D, 4]: s_j, e_j, √(Σ g_j²), c_j
    total: np.ndarray  # float64 [D]: Σ c_k w_k
    norm: np.ndarray  # float64 [2]: t, N
    counts: np.ndarray  # int64 [5]: see ``lazy``
    base: np.ndarray  # float64 [3]: s of the base score, Σ c_k β_k, √(Σ g²) of the base score


class AdaptiveSettings(NamedTuple):
    """The parameters for kernels."""

    loss: int
    eta: float
    delta: float
    l1: float
    normalized: bool
    base: float
    base_rate: float
    always: bool
    any_ties: bool


@kernel
def base_weight(state: AdaptiveState, q: AdaptiveSettings) -> float:
    """β."""
    step = min(q.eta / (q.delta + state.base[BASE_NORM]), LARGEST)
    return float(q.base - q.base_rate * (step * state.base[DUAL]))


@kernel
def score_adaptive(
    data: ListArrays, i: int, cells: np.ndarray, threshold: float, d: float, beta: float, scores: np.ndarray
) -> None:
    """β·b(y) + w·φ(y) for the candidates of list i."""
    first, last = data.lists[i], data.lists[i + 1]
    for y in range(first, last):
        total, middle = 0.0, data.rows[y]
        if data.free > 0:
            middle = first_penalised(data, y)
            for p in range(data.rows[y], middle):
                total += cells[data.columns[p], CELL_DUAL] * cells[data.columns[p], CELL_STEP] * data.values[p]
        for p in range(middle, data.rows[y + 1]):
            s, e = cells[data.columns[p], CELL_DUAL], cells[data.columns[p], CELL_STEP]
            total += (max(s - threshold, 0.0) + min(s + threshold, 0.0)) * e * data.values[p]
        scores[y - first] = beta * data.base[y] - d * total


@kernel
def step(
    state: AdaptiveState, t: Scratch, count: int, n: int, weight: float, g_base: float, q: AdaptiveSettings
) -> None:
    """s ← s + weight·g for the g in ``t.value`` and, for the base score, ``g_base``; e follows; k ← k + 1."""
    top, squared = largest_coefficient(t, n), 0.0
    if top <= NOISE:
        count, g_base = 0, 0.0
    for r in range(count):
        if t.value[r] == 0.0:
            continue
        cell, g = state.cells[t.column[r]], weight * t.value[r]
        if q.normalized:
            x = t.extra[r]
            if x > cell[CELL_SCALE]:
                cell[CELL_DUAL] *= cell[CELL_SCALE] / x
                cell[CELL_NORM] *= cell[CELL_SCALE] / x
                cell[CELL_SCALE] = x
            g /= cell[CELL_SCALE]
            squared += (t.value[r] / (top * cell[CELL_SCALE])) ** 2
        cell[CELL_DUAL] += g
        cell[CELL_NORM] = math.sqrt(cell[CELL_NORM] ** 2 + g * g)
        unit = cell[CELL_SCALE] if q.normalized else 1.0
        cell[CELL_STEP] = min(q.eta / ((q.delta + cell[CELL_NORM]) * unit), LARGEST)
    count_size(state.norm, squared)
    state.base[DUAL] += weight * g_base
    state.base[BASE_NORM] = math.sqrt(state.base[BASE_NORM] ** 2 + (weight * g_base) ** 2)
    state.counts[K] += 1


@kernel
def settle(state: AdaptiveState, j: int, k: int, prefix: Prefix, free: int, l1: float) -> None:
    """Enter what column j weighed, up to predictor k, into its total."""
    if state.cells[j, CELL_DUAL] != 0.0:
        summed = summed_weight(state.cells[j, CELL_DUAL], 0.0 if j < free else l1, prefix.since[j], k, prefix)
        state.total[j] += state.cells[j, CELL_STEP] * summed
    prefix.since[j] = k + 1


@kernel
def arda_epoch(
    data: ListArrays,
    order: np.ndarray,
    state: AdaptiveState,
    prefix: Prefix,
    t: Scratch,
    room: Extremes,
    log: LogRoom,
    tally: np.ndarray,
    q: AdaptiveSettings,
) -> None:
    """Pass over ``order`` (Duchi et al. 2011, Fig. 1, primal-dual update, on the lists that cause one)."""
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        i, k = order[at], state.counts[K]
        d, beta = pace(state.norm), base_weight(state, q)
        score_adaptive(data, i, state.cells, k * q.l1, d, beta, t.scores)
        n = judge(data, i, t, q.loss, q.always, q.any_ties, tally)
        if n > 0:
            record(log, i, t.who, t.a, n, data.weight[i], state.counts[ALIVE])
            close_predictor(state, prefix, d, d, beta)
            count, g_base = spread_subgradient(data, t, n, room), q.base_rate * spread_base(data, t, n)
            count_update(tally, squared_radius(t, count, g_base, q.loss))
            for r in range(count):
                settle(state, t.column[r], k, prefix, data.free, q.l1)
            step(state, t, count, n, data.weight[i], g_base, q)
            state.counts[ALIVE] = 0
        state.counts[ALIVE] += 1  # the list on which a predictor errs is the first that the next one counts
        state.counts[PENDING] += 1


@kernel
def replay_adaptive(
    data: ListArrays,
    log: Updates,
    state: AdaptiveState,
    t: Scratch,
    spread: Extremes,
    room: VoteRoom,
    d: np.ndarray,
    q: AdaptiveSettings,
) -> None:
    """Repeat the updates of ``log``: a_j = −s_j·e_j, v_j = sign(a_j)·e_j; d[k] ← d_k (float64 [M + 1])."""
    for k in range(log.lists.shape[0]):
        n = load(log, k, t)
        count = spread_subgradient(data, t, n, spread)
        step(state, t, count, n, log.rate[k], q.base_rate * spread_base(data, t, n), q)
        emit(room, k, t, count, state.cells[:, CELL_DUAL], -1.0, base_weight(state, q))
        for at in range(room.first[k], room.first[k + 1]):
            e = state.cells[room.columns[at], CELL_STEP]
            if room.slope.shape[0] > 0:
                room.slope[at] = np.sign(room.value[at]) * e if room.columns[at] >= data.free else 0.0
            room.value[at] *= e
        d[k + 1] = pace(state.norm)


@kernel
def flush(state: AdaptiveState, prefix: Prefix, q: AdaptiveSettings) -> None:
    """Bring every column's total up to date; nothing lazy is left."""
    d = pace(state.norm)
    close_predictor(state, prefix, d, d, base_weight(state, q))
    for j in range(state.total.shape[0]):
        settle(state, j, state.counts[K], prefix, state.counts[FREE], q.l1)


@learners.add("arda")
@dataclass(frozen=True)
class AdaptiveRDA(Learner):
    """Regularised dual averaging with AdaGrad's step sizes.

    Parameters
    ----------
    loss: one of LOSSES.
    eta: > 0; step size.
    delta: ≥ 0; larger means smaller steps at first. (A column's step size is at most 1e150.)
    l1: ≥ 0; strength of the regulariser λ₁‖w‖₁, of the normalised weights where they are.
    normalized: make learning independent of the unit of every feature.
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 learns it as the weight of
        a feature ρ·b(y).

    There is no L2: with a scale that depends on k and column together, no predictor could be replayed for voting.
    """

    name: ClassVar[str] = "arda"

    loss: str = "logistic"
    eta: float = 0.3
    delta: float = 0.01
    l1: float = 0.0
    normalized: bool = True
    update: Literal["always", "mistakes"] = "always"
    base: float = 1.0
    base_rate: float = 0.0

    def __post_init__(self) -> None:
        require("eta", self.eta, low=0.0, strict=True)
        require_common(self)
        require("delta", self.delta, low=0.0)
        require("l1", self.l1, low=0.0)
        require_switch("normalized", self.normalized)

    def settings(self, any_ties: bool = False) -> AdaptiveSettings:
        """The parameters for kernels."""
        return AdaptiveSettings(
            loss=LOSSES[self.loss],
            eta=float(self.eta),
            delta=float(self.delta),
            l1=float(self.l1),
            normalized=self.normalized,
            base=float(self.base),
            base_rate=float(self.base_rate),
            always=self.update == "always",
            any_ties=any_ties,
        )

    def init(self, columns: int, candidates: int = 0) -> AdaptiveState:  # noqa: ARG002
        """See ``Learner.init``."""
        counts = np.zeros(5, np.int64)
        return AdaptiveState(np.zeros((columns, 4)), np.zeros(columns), np.zeros(2), counts, np.zeros(3))

    def begin(self, corpus: Corpus, order: np.ndarray, state: AdaptiveState) -> Prefix:
        """See ``Learner.begin``."""
        set_free(state.counts, corpus)
        return lazy_sums(corpus, order, int(state.counts[K]))

    def walk(
        self,
        data: ListArrays,
        part: np.ndarray,
        state: AdaptiveState,
        lazy: Prefix,
        space: Scratch,
        room: LogRoom,
        tally: np.ndarray,
        any_ties: bool,
    ) -> None:
        """See ``Learner.walk``."""
        arda_epoch(data, part, state, lazy, space, extremes(space), room, tally, self.settings(any_ties))

    def finish(self, state: AdaptiveState, lazy: Prefix) -> None:
        """See ``Learner.finish``."""
        flush(state, lazy, self.settings())

    def alive(self, state: AdaptiveState) -> int:
        """See ``Learner.alive``."""
        return int(state.counts[ALIVE])

    def nonzero_weights(self, state: AdaptiveState) -> int:
        """See ``Learner.nonzero_weights``."""
        return count_active(state.cells[:, CELL_DUAL], state.counts[K] * self.l1, int(state.counts[FREE]))

    def last(self, state: AdaptiveState) -> Weights:
        """See ``Learner.last``."""
        s, e = state.cells[:, CELL_DUAL], state.cells[:, CELL_STEP]
        threshold = penalty(int(state.counts[K]) * self.l1, s.size, int(state.counts[FREE]))
        size = np.maximum(np.abs(s) - threshold, 0.0)
        beta = base_weight(state, self.settings())
        return Weights(-np.sign(s) * size * e * pace(state.norm), float(beta))

    def average(self, state: AdaptiveState) -> Weights:
        """See ``Learner.average``."""
        return summed_average(state, self.base, self.base_rate)

    def votes(self, log: UpdateLog, corpus: Corpus) -> Votes:
        """See ``Learner.votes``: a_j = −s_j·e_j, v_j = ±e_j (0 for free columns), τ_k = k·λ₁, and d_k."""
        replay = Replay(log, corpus, self.base, slopes=self.l1 > 0)
        d = np.ones(replay.updates.lists.size + 1)
        state, space = self.init(corpus.width), scratch(corpus, self.loss_id)
        replay_adaptive(
            replay.data, replay.updates, state, space, extremes(space), replay.room, d, self.settings()
        )  # fmt: skip
        return replay.votes(scale=d, threshold=np.arange(d.size) * self.l1 if self.l1 > 0 else None)

    def updates(self, state: AdaptiveState) -> int:
        """See ``Learner.updates``."""
        return int(state.counts[K])
