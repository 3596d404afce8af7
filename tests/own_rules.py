"""Learners of a user's own, as docs/adding-a-learner.md invites, that do not keep the contract."""

from typing import Any, ClassVar

import numpy as np
from mylearner import Harmonic

from rerank.learn.epoch import pair_epoch
from rerank.learn.learner import Learner, Weights
from rerank.learn.predictor import subtract


class Boundless(Harmonic):
    """Its steps are infinite."""

    @staticmethod
    def learn(state: Any, scratch: Any, count: int, n: int, weight: float, params: Any) -> None:
        """w ← w − ∞·g."""
        subtract(state, scratch, count, np.inf)


class Endless(Harmonic):
    """Its predictors never end."""

    @staticmethod
    def learn(state: Any, scratch: Any, count: int, n: int, weight: float, params: Any) -> None:
        """w ← w − g, counted twice."""
        subtract(state, scratch, count, weight)
        state.counts.updates += 1


class Average(Harmonic):
    """Its average is its last predictor."""

    def average(self, state: Any) -> Weights:
        """See ``Learner.average``."""
        return self.last(state)


class Untyped(Harmonic):
    """It does not compile."""

    @staticmethod
    def learn(state: Any, scratch: Any, count: int, n: int, weight: float, params: Any) -> None:
        """``params`` has no such field."""
        subtract(state, scratch, count, params.nothing)


class Idle(Learner):
    """It says nothing of pairs."""

    passes: ClassVar[Any] = pair_epoch


class Raising(Learner):
    """Its own code raises what nobody expects."""

    def average(self, state: Any) -> Weights:  # noqa: ARG002
        """See ``Learner.average``."""
        raise ZeroDivisionError("nothing to divide by")
