"""Follow the proximally regularised leader, with a step size per column (McMahan et al. 2013, Alg. 1).

For a subgradient g_j, with α a step size and n_j = Σ g_j² so far,

    σ = (√(n_j + g_j²) − √n_j)/α,   z_j ← z_j + g_j − σ·w_j,   n_j ← n_j + g_j²,
    w_j = −sign(z_j)·max(|z_j| − λ₁, 0) / ((β + √n_j)/α + λ₂).

A weight changes only when an update touches its column; the average is that of ``additive``.

When normalised, all this is done with φ_j/c_j in place of φ_j, and α·√(t/N) in place of α: see ``units``, also for how
rounding is kept out. Where c_j grows, z_j, √n_j and the sum of all σ are multiplied by the ratio of the old c_j to the
new, as if it had always been the new one; what is kept is q_j = (β + √n_j)/α as of the column's last update, and σ is
the change of q_j. The weight is divided by c_j. The base score's coordinate has no regulariser and is not normalised.
Free columns of a corpus have λ₁ = λ₂ = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.learn.base import learners, require, require_common, require_switch
from rerank.learn.judge import judge, look_ahead, score_list, squared_radius
from rerank.learn.log import LogRoom, UpdateLog, record
from rerank.learn.losses import LOSSES
from rerank.learn.rules.additive import ALIVE, NOW, SUM, WEIGHT, Additive, close, count_update, survive
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

# Indices of a cell: z, √n, q and c of a column.
Z, ROOT, Q, SCALE = range(4)
LARGEST = 1e150  # q is at most this, and q + λ₂ at least its inverse: quotients stay finite


class FTRLState(NamedTuple):
    """What training changes; D columns. ``u`` holds Σ NOW·Δ (see ``additive``)."""

    w: np.ndarray  # float64 [D]
    u: np.ndarray  # float64 [D]
    cells: np.ndarray  # float64 [D + 1, 4]: z, √n, q and c of a column, together; the base score's come last
    norm: np.ndarray  # float64 [2]: t, N
    counts: np.ndarray  # int64 [3]: updates; lists the current predictor survived; lists seen (Σ c_k)
    base: np.ndarray  # float64 [2]: learned weight of the base score, and its u


class FTRLSettings(NamedTuple):
    """The parameters for kernels."""

    loss: int
    alpha: float
    beta: float
    l1: float
    l2: float
    normalized: bool
    base: float
    base_rate: float
    always: bool
    any_ties: bool


@kernel
def leader(cell: np.ndarray, l1: float, l2: float) -> float:
    """The weight that z and q stand for."""
    z = cell[Z]
    return float(-(max(z - l1, 0.0) + min(z + l1, 0.0)) / max(cell[Q] + l2, 1.0 / LARGEST))


@kernel
def follow(cell: np.ndarray, w: float, g: float, alpha: float, beta: float, l1: float, l2: float) -> float:
    """Take in a subgradient's entry at weight w; returns the new weight (McMahan et al. 2013, Alg. 1)."""
    cell[ROOT] = math.sqrt(cell[ROOT] ** 2 + g * g)
    q = min((beta + cell[ROOT]) / alpha, LARGEST)
    cell[Z] += g - (q - cell[Q]) * w
    cell[Q] = q
    return leader(cell, l1, l2)


@kernel
def reweigh(state: FTRLState, j: int, w: float) -> None:
    """w_j ← w."""
    if state.u.shape[0] > 0:
        state.u[j] += state.counts[NOW] * (w - state.w[j])
    state.w[j] = w


@kernel
def rescale(state: FTRLState, t: Scratch, count: int, top: float, free: int, q: FTRLSettings) -> float:
    """Let the c_j of the touched columns grow to x_j, and with them the unit; returns Σ_j (g_j/c_j)² / max a_y²."""
    squared = 0.0
    for r in range(count):
        if t.value[r] == 0.0:
            continue
        j, x = t.column[r], t.extra[r]
        cell = state.cells[j]
        if x > cell[SCALE]:
            ratio = cell[SCALE] / x
            cell[Z] *= ratio
            cell[ROOT] *= ratio
            cell[Q] *= ratio
            cell[SCALE] = x
            l1, l2 = (0.0, 0.0) if j < free else (q.l1, q.l2)
            reweigh(state, j, leader(cell, l1, l2) / x)
        squared += (t.value[r] / (top * cell[SCALE])) ** 2
    return squared


@kernel
def step(
    state: FTRLState, t: Scratch, count: int, n: int, weight: float, g_base: float, free: int, q: FTRLSettings
) -> None:
    """Follow weight·g for the g in ``t.value`` and, for the base score, ``g_base``; a new predictor begins."""
    alpha, top = q.alpha, largest_coefficient(t, n)
    if top <= NOISE:
        count, g_base = 0, 0.0
    if q.normalized:
        count_size(state.norm, rescale(state, t, count, top, free, q))
        alpha *= pace(state.norm)
    for r in range(count):
        if t.value[r] == 0.0:
            continue
        j = t.column[r]
        unit = state.cells[j, SCALE] if q.normalized else 1.0
        g = weight * t.value[r] / unit
        l1, l2 = (0.0, 0.0) if j < free else (q.l1, q.l2)
        reweigh(state, j, follow(state.cells[j], state.w[j] * unit, g, alpha, q.beta, l1, l2) / unit)
    if g_base != 0.0:
        own = state.cells[state.w.shape[0]]
        w = follow(own, state.base[WEIGHT], weight * g_base, q.alpha, q.beta, 0.0, 0.0)
        state.base[SUM] += state.counts[NOW] * (w - state.base[WEIGHT])
        state.base[WEIGHT] = w
    close(state.counts)


