"""Regularised Winnow, unnormalised (Zhang, section 2.2)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.kernels.by_type import by_type
from rerank.learn.dual_epoch import dual_epoch
from rerank.learn.duality import require_limit
from rerank.learn.predictor import SCALE
from rerank.learn.rules.winnow import Multiplicative, W, mass_of, multiply, prior_of
from rerank.learn.settings import Positive
from rerank.learn.workspace import Scratch


@dataclass(frozen=True, kw_only=True)
class LMUWin(Multiplicative):
    """Regularised Winnow, unnormalised.

    >>> from rerank.learn.learned import learned
    >>> learned(LMUWin(mu=1, eta=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': -0.0401, 'short': 0.4848}

    Reference: Zhang, section 2.2. Memory: 24 bytes a column, 16 without the average.

    Parameters
    ----------
    eta: > 0; rate of the dual variables. None: Newton's step for each, by which no weight changes by more than a factor
        of e.
    mu: 1e-100 to 1e20; the prior: both parts of every weight start with it.
    balanced: weights of both signs, in two parts; false: positive weights alone, which start with mu and have no votes.
    C: > 0; limit on a dual variable, times the weight of its list; None for none, where all margins can be 1.
    tolerance: > 0; end training where the duality gap per list is not above it (lists of two, with C); None: at the
        last epoch.
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 adds the weight of one more
        balanced feature, ρ·b(y).
    """

    name: ClassVar[str] = "lm-uwin"
    passes: ClassVar[Any] = dual_epoch
    dual: ClassVar[bool] = True
    judge: ClassVar[str] = "hinge"
    sources: ClassVar[tuple[str, ...]] = ("oracle",)  # were y* another one on every visit, α·z were no term of a dual

    eta: Positive | None = 0.01
    C: Positive | None = 1.0
    tolerance: Positive | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_limit(self.C, self.tolerance)

    @staticmethod
    def climb(state: Any, scratch: Scratch, count: int, missing: float, size: float, params: Any) -> float:
        """α ← clip(α + η·(1 − m)), where η may be 1/D'' (Zhang, section 2.2)."""
        if params.eta < np.inf:
            return float(params.eta * missing)
        curvature, largest = curvature_of(state, scratch, count, params)
        step = missing / curvature if curvature > 0.0 else 0.0
        return float(min(max(step, -1.0 / largest), 1.0 / largest)) if largest > 0.0 else 0.0

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, change: float, params: Any) -> None:
        """θ ← θ + Δα·z: both parts of w_j are multiplied by e^{±Δα·z_j}. On lists of two, this ascends the dual
        Σ α − Σ_j μ_j·(e^{θ_j} + e^{−θ_j}) or, normalised, Σ α − W·ln Σ_j μ_j·(e^{θ_j} + e^{−θ_j})."""
        multiply(state, scratch, count, change, params)


@by_type
def curvature_of(state: Any, scratch: Scratch, count: int, params: Any) -> tuple[float, float]:
    """−D'' of the dual along one variable, Σ (w⁺ + w⁻)·z_j² (or Σ w_j·z_j²) and, normalised, that less (w·z)²/W; and
    max|z_j|."""
    curvature = m = largest = 0.0
    d, W_total = state.numbers[SCALE], state.numbers[W]
    for r in range(count):
        j, z = scratch.column[r], scratch.value[r]
        a, mu = state.cells[j], prior_of(state, j, params.mu)
        curvature += d * mass_of(a, mu, params.balanced) * (z * z)
        m += d * a * z
        largest = max(largest, abs(z))
    return (curvature - m * m / W_total if W_total > 0.0 else curvature), largest
