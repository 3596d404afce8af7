"""Regularised Winnow, unnormalised (Zhang, section 2.2)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.kernels.by_type import body
from rerank.learn.base import learners
from rerank.learn.skeletons.dual import DualVariables
from rerank.learn.skeletons.multiplicative import Multiplicative, WinnowState
from rerank.learn.steps import climb


@learners.add("lm-uwin")
@dataclass(frozen=True, kw_only=True)
class LMUWin(DualVariables, Multiplicative):
    """Regularised Winnow, unnormalised.

    Parameters
    ----------
    eta: > 0; rate of the dual variables.
    mu: 1e-100 to 1e20; the prior: both parts of every weight start with it.
    C: > 0; limit on a dual variable, times the weight of its list; None for none, where all margins can be 1.
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 adds the weight of one more
        balanced feature, ρ·b(y).
    """

    name: ClassVar[str] = "lm-uwin"

    def init(self, columns: int, candidates: int = 0) -> WinnowState:
        return super().init(columns)._replace(alpha=np.zeros(candidates))


@body(climb, LMUWin)
def regularised_winnow(missing: float, size: float, q: Any) -> float:
    """α ← clip(α + η·(1 − m)), θ ← θ + Δα·z (Zhang, section 2.2)."""
    return float(q.eta * missing)
