"""Normal herding (Crammer & Lee 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rerank.learn.base import learners
from rerank.learn.rules.confidence import NHERD
from rerank.learn.rules.gaussian import HERD, KL, L2
from rerank.learn.rules.gaussian_full import FULL, FullGaussian


@learners.add("nherd")
@dataclass(frozen=True)
class NormalHerd(FullGaussian):
    """Normal herding: every weight vector of the Gaussian is moved as PA-II would move it.

    Parameters
    ----------
    C: > 0; aggressiveness, times the weight of a list.
    covariance: "kl" or "l2" (diagonals of the full update), "exact" (the optimal diagonal) or "full".
    normalize: scale-free: a column's variance starts at 1/s², s the largest |z_j| of its updates.
    top: how many rivals of a list to learn from, the best-scoring first.
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 learns it as the weight of
        a feature ρ·b(y).
    """

    name: ClassVar[str] = "nherd"
    covariances: ClassVar[dict[str, int]] = {"kl": KL, "l2": L2, "exact": HERD, "full": FULL}

    C: float = 0.1
    covariance: Literal["kl", "l2", "exact", "full"] = "kl"
    normalize: bool = False
    top: int = 1
    base: float = 1.0
    base_rate: float = 0.0

    def __post_init__(self) -> None:
        self.check("C")

    def rule(self) -> tuple[int, float, float]:
        """See ``Gaussian.rule``."""
        return NHERD, 0.0, self.C
