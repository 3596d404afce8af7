"""The step of a mean that meets a constraint of confidence, in closed form.

With m⁺ = m + αv after an update, the constraint "var" is m⁺ = φv⁺, and "stdev" m⁺ = φ√v⁺ (Crammer, Dredze & Pereira
2012).
"""

import math

from rerank.kernels.compile import kernel


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
    after = 2.0 * v / (b + math.sqrt(b * b + 4.0 * v))  # √v⁺
    return alpha * phi / (after + v * alpha * phi), alpha * phi / after


@kernel
def stdev_alpha(m: float, v: float, phi: float) -> float:
    """α that meets m⁺ = φ√v⁺ (Crammer et al. 2012, Lemma 2)."""
    psi, zeta = 1.0 + phi * phi / 2.0, 1.0 + phi * phi
    root = phi * math.sqrt(m * m * phi * phi / 4.0 + v * zeta)
    if m > 0.0:
        return (v * phi * phi - m * m) / (v * (m * psi + root))
    return (root - m * psi) / (v * zeta)