@kernel
def ftrl_epoch(
    data: ListArrays,
    order: np.ndarray,
    state: FTRLState,
    t: Scratch,
    room: Extremes,
    log: LogRoom,
    tally: np.ndarray,
    q: FTRLSettings,
) -> None:
    """Pass over ``order``: on a loss (or only a mistake) follow its subgradient."""
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        i = order[at]
        score_list(data, i, state.w, q.base + q.base_rate * state.base[WEIGHT], t.scores)
        n = judge(data, i, t, q.loss, q.always, q.any_ties, tally)
        if n > 0:
            record(log, i, t.who, t.a, n, data.weight[i], state.counts[ALIVE])
            count, g_base = spread_subgradient(data, t, n, room), q.base_rate * spread_base(data, t, n)
            count_update(tally, squared_radius(t, count, g_base, q.loss))
            step(state, t, count, n, data.weight[i], g_base, data.free, q)
        survive(state.counts)


@kernel
def replay_ftrl(
    data: ListArrays, log: Updates, state: FTRLState, t: Scratch, spread: Extremes, room: VoteRoom, q: FTRLSettings
) -> None:
    """Repeat the updates of ``log``."""
    for k in range(log.lists.shape[0]):
        n = load(log, k, t)
        count = spread_subgradient(data, t, n, spread)
        step(state, t, count, n, log.rate[k], q.base_rate * spread_base(data, t, n), data.free, q)
        emit(room, k, t, count, state.w, 1.0, q.base + q.base_rate * state.base[WEIGHT])


@learners.add("ftrl")
@dataclass(frozen=True)
class FTRL(Additive):
    """FTRL-proximal: AdaGrad's step sizes with L1 and L2 that do not grow with the number of updates.

    Parameters
    ----------
    loss: one of LOSSES.
    alpha: > 0; step size.
    beta: ≥ 0; larger means smaller steps at first.
    l1, l2: ≥ 0; strength of the regularisers λ₁‖w‖₁ and (λ₂/2)‖w‖², of the normalised weights where they are.
    normalized: make learning independent of the unit of every feature.
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 learns it as the weight of
        a feature ρ·b(y).

    Step sizes of a column are from 1e-150 to 1e150.
    """

    name: ClassVar[str] = "ftrl"

    loss: str = "logistic"
    alpha: float = 0.3
    beta: float = 0.01
    l1: float = 0.0
    l2: float = 0.0
    normalized: bool = True
    update: Literal["always", "mistakes"] = "always"
    base: float = 1.0
    base_rate: float = 0.0

    def __post_init__(self) -> None:
        require("alpha", self.alpha, low=0.0, strict=True)
        require_common(self)
        require("beta", self.beta, low=0.0)
        require("l1", self.l1, low=0.0)
        require("l2", self.l2, low=0.0)
        require_switch("normalized", self.normalized)

    def settings(self, any_ties: bool = False) -> FTRLSettings:
        """The parameters for kernels."""
        return FTRLSettings(
            loss=LOSSES[self.loss],
            alpha=float(self.alpha),
            beta=float(self.beta),
            l1=float(self.l1),
            l2=float(self.l2),
            normalized=self.normalized,
            base=float(self.base),
            base_rate=float(self.base_rate),
            always=self.update == "always",
            any_ties=any_ties,
        )

    def init(self, columns: int, candidates: int = 0) -> FTRLState:  # type: ignore[override]  # noqa: ARG002
        """See ``Learner.init``."""
        w, u, cells = np.zeros(columns), np.zeros(columns), np.zeros((columns + 1, 4))
        return FTRLState(w, u, cells, np.zeros(2), np.zeros(3, np.int64), np.zeros(2))

    def walk(
        self,
        data: ListArrays,
        part: np.ndarray,
        state: FTRLState,
        lazy: None,  # noqa: ARG002
        space: Scratch,
        room: LogRoom,
        tally: np.ndarray,
        any_ties: bool,
    ) -> None:
        """See ``Learner.walk``."""
        ftrl_epoch(data, part, state, space, extremes(space), room, tally, self.settings(any_ties))

    def votes(self, log: UpdateLog, corpus: Corpus) -> Votes:
        """See ``Learner.votes``."""
        replay = Replay(log, corpus, self.base)
        state, space = self.init(corpus.width), scratch(corpus, self.loss_id)
        replay_ftrl(replay.data, replay.updates, state, space, extremes(space), replay.room, self.settings())
        return replay.votes()
