"""Dual averaging with a step size per column: adaptive RDA (Duchi, Hazan & Singer 2011, eq. 3, diagonal, with L1).

With s_j = Σ g_j and H_j = δ + √(Σ g_j²) after k updates, the weights are

    w = argmin ⟨s, w⟩ + k·λ₁‖w‖₁ + wᵀ diag(H) w / 2η,   w_j = −sign(s_j)·max(|s_j| − k·λ₁, 0)·η / H_j.

A column whose subgradients are rare keeps large steps. A weight is read from s_j, e_j = η/H_j and k when a feature is
touched; the average is that of ``lazy``, times e_j, which changes when s_j does.

When normalised, all this is done with φ_j/c_j in place of φ_j, e_j = η/(H_j·c_j), and all weights are multiplied by
d_k = √(t/N): see ``units``, also for how rounding is kept out. Where c_j grows, s_j and √(Σ g_j²) are multiplied by the
ratio of the old c_j to the new, as if it had always been the new one. The base score's coordinate has no regulariser
and is not normalised. Free columns of a corpus have λ₁ = 0.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.by_type import body
from rerank.kernels.compile import kernel
from rerank.learn.apart import ByColumn, TrainedApart, cells_of, ratio, root
from rerank.learn.base import learners
from rerank.learn.judge import look_up
from rerank.learn.losses import Loss
from rerank.learn.rules.rda import count_active
from rerank.learn.scoring import single
from rerank.learn.settings import NotNegative, Positive, Update
from rerank.learn.skeletons.lazy import FREE, SUM, Lazy, PredictorSums, first_penalised, shrink, summed, summed_column
from rerank.learn.skeletons.units import NOISE, count_size, gather_spread, largest_coefficient, pace, squared_units
from rerank.learn.steps import UPDATES, beta, coordinate, gather, look_up_weights, scale_of, score, step, threshold_of
from rerank.learn.workspace import ListArrays, Scratch

# Indices of AdaptiveState.cells (a column's numbers lie together) and of .base.
S, STEP, NORM, UNIT = range(4)
BASE_S, BASE_NORM = 0, SUM + 1
LARGEST = 1e150  # the largest step size of a column: products with it stay finite


class AdaptiveState(NamedTuple):
    """What training changes; D columns."""

    cells: ByColumn  # float64 [D, 4]: s_j, e_j, √(Σ g_j²), c_j
    total: ByColumn  # float64 [D]: Σ c_k w_k
    norm: np.ndarray  # float64 [2]: t, N
    counts: np.ndarray  # int64 [5]: see ``lazy``
    base: np.ndarray  # float64 [3]: s of the base score, Σ c_k β_k, √(Σ g²) of the base score


@learners.add("arda")
@dataclass(frozen=True, kw_only=True)
class AdaptiveRDA(Lazy):
    """Regularised dual averaging with AdaGrad's step sizes.

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
    mixes: ClassVar[tuple[str, ...]] = ("sum",)

    loss: Loss = "logistic"
    eta: Positive = 0.3
    delta: NotNegative = 0.01
    l1: NotNegative = 0.0
    normalized: bool = True
    update: Update = "always"

    def init(self, columns: int, candidates: int = 0) -> AdaptiveState:  # noqa: ARG002
        counts = np.zeros(5, np.int64)
        return AdaptiveState(cells_of(columns, 4), np.zeros(columns), np.zeros(2), counts, np.zeros(3))

    def weights(self, state: AdaptiveState) -> np.ndarray:
        s, e = state.cells[:, S], state.cells[:, STEP]
        size = np.maximum(np.abs(s) - self.penalised(state, int(state.counts[UPDATES]) * self.l1), 0.0)
        return np.asarray(-np.sign(s) * size * e * pace(state.norm))

    def nonzero_weights(self, state: AdaptiveState) -> int:
        return count_active(state.cells[:, S], state.counts[UPDATES] * self.l1, int(state.counts[FREE]))

    def vote_room(self, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG002
        """See ``Learner.vote_room``: a_j = −s_j·e_j, v_j = ±e_j (0 for free columns), τ_k = k·λ₁, and d_k."""
        return {"slopes": self.l1 > 0}

    def combined(self, apart: TrainedApart, rule: str) -> AdaptiveState:  # noqa: ARG002
        """See ``Learner.combined``: s, Σg², t, N and k add up, as for RDA, in the largest unit that a section saw."""
        unit = apart.largest(lambda end: end.cells[:, UNIT])
        cells = np.zeros_like(apart.ends[0].cells)

        def in_units(end: AdaptiveState, cell: int) -> np.ndarray:
            return np.asarray(end.cells[:, cell] * ratio(end.cells[:, UNIT], unit))

        cells[:, UNIT] = unit
        cells[:, S] = apart.summed(lambda end: in_units(end, S))
        cells[:, NORM] = root(apart.summed(lambda end: in_units(end, NORM) ** 2))
        spread = (self.delta + cells[:, NORM]) * (unit if self.normalized else 1.0)
        with np.errstate(divide="ignore"):
            steps = np.minimum(self.eta / spread, LARGEST)
        cells[:, STEP] = np.where(cells[:, NORM] > 0, steps, 0.0)
        base = np.array(apart.summed(lambda end: end.base))
        base[BASE_NORM] = root(apart.summed(lambda end: end.base[BASE_NORM] ** 2))
        total, counts = apart.summed(lambda end: end.total), self.counted(apart)
        return AdaptiveState(cells, total, apart.summed(lambda end: end.norm), counts, base)


@kernel
def adagrad(cell: np.ndarray, g: float, unit: float, eta: float, delta: float) -> None:
    """s ← s + g, H = δ + √(Σ g²), e = η/H (Duchi et al. 2011, Fig. 1, primal-dual update), in units of the column."""
    g /= unit
    cell[S] += g
    cell[NORM] = math.sqrt(cell[NORM] ** 2 + g * g)
    cell[STEP] = min(eta / ((delta + cell[NORM]) * unit), LARGEST)


body(gather, AdaptiveRDA)(gather_spread)


@body(step, AdaptiveRDA)
def follow(state: Any, t: Scratch, count: int, n: int, rate: float, g_base: float, free: int, q: Any) -> None:
    """Take in g, in units of c_j where it is normalised; k ← k + 1."""
    top = largest_coefficient(t, n)
    if top <= NOISE:
        count, g_base = 0, 0.0
    for r in range(np.uint64(count)):
        cell, x, t.extra[r] = state.cells[t.column[r]], t.extra[r], 1.0
        if t.value[r] == 0.0:
            continue
        if q.normalized:
            if x > cell[UNIT]:
                grow(cell, x)
            t.extra[r] = cell[UNIT]
        adagrad(cell, rate * t.value[r], t.extra[r], q.eta, q.delta)
    if q.normalized:
        count_size(state.norm, squared_units(t, count, top))
    state.base[BASE_S] += rate * g_base
    state.base[BASE_NORM] = math.sqrt(state.base[BASE_NORM] ** 2 + (rate * g_base) ** 2)
    state.counts[UPDATES] += 1


@kernel
def grow(cell: np.ndarray, x: float) -> None:
    """c_j ← x_j, with s_j and √(Σ g_j²) in the new unit."""
    cell[S] *= cell[UNIT] / x
    cell[NORM] *= cell[UNIT] / x
    cell[UNIT] = x


@body(look_up_weights, AdaptiveRDA)
def look_up_cells(data: ListArrays, order: np.ndarray, at: int, state: Any, lazy: Any, q: Any) -> None:
    """The cells, and the sums of predictors where every list is learned from."""
    look_up(data, order, at, state.cells)
    if q.always:
        look_up(data, order, at, lazy.cells)


@body(beta, AdaptiveRDA)
def beta_adaptive(state: Any, q: Any) -> float:
    """The base score's coordinate has no regulariser and is not normalised."""
    step = min(q.eta / (q.delta + state.base[BASE_NORM]), LARGEST)
    return float(q.base - q.base_rate * (step * state.base[BASE_S]))


@body(score, AdaptiveRDA)
def score_adaptive(data: ListArrays, i: int, state: Any, q: Any, scores: np.ndarray) -> None:
    """w_j = −sign(s_j)·max(|s_j| − k·λ₁, 0)·e_j·d_k; free columns, and all where λ₁ = 0, come before ``middle``."""
    first, last, cells = data.lists[i], data.lists[i + 1], state.cells
    threshold, d, weight = state.counts[UPDATES] * q.l1, pace(state.norm), beta(state, q)
    for y in range(first, last):
        total, middle = 0.0, data.rows[y + 1]
        if threshold > 0.0:
            middle = first_penalised(data, y) if data.free > 0 else data.rows[y]
        for p in range(np.uint64(data.rows[y]), np.uint64(middle)):
            total += cells[data.columns[p], S] * cells[data.columns[p], STEP] * single(data.values[p])
        for p in range(np.uint64(middle), np.uint64(data.rows[y + 1])):
            s, e = cells[data.columns[p], S], cells[data.columns[p], STEP]
            total += shrink(s, threshold) * e * single(data.values[p])
        scores[y - first] = weight * data.base[y] - d * total


@body(scale_of, AdaptiveRDA)
def scale(state: Any, q: Any) -> float:
    """d_k."""
    return float(pace(state.norm))


@body(threshold_of, AdaptiveRDA)
def threshold(state: Any, q: Any) -> float:
    """k·λ₁."""
    return float(state.counts[UPDATES] * q.l1)


@body(summed_column, AdaptiveRDA)
def summed_adaptive(state: Any, j: int, last: int, sums: PredictorSums, free: int, q: Any) -> float:
    """Weights have the sign of −s."""
    slope = 0.0 if j < free else q.l1
    return float(-state.cells[j, STEP] * summed(state.cells[j, S], slope, sums.cells[j], last, sums))


@body(coordinate, AdaptiveRDA)
def coordinate_adaptive(state: Any, j: int, free: int, q: Any) -> tuple[float, float]:
    """a_j = −s_j·e_j; v_j = ±e_j, and 0 for free columns."""
    s, e = -state.cells[j, S], state.cells[j, STEP]
    return s * e, np.sign(s) * e if j >= free else 0.0
