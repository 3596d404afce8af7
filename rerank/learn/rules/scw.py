"""Soft confidence-weighted learning (Wang, Zhao & Hoi 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rerank.learn.base import learners, require_choice
from rerank.learn.rules.confidence import SCW_1, SCW_2
from rerank.learn.rules.gaussian import KL, L2
from rerank.learn.rules.gaussian_full import FULL, FullGaussian


@learners.add("scw")
@dataclass(frozen=True)
class SoftCW(FullGaussian):
    """CW with a soft margin: the constraint m ≥ φ√v may be violated at a price.

    Parameters
    ----------
    phi: φ > 0; the confidence asked for.
    C: > 0; the price of a violation, times the weight of a list.
    variant: "1" (steps of at most C) or "2" (a squared penalty).
    covariance: "kl" or "l2" (diagonals of the full update), or "full".
    normalize: scale-free: a column's variance starts at 1/s², s the largest |z_j| of its updates.
    top: how many rivals of a list to learn from, the best-scoring first.
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 learns it as the weight of
        a feature ρ·b(y).
    """

    name: ClassVar[str] = "scw"
    covariances: ClassVar[dict[str, int]] = {"kl": KL, "l2": L2, "full": FULL}

    phi: float = 1.0
    C: float = 1.0
    variant: Literal["1", "2"] = "1"
    covariance: Literal["kl", "l2", "full"] = "kl"
    normalize: bool = False
    top: int = 1
    base: float = 1.0
    base_rate: float = 0.0

    def __post_init__(self) -> None:
        require_choice("variant", self.variant, ("1", "2"))
        self.check("phi", "C")

    def rule(self) -> tuple[int, float, float]:
        """See ``Gaussian.rule``."""
        return SCW_1 if self.variant == "1" else SCW_2, self.phi, self.C
