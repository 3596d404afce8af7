"""Dual averaging, whose weights follow from the sum of all subgradients: RDA, and with a step size per column ARDA and
FTRL.

RDA and its voted form (Xu et al. 2013, Alg. 1; Gao et al. 2013, Fig. 1; Xiao 2010): with s the sum after k updates,

    w_j = −sign(s_j) · max(|s_j| − k·λ₁, 0) · d_k,   d_k = 1 / (k·λ₂ + η·√k),   w = 0 for k = 0:

so a_j = −s_j, and scale and threshold follow from k. In all of them free columns of a corpus, and the base score, have
λ₁ = λ₂ = 0.

Adaptive RDA (Duchi, Hazan & Singer 2011, eq. 3, diagonal, with L1): with H_j = δ + √(Σ g_j²) after k updates,

    w = argmin ⟨s, w⟩ + k·λ₁‖w‖₁ + wᵀ diag(H) w / 2η,   w_j = −sign(s_j)·max(|s_j| − k·λ₁, 0)·η / H_j.

A column whose subgradients are rare keeps large steps. With e_j = η/H_j, a_j is −s_j·e_j, v_j is e_j and τ is k·λ₁.
There is no L2: with a scale that depends on k and column together, no predictor could be replayed for voting.

FTRL, which follows the proximally regularised leader (McMahan et al. 2013, Alg. 1): with α a step size and n_j = Σ g_j²
so far,

    σ = (√(n_j + g_j²) − √n_j)/α,   z_j ← z_j + g_j − σ·w_j,   n_j ← n_j + g_j²,
    w_j = −sign(z_j)·max(|z_j| − λ₁, 0) / ((β + √n_j)/α + λ₂).

The state has q_j = (β + √n_j)/α as of the column's last update, and σ is the change of q_j.

Normalised, the adaptive ones are indifferent to the units of features (Ross, Mineiro & Langford 2013, Alg. 2): they
work on φ_j/c_j, with c_j the largest difference of column j so far. In an update g = Σ a_y φ(y),

* c_j ← max(c_j, x_j) in the columns of g, with x_j = max φ_j(y) − min φ_j(y) over the candidates with a_y ≠ 0;
* N ← N + Σ_j (g_j/c_j)² / max a_y², and t ← t + 1 unless g = 0.

Step sizes are multiplied by √(t/N), so that they do not depend on the number of features: ARDA multiplies all weights
by it, FTRL α. Where c_j grows, all numbers of the column in its unit are multiplied by the ratio of the old c_j to the
new; the weight a_j is divided by c_j. The base score has no unit.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.base.ranges import NotNegative, Positive
from rerank.kernels.compile import body, by_type, kernel
from rerank.learn.learner import Learner, State, Update
from rerank.learn.losses import PairLoss
from rerank.learn.predictor import assign, shrink, slope_of
from rerank.learn.scoring import ONE, single
from rerank.learn.workspace import (
    ListArrays,
    Scratch,
    accumulate,
    append,
    base_of,
    merge,
    rescale_column,
    set_scales,
    update_column,
)

# With a step size per column even the smallest subgradient counts, so rounding is kept out, normalised or not: entries
# |g_j| ≤ NOISE·x_j·max |a_y| are 0 (of a feature that all candidates share, say), and an update with all |a_y| ≤ NOISE
# counts as an update, but changes nothing else.
NOISE = 1e-12
# Of a column; q is at most this, and q + λ₂ at least its inverse: products and quotients stay finite.
MAX_STEP = 1e150


@dataclass(frozen=True, kw_only=True)
class RDA(Learner):
    """Regularised dual averaging with L1, L2 or both.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(RDA(l1=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 1.2728}

    Reference: Xiao 2010 (JMLR 11), Alg. 1. Memory: 16 bytes a column and in an epoch 32 more; 8 without the average.

    Parameters
    ----------
    loss: the name of a loss, or its import path.
    eta: > 0; larger means smaller weights compared with the base score.
    l1, l2: ≥ 0; strength of the regularisers λ₁‖w‖₁ and (λ₂/2)‖w‖², which spare the base score.
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "rda"
    shrinks: ClassVar[bool] = True

    loss: str = "hinge"
    eta: Positive = 1.0
    l1: NotNegative = 0.0
    l2: NotNegative = 0.0
    update: Update = "always"

    @property
    def scales_free(self) -> bool:
        return self.l2 > 0

    def init(self, columns: int, candidates: int = 0) -> State:
        state = super().init(columns, candidates)
        now = self.view(state).now
        now.d = now.d_free = now.d_base = 0.0
        now.slope = self.l1
        return state

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
        """s ← s + g, k ← k + 1 (Gao et al., Fig. 1); the weight of a list multiplies g."""
        for r in range(count):
            state.a[scratch.column[r]] -= weight * scratch.value[r]
        now, k = state.now, state.counts.updates + 1
        now.d, now.d_free = 1.0 / (k * params.l2 + params.eta * math.sqrt(k)), 1.0 / (params.eta * math.sqrt(k))
        now.d_base, now.tau = now.d_free, k


@dataclass(frozen=True, kw_only=True)
class VotedRDA(RDA):
    """Dual averaging that updates on mistakes only, so that few predictors vote; see RDA for the parameters.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(VotedRDA(l1=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 1.2728}

    Reference: Xu et al. 2013 (arXiv 1310.5007), Alg. 1; Gao et al. 2013, Fig. 1. Memory: as RDA.
    """

    name: ClassVar[str] = "vrda"
    update: Update = "mistakes"


@dataclass(frozen=True, kw_only=True)
class Adaptive(Learner):
    """The common part of learners with a step size per column, which take in g entry by entry, each in its unit.

    Parameters
    ----------
    loss: the name of a loss, or its import path.
    normalized: make learning independent of the unit of every feature.
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base, base_rate: see Learner.
    """

    whole: ClassVar[tuple[str, ...]] = ("times", "squares")  # t, N

    loss: str = "logistic"
    normalized: bool = True
    update: Update = "always"

    @staticmethod
    def sum_subgradient(data: ListArrays, scratch: Scratch, n: int, last: int, loss: Any, params: Any) -> int:
        """g, with the spreads x_j in ``scratch.extra``, without rounding; the base score has no unit."""
        count, base = sum_with_spread(data, scratch, n, largest_coefficient(scratch, n), loss), 0.0
        for r in range(1, n):
            if data.base[scratch.who[r]] != data.base[scratch.who[0]]:
                base = base_of(data, scratch, n)
                break
        scratch.extra[count] = 1.0
        return append(scratch, count, last, params.base_rate * base)

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
        """Learn from g, each entry in the unit of its column, which grows to x_j before."""
        now, top, squares = state.now, largest_coefficient(scratch, n), 0.0
        for r in range(np.uint64(count if top > NOISE else 0)):
            j, g, x = scratch.column[r], scratch.value[r], scratch.extra[r]
            scratch.extra[r] = 1.0
            if params.normalized and g != 0.0 and j != state.a.shape[0] - 1:
                scratch.extra[r] = rescale_column(state, j, x, params)
                share = g * scratch.extra[r] * (1.0 / top)
                squares += share * share
        if squares > 0.0:
            now.times, now.squares = now.times + 1.0, now.squares + squares
        speed = speed_of(now)
        for r in range(np.uint64(count if top > NOISE else 0)):
            j, g, inverse = scratch.column[r], weight * scratch.value[r], scratch.extra[r]
            if scratch.value[r] != 0.0:
                update_column(state, j, g * inverse, inverse, 1.0 if j == state.a.shape[0] - 1 else speed, params)
        set_scales(state, params)


@dataclass(frozen=True, kw_only=True)
class AdaptiveRDA(Adaptive):
    """Regularised dual averaging with AdaGrad's step sizes.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(AdaptiveRDA(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': -0.0232, 'short': 0.1204}

    Reference: Duchi, Hazan & Singer 2011 (JMLR 12), eq. 3. Memory: 40 bytes a column, 32 without the average.

    Parameters
    ----------
    eta: > 0; step size.
    delta: ≥ 0; larger means smaller steps at first. (A column's step size is at most 1e150.)
    l1: ≥ 0; strength of the regulariser λ₁‖w‖₁, of the normalised weights where they are.
    loss, normalized, update, base, base_rate: see Adaptive.
    """

    name: ClassVar[str] = "arda"
    shrinks: ClassVar[bool] = True
    cell: ClassVar[tuple[str, ...]] = ("a", "s", "norm", "inverse")  # −s_j·e_j, s_j, √(Σ g_j²), 1/c_j (0: no c_j)

    eta: Positive = 0.3
    delta: NotNegative = 0.01
    l1: NotNegative = 0.0

    def init(self, columns: int, candidates: int = 0) -> State:
        state = super().init(columns, candidates)
        return state._replace(v=np.zeros(columns + 1)) if self.l1 > 0 else state

    @staticmethod
    def update_column(state: Any, j: int, g: float, inverse: float, speed: float, params: Any) -> None:
        """s ← s + g, H = δ + √(Σ g²), e = η/H (Duchi et al. 2011, Fig. 1, primal-dual), in the column's unit."""
        cell = state.cells[j]
        cell.s += g
        cell.norm = math.sqrt(cell.norm * cell.norm + g * g)
        e = min(params.eta * inverse / (params.delta + cell.norm), MAX_STEP)
        cell.a = -cell.s * e
        if state.v.shape[0] > 0:
            state.v[j] = e

    @staticmethod
    def rescale_column(state: Any, j: int, x: float, params: Any) -> float:
        """c_j ← max(c_j, x), with s_j and √(Σ g_j²) in the new unit; returns 1/c_j."""
        cell = state.cells[j]
        if x * cell.inverse > 1.0 or cell.inverse == 0.0:
            ratio = 1.0 / (cell.inverse * x) if cell.inverse > 0.0 else 0.0
            cell.s, cell.norm, cell.inverse = cell.s * ratio, cell.norm * ratio, 1.0 / x
        return float(cell.inverse)

    @staticmethod
    def set_scales(state: Any, params: Any) -> None:
        """d = √(t/N), and k ← k + 1."""
        state.now.d = state.now.d_free = speed_of(state.now)
        state.now.tau = (state.counts.updates + 1) * params.l1


@dataclass(frozen=True, kw_only=True)
class FTRL(Adaptive):
    """FTRL-proximal: AdaGrad's step sizes with L1 and L2 that do not grow with the number of updates.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(FTRL(l1=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.0552, 'short': 0.0988}

    Reference: McMahan et al. 2013 (KDD), Alg. 1. Memory: 64 bytes a column.

    Parameters
    ----------
    alpha: > 0; step size. (Those of a column are from 1e-150 to 1e150.)
    beta: ≥ 0; larger means smaller steps at first.
    l1, l2: ≥ 0; strength of the regularisers λ₁‖w‖₁ and (λ₂/2)‖w‖², of the normalised weights where they are.
    loss, normalized, update, base, base_rate: see Adaptive.
    """

    name: ClassVar[str] = "ftrl"
    # w, z, √n, q, c and, because divisions take most of the time, 1/c: a line of the processor's caches
    cell: ClassVar[tuple[str, ...]] = ("w", "z", "root", "q", "unit", "inverse")

    alpha: Positive = 0.3
    beta: NotNegative = 0.01
    l1: NotNegative = 0.0
    l2: NotNegative = 0.0

    @staticmethod
    def update_column(state: Any, j: int, g: float, inverse: float, speed: float, params: Any) -> None:
        """n ← n + g², z ← z + g − σw, and w from them, all in the column's unit (McMahan et al. 2013, Alg. 1)."""
        cell = state.cells[j]
        unit = cell.unit if cell.unit > 0.0 else 1.0
        steepness = min(min(1.0 / params.alpha, MAX_STEP) / speed, MAX_STEP)
        cell.root = math.sqrt(cell.root * cell.root + g * g)
        q = min((params.beta + cell.root) * steepness, MAX_STEP)
        cell.z += g - (q - cell.q) * (cell.w * unit)
        cell.q = q
        assign(state, j, leader(state, j, params) * inverse)

    @staticmethod
    def rescale_column(state: Any, j: int, x: float, params: Any) -> float:
        """c_j ← max(c_j, x), with z, √n and q in the new unit, and w from them; returns 1/c_j."""
        cell = state.cells[j]
        if x > cell.unit:
            ratio = cell.unit / x
            cell.z, cell.root, cell.q = cell.z * ratio, cell.root * ratio, cell.q * ratio
            cell.unit, cell.inverse = x, 1.0 / x
            assign(state, j, leader(state, j, params) / x)
        return float(cell.inverse)


@by_type
def leader(state: Any, j: int, params: Any) -> float:
    """The weight that z and q stand for, in the column's unit; free columns have no regulariser."""
    cell, bound = state.cells[j], slope_of(state, j)
    return float(-shrink(cell.z, bound * params.l1) / max(cell.q + bound * params.l2, 1.0 / MAX_STEP))


@kernel
def speed_of(now: Any) -> float:
    """√(t/N); 1 before the first update."""
    return math.sqrt(now.times / now.squares) if now.squares > 0.0 else 1.0


@kernel
def largest_coefficient(scratch: Scratch, n: int) -> float:
    """max |a_y| of the subgradient's n candidates."""
    top = 0.0
    for r in range(n):
        top = max(top, abs(scratch.a[r]))
    return top


@by_type
def sum_with_spread(data: ListArrays, scratch: Scratch, n: int, top: float, loss: Any) -> int:
    """The subgradient with x_j in ``scratch.extra``; entries that may be rounding alone are 0."""
    return accumulate_spread(data, scratch, n, NOISE * top)


@body(sum_with_spread, PairLoss)
def difference_with_spread(data: ListArrays, scratch: Scratch, n: int, top: float, loss: Any) -> int:
    """x_j = |g_j| / max |a_y|."""
    who, a = scratch.who, scratch.a
    count = merge(data, who[0], a[0], who[1], a[1], scratch.column, scratch.value)
    for r in range(count):
        scratch.extra[r] = abs(scratch.value[r]) / top
    return count


@kernel
def accumulate_spread(data: ListArrays, scratch: Scratch, n: int, noise: float) -> int:
    """``accumulate``, with the largest difference x_j of two candidates with a_y ≠ 0 in ``scratch.extra``; entries up
    to x_j·noise are 0."""
    candidates, count, index = 0, accumulate(data, scratch, n), scratch.sums
    for r in range(np.uint64(count)):
        entry, index[scratch.column[r]] = scratch.spread[r + ONE], r + ONE  # 0 is for columns whose sum is 0
        entry.least, entry.greatest, entry.owners = np.inf, -np.inf, 0
    for i in range(n):
        if scratch.a[i] == 0.0:
            continue
        candidates += 1
        for p in range(np.uint64(data.rows[scratch.who[i]]), np.uint64(data.rows[scratch.who[i] + 1])):
            entry, x = scratch.spread[np.uint32(index[data.columns[p]])], single(data.values[p])
            entry.least, entry.greatest = min(entry.least, x), max(entry.greatest, x)
            entry.owners += 1
    for r in range(np.uint64(count)):
        entry, g, index[scratch.column[r]] = scratch.spread[r + ONE], scratch.value[r], 0.0
        if entry.owners < candidates:  # others have 0
            entry.least, entry.greatest = min(entry.least, 0.0), max(entry.greatest, 0.0)
        x = entry.greatest - entry.least
        scratch.extra[r], scratch.value[r] = x, 0.0 if x == 0.0 or abs(g) <= noise * x else g
    return count
