"""Follow the proximally regularised leader, with a step size per column (McMahan et al. 2013, Alg. 1).

For a subgradient g_j, with α a step size and n_j = Σ g_j² so far,

    σ = (√(n_j + g_j²) − √n_j)/α,   z_j ← z_j + g_j − σ·w_j,   n_j ← n_j + g_j²,
    w_j = −sign(z_j)·max(|z_j| − λ₁, 0) / ((β + √n_j)/α + λ₂).

When normalised, all this is done with φ_j/c_j in place of φ_j (see ``units``), and α·√(t/N) in place of α. What is kept
is q_j = (β + √n_j)/α as of the column's last update, and σ is the change of q_j; the weight a_j is divided by c_j. The
base score's coordinate has no regulariser. Free columns of a corpus have λ₁ = λ₂ = 0.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.kernels.compile import by_type
from rerank.learn.predictor import assign, shrink, slope_of
from rerank.learn.rules.units import Adaptive
from rerank.learn.settings import NotNegative, Positive

GREATEST = 1e150  # q is at most this, and q + λ₂ at least its inverse: quotients stay finite


@dataclass(frozen=True, kw_only=True)
class FTRL(Adaptive):
    """FTRL-proximal: AdaGrad's step sizes with L1 and L2 that do not grow with the number of updates.

    >>> from rerank.learn.learned import learned
    >>> learned(FTRL(l1=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
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
        steepness = min(min(1.0 / params.alpha, GREATEST) / speed, GREATEST)
        cell.root = math.sqrt(cell.root * cell.root + g * g)
        q = min((params.beta + cell.root) * steepness, GREATEST)
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
    return float(-shrink(cell.z, bound * params.l1) / max(cell.q + bound * params.l2, 1.0 / GREATEST))
