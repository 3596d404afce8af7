"""Learners of a user's own, as docs/adding-a-learner.md invites: one that keeps the contract, and some that do not."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.kernels.compile import body
from rerank.learn.base import Learner, Weights
from rerank.learn.hooks import learn
from rerank.learn.pair_epoch import pair_epoch
from rerank.learn.predictor import subtract
from rerank.learn.settings import Positive


@dataclass(frozen=True, kw_only=True)
class Harmonic(Learner):
    """The perceptron with steps η/(1 + k·decay).

    Parameters
    ----------
    eta: > 0; the first step.
    decay: > 0; how fast they become shorter.
    """

    name: ClassVar[str] = "harmonic"

    eta: Positive = 1.0
    decay: Positive = 0.1


@body(learn, Harmonic)
def harmonic(state: Any, scratch: Any, count: int, n: int, weight: float, params: Any) -> None:
    """w ← w − g·η/(1 + k·decay)."""
    subtract(state, scratch, count, weight * params.eta / (1.0 + state.counts.updates * params.decay))


@dataclass(frozen=True, kw_only=True)
class Boundless(Harmonic):
    """Its steps are infinite."""


@body(learn, Boundless)
def boundless(state: Any, scratch: Any, count: int, n: int, weight: float, params: Any) -> None:
    """w ← w − ∞·g."""
    subtract(state, scratch, count, np.inf)


@dataclass(frozen=True, kw_only=True)
class Endless(Harmonic):
    """Its predictors never end."""


@body(learn, Endless)
def without_end(state: Any, scratch: Any, count: int, n: int, weight: float, params: Any) -> None:
    """w ← w − g, counted twice."""
    subtract(state, scratch, count, weight)
    state.counts.updates += 1


@dataclass(frozen=True, kw_only=True)
class Average(Harmonic):
    """Its average is its last predictor."""

    def average(self, state: Any) -> Weights:
        """See ``Learner.average``."""
        return self.last(state)


@dataclass(frozen=True, kw_only=True)
class Untyped(Harmonic):
    """It does not compile."""


@body(learn, Untyped)
def untyped(state: Any, scratch: Any, count: int, n: int, weight: float, params: Any) -> None:
    """``params`` has no such field."""
    subtract(state, scratch, count, params.nothing)


@dataclass(frozen=True, kw_only=True)
class Idle(Learner):
    """It says nothing of pairs."""

    passes: ClassVar[Any] = pair_epoch


@dataclass(frozen=True, kw_only=True)
class Raising(Learner):
    """Its own code raises what nobody expects."""

    def average(self, state: Any) -> Weights:  # noqa: ARG002
        """See ``Learner.average``."""
        raise ZeroDivisionError("nothing to divide by")
