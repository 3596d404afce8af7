"""The large-margin perceptron, an SVM without a free bias (Zhang, section 2.1; Vapnik 1998, chapter 12)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.learn.base import Learner
from rerank.learn.dual_epoch import dual_epoch
from rerank.learn.duality import require_limit
from rerank.learn.predictor import subtract
from rerank.learn.settings import Positive
from rerank.learn.workspace import Scratch


@dataclass(frozen=True, kw_only=True)
class LMPerceptron(Learner):
    """The large-margin perceptron: an SVM without a free bias, by exact steps on one dual variable after another.

    >>> from rerank.learn.learned import learned
    >>> learned(LMPerceptron(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.6, 'short': 0.8}

    Reference: Zhang, section 2.1; Vapnik 1998, chapter 12. Memory: 16 bytes a column, 8 without the average; 8 a
    candidate.

    Parameters
    ----------
    C: > 0; limit on a dual variable, times the weight of its list; None for none, where all margins can be 1.
    tolerance: > 0; end training where the duality gap per list is not above it (lists of two, with C); None: at the
        last epoch.
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "lm-perc"
    passes: ClassVar[Any] = dual_epoch
    dual: ClassVar[bool] = True
    judge: ClassVar[str] = "hinge"
    sources: ClassVar[tuple[str, ...]] = ("oracle",)  # were y* another one on every visit, α·z were no term of a dual

    C: Positive | None = 1.0
    tolerance: Positive | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_limit(self.C, self.tolerance)

    @staticmethod
    def climb(state: Any, scratch: Scratch, count: int, missing: float, size: float, params: Any) -> float:
        """α ← clip(α + (1 − m)/‖z‖²) (Zhang, section 2.1); no step where z = 0."""
        return missing / size if size > 0.0 else 0.0

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, change: float, params: Any) -> None:
        """w ← w + Δα·z: on lists of two, an ascent on the dual Σ α − ‖w‖²/2."""
        subtract(state, scratch, count, change)
