"""Forward-backward splitting with L1 (Duchi & Singer 2009, section 5.1)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.learn.predictor import UPDATES
from rerank.learn.rules.tg import GREATEST
from rerank.learn.rules.truncated import Truncating, step_and_truncate, step_size
from rerank.learn.settings import Update
from rerank.learn.workspace import Scratch


@dataclass(frozen=True, kw_only=True)
class Fobos(Truncating):
    """A gradient step, then the truncation of all weights by α_k·λ₁.

    >>> from rerank.learn.learned import learned
    >>> learned(Fobos(l1=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.1222, 'short': 1.3435}

    Reference: Duchi & Singer 2009 (JMLR 10), section 5.1. Memory: 16 bytes a column, 8 without the average, and 32
    more in an epoch that keeps it.

    Parameters
    ----------
    loss, eta, l1, update, base, base_rate: see TruncatedGradient.
    """

    name: ClassVar[str] = "fobos"

    loss: str = "hinge"
    update: Update = "always"

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
        """w ← sign(w − α_k·g)·max(|w − α_k·g| − α_k·λ₁, 0)."""
        alpha = step_size(state.counts[UPDATES] + 1, params.eta)
        step_and_truncate(state, scratch, count, alpha * weight, min(alpha * params.l1, GREATEST), math.inf)
