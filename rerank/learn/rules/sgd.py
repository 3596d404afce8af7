"""Stochastic gradient descent: w ← w − η_k·g on every list with a loss, or on mistakes only."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rerank.kernels.by_type import body
from rerank.learn.base import learners
from rerank.learn.losses import Loss
from rerank.learn.settings import Positive, Update
from rerank.learn.skeletons.additive import Additive
from rerank.learn.steps import UPDATES, rate_of

SQRT, CONSTANT = range(2)


@learners.add("sgd")
@dataclass(frozen=True, kw_only=True)
class SGD(Additive):
    """Stochastic gradient descent.

    Parameters
    ----------
    loss: one of LOSSES.
    eta: > 0; the step size.
    schedule: "sqrt" (update k is made with η/√k) or "constant".
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "sgd"

    loss: Loss = "hinge"
    eta: Positive = 0.3
    schedule: Literal["sqrt", "constant"] = "sqrt"
    update: Update = "always"


@body(rate_of, SGD)
def sgd(state: Any, weight: float, q: Any) -> float:
    """Update k is w ← w − η_k·g, with η_k = η/√k or η (Zhang 2004)."""
    eta = q.eta / math.sqrt(state.counts[UPDATES] + 1) if q.schedule == SQRT else q.eta
    return float(eta * weight)
