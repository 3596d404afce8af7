"""Steps that meet a constraint of ``confidence`` where a diagonal is updated exactly, and v⁺ is a sum over columns."""

import math

import numpy as np

from rerank.kernels.compile import kernel


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
def excess_stdev(after: float, m: float, v: float, phi: float, part: np.ndarray, count: int) -> tuple[float, float]:
    """g = log m⁺ − log(φ²v⁺/m⁺) at m⁺ = ``after``, and its slope in log m⁺, at least 1 (Crammer et al., eq. 34)."""
    alpha, total, slope = (after - m) / v, 0.0, 0.0
    for r in range(count):
        pull = phi * phi * part[r]
        c = after + alpha * pull
        total += pull / c
        slope += pull / c * (after * (1.0 + pull / v) / c)
    return math.log(after / total), 1.0 + slope / total


@kernel
def exact_stdev(m: float, v: float, phi: float, part: np.ndarray, count: int) -> tuple[float, float]:
    """(α, ξ) from the root of g in log m⁺, by Newton's method kept inside a bracket.

    m⁺ is what is looked for, not α: where variances have collapsed, m + αv has no digit left. It is above max(0, m),
    and at most φ√v, because v⁺ ≤ v.
    """
    low, high = max(0.0, m), phi * math.sqrt(v)
    after = high
    for _ in range(200):
        g, slope = excess_stdev(after, m, v, phi, part, count)
        if g > 0.0:
            high = after
        else:
            low = after
        after *= math.exp(-g / slope)
        if not low <= after <= high:
            after = math.sqrt(low) * math.sqrt(high)
        if abs(g) <= 1e-14 * slope or high - low <= 1e-15 * high:
            break
    alpha = (after - m) / v
    return alpha, alpha * phi * phi / after
