from dataclasses import dataclass
from typing import Any

from rerank.base.ranges import Positive
from rerank.learn.learner import Learner
from rerank.learn.predictor import subtract


@dataclass(frozen=True, kw_only=True)
class Harmonic(Learner):
    """The perceptron with steps 1/(1 + k·decay)."""

    decay: Positive = 0.1

    @staticmethod
    def learn(state: Any, scratch: Any, count: int, n: int, weight: float, params: Any) -> None:
        subtract(state, scratch, count, weight / (1.0 + state.counts.updates * params.decay))
