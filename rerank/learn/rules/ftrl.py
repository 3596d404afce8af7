"""Follow the proximally regularised leader, with a step size per column (McMahan et al. 2013, Alg. 1).

For a subgradient g_j, with α a step size and n_j = Σ g_j² so far,

    σ = (√(n_j + g_j²) − √n_j)/α,   z_j ← z_j + g_j − σ·w_j,   n_j ← n_j + g_j²,
    w_j = −sign(z_j)·max(|z_j| − λ₁, 0) / ((β + √n_j)/α + λ₂).

A weight changes only when an update touches its column: a_j is w_j.

When normalised, all this is done with φ_j/c_j in place of φ_j, and α·√(t/N) in place of α: see ``units``, also for how
rounding is kept out. Where c_j grows, z_j, √n_j and the sum of all σ are multiplied by the ratio of the old c_j to the
new, as if it had always been the new one; what is kept is q_j = (β + √n_j)/α as of the column's last update, and σ is
the change of q_j. The weight is divided by c_j. The base score's coordinate has no regulariser and is not normalised.
Free columns of a corpus have λ₁ = λ₂ = 0.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.kernels.by_type import body
from rerank.kernels.compile import kernel
from rerank.learn.base import Learner, State, learners
from rerank.learn.hooks import gather, update
from rerank.learn.losses import Loss
from rerank.learn.predictor import FREE, assign, fresh
from rerank.learn.rules.units import (
    NOISE,
    SQUARES,
    TIMES,
    count_size,
    gather_spread,
    largest_coefficient,
    pace,
    squared_units,
)
from rerank.learn.settings import NotNegative, Positive, Update
from rerank.learn.shard_states import ShardStates, inverted, ratio, root
from rerank.learn.workspace import Scratch

# Of a cell, a line of the processor's caches: w, z, √n, q, c and, because divisions take most of the time, 1/c.
W, Z, ROOT, Q, UNIT, INVERSE = range(6)
GREATEST = 1e150  # q is at most this, and q + λ₂ at least its inverse: quotients stay finite


@learners.add("ftrl")
@dataclass(frozen=True, kw_only=True)
class FTRL(Learner):
    """FTRL-proximal: AdaGrad's step sizes with L1 and L2 that do not grow with the number of updates.

    >>> from rerank.learn.learned import learned
    >>> learned(FTRL(l1=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.0552, 'short': 0.0988}

    Reference: McMahan et al. 2013 (KDD), Alg. 1. Memory: 64 bytes a column.

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

    def init(self, columns: int, candidates: int = 0) -> State:  # noqa: ARG002
        return fresh(columns, cell=6, rest=2)

    def combined(self, shards: ShardStates, rule: str) -> State:
        """n, t and N add up, and z is what makes w the leader at the step sizes that follow.

        Precision: w = (Σ q_s)⁻¹ Σ q_s·w_s, q_s being a column's inverse step size; else means of w.
        """
        unit = shards.largest(lambda end: end.cells[:, UNIT])
        state = self.init(len(unit) - 1)

        def in_units(end: State, cell: int) -> np.ndarray:
            return np.asarray(end.cells[:, cell] * ratio(end.cells[:, UNIT], unit))

        w = shards.mean(lambda end: end.cells[:, W])
        if rule == "precision":
            sure = sum(in_units(end, Q) for end in shards.ends)
            weighted = sum(in_units(end, Q) * end.cells[:, W] for end in shards.ends)
            w = np.divide(weighted, sure, out=np.zeros_like(unit), where=sure > 0)
        state.numbers[[TIMES, SQUARES]] = shards.summed(lambda end: end.numbers[[TIMES, SQUARES]])
        cells = state.cells
        cells[:, W], cells[:, UNIT], cells[:, INVERSE] = w, unit, inverted(unit)
        cells[:, ROOT] = spread = root(shards.summed(lambda end: in_units(end, ROOT) ** 2))
        alpha = np.full(unit.size, self.alpha * (pace(state.numbers) if self.normalized else 1.0))
        bound = np.arange(unit.size) >= shards.free
        alpha[-1], bound[-1] = self.alpha, False  # the base score's
        cells[:, Q] = np.where(spread > 0, np.minimum((self.beta + spread) / alpha, GREATEST), 0.0)
        l1, l2 = np.where(bound, self.l1, 0.0), np.where(bound, self.l2, 0.0)
        scaled = w * np.where(unit > 0, unit, 1.0)
        idle = np.clip(shards.mean(lambda end: in_units(end, Z)), -l1, l1)
        cells[:, Z] = np.where(scaled == 0, idle, -(scaled * (cells[:, Q] + l2) + np.sign(scaled) * l1))
        return shards.completed(state, self.shrinks)


body(gather, FTRL)(gather_spread)


@body(update, FTRL)
def follow_all(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
    """Follow the leader in every column of g, in its unit, which grows to the x_j in ``scratch.extra``."""
    plain, top, base = min(1.0 / params.alpha, GREATEST), largest_coefficient(scratch, n), state.cells.shape[0] - 1
    if top <= NOISE:
        count = 0
    steep = plain
    if params.normalized:
        for r in range(np.uint64(count)):
            j, x = scratch.column[r], scratch.extra[r]
            cell, scratch.extra[r] = state.cells[j], 1.0
            if scratch.value[r] != 0.0 and j != base:
                if x > cell[UNIT]:
                    bound = 1.0 if j >= state.counts[FREE] else 0.0
                    assign(state, j, rescaled(cell, x, bound * params.l1, bound * params.l2))
                scratch.extra[r] = cell[INVERSE]
        count_size(state.numbers, squared_units(scratch, count, base, top))
        steep = min(plain / pace(state.numbers), GREATEST)
    for r in range(np.uint64(count)):
        j, g = scratch.column[r], weight * scratch.value[r]
        if scratch.value[r] == 0.0:
            continue
        cell, unit, inverse = state.cells[j], 1.0, 1.0
        if params.normalized and j != base:
            unit, inverse = cell[UNIT], cell[INVERSE]
        bound = 1.0 if j >= state.counts[FREE] and j != base else 0.0
        slope = plain if j == base else steep
        w = follow(cell, g * inverse, cell[W] * unit, slope, params.beta, bound * params.l1, bound * params.l2)
        assign(state, j, w * inverse)


@kernel
def follow(cell: np.ndarray, g: float, w: float, slope: float, beta: float, l1: float, l2: float) -> float:
    """Take in the entry g of a subgradient where the weight is w, with α = 1/``slope``, all in the column's unit;
    returns the new weight (McMahan et al. 2013, Alg. 1)."""
    cell[ROOT] = math.sqrt(cell[ROOT] ** 2 + g * g)
    q = min((beta + cell[ROOT]) * slope, GREATEST)
    cell[Z] += g - (q - cell[Q]) * w
    cell[Q] = q
    return leader(cell[Z], q, l1, l2)


@kernel
def leader(z: float, steepness: float, l1: float, l2: float) -> float:
    """The weight that z and q, the steepness, stand for."""
    return float(-(max(z - l1, 0.0) + min(z + l1, 0.0)) / max(steepness + l2, 1.0 / GREATEST))


@kernel
def rescaled(cell: np.ndarray, x: float, l1: float, l2: float) -> float:
    """Let c_j grow to x, and with it the unit; returns the new weight."""
    ratio = cell[UNIT] / x
    cell[Z] *= ratio
    cell[ROOT] *= ratio
    cell[Q] *= ratio
    cell[UNIT], cell[INVERSE] = x, 1.0 / x
    return leader(cell[Z], cell[Q], l1, l2) / x
