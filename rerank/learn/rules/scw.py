"""Soft confidence-weighted learning (Wang, Zhao & Hoi 2012)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rerank.kernels.compile import kernel
from rerank.learn.rules.confidence import stdev_alpha, stdev_shrinkage
from rerank.learn.rules.gaussian import Gaussian
from rerank.learn.settings import Positive

SCW_1, SCW_2 = range(2)


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
    variant: "1" (steps of at most C) or "2" (a squared penalty).
    covariance: "kl" or "l2" (diagonals of the full update), or "full".
    normalize: scale-free: a column's variance starts at 1/s², s the largest |z_j| of its updates.
    top: how many rivals of a list to learn from, the best-scoring first.
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "scw"

    phi: Positive = 1.0
    C: Positive = 1.0
    variant: Literal["1", "2"] = "1"
    covariance: Literal["kl", "l2", "full"] = "kl"
    normalize: bool = False

    @staticmethod
    def rates_of(m: float, v: float, weight: float, params: Any) -> tuple[float, float, float, float]:
        """Soft CW I: the α of CW, at most C (Wang et al. 2012, Prop. 1); II: a squared penalty (Prop. 2)."""
        if params.variant == SCW_1:
            alpha = min(params.C * weight, max(0.0, stdev_alpha(m, v, params.phi)))
        else:
            alpha = squared_penalty_alpha(m, v, params.phi, params.C * weight)
        beta, xi = stdev_shrinkage(alpha, v, params.phi)
        return max(0.0, params.phi * math.sqrt(v) - m), alpha, beta, xi


@kernel
def squared_penalty_alpha(m: float, v: float, phi: float, C: float) -> float:
    """α of Prop. 2, with n = v + 1/2C."""
    n = v + 0.5 / C
    b = m * (2.0 * n + phi * phi * v)
    root = phi * math.sqrt(phi * phi * m * m * v * v + 4.0 * n * v * (n + v * phi * phi))
    if m > 0.0:  # root² − b² = 4·(n² + nvφ²)·(vφ² − m²)
        return max(0.0, 2.0 * (v * phi * phi - m * m) / (root + b))
    return (root - b) / (2.0 * n * (n + v * phi * phi))
