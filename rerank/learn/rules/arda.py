"""Dual averaging with a step size per column: adaptive RDA (Duchi, Hazan & Singer 2011, eq. 3, diagonal, with L1).

With s_j = Σ g_j and H_j = δ + √(Σ g_j²) after k updates, the weights are

    w = argmin ⟨s, w⟩ + k·λ₁‖w‖₁ + wᵀ diag(H) w / 2η,   w_j = −sign(s_j)·max(|s_j| − k·λ₁, 0)·η / H_j.

A column whose subgradients are rare keeps large steps. With e_j = η/H_j, a_j is −s_j·e_j, v_j is e_j and τ is k·λ₁.

When normalised, all this is done with φ_j/c_j in place of φ_j, e_j = η/(H_j·c_j), and all weights are multiplied by
d_k = √(t/N): see ``units``, also for how rounding is kept out. Where c_j grows, s_j and √(Σ g_j²) are multiplied by the
ratio of the old c_j to the new, as if it had always been the new one. The base score's coordinate has no regulariser
and is not normalised. Free columns of a corpus have λ₁ = 0.
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
from rerank.learn.predictor import FREE_SCALE, SCALE, TAU, UPDATES, fresh
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

A, S, NORM, INVERSE = range(4)  # of a cell: a_j = −s_j·e_j, s_j, √(Σ g_j²), 1/c_j (0: there is no c_j yet)
GREATEST = 1e150  # the largest step size of a column: products with it stay finite


@learners.add("arda")
@dataclass(frozen=True, kw_only=True)
class AdaptiveRDA(Learner):
    """Regularised dual averaging with AdaGrad's step sizes.

    >>> from rerank.learn.learned import learned
    >>> learned(AdaptiveRDA(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': -0.0232, 'short': 0.1204}

    Reference: Duchi, Hazan & Singer 2011 (JMLR 12), eq. 3. Memory: 40 bytes a column, 32 without the average.

    Parameters
    ----------
    loss: one of LOSSES.
    eta: > 0; step size.
    delta: ≥ 0; larger means smaller steps at first. (A column's step size is at most 1e150.)
    l1: ≥ 0; strength of the regulariser λ₁‖w‖₁, of the normalised weights where they are.
    normalized: make learning independent of the unit of every feature.
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base, base_rate: see Learner.

    There is no L2: with a scale that depends on k and column together, no predictor could be replayed for voting.
    """

    name: ClassVar[str] = "arda"
    shrinks: ClassVar[bool] = True
    mixes: ClassVar[tuple[str, ...]] = ("sum",)

    loss: Loss = "logistic"
    eta: Positive = 0.3
    delta: NotNegative = 0.01
    l1: NotNegative = 0.0
    normalized: bool = True
    update: Update = "always"

    def init(self, columns: int, candidates: int = 0) -> State:  # noqa: ARG002
        return fresh(columns, cell=4, shrinks=True, slopes=self.l1 > 0, rest=2)

    def combined(self, shards: ShardStates, rule: str) -> State:  # noqa: ARG002
        """s, Σg², t, N and k add up, as for RDA, in the largest unit that a section saw."""
        unit = shards.largest(lambda end: inverted(end.cells[:, INVERSE]))
        state = self.init(len(unit) - 1)

        def in_units(end: State, cell: int) -> np.ndarray:
            return np.asarray(end.cells[:, cell] * ratio(inverted(end.cells[:, INVERSE]), unit))

        s = shards.summed(lambda end: in_units(end, S))
        norm = root(shards.summed(lambda end: in_units(end, NORM) ** 2))
        units = np.where(unit > 0, unit, 1.0)
        with np.errstate(divide="ignore"):
            e = np.where(norm > 0, np.minimum(self.eta / ((self.delta + norm) * units), GREATEST), 0.0)
        state.cells[:] = np.stack([-s * e, s, norm, inverted(unit)], axis=1)
        state.v[:] = e[: state.v.size]
        state.numbers[[TIMES, SQUARES]] = shards.summed(lambda end: end.numbers[[TIMES, SQUARES]])
        state = shards.completed(state, self.shrinks)
        state.numbers[SCALE] = state.numbers[FREE_SCALE] = pace(state.numbers)
        state.numbers[TAU] = state.counts[UPDATES] * self.l1
        return state


body(gather, AdaptiveRDA)(gather_spread)


@body(update, AdaptiveRDA)
def follow(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
    """Take in g, each entry in the unit of its column where it is normalised; k ← k + 1."""
    top, base = largest_coefficient(scratch, n), state.cells.shape[0] - 1
    if top <= NOISE:
        count = 0
    for r in range(np.uint64(count)):
        j, x = scratch.column[r], scratch.extra[r]
        cell, scratch.extra[r] = state.cells[j], 1.0
        if scratch.value[r] == 0.0:
            continue
        if params.normalized and j != base:
            if x * cell[INVERSE] > 1.0 or cell[INVERSE] == 0.0:
                grow(cell, x)
            scratch.extra[r] = cell[INVERSE]
        e = adagrad(cell, weight * scratch.value[r], scratch.extra[r], params.eta, params.delta)
        if state.v.shape[0] > 0:
            state.v[j] = e
    if params.normalized:
        count_size(state.numbers, squared_units(scratch, count, base, top))
    state.numbers[SCALE] = state.numbers[FREE_SCALE] = pace(state.numbers)
    state.numbers[TAU] = (state.counts[UPDATES] + 1) * params.l1


@kernel
def adagrad(cell: np.ndarray, g: float, inverse: float, eta: float, delta: float) -> float:
    """s ← s + g, H = δ + √(Σ g²), e = η/H (Duchi et al. 2011, Fig. 1, primal-dual update), all in the column's unit,
    1/``inverse``."""
    g *= inverse
    cell[S] += g
    cell[NORM] = math.sqrt(cell[NORM] ** 2 + g * g)
    e = min(eta * inverse / (delta + cell[NORM]), GREATEST)
    cell[A] = -cell[S] * e
    return float(e)


@kernel
def grow(cell: np.ndarray, x: float) -> None:
    """c_j ← x_j, with s_j and √(Σ g_j²) in the new unit."""
    ratio = 1.0 / (cell[INVERSE] * x) if cell[INVERSE] > 0.0 else 0.0
    cell[S] *= ratio
    cell[NORM] *= ratio
    cell[INVERSE] = 1.0 / x
