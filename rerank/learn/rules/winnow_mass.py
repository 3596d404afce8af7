"""The sum of Winnow's positive weights, by which its normalised form divides:

d = W/Z,   Z = Σ_j μ·(e^{θ_j} + e^{−θ_j}) = Σ_j √(a_j² + 4μ²).
"""

import math
from typing import Any

from rerank.kernels.compile import kernel


@kernel
def mass_of(w: float, mu: float) -> float:
    """The positive weights of a column that weighs w: μ(e^θ + e^−θ)."""
    return math.sqrt(w * w + 4.0 * mu * mu)


@kernel
def set_scale(now: Any) -> None:
    """d = W/Z; 1 where nothing is normalised."""
    mass = now.mass + now.carry
    now.d = now.d_free = now.d_base = now.total / mass if now.total > 0.0 and mass > 0.0 else 1.0


@kernel
def add_mass(now: Any, x: float) -> None:
    """Z ← Z + x; the carry makes the sum as good as one in twice the precision (Neumaier 1974)."""
    before = now.mass
    total = before + x
    now.carry += (before - total) + x if abs(before) >= abs(x) else (x - total) + before
    now.mass = total
