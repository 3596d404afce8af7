"""Gradient steps and truncations of all weights toward 0, which truncated gradient and FOBOS share.

With τ = G_k the sum of the truncations up to update k, a column keeps

    a_j = w_j + sign(w_j)·G_k as it was last touched, and weighs sign(a_j)·max(|a_j| − G_k, 0) since.

A column can be exempt: it has v_j = 0, and keeps a_j = w_j until an update touches it. Free columns always are.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.kernels.by_type import by_type
from rerank.kernels.compile import kernel
from rerank.learn.base import Learner, State
from rerank.learn.predictor import TAU, fresh, shrink, slope_of
from rerank.learn.scoring import a_of
from rerank.learn.settings import NotNegative, Positive
from rerank.learn.workspace import Scratch


@dataclass(frozen=True, kw_only=True)
class Truncating(Learner):
    """A learner with truncations."""

    shrinks: ClassVar[bool] = True

    eta: Positive = 1.0
    l1: NotNegative = 0.0

    def limit(self) -> float | None:
        """Weights above it are exempt; None for no limit."""
        return None

    def init(self, columns: int, candidates: int = 0) -> State:  # noqa: ARG002
        state = fresh(columns, slopes=self.limit() is not None)
        state.v[:] = 1.0
        return state


@kernel
def step_size(k: int, eta: float) -> float:
    """α_k = η/√k."""
    return float(eta / math.sqrt(k))


@by_type
def step_and_truncate(
    state: Any, scratch: Scratch, count: int, rate: float, truncation: float, limit: float
) -> None:  # fmt: skip
    """w ← w − rate·g, then the truncation, which spares weights above ``limit``.

    The weights of the touched columns, as they are before the truncation, decide which of them it reaches.
    """
    G = state.numbers[TAU]
    for r in range(count):
        j = scratch.column[r]
        w = shrink(a_of(state.cells, j), G * slope_of(state, j)) - rate * scratch.value[r]
        if state.v.shape[0] > 0:
            state.v[j] = 0.0 if abs(w) > limit else 1.0
        state.cells[j] = w if w == 0.0 else w + math.copysign(G * slope_of(state, j), w)
    state.numbers[TAU] = G + truncation
