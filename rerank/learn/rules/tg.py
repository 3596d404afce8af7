"""Truncated gradient (Langford, Li & Zhang 2009, section 3.3)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.kernels.by_type import body
from rerank.learn.base import learners
from rerank.learn.losses import Loss
from rerank.learn.settings import Count, Positive, Update
from rerank.learn.skeletons.truncated import Truncating, becomes_exempt, step_size, truncation

LARGEST = 1e150  # the most that one truncation takes away, so that their sum stays finite


@learners.add("tg")
@dataclass(frozen=True, kw_only=True)
class TruncatedGradient(Truncating):
    """Gradient steps, and every so many updates a truncation of the weights.

    Parameters
    ----------
    loss: one of LOSSES.
    eta: > 0; the first step's size, η/√k the k-th's. The weight of a list scales its step.
    l1: ≥ 0; strength of the regulariser λ₁‖w‖₁, which spares the base score.
    theta: > 0; larger weights are not truncated; None for no limit.
    every: ≥ 1; updates from one truncation to the next; a truncation is as many times as large.
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base, base_rate: see Learner.

    A truncation takes at most 1e150.
    """

    name: ClassVar[str] = "tg"

    loss: Loss = "hinge"
    theta: Positive | None = None
    every: Count = 1
    update: Update = "always"

    def limit(self) -> float | None:
        return self.theta


@body(truncation, TruncatedGradient)
def truncated_gradient(k: int, q: Any) -> float:
    """w ← T(w − α_k·g, every·α_k·λ₁, θ) where ``every`` divides k, else w ← w − α_k·g."""
    return float(min(q.every * step_size(k, q) * q.l1, LARGEST)) if k % q.every == 0 else 0.0


@body(becomes_exempt, TruncatedGradient)
def exceeds(w: float, q: Any) -> bool:
    """T leaves weights above θ as they are."""
    return bool(abs(w) > q.theta)
