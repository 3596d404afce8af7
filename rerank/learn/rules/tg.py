"""Truncated gradient (Langford, Li & Zhang 2009, section 3.3).

With τ = G_k the sum of the truncations up to update k, a column keeps

    a_j = w_j + sign(w_j)·G_k as it was last touched, and weighs sign(a_j)·max(|a_j| − G_k, 0) since.

A column can be exempt: it has v_j = 0, and keeps a_j = w_j until an update touches it. Free columns always are.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.learn.base import Learner, State
from rerank.learn.predictor import shrink, slope_of
from rerank.learn.settings import Count, NotNegative, Positive, Update
from rerank.learn.workspace import Scratch

GREATEST = 1e150  # the most that one truncation takes away, so that their sum stays finite


@dataclass(frozen=True, kw_only=True)
class TruncatedGradient(Learner):
    """Gradient steps, and every this many updates a truncation of the weights.

    >>> from rerank.learn.learned import learned
    >>> learned(TruncatedGradient(l1=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.1222, 'short': 1.3435}

    Reference: Langford, Li & Zhang 2009 (JMLR 10), section 3.3; without ``theta`` and ``every`` FOBOS (Duchi & Singer
    2009). Memory: 16 bytes a column, 8 without the average, and 32 more in an epoch that keeps it.

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
    shrinks: ClassVar[bool] = True

    loss: str = "hinge"
    eta: Positive = 1.0
    l1: NotNegative = 0.0
    theta: Positive | None = None
    every: Count = 1
    update: Update = "always"

    def init(self, columns: int, candidates: int = 0) -> State:
        state = super().init(columns, candidates)
        return state if self.theta is None else state._replace(v=np.ones(columns + 1))

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
        """w ← T(w − α_k·g, every·α_k·λ₁, θ) where ``every`` divides k, else w ← w − α_k·g, with α_k = η/√k.

        T leaves weights above θ. Those of the touched columns, before the truncation, decide which of them it reaches.
        """
        k, G = state.counts.updates + 1, state.now.tau
        alpha = params.eta / math.sqrt(k)
        for r in range(count):
            j = scratch.column[r]
            w = shrink(state.a[j], G * slope_of(state, j)) - alpha * weight * scratch.value[r]
            if state.v.shape[0] > 0:
                state.v[j] = 0.0 if abs(w) > params.theta else 1.0
            state.a[j] = w if w == 0.0 else w + math.copysign(G * slope_of(state, j), w)
        if k % params.every == 0:
            state.now.tau = G + min(params.every * alpha * params.l1, GREATEST)
