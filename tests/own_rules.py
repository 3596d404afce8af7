"""Learners of a user's own, as docs/adding-a-learner.md invites: one that keeps the contract, and some that do not."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.kernels.by_type import body
from rerank.learn.base import Weights
from rerank.learn.passes import pair_pass
from rerank.learn.settings import Positive
from rerank.learn.skeletons.additive import WEIGHT, Additive
from rerank.learn.steps import UPDATES, rate_of, step


@dataclass(frozen=True, kw_only=True)
class Harmonic(Additive):
    """The perceptron with steps η/(1 + k·decay).

    Parameters
    ----------
    eta: > 0; the first step.
    decay: > 0; how fast they become shorter.
    """

    name: ClassVar[str] = "harmonic"

    eta: Positive = 1.0
    decay: Positive = 0.1


@body(rate_of, Harmonic)
def harmonic(state: Any, weight: float, q: Any) -> float:
    """η/(1 + k·decay)."""
    return float(weight * q.eta / (1.0 + state.counts[UPDATES] * q.decay))


@dataclass(frozen=True, kw_only=True)
class Boundless(Harmonic):
    """Its steps are infinite."""


@body(rate_of, Boundless)
def boundless(state: Any, weight: float, q: Any) -> float:
    """∞."""
    return np.inf


@dataclass(frozen=True, kw_only=True)
class Endless(Harmonic):
    """Its predictors never end."""


@body(step, Endless)
def without_end(state: Any, t: Any, count: int, n: int, rate: float, g_base: float, free: int, q: Any) -> None:
    """w ← w − rate·g, without ``close``."""
    for r in range(count):
        state.w[t.column[r]] -= rate * t.value[r]
    state.base[WEIGHT] -= rate * g_base


@dataclass(frozen=True, kw_only=True)
class Average(Harmonic):
    """Its average is its last predictor."""

    def average(self, state: Any) -> Weights:
        """See ``Learner.average``."""
        return self.last(state)


@dataclass(frozen=True, kw_only=True)
class Untyped(Harmonic):
    """It does not compile."""


@body(rate_of, Untyped)
def untyped(state: Any, weight: float, q: Any) -> float:
    """q has no such field."""
    return float(q.nothing)


@dataclass(frozen=True, kw_only=True)
class Idle(Additive):
    """It says nothing of pairs."""

    passes: ClassVar[Any] = pair_pass


@dataclass(frozen=True, kw_only=True)
class Raising(Additive):
    """Its own code raises what nobody expects."""

    def average(self, state: Any) -> Weights:  # noqa: ARG002
        """See ``Learner.average``."""
        raise ZeroDivisionError("nothing to divide by")
