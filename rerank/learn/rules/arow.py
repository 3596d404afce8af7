"""AROW: adaptive regularisation of weights (Crammer, Kulesza & Dredze 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rerank.learn.base import learners
from rerank.learn.rules.confidence import AROW as RULE
from rerank.learn.rules.gaussian import KL, L2
from rerank.learn.rules.gaussian_full import FULL, FullGaussian


@learners.add("arow")
@dataclass(frozen=True)
class AROW(FullGaussian):
    """AROW: the squared hinge loss instead of CW's hard constraint, so that noisy labels do less harm.

    Parameters
    ----------
    r: > 0; larger means smaller steps. A list of weight ω has r/ω.
    covariance: "kl" or "l2" (diagonals of the full update), or "full".
    normalize: scale-free: a column's variance starts at 1/s², s the largest |z_j| of its updates.
    top: how many rivals of a list to learn from, the best-scoring first.
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 learns it as the weight of
        a feature ρ·b(y).
    """

    name: ClassVar[str] = "arow"
    covariances: ClassVar[dict[str, int]] = {"kl": KL, "l2": L2, "full": FULL}

    r: float = 10.0
    covariance: Literal["kl", "l2", "full"] = "kl"
    normalize: bool = False
    top: int = 1
    base: float = 1.0
    base_rate: float = 0.0

    def __post_init__(self) -> None:
        self.check("r")

    def rule(self) -> tuple[int, float, float]:
        """See ``Gaussian.rule``."""
        return RULE, self.r, 0.0
