"""Confidence-weighted learning (Crammer, Dredze & Pereira 2012)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rerank.learn.rules.confidence import stdev_alpha, stdev_shrinkage, var_alpha
from rerank.learn.rules.confidence_exact import exact_stdev, exact_var
from rerank.learn.rules.gaussian import Gaussian
from rerank.learn.settings import Positive
from rerank.learn.workspace import Scratch

VAR, STDEV = range(2)


@dataclass(frozen=True, kw_only=True)
class CW(Gaussian):
    """Confidence-weighted learning: every list is right with probability Φ(φ) after its update.

    >>> from rerank.learn.learned import learned
    >>> learned(CW(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.3243, 'short': 0.7027}

    Reference: Crammer, Dredze & Pereira 2012 (JMLR 13). Memory: 32 bytes a column, 16 without the average;
    8·D² for a full matrix, whose updates take O(D²) time.

    Parameters
    ----------
    phi: φ > 0; the confidence that updates aim at, Φ⁻¹(η).
    form: the constraint, "var" (m ≥ φv) or "stdev" (m ≥ φ√v).
    covariance: "kl", "l2" (diagonals of the full update), "exact" (the optimal diagonal) or "full".
    top: how many rivals of a list to learn from, the best-scoring first.
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "cw"

    phi: Positive = 1.0
    form: Literal["var", "stdev"] = "var"
    covariance: Literal["kl", "l2", "exact", "full"] = "kl"

    @staticmethod
    def rates_of(m: float, v: float, weight: float, params: Any) -> tuple[float, float, float, float]:
        """The α that meets m⁺ = φv⁺ or m⁺ = φ√v⁺, and its covariance (Crammer et al. 2012, Fig. 1)."""
        if params.form == VAR:
            loss = max(0.0, params.phi * v - m)
            alpha = weight * var_alpha(m, v, params.phi, loss)
            xi = 2.0 * alpha * params.phi
            return loss, alpha, xi / (1.0 + xi * v), xi
        alpha = weight * max(0.0, stdev_alpha(m, v, params.phi))
        beta, xi = stdev_shrinkage(alpha, v, params.phi)
        return max(0.0, params.phi * math.sqrt(v) - m), alpha, beta, xi

    @staticmethod
    def exact_rates(
        scratch: Scratch, count: int, m: float, v: float, weight: float, params: Any
    ) -> tuple[float, float]:  # fmt: skip
        """The α that meets the constraint with the covariance that follows from it (their eqs. 33, 34)."""
        if params.form == VAR:
            alpha = exact_var(m, v, params.phi, scratch.extra, count)
            return weight * alpha, weight * (2.0 * alpha * params.phi)
        alpha, xi = exact_stdev(m, v, params.phi, scratch.extra, count)
        return weight * alpha, weight * xi
