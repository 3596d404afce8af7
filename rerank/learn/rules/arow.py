"""Adaptive regularisation of weights (Crammer, Kulesza & Dredze 2009)."""

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
    r: > 0; larger means smaller steps: 1/(2λ₁) = 1/(2λ₂) of the paper. A list of weight ω has r/ω.
    covariance: "kl" or "l2" (diagonals of the full update), or "full".
    top: how many rivals of a list to learn from, the best-scoring first.
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "arow"

    r: Positive = 10.0
    covariance: Literal["kl", "l2", "full"] = "kl"

    @staticmethod
    def rates_of(m: float, v: float, weight: float, params: Any) -> tuple[float, float, float, float]:
        """α = max(0, 1 − m)/(v + r), Σ ← Σ − Σzzᵀ/(v + r)Σ or 1/Σ ← 1/Σ + zzᵀ/r (Crammer et al. 2009, Fig. 1)."""
        loss, r = max(0.0, 1.0 - m), params.r / weight
        return loss, loss / (v + r), 1.0 / (v + r), 1.0 / r
