"""Gaussian learners: N(μ, Σ) over the weights, predicting with μ; Σ is diagonal, or a full matrix (``gaussian_full``).

A vector z of a list has m = μ·z and v = zᵀΣz. Every rule moves the mean by αΣz and shrinks the covariance,
Σ ← Σ − βΣzzᵀΣ, or its inverse, 1/Σ_jj ← 1/Σ_jj + ξz_j²; what it says of α, β and ξ is the body of ``rates_of``. Forms
without cancellation are used throughout. The base score's weight, where it is learned, is one more coordinate after the
D columns.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.kernels.by_type import by_type
from rerank.learn.base import Learner, State
from rerank.learn.hooks import IDLE, SKIP, UPDATE, Lesson, exact_rates, rates_of
from rerank.learn.judge import inner, margin
from rerank.learn.pair_epoch import pair_epoch
from rerank.learn.predictor import fresh
from rerank.learn.replay import repeat_pairs
from rerank.learn.rules.gaussian_full import SMALLEST, learn_full
from rerank.learn.settings import Count
from rerank.learn.workspace import Scratch

KL, L2, EXACT = range(3)  # the places of these choices in every learner's ``covariance``


@dataclass(frozen=True, kw_only=True)
class Gaussian(Learner):
    """The common part of Gaussian learners.

    Parameters
    ----------
    covariance: how it is kept: "kl" or "l2" (diagonals of the full update), or "full".
    top: how many rivals of a list to learn from, the best-scoring first.
    """

    cell: ClassVar[tuple[str, ...]] = ("mean", "variance")
    passes: ClassVar[Any] = pair_epoch
    replays: ClassVar[Any] = repeat_pairs

    covariance: str = "kl"
    top: Count = 1

    @property
    def full(self) -> bool:
        """Whether the covariance is a full matrix."""
        return self.covariance == "full"

    @property
    def prior(self) -> float:
        """Σ₁ = prior · I."""
        return 1.0

    def init(self, columns: int, candidates: int = 0) -> State:  # noqa: ARG002
        """μ = 0 and Σ = prior·I."""
        if self.full:
            state = fresh(columns, matrix=True)
            state.matrix[:] *= self.prior
            return state
        state = super().init(columns)
        self.named(state).cells["variance"] = self.prior
        return state

    def variances(self, state: State) -> np.ndarray:
        """float64 [D]: the diagonal of Σ."""
        return np.array((np.diag(state.matrix) if self.full else self.named(state).cells["variance"])[:-1])

    @staticmethod
    def update_pair(
        state: Any, sums: Any, scratch: Scratch, count: int, fixed: float, cost: float, weight: float, params: Any
    ) -> Lesson:  # fmt: skip
        """With a full matrix where ``sums`` is room for Σz, else with a diagonal; settled while it is compiled."""
        if sums is None:
            return learn_diagonal(state, scratch, count, fixed, weight, params)
        return learn_full(state, sums, scratch, count, fixed, weight, params)


@by_type
def learn_diagonal(state: Any, scratch: Scratch, count: int, fixed: float, weight: float, params: Any) -> Lesson:
    """μ ← μ + αΣz, and 1/Σ_jj ← 1/Σ_jj + ξz_j² or Σ_jj ← Σ_jj − β(Σ_jj z_j)², where the margin is short."""
    cells, sums, survived = state.cells, state.sums, state.now.survived  # read once
    z, part, averaged = scratch.value, scratch.extra, sums.shape[0] > 0
    for r in range(np.uint64(count)):
        part[r] = cells[scratch.column[r]].variance * z[r]
    m, v = fixed + margin(state.a, scratch, count), inner(part, z, count)
    loss, alpha, beta, xi = rates_of(m, v, weight, params)
    if not loss > 0.0 or count == 0 or weight == 0.0:
        return Lesson(m, loss, fixed, IDLE)
    if not v > SMALLEST:
        return Lesson(m, loss, fixed, SKIP)
    if params.covariance == EXACT:
        for r in range(np.uint64(count)):
            part[r] *= z[r]
        alpha, xi = exact_rates(scratch, count, m, v, weight, params)
    for r in range(np.uint64(count)):  # the factors of variances
        square = part[r] if params.covariance == EXACT else part[r] * z[r]
        part[r] = 1.0 - beta * square if params.covariance == L2 else 1.0 / (1.0 + xi * square)
    for r in range(np.uint64(count)):
        cell = cells[scratch.column[r]]
        step = alpha * cell.variance * z[r]
        cell.mean += step
        if averaged:
            sums[scratch.column[r]] += survived * step
        cell.variance = max(SMALLEST, cell.variance * part[r])
    return Lesson(m, loss, fixed, UPDATE)
