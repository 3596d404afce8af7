"""Adaptive regularisation of weights (Crammer, Kulesza & Dredze 2009)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rerank.learn.rules.gaussian import Gaussian
from rerank.learn.settings import Positive


@dataclass(frozen=True, kw_only=True)
class AROW(Gaussian):
    """AROW: the squared hinge loss instead of CW's hard constraint, so that noisy labels do less harm.

    >>> from rerank.learn.learned import learned
    >>> learned(AROW(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.0244, 'short': 0.1463}

    Reference: Crammer, Kulesza & Dredze 2009 (NIPS), Fig. 1. Memory: 32 bytes a column, 16 without the average;
    8·D² for a full matrix, whose updates take O(D²) time.

    Parameters
    ----------
    r: > 0; larger means smaller steps: 1/(2λ₁) of the paper. A list of weight ω has r/ω.
    r2: > 0; larger means that variances shrink less: 1/(2λ₂); None: r, as in all of the paper's updates.
    covariance: "kl" or "l2" (diagonals of the full update), or "full".
    normalize: scale-free: a column's variance starts at 1/s², s the largest |z_j| of its updates.
    top: how many rivals of a list to learn from, the best-scoring first.
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "arow"

    r: Positive = 10.0
    r2: Positive | None = None
    covariance: Literal["kl", "l2", "full"] = "kl"
    normalize: bool = False

    @staticmethod
    def rates_of(m: float, v: float, weight: float, params: Any) -> tuple[float, float, float, float]:
        """α = max(0, 1 − m)/(v + r), Σ ← Σ − Σzzᵀ/(v + r₂)Σ or 1/Σ ← 1/Σ + zzᵀ/r₂ (Crammer et al. 2009, Fig. 1)."""
        loss, r, r2 = max(0.0, 1.0 - m), params.r / weight, (params.r2 if params.r2 < math.inf else params.r) / weight
        return loss, loss / (v + r), 1.0 / (v + r2), 1.0 / r2
