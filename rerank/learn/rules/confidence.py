"""How far the Gaussian learners move: α for the mean, β or ξ for the covariance, from margin m and variance v.

A Gaussian N(μ, Σ) over weights sees z with m = μ·z and v = zᵀΣz. Every rule moves the mean by αΣz and shrinks the
covariance, Σ ← Σ − βΣzzᵀΣ, or its inverse, 1/Σ_jj ← 1/Σ_jj + ξz_j².
Forms without cancellation are used throughout.
"""

from __future__ import annotations

import math

import numpy as np

from rerank.kernels.compile import kernel

CW_VAR, CW_STDEV, AROW, SCW_1, SCW_2, NHERD, SOP = range(7)

Rates = tuple[float, float, float]  # α, β, ξ


@kernel
def shortfall(rule: int, a: float, m: float, v: float) -> float:
    """What is missing of the margin m: the loss. ``a`` is φ."""
    if rule == CW_VAR:
        return max(0.0, a * v - m)
    if rule in (CW_STDEV, SCW_1, SCW_2):
        return max(0.0, a * math.sqrt(v) - m)
    return max(0.0, -m) if rule == SOP else max(0.0, 1.0 - m)


@kernel
def cw_var_rates(m: float, v: float, phi: float, weight: float) -> Rates:
    """The constraint m ≥ φv (Crammer et al. 2012, eqs. 15 and 18)."""
    loss = max(0.0, phi * v - m)
    c = 1.0 + 2.0 * phi * m
    root = math.sqrt((1.0 - 2.0 * phi * m) ** 2 + 8.0 * phi * phi * v)
    alpha = 2.0 * loss / (v * (c + root)) if c > 0.0 else (root - c) / (4.0 * phi * v)
    alpha *= weight
    return alpha, 2.0 * alpha * phi / (1.0 + 2.0 * alpha * phi * v), 2.0 * alpha * phi


@kernel
def stdev_shrinkage(alpha: float, v: float, phi: float) -> tuple[float, float]:
    """(β, ξ) of an α for the constraint m ≥ φ√v: αφ/(√v⁺ + vαφ) and αφ/√v⁺ (Crammer et al. 2012, Fig. 1)."""
    after = 2.0 * v / (alpha * v * phi + math.sqrt((alpha * v * phi) ** 2 + 4.0 * v))  # √v⁺
    return alpha * phi / (after + v * alpha * phi), alpha * phi / after


@kernel
def stdev_alpha(m: float, v: float, phi: float) -> float:
    """α that meets m⁺ = φ√v⁺ (Crammer et al. 2012, Lemma 2)."""
    psi, zeta = 1.0 + phi * phi / 2.0, 1.0 + phi * phi
    root = phi * math.sqrt(m * m * phi * phi / 4.0 + v * zeta)
    if m > 0.0:
        return (v * phi * phi - m * m) / (v * (m * psi + root))
    return (root - m * psi) / (v * zeta)


@kernel
def cw_stdev_rates(m: float, v: float, phi: float, weight: float) -> Rates:
    """The constraint m ≥ φ√v."""
    alpha = weight * max(0.0, stdev_alpha(m, v, phi))
    beta, xi = stdev_shrinkage(alpha, v, phi)
    return alpha, beta, xi


@kernel
def arow_rates(m: float, v: float, r: float, weight: float) -> Rates:
    """β = 1/(v + r), α = max(0, 1 − m)·β, 1/Σ ← 1/Σ + zzᵀ/r (Crammer et al. 2009, Fig. 1)."""
    r = r / weight
    return max(0.0, 1.0 - m) / (v + r), 1.0 / (v + r), 1.0 / r


@kernel
def scw_1_rates(m: float, v: float, phi: float, C: float, weight: float) -> Rates:
    """Soft CW I: the α of CW, at most C (Wang et al. 2012, Prop. 1)."""
    alpha = min(C * weight, max(0.0, stdev_alpha(m, v, phi)))
    beta, xi = stdev_shrinkage(alpha, v, phi)
    return alpha, beta, xi


