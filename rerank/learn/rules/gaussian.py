"""Gaussian learners: N(μ, Σ) over the weights, predicting with μ; Σ is diagonal, or a full matrix (``gaussian_full``).

A vector z of a list has m = μ·z and v = zᵀΣz. Every rule moves the mean by αΣz and shrinks the covariance,
Σ ← Σ − βΣzzᵀΣ, or its inverse, 1/Σ_jj ← 1/Σ_jj + ξz_j²; what it says of α, β and ξ is the body of ``rates_of``. Forms
without cancellation are used throughout. The base score's weight, where it is learned, is one more coordinate after the
D columns.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.learn.base import Learner, State
from rerank.learn.hooks import Lesson
from rerank.learn.pair_epoch import pair_epoch
from rerank.learn.predictor import fresh
from rerank.learn.replay import repeat_pairs
from rerank.learn.rules.gaussian_diagonal import learn_diagonal
from rerank.learn.rules.gaussian_full import learn_full
from rerank.learn.settings import Count
from rerank.learn.workspace import Scratch


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
