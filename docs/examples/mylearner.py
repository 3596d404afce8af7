from dataclasses import dataclass
from typing import Any

from rerank.kernels.by_type import body
from rerank.learn.settings import Positive
from rerank.learn.skeletons.additive import Additive
from rerank.learn.steps import UPDATES, rate_of


@dataclass(frozen=True, kw_only=True)
class Harmonic(Additive):
    """The perceptron with steps 1/(1 + k·decay)."""

    decay: Positive = 0.1


@body(rate_of, Harmonic)
def harmonic(state: Any, weight: float, q: Any) -> float:
    return weight / (1.0 + state.counts[UPDATES] * q.decay)
