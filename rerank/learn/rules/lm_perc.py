"""The large-margin perceptron, an SVM without a free bias (Zhang, section 2.1; Vapnik 1998, chapter 12)."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.kernels.by_type import body
from rerank.learn.apart import ByColumn
from rerank.learn.base import learners
from rerank.learn.skeletons.additive import Additive
from rerank.learn.skeletons.dual import DualVariables
from rerank.learn.steps import climb


class LMPercState(NamedTuple):
    """What training changes; D columns, N candidates. The first four are those of AdditiveState."""

    w: ByColumn
    u: ByColumn
    counts: np.ndarray
    base: np.ndarray
    alpha: np.ndarray  # float64 [N]: dual variables


@learners.add("lm-perc")
@dataclass(frozen=True, kw_only=True)
class LMPerceptron(DualVariables, Additive):
    """The large-margin perceptron: an SVM without a free bias, by exact steps on one dual variable after another.

    Parameters
    ----------
    C: > 0; limit on a dual variable, times the weight of its list; None for none, where all margins can be 1.
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "lm-perc"

    def init(self, columns: int, candidates: int = 0) -> Any:
        """See ``Learner.init``; an LMPercState."""
        return LMPercState(**super().init(columns)._asdict(), alpha=np.zeros(candidates))


@body(climb, LMPerceptron)
def exact_step(missing: float, size: float, q: Any) -> float:
    """α ← clip(α + (1 − m)/‖z‖²), w ← w + Δα·z (Zhang, section 2.1); no step where z = 0."""
    return missing / size if size > 0.0 else 0.0
