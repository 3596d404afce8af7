"""Confidence-weighted learning with a soft margin (Wang, Zhao & Hoi 2012)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rerank.learn.rules.confidence import stdev_alpha, stdev_shrinkage
from rerank.learn.rules.gaussian import Gaussian
from rerank.learn.settings import Positive


@dataclass(frozen=True, kw_only=True)
class SoftCW(Gaussian):
    """CW with a soft margin: the constraint m ≥ φ√v may be violated at a price.

    >>> from rerank.learn.learned import learned
    >>> learned(SoftCW(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.4804, 'short': 0.907}

    Reference: Wang, Zhao & Hoi 2012 (ICML), Alg. 1. Memory: 32 bytes a column, 16 without the average; 8·D² for a
    full matrix, whose updates take O(D²) time.

    Parameters
    ----------
    phi: φ > 0; the confidence that updates aim at.
    C: > 0; the price of a violation, times the weight of a list.
    covariance: "kl" or "l2" (diagonals of the full update), or "full".
    top: how many rivals of a list to learn from, the best-scoring first.
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "scw"

    phi: Positive = 1.0
    C: Positive = 1.0
    covariance: Literal["kl", "l2", "full"] = "kl"

    @staticmethod
    def rates_of(m: float, v: float, weight: float, params: Any) -> tuple[float, float, float, float]:
        """The α of CW, at most C (Wang et al. 2012, Prop. 1)."""
        alpha = min(params.C * weight, max(0.0, stdev_alpha(m, v, params.phi)))
        beta, xi = stdev_shrinkage(alpha, v, params.phi)
        return max(0.0, params.phi * math.sqrt(v) - m), alpha, beta, xi
