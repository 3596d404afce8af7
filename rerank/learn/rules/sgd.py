"""Stochastic gradient descent: w ← w − η_k·g on every list with a loss, or on mistakes only."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rerank.learn.base import Learner
from rerank.learn.predictor import subtract
from rerank.learn.settings import Positive, Update
from rerank.learn.workspace import Scratch

SQRT, CONSTANT = range(2)


@dataclass(frozen=True, kw_only=True)
class SGD(Learner):
    """Stochastic gradient descent.

    >>> from rerank.learn.learned import learned
    >>> learned(SGD(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.0879, 'short': 0.4243}

    Reference: Robbins & Monro 1951; Bottou 2010. Memory: 16 bytes a column, 8 without the average.

    Parameters
    ----------
    loss: the name of a loss, or its import path.
    eta: > 0; the step size.
    schedule: "sqrt" (update k is made with η/√k) or "constant".
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "sgd"

    loss: str = "hinge"
    eta: Positive = 0.3
    schedule: Literal["sqrt", "constant"] = "sqrt"
    update: Update = "always"

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
        """Update k is w ← w − η_k·g, with η_k = η/√k or η (Zhang 2004)."""
        eta = params.eta / math.sqrt(state.counts.updates + 1) if params.schedule == SQRT else params.eta
        subtract(state, scratch, count, eta * weight)
