"""Dual averaging with a step size per column: adaptive RDA (Duchi, Hazan & Singer 2011, eq. 3, diagonal, with L1).

With s_j = Σ g_j and H_j = δ + √(Σ g_j²) after k updates, the weights are

    w = argmin ⟨s, w⟩ + k·λ₁‖w‖₁ + wᵀ diag(H) w / 2η,   w_j = −sign(s_j)·max(|s_j| − k·λ₁, 0)·η / H_j.

A column whose subgradients are rare keeps large steps. With e_j = η/H_j, a_j is −s_j·e_j, v_j is e_j and τ is k·λ₁.
When normalised, all this is done with φ_j/c_j in place of φ_j (see ``units``), e_j = η/(H_j·c_j), and all weights are
multiplied by d_k = √(t/N). The base score's coordinate has no regulariser. Free columns of a corpus have λ₁ = 0.
There is no L2: with a scale that depends on k and column together, no predictor could be replayed for voting.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.learn.base import State
from rerank.learn.rules.units import Adaptive, speed_of
from rerank.learn.settings import NotNegative, Positive

GREATEST = 1e150  # the largest step size of a column: products with it stay finite


@dataclass(frozen=True, kw_only=True)
class AdaptiveRDA(Adaptive):
    """Regularised dual averaging with AdaGrad's step sizes.

    >>> from rerank.learn.learned import learned
    >>> learned(AdaptiveRDA(), {"fluent": 1}, {"fluent": -1, "short": 2})
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
        e = min(params.eta * inverse / (params.delta + cell.norm), GREATEST)
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
