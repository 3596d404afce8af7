"""Passive-aggressive learning (Crammer et al. 2006): the smallest step that gives a list's worst rival its margin.

The margin asked for is 1, or with the loss ``cost`` what the rival costs: tilt·(gain(y*) − gain(y')). With pairs of
oracle and rival this is the max-loss update of section 8, with those of hope and fear it is MIRA as machine translation
uses it (Chiang 2012, section 3).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rerank.learn.base import Learner
from rerank.learn.hooks import IDLE, UPDATE, Lesson
from rerank.learn.judge import margin, squared_norm
from rerank.learn.losses import value_and_slope
from rerank.learn.pair_epoch import pair_epoch
from rerank.learn.predictor import subtract
from rerank.learn.settings import Count, Positive
from rerank.learn.workspace import Scratch

HARD, PA_1, PA_2 = range(3)


@dataclass(frozen=True, kw_only=True)
class PassiveAggressive(Learner):
    """Passive-aggressive learning.

    >>> from rerank.learn.learned import learned
    >>> learned(PassiveAggressive(variant="1", C=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 0.2}

    Reference: Crammer et al. 2006 (JMLR 7), Fig. 1. Memory: 16 bytes a column, 8 without the average.

    Parameters
    ----------
    variant: "hard" (the margin whatever it takes), "1" (steps of at most C) or "2" (steps damped by 1/2C).
    C: > 0; aggressiveness of the variants 1 and 2.
    top: how many pairs of a list to learn from, the best-scoring rivals first.
    loss: "hinge" (asks for a margin of 1) or "cost" (for tilt·(gain(y*) − gain(y')), the tilt being the pair source's).
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "pa"
    passes: ClassVar[Any] = pair_epoch

    variant: Literal["hard", "1", "2"] = "1"
    C: Positive = 1.0
    top: Count = 1
    loss: Literal["hinge", "cost"] = "hinge"

    @staticmethod
    def update_pair(
        state: Any, sums: Any, scratch: Scratch, count: int, fixed: float, cost: float, weight: float, params: Any
    ) -> Lesson:  # fmt: skip
        """w ← w + τz, τ = loss/‖z‖², at most C (PA-I), or loss/(‖z‖² + 1/2C) (PA-II) (Crammer et al. 2006, Fig. 1)."""
        m, norm = fixed + margin(state.a, scratch, count), squared_norm(scratch, count)
        loss, _ = value_and_slope(m, cost, params.loss)
        if not (loss > 0.0 and norm > 0.0):
            return Lesson(m, loss, 0.0, IDLE)
        tau = loss / (norm + 0.5 / params.C) if params.variant == PA_2 else loss / norm
        if params.variant == PA_1:
            tau = min(params.C, tau)
        tau *= weight
        subtract(state, scratch, count, -tau)
        return Lesson(m, loss, tau, UPDATE)

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, tau: float, params: Any) -> None:
        """w ← w − τg for g = −z, where a logged update is repeated."""
        subtract(state, scratch, count, tau)
