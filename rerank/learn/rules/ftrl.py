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
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.kernels.by_type import body, by_type
from rerank.kernels.compile import kernel
from rerank.learn.apart import ByColumn, TrainedApart, ratio, root
from rerank.learn.base import learners
from rerank.learn.losses import Loss
from rerank.learn.settings import NotNegative, Positive, Update
from rerank.learn.skeletons.additive import SUM, WEIGHT, Additive, base_history, history
from rerank.learn.skeletons.units import NOISE, count_size, gather_spread, largest_coefficient, pace
from rerank.learn.steps import SEEN, close, gather, step
from rerank.learn.workspace import Scratch

# Indices of a cell: z, √n, q and c of a column.
Z, ROOT, Q, SCALE = range(4)
LARGEST = 1e150  # q is at most this, and q + λ₂ at least its inverse: quotients stay finite


class FTRLState(NamedTuple):
    """What training changes; D columns. ``u`` holds Σ NOW·Δ (see ``additive``)."""

    w: ByColumn  # float64 [D]
    u: ByColumn  # float64 [D]
    cells: ByColumn  # float64 [D + 1, 4]: z, √n, q and c of a column, together; the base score's come last
    norm: np.ndarray  # float64 [2]: t, N
    counts: np.ndarray  # int64 [3]: updates; lists the current predictor survived; lists seen (Σ c_k)
    base: np.ndarray  # float64 [2]: learned weight of the base score, and its u


@learners.add("ftrl")
@dataclass(frozen=True, kw_only=True)
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
    base, base_rate: see Learner.

    Step sizes of a column are from 1e-150 to 1e150.
    """

    name: ClassVar[str] = "ftrl"
    mixes: ClassVar[tuple[str, ...]] = ("precision", "updates", "mean")

    loss: Loss = "logistic"
    alpha: Positive = 0.3
    beta: NotNegative = 0.01
    l1: NotNegative = 0.0
    l2: NotNegative = 0.0
    normalized: bool = True
    update: Update = "always"

    def init(self, columns: int, candidates: int = 0) -> FTRLState:  # noqa: ARG002
        """See ``Learner.init``."""
        w, u, cells = np.zeros(columns), np.zeros(columns), np.zeros((columns + 1, 4))
        return FTRLState(w, u, cells, np.zeros(2), np.zeros(3, np.int64), np.zeros(2))

    def combined(self, apart: TrainedApart, rule: str) -> FTRLState:
        """See ``Learner.combined``: n, t and N add up, and z is what makes w the leader at the step sizes that follow.

        Precision: w = (Σ q_s)⁻¹ Σ q_s·w_s, q_s being a column's inverse step size; else means of w.
        """
        unit = apart.largest(lambda end: end.cells[:, SCALE])

        def in_units(end: FTRLState, cell: int) -> np.ndarray:
            return np.asarray(end.cells[:, cell] * ratio(end.cells[:, SCALE], unit))

        def weights(end: FTRLState) -> np.ndarray:
            return np.append(end.w, end.base[WEIGHT])

        if rule == "precision":
            sure = sum(in_units(end, Q) for end in apart.ends)
            weighted = sum(in_units(end, Q) * weights(end) for end in apart.ends)
            w = np.divide(weighted, sure, out=np.zeros_like(unit), where=sure > 0)
        else:
            w = apart.mean(weights)
        cells, norm = np.zeros_like(apart.ends[0].cells), apart.summed(lambda end: end.norm)
        cells[:, SCALE] = unit
        cells[:, ROOT] = spread = root(apart.summed(lambda end: in_units(end, ROOT) ** 2))
        alpha = np.full(unit.size, self.alpha * (pace(norm) if self.normalized else 1.0))
        bound = np.arange(unit.size) >= apart.free
        alpha[-1], bound[-1] = self.alpha, False  # the base score's coordinate
        cells[:, Q] = np.where(spread > 0, np.minimum((self.beta + spread) / alpha, LARGEST), 0.0)
        l1, l2 = np.where(bound, self.l1, 0.0), np.where(bound, self.l2, 0.0)
        own = w * np.where(unit > 0, unit, 1.0)
        idle = np.clip(apart.mean(lambda end: in_units(end, Z)), -l1, l1)
        cells[:, Z] = np.where(own == 0, idle, -(own * (cells[:, Q] + l2) + np.sign(own) * l1))
        u, counts = history(apart, w[:-1], lambda end: end.w)
        return FTRLState(w[:-1], u, cells, norm, counts, base_history(apart, w[-1]))


body(gather, FTRL)(gather_spread)


@kernel
def follow(cell: np.ndarray, w: float, g: float, alpha: float, beta: float, l1: float, l2: float) -> float:
    """Take in a subgradient's entry at weight w; returns the new weight (McMahan et al. 2013, Alg. 1)."""
    cell[ROOT] = math.sqrt(cell[ROOT] ** 2 + g * g)
    q = min((beta + cell[ROOT]) / alpha, LARGEST)
    cell[Z] += g - (q - cell[Q]) * w
    cell[Q] = q
    return leader(cell, l1, l2)


@kernel
def leader(cell: np.ndarray, l1: float, l2: float) -> float:
    """The weight that z and q stand for."""
    z = cell[Z]
    return float(-(max(z - l1, 0.0) + min(z + l1, 0.0)) / max(cell[Q] + l2, 1.0 / LARGEST))


@by_type
def reweigh(state: Any, j: int, w: float) -> None:
    """w_j ← w."""
    if state.u.shape[0] > 0:
        state.u[j] += state.counts[SEEN] * (w - state.w[j])
    state.w[j] = w


@by_type
def rescale(state: Any, t: Scratch, count: int, top: float, free: int, q: Any) -> float:
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


@body(step, FTRL)
def follow_all(state: Any, t: Scratch, count: int, n: int, rate: float, g_base: float, free: int, q: Any) -> None:
    """Follow the leader in every column of g; a new predictor begins."""
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
        g = rate * t.value[r] / unit
        l1, l2 = (0.0, 0.0) if j < free else (q.l1, q.l2)
        reweigh(state, j, follow(state.cells[j], state.w[j] * unit, g, alpha, q.beta, l1, l2) / unit)
    if g_base != 0.0:
        own = state.cells[state.w.shape[0]]
        w = follow(own, state.base[WEIGHT], rate * g_base, q.alpha, q.beta, 0.0, 0.0)
        state.base[SUM] += state.counts[SEEN] * (w - state.base[WEIGHT])
        state.base[WEIGHT] = w
    close(state.counts)
