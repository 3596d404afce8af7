"""Bayesian online probit regression (Graepel, Quiñonero Candela, Borchert & Herbrich 2010)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rerank.kernels.compile import kernel
from rerank.learn.rules.gaussian import Gaussian
from rerank.learn.settings import Positive

FAR = -20.0  # where Φ is taken from its continued fraction, before it underflows


@dataclass(frozen=True, kw_only=True)
class BayesianProbit(Gaussian):
    """Bayesian probit regression (adPredictor): the Gaussian nearest the posterior of "the oracle beats its rival".

    >>> from rerank.learn.learned import learned
    >>> learned(BayesianProbit(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.2912, 'short': 0.8008}

    Reference: Graepel et al. 2010 (ICML), section 3. Memory: 32 bytes a column, 16 without the average; 8·D² for a
    full matrix, whose updates take O(D²) time.

    Parameters
    ----------
    beta: > 0; the deviation of the noise in a margin. A list of weight ω has beta²/ω.
    covariance: "kl" (the diagonal of the full update's inverse), "l2" (the paper's diagonal) or "full".
    normalize: scale-free: a column's variance starts at 1/s², s the largest |z_j| of its updates.
    top: how many rivals of a list to learn from, the best-scoring first.
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "bopr"

    beta: Positive = 1.0
    covariance: Literal["kl", "l2", "full"] = "l2"
    normalize: bool = False

    @staticmethod
    def rates_of(m: float, v: float, weight: float, params: Any) -> tuple[float, float, float, float]:
        """μ ← μ + Σz·V(t)/s, Σ ← Σ − ΣzzᵀΣ·W(t)/s², for s² = β² + v and t = m/s (Graepel et al. 2010, section 3)."""
        noise = params.beta * params.beta / weight
        s = math.sqrt(noise + v)
        log_likelihood, V, W = probit(m / s)
        return -log_likelihood, V / s, W / (s * s), W / (noise + v * (1.0 - W))


@kernel
def probit(t: float) -> tuple[float, float, float]:
    """log Φ(t), V = N(t)/Φ(t) and W = V·(V + t)."""
    if t > FAR:
        below, above = 0.5 * math.erfc(-t * math.sqrt(0.5)), 0.5 * math.erfc(t * math.sqrt(0.5))
        V = math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi) / below
        return math.log1p(-above) if t > 0.0 else math.log(below), V, V * (V + t)
    x = -t
    excess = 1.0 / (x + 2.0 / (x + 3.0 / (x + 4.0 / (x + 5.0 / x))))
    V = x + excess
    return -0.5 * x * x - math.log(V * math.sqrt(2.0 * math.pi)), V, V * excess