@kernel
def scw_2_rates(m: float, v: float, phi: float, C: float, weight: float) -> Rates:
    """Soft CW II: a squared penalty, with n = v + 1/2C (Wang et al. 2012, Prop. 2)."""
    n = v + 0.5 / (C * weight)
    b = m * (2.0 * n + phi * phi * v)
    root = phi * math.sqrt(phi * phi * m * m * v * v + 4.0 * n * v * (n + v * phi * phi))
    if m > 0.0:  # root² − b² = 4·(n² + nvφ²)·(vφ² − m²)
        alpha = max(0.0, 2.0 * (v * phi * phi - m * m) / (root + b))
    else:
        alpha = (root - b) / (2.0 * n * (n + v * phi * phi))
    beta, xi = stdev_shrinkage(alpha, v, phi)
    return alpha, beta, xi


@kernel
def nherd_rates(m: float, v: float, C: float, weight: float) -> Rates:
    """Normal herding (Crammer & Lee 2010, Fig. 1): α = max(0, 1 − m)/(v + 1/C), and 2C + C²v for the covariance."""
    C = C * weight
    xi = C * (2.0 + C * v)
    return max(0.0, 1.0 - m) / (v + 1.0 / C), xi / (1.0 + C * v) ** 2, xi


@kernel
def sop_rates(m: float, v: float, weight: float) -> Rates:
    """The second-order perceptron with a full matrix (Cesa-Bianchi et al. 2005, Fig. 1), on mistakes.

    With A = aI + the sum of all zzᵀ, and w = A⁻¹ times the sum of all z, one more z makes w + A⁻¹z·(1 − w·z)/(1 + v).
    """
    return weight * (1.0 - m) / (1.0 + weight * v), weight / (1.0 + weight * v), weight


@kernel
def rates(rule: int, a: float, C: float, m: float, v: float, weight: float) -> Rates:
    """(α, β, ξ) of a rule with its parameter ``a`` (φ or r) and its C, where there is a shortfall."""
    if rule == CW_VAR:
        return cw_var_rates(m, v, a, weight)
    if rule == CW_STDEV:
        return cw_stdev_rates(m, v, a, weight)
    if rule == AROW:
        return arow_rates(m, v, a, weight)
    if rule == SCW_1:
        return scw_1_rates(m, v, a, C, weight)
    if rule == SCW_2:
        return scw_2_rates(m, v, a, C, weight)
    if rule == NHERD:
        return nherd_rates(m, v, C, weight)
    return sop_rates(m, v, weight)


@kernel
def excess_var(alpha: float, m: float, v: float, phi: float, part: np.ndarray, count: int) -> tuple[float, float]:
    """f(α) = m⁺ − φv⁺ and its slope, v⁺ of the exact diagonal update, part_j = Σ_jj z_j² (Crammer et al., eq. 33)."""
    f, slope = m + alpha * v, v
    for r in range(count):
        c = 1.0 + 2.0 * alpha * phi * part[r]
        f -= phi * part[r] / c
        slope += 2.0 * (phi * part[r] / c) ** 2
    return f, slope


@kernel
def excess_stdev(alpha: float, m: float, v: float, phi: float, part: np.ndarray, count: int) -> tuple[float, float]:
    """g(α) = m⁺ − φ²v⁺/m⁺ and its slope, likewise (eq. 34); m⁺ > 0."""
    after = m + alpha * v
    f, slope = after, v
    for r in range(count):
        c = after + alpha * phi * phi * part[r]
        f -= phi * phi * part[r] / c
        slope += phi * phi * part[r] * (v + phi * phi * part[r]) / (c * c)
    return f, slope


@kernel
def exact_alpha(rule: int, m: float, v: float, phi: float, part: np.ndarray, count: int) -> float:
    """The root of f (CW_VAR) or g (CW_STDEV), which rise strictly, by Newton's method kept inside a bracket.

    Both are below 0 at max(0, −m/v), and above where the approximations v⁺ ≤ v hold with equality.
    """
    low = max(0.0, -m / v)
    high = phi - m / v if rule == CW_VAR else (phi * math.sqrt(v) - m) / v
    alpha = 0.5 * (low + high)
    for _ in range(200):
        if rule == CW_VAR:
            f, slope = excess_var(alpha, m, v, phi, part, count)
        else:
            f, slope = excess_stdev(alpha, m, v, phi, part, count)
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
