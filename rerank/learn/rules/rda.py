"""Regularised dual averaging and its voted form (Xu et al. 2013, Alg. 1; Gao et al. 2013, Fig. 1; Xiao 2010).

With s the sum of subgradients after k updates,

    w_j = −sign(s_j) · max(|s_j| − k·λ₁, 0) · d_k,   d_k = 1 / (k·λ₂ + η·√k),   w = 0 for k = 0:

so a_j = −s_j, and scale and threshold follow from k. Free columns of a corpus, and the base score, have λ₁ = λ₂ = 0.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.learn.base import Learner, State
from rerank.learn.settings import NotNegative, Positive, Update
from rerank.learn.workspace import Scratch


@dataclass(frozen=True, kw_only=True)
class RDA(Learner):
    """Regularised dual averaging with L1, L2 or both.

    >>> from rerank.learn.learned import learned
    >>> learned(RDA(l1=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 1.2728}

    Reference: Xiao 2010 (JMLR 11), Alg. 1. Memory: 16 bytes a column and in an epoch 32 more; 8 without the average.

    Parameters
    ----------
    loss: the name of a loss, or its import path.
    eta: > 0; larger means smaller weights compared with the base score.
    l1, l2: ≥ 0; strength of the regularisers λ₁‖w‖₁ and (λ₂/2)‖w‖², which spare the base score.
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "rda"
    shrinks: ClassVar[bool] = True

    loss: str = "hinge"
    eta: Positive = 1.0
    l1: NotNegative = 0.0
    l2: NotNegative = 0.0
    update: Update = "always"

    @property
    def scales_free(self) -> bool:
        return self.l2 > 0

    def init(self, columns: int, candidates: int = 0) -> State:
        state = super().init(columns, candidates)
        now = self.named(state).now
        now.d = now.d_free = now.d_base = 0.0
        now.slope = self.l1
        return state

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
        """s ← s + g, k ← k + 1 (Gao et al., Fig. 1); the weight of a list multiplies g."""
        for r in range(count):
            state.a[scratch.column[r]] -= weight * scratch.value[r]
        now, k = state.now, state.counts.updates + 1
        now.d, now.d_free = 1.0 / (k * params.l2 + params.eta * math.sqrt(k)), 1.0 / (params.eta * math.sqrt(k))
        now.d_base, now.tau = now.d_free, k


@dataclass(frozen=True, kw_only=True)
class VotedRDA(RDA):
    """Dual averaging that updates on mistakes only, so that few predictors vote; see RDA for the parameters.

    >>> from rerank.learn.learned import learned
    >>> learned(VotedRDA(l1=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 1.2728}

    Reference: Xu et al. 2013 (arXiv 1310.5007), Alg. 1; Gao et al. 2013, Fig. 1. Memory: as RDA.
    """

    name: ClassVar[str] = "vrda"
    update: Update = "mistakes"
