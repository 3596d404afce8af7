"""Truncated gradient (Langford, Li & Zhang 2009, section 3.3)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.learn.predictor import UPDATES
from rerank.learn.rules.truncated import Truncating, step_and_truncate, step_size
from rerank.learn.settings import Count, Positive, Update
from rerank.learn.workspace import Scratch

GREATEST = 1e150  # the most that one truncation takes away, so that their sum stays finite


@dataclass(frozen=True, kw_only=True)
class TruncatedGradient(Truncating):
    """Gradient steps, and every this many updates a truncation of the weights.

    >>> from rerank.learn.learned import learned
    >>> learned(TruncatedGradient(l1=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.1222, 'short': 1.3435}

    Reference: Langford, Li & Zhang 2009 (JMLR 10), section 3.3. Memory: 16 bytes a column, 8 without the average,
    and 32 more in an epoch that keeps it.

    Parameters
    ----------
    loss: the name of a loss, or its import path.
    eta: > 0; the first step's size, η/√k the k-th's. The weight of a list scales its step.
    l1: ≥ 0; strength of the regulariser λ₁‖w‖₁, which spares the base score.
    theta: > 0; larger weights are not truncated; None for no limit.
    every: ≥ 1; updates from one truncation to the next; a truncation is as many times as large.
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base, base_rate: see Learner.

    A truncation takes at most 1e150.
    """

    name: ClassVar[str] = "tg"

    loss: str = "hinge"
    theta: Positive | None = None
    every: Count = 1
    update: Update = "always"

    def limit(self) -> float | None:
        return self.theta

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
        """w ← T(w − α_k·g, every·α_k·λ₁, θ) where ``every`` divides k, else w ← w − α_k·g; T leaves weights above θ."""
        k = state.counts[UPDATES] + 1
        alpha, truncation = step_size(k, params.eta), 0.0
        if k % params.every == 0:
            truncation = min(params.every * alpha * params.l1, GREATEST)
        step_and_truncate(state, scratch, count, alpha * weight, truncation, params.theta)
