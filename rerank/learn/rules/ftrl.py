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

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.kernels.by_type import body, by_type
from rerank.kernels.compile import kernel
from rerank.learn.apart import ByColumn, TrainedApart, cells_of, ratio, root
from rerank.learn.base import learners
from rerank.learn.judge import look_up, score_list
from rerank.learn.losses import Loss
from rerank.learn.settings import NotNegative, Positive, Update
from rerank.learn.skeletons.additive import SUM, WEIGHT, Additive, base_history, history
from rerank.learn.skeletons.units import NOISE, count_size, gather_spread, largest_coefficient, pace, squared_units
from rerank.learn.steps import SEEN, beta, close, coordinate, gather, look_up_weights, score, step
from rerank.learn.workspace import ListArrays, Scratch

# Indices of a cell, which is a line of the processor's caches: z, √n, q, c, w of a column, and its Σ NOW·Δw.
Z, ROOT, Q, SCALE, W, PAST = range(6)
LARGEST = 1e150  # q is at most this, and q + λ₂ at least its inverse: quotients stay finite


class FTRLState(NamedTuple):
    """What training changes; D columns."""

    cells: ByColumn  # float64 [D + 1, 8]: see ``Z``; the base score's come last
    averaged: np.ndarray  # bool [1]; [0] where no average is wanted
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
        averaged = np.ones(1, np.bool_)
        return FTRLState(cells_of(columns + 1, 8), averaged, np.zeros(2), np.zeros(3, np.int64), np.zeros(2))

    def stored(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """See ``Learner.stored``: w and Σ NOW·Δw were arrays of their own, ``w`` and ``u``."""
        if not {"w", "u", "cells"} <= arrays.keys() or arrays["cells"].shape != (arrays["w"].size + 1, 4):
            return arrays
        cells = cells_of(arrays["w"].size + 1, 8)
        cells[:, : SCALE + 1], cells[:-1, W] = arrays["cells"], arrays["w"]
        if arrays["u"].size:
            cells[:-1, PAST] = arrays["u"]
        kept = {name: array for name, array in arrays.items() if name not in ("w", "u")}
        return kept | {"cells": cells, "averaged": np.ones(int(arrays["u"].size > 0), np.bool_)}

    def light(self, state: FTRLState) -> FTRLState:
        return state._replace(averaged=np.zeros(0, np.bool_))

    def weights(self, state: FTRLState) -> np.ndarray:
        return state.cells[:-1, W]

    def past(self, state: FTRLState) -> np.ndarray:
        return past_of_cells(state)

    def combined(self, apart: TrainedApart, rule: str) -> FTRLState:
        """See ``Learner.combined``: n, t and N add up, and z is what makes w the leader at the step sizes that follow.

        Precision: w = (Σ q_s)⁻¹ Σ q_s·w_s, q_s being a column's inverse step size; else means of w.
        """
        unit = apart.largest(lambda end: end.cells[:, SCALE])

        def in_units(end: FTRLState, cell: int) -> np.ndarray:
            return np.asarray(end.cells[:, cell] * ratio(end.cells[:, SCALE], unit))

        def weights(end: FTRLState) -> np.ndarray:
            return np.append(self.weights(end), end.base[WEIGHT])

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
        cells[:-1, W] = w[:-1]
        past, counts = history(apart, w[:-1], self.weights, past_of_cells)
        if past.size:
            cells[:-1, PAST] = past
        return FTRLState(cells, apart.start.averaged, norm, counts, base_history(apart, w[-1]))


def past_of_cells(state: FTRLState) -> np.ndarray:
    """Σ NOW·Δw."""
    return state.cells[:-1, PAST] if state.averaged.size else np.zeros(0)


body(gather, FTRL)(gather_spread)


@body(look_up_weights, FTRL)
def look_up_cells(data: ListArrays, order: np.ndarray, at: int, state: Any, lazy: Any, q: Any) -> None:
    """The weights, and what they follow from."""
    look_up(data, order, at, state.cells)


@body(score, FTRL)
def score_cells(data: ListArrays, i: int, state: Any, q: Any, scores: np.ndarray) -> None:
    """β·b(y) + w·φ(y)."""
    score_list(data, i, state.cells[:, W], beta(state, q), scores)


@body(coordinate, FTRL)
def weight_of_cell(state: Any, j: int, free: int, q: Any) -> tuple[float, float]:
    """The weight itself."""
    return state.cells[j, W], 0.0


@by_type
def follow(cell: np.ndarray, w: float, g: float, unit: float, alpha: float, l1: float, l2: float, q: Any) -> float:
    """Take in the entry of a subgradient; returns the new weight (McMahan et al. 2013, Alg. 1)."""
    w, g = w * unit, g / unit
    cell[ROOT] = math.sqrt(cell[ROOT] ** 2 + g * g)
    steepness = min((q.beta + cell[ROOT]) / alpha, LARGEST)
    cell[Z] += g - (steepness - cell[Q]) * w
    cell[Q] = steepness
    return leader(cell[Z], steepness, l1, l2) / unit


@kernel
def leader(z: float, steepness: float, l1: float, l2: float) -> float:
    """The weight that z and q, the steepness, stand for."""
    return float(-(max(z - l1, 0.0) + min(z + l1, 0.0)) / max(steepness + l2, 1.0 / LARGEST))


@by_type
def reweigh(state: Any, cell: np.ndarray, w: float) -> None:
    """w_j ← w."""
    if state.averaged.shape[0] > 0:
        cell[PAST] += state.counts[SEEN] * (w - cell[W])
    cell[W] = w


@by_type
def rescale(state: Any, cell: np.ndarray, x: float, l1: float, l2: float) -> None:
    """Let c_j grow to x, and with it the unit."""
    ratio = cell[SCALE] / x
    cell[Z] *= ratio
    cell[ROOT] *= ratio
    cell[Q] *= ratio
    cell[SCALE] = x
    reweigh(state, cell, leader(cell[Z], cell[Q], l1, l2) / x)


@body(step, FTRL)
def follow_all(state: Any, t: Scratch, count: int, n: int, rate: float, g_base: float, free: int, q: Any) -> None:
    """Follow the leader in every column of g; a new predictor begins."""
    alpha, top = q.alpha, largest_coefficient(t, n)
    if top <= NOISE:
        count, g_base = 0, 0.0
    for r in range(np.uint64(count)):
        cell, x, t.extra[r] = state.cells[t.column[r]], t.extra[r], 1.0
        if q.normalized and t.value[r] != 0.0:
            if x > cell[SCALE]:
                bound = 1.0 if t.column[r] >= free else 0.0
                rescale(state, cell, x, bound * q.l1, bound * q.l2)
            t.extra[r] = cell[SCALE]
    if q.normalized:
        count_size(state.norm, squared_units(t, count, top))
        alpha *= pace(state.norm)
    for r in range(np.uint64(count)):
        if t.value[r] != 0.0:
            cell, bound = state.cells[t.column[r]], 1.0 if t.column[r] >= free else 0.0
            w = follow(cell, cell[W], rate * t.value[r], t.extra[r], alpha, bound * q.l1, bound * q.l2, q)
            reweigh(state, cell, w)
    if g_base != 0.0:
        cell = state.cells[state.cells.shape[0] - 1]
        w = follow(cell, state.base[WEIGHT], rate * g_base, 1.0, q.alpha, 0.0, 0.0, q)
        state.base[SUM] += state.counts[SEEN] * (w - state.base[WEIGHT])
        state.base[WEIGHT] = w
    close(state.counts)
