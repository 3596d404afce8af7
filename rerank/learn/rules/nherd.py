"""Normal herding (Crammer & Lee 2010)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rerank.learn.rules.gaussian import Gaussian
from rerank.learn.settings import Positive


@dataclass(frozen=True, kw_only=True)
class NormalHerd(Gaussian):
    """Normal herding: every weight vector of the Gaussian is moved as PA-II would move it.

    >>> from rerank.learn.learned import learned
    >>> learned(NormalHerd(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.0301, 'short': 0.1472}

    Reference: Crammer & Lee 2010 (NIPS). Memory: 32 bytes a column, 16 without the average; 8·D² for a full
    matrix, whose updates take O(D²) time.

    Parameters
    ----------
    C: > 0; aggressiveness, times the weight of a list.
    covariance: "kl" or "l2" (diagonals of the full update), or "full".
    top: how many rivals of a list to learn from, the best-scoring first.
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "nherd"

    C: Positive = 0.1
    covariance: Literal["kl", "l2", "full"] = "kl"

    @staticmethod
    def rates_of(m: float, v: float, weight: float, params: Any) -> tuple[float, float, float, float]:
        """α = max(0, 1 − m)/(v + 1/C), and ξ = 2C + C²v for the covariance (Crammer & Lee 2010, Fig. 1)."""
        loss, C = max(0.0, 1.0 - m), params.C * weight
        xi = C * (2.0 + C * v)
        shrunk = 1.0 + C * v
        return loss, loss / (v + 1.0 / C), xi / (shrunk * shrunk), xi
