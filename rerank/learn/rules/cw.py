"""Confidence-weighted learning (Crammer, Dredze & Pereira 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rerank.learn.base import learners, require_choice
from rerank.learn.rules.confidence import CW_STDEV, CW_VAR
from rerank.learn.rules.gaussian import EXACT, KL, L2
from rerank.learn.rules.gaussian_full import FULL, FullGaussian


@learners.add("cw")
@dataclass(frozen=True)
class CW(FullGaussian):
    """Confidence-weighted learning: every list is right with probability Φ(φ) after its update.

    Parameters
    ----------
    phi: φ > 0; the confidence asked for, Φ⁻¹(η).
    form: the constraint, "var" (m ≥ φv) or "stdev" (m ≥ φ√v).
    covariance: "kl", "l2" (diagonals of the full update), "exact" (the optimal diagonal) or "full".
    normalize: scale-free: a column's variance starts at 1/s², s the largest |z_j| of its updates.
    top: how many rivals of a list to learn from, the best-scoring first.
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 learns it as the weight of
        a feature ρ·b(y).
    """

    name: ClassVar[str] = "cw"
    covariances: ClassVar[dict[str, int]] = {"kl": KL, "l2": L2, "exact": EXACT, "full": FULL}

    phi: float = 1.0
    form: Literal["var", "stdev"] = "var"
    covariance: Literal["kl", "l2", "exact", "full"] = "kl"
    normalize: bool = False
    top: int = 1
    base: float = 1.0
    base_rate: float = 0.0

    def __post_init__(self) -> None:
        require_choice("form", self.form, ("var", "stdev"))
        self.check("phi")

    def rule(self) -> tuple[int, float, float]:
        """See ``Gaussian.rule``."""
        return CW_VAR if self.form == "var" else CW_STDEV, self.phi, 0.0
