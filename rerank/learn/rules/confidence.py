"""Confidence-weighted learning: Gaussian learners whose updates meet a constraint of confidence.

With m⁺ = m + αv after an update, the constraint "var" is m⁺ = φv⁺, and "stdev" m⁺ = φ√v⁺ (Crammer, Dredze & Pereira
2012). α has a closed form; where a diagonal is updated exactly, so that v⁺ is a sum over columns, it is a root.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from rerank.base.ranges import Positive
from rerank.kernels.compile import kernel
from rerank.learn.rules.gaussian import Gaussian
from rerank.learn.workspace import Scratch

VAR, STDEV = range(2)


@dataclass(frozen=True, kw_only=True)
class CW(Gaussian):
    """Confidence-weighted learning: every list is right with probability Φ(φ) after its update.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(CW(), {"fluent": 1}, {"fluent": -1, "short": 2})
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
    def gaussian_step(m: float, v: float, weight: float, params: Any) -> tuple[float, float, float, float]:
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
    def exact_step(
        scratch: Scratch, count: int, m: float, v: float, weight: float, params: Any
    ) -> tuple[float, float]:  # fmt: skip
        """The α that meets the constraint with the covariance that follows from it (their eqs. 33, 34)."""
        if params.form == VAR:
            alpha = exact_var(m, v, params.phi, scratch.extra, count)
            return weight * alpha, weight * (2.0 * alpha * params.phi)
        alpha, xi = exact_stdev(m, v, params.phi, scratch.extra, count)
        return weight * alpha, weight * xi


@dataclass(frozen=True, kw_only=True)
class SoftCW(Gaussian):
    """CW with a soft margin: the constraint m ≥ φ√v may be violated at a price.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(SoftCW(), {"fluent": 1}, {"fluent": -1, "short": 2})
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
    def gaussian_step(m: float, v: float, weight: float, params: Any) -> tuple[float, float, float, float]:
        """The α of CW, at most C (Wang et al. 2012, Prop. 1)."""
        alpha = min(params.C * weight, max(0.0, stdev_alpha(m, v, params.phi)))
        beta, xi = stdev_shrinkage(alpha, v, params.phi)
        return max(0.0, params.phi * math.sqrt(v) - m), alpha, beta, xi


@kernel
def var_alpha(m: float, v: float, phi: float, loss: float) -> float:
    """α that meets m⁺ = φv⁺ (Crammer et al. 2012, eqs. 15 and 18)."""
    c, b = 1.0 + 2.0 * phi * m, 1.0 - 2.0 * phi * m
    root = math.sqrt(b * b + 8.0 * phi * phi * v)
    return 2.0 * loss / (v * (c + root)) if c > 0.0 else (root - c) / (4.0 * phi * v)


@kernel
def stdev_shrinkage(alpha: float, v: float, phi: float) -> tuple[float, float]:
    """(β, ξ) of an α for the constraint m ≥ φ√v: αφ/(√v⁺ + vαφ) and αφ/√v⁺ (Crammer et al. 2012, Fig. 1)."""
    b = alpha * v * phi
    deviation = 2.0 * v / (b + math.sqrt(b * b + 4.0 * v))  # √v⁺
    return alpha * phi / (deviation + v * alpha * phi), alpha * phi / deviation


@kernel
def stdev_alpha(m: float, v: float, phi: float) -> float:
    """α that meets m⁺ = φ√v⁺ (Crammer et al. 2012, Lemma 2)."""
    psi, zeta = 1.0 + phi * phi / 2.0, 1.0 + phi * phi
    root = phi * math.sqrt(m * m * phi * phi / 4.0 + v * zeta)
    if m > 0.0:
        return (v * phi * phi - m * m) / (v * (m * psi + root))
    return (root - m * psi) / (v * zeta)


@kernel
def excess_var(alpha: float, m: float, v: float, phi: float, part: np.ndarray, count: int) -> tuple[float, float]:
    """f(α) = m⁺ − φv⁺ and its slope, v⁺ of the exact diagonal update, part_j = Σ_jj z_j² (Crammer et al., eq. 33)."""
    f, slope = m + alpha * v, v
    for r in range(count):
        c = 1.0 + 2.0 * alpha * phi * part[r]
        share = phi * part[r] / c
        f -= share
        slope += 2.0 * (share * share)
    return f, slope


@kernel
def exact_var(m: float, v: float, phi: float, part: np.ndarray, count: int) -> float:
    """α, the root of f, which rises strictly, by Newton's method kept inside a bracket.

    f is below 0 at max(0, −m/v), and above where the approximation v⁺ ≤ v holds with equality.
    """
    low, high = max(0.0, -m / v), phi - m / v
    alpha = 0.5 * (low + high)
    for _ in range(200):
        f, slope = excess_var(alpha, m, v, phi, part, count)
        if f > 0.0:
            high = alpha
        else:
            low = alpha
        step = f / slope
        if f == 0.0 or high - low <= 1e-15 * high or abs(step) <= 1e-15 * alpha:
            break
        alpha -= step
        if not low < alpha < high:
            alpha = 0.5 * (low + high)
    return alpha


@kernel
def excess_stdev(m_plus: float, m: float, v: float, phi: float, part: np.ndarray, count: int) -> tuple[float, float]:
    """g = log m⁺ − log(φ²v⁺/m⁺) at m⁺ = ``m_plus``, and its slope in log m⁺, at least 1 (Crammer et al., eq. 34)."""
    alpha, total, slope = (m_plus - m) / v, 0.0, 0.0
    for r in range(count):
        pull = phi * phi * part[r]
        c = m_plus + alpha * pull
        total += pull / c
        slope += pull / c * (m_plus * (1.0 + pull / v) / c)
    return math.log(m_plus / total), 1.0 + slope / total


@kernel
def exact_stdev(m: float, v: float, phi: float, part: np.ndarray, count: int) -> tuple[float, float]:
    """(α, ξ) from the root of g in log m⁺, by Newton's method kept inside a bracket.

    m⁺ is what is looked for, not α: where variances have collapsed, m + αv has no digit left. It is above max(0, m),
    and at most φ√v, because v⁺ ≤ v.
    """
    low, high = max(0.0, m), phi * math.sqrt(v)
    m_plus = high
    for _ in range(200):
        g, slope = excess_stdev(m_plus, m, v, phi, part, count)
        if g > 0.0:
            high = m_plus
        else:
            low = m_plus
        m_plus *= math.exp(-g / slope)
        if not low <= m_plus <= high:
            m_plus = math.sqrt(low) * math.sqrt(high)
        if abs(g) <= 1e-14 * slope or high - low <= 1e-15 * high:
            break
    alpha = (m_plus - m) / v
    return alpha, alpha * phi * phi / m_plus
