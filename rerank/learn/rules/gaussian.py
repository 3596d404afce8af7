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
from rerank.kernels.compile import kernel
from rerank.learn.base import Learner, State
from rerank.learn.hooks import IDLE, IN_VAIN, SKIP, UPDATE, Lesson, rates_of, shrink_exactly
from rerank.learn.judge import squared_norm, sum_of
from rerank.learn.pair_epoch import pair_epoch
from rerank.learn.predictor import CELL, SURVIVED, add_sum, fresh
from rerank.learn.replay import repeat_pairs
from rerank.learn.rules.gaussian_full import SMALLEST, learn_full
from rerank.learn.scoring import ONE, THREE, TWO
from rerank.learn.settings import Count
from rerank.learn.workspace import Scratch

KL, L2, EXACT = range(3)  # the places of these choices in every learner's ``covariance``
MEAN, VARIANCE = range(2)  # of a cell


@dataclass(frozen=True, kw_only=True)
class Gaussian(Learner):
    """The common part of Gaussian learners.

    Parameters
    ----------
    covariance: how it is kept: "kl" or "l2" (diagonals of the full update), or "full".
    top: how many rivals of a list to learn from, the best-scoring first.
    """

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
        state = fresh(columns, cell=2)
        state.cells[:, VARIANCE] = self.prior
        return state

    def variances(self, state: State) -> np.ndarray:
        """float64 [D]: the diagonal of Σ."""
        return np.array((np.diag(state.matrix) if self.full else state.cells[:, VARIANCE])[:-1])

    @staticmethod
    def update_pair(
        state: Any, sums: Any, scratch: Scratch, count: int, fixed: float, asked: float, weight: float, params: Any
    ) -> Lesson:  # fmt: skip
        """By what is kept of Σ."""
        return learn_by(state.cells, state, sums, scratch, count, fixed, weight, params)


@by_type
def learn_by(
    cells: np.ndarray, state: Any, sums: Any, scratch: Scratch, count: int, fixed: float, weight: float, params: Any
) -> Lesson:  # fmt: skip
    """With a full matrix where cells are single numbers, else with a diagonal; settled while it is compiled."""
    if cells.ndim == 1:
        return learn_full(state, sums, scratch, count, fixed, weight, params)
    return learn_diagonal(state, scratch, count, fixed, weight, params)


@by_type
def learn_diagonal(state: Any, scratch: Scratch, count: int, fixed: float, weight: float, params: Any) -> Lesson:
    """μ ← μ + αΣz, Σ_jj ← Σ_jj times a factor, where the margin is short of what is asked."""
    m, v = margin_and_variance(state, scratch, count)
    m += fixed
    loss, alpha, shrinkage, xi = rates_of(m, v, weight, params)
    if not loss > 0.0:
        return Lesson(m, loss, 0.0, fixed, IDLE)
    if count == 0 or weight == 0.0:
        return Lesson(m, loss, 0.0, fixed, IN_VAIN)
    if not v > SMALLEST:
        return Lesson(m, loss, 0.0, fixed, SKIP)
    if params.covariance == L2:
        shrink_l2(scratch, count, shrinkage)
    elif params.covariance == EXACT:
        alpha = shrink_exactly(scratch, count, m, v, weight, alpha, params)
    else:
        shrink_kl(scratch, count, xi)
    move(state, scratch, count, alpha)
    return Lesson(m, loss, squared_norm(scratch, count), fixed, UPDATE)


@by_type
def margin_and_variance(state: Any, scratch: Scratch, count: int) -> tuple[float, float]:
    """m = μ·z, in four sums that the processor computes at once, and v = zᵀΣz; Σ_jj z_j² stays in ``scratch.extra``."""
    g, j, z, part = state.cells, scratch.column, scratch.value, scratch.extra
    end = np.uint64(count)
    one = two = three = four = 0.0
    quarters = end - end % np.uint64(4)
    for r in range(np.uint64(0), quarters, np.uint64(4)):
        a, b, c, d = j[r], j[r + ONE], j[r + TWO], j[r + THREE]
        one += g[a, MEAN] * z[r]
        part[r] = g[a, VARIANCE] * z[r] * z[r]
        two += g[b, MEAN] * z[r + ONE]
        part[r + ONE] = g[b, VARIANCE] * z[r + ONE] * z[r + ONE]
        three += g[c, MEAN] * z[r + TWO]
        part[r + TWO] = g[c, VARIANCE] * z[r + TWO] * z[r + TWO]
        four += g[d, MEAN] * z[r + THREE]
        part[r + THREE] = g[d, VARIANCE] * z[r + THREE] * z[r + THREE]
    for r in range(quarters, end):
        one += g[j[r], MEAN] * z[r]
        part[r] = g[j[r], VARIANCE] * z[r] * z[r]
    return float((one + two) + (three + four)), float(sum_of(part, count))


@by_type
def move(state: Any, scratch: Scratch, count: int, alpha: float) -> None:
    """μ ← μ + αΣz, and Σ_jj ← Σ_jj times the factor in ``scratch.extra``."""
    cells, sums, now, summed = state.cells, state.sums, state.numbers[SURVIVED], state.numbers[CELL] > 0.0
    for r in range(np.uint64(count)):  # what belongs to the state as a whole is read once
        j = scratch.column[r]
        variance = cells[j, VARIANCE]
        step = alpha * variance * scratch.value[r]
        cells[j, MEAN] += step
        add_sum(cells, sums, j, now * step, summed)
        cells[j, VARIANCE] = max(SMALLEST, variance * scratch.extra[r])


@kernel
def shrink_kl(scratch: Scratch, count: int, xi: float) -> None:
    """1/Σ_jj ← 1/Σ_jj + ξz_j², as a factor 1/(1 + ξ·Σ_jj z_j²) in ``scratch.extra``."""
    for r in range(np.uint64(count)):
        scratch.extra[r] = 1.0 / (1.0 + xi * scratch.extra[r])


@kernel
def shrink_l2(scratch: Scratch, count: int, beta: float) -> None:
    """Σ_jj ← Σ_jj − β(Σ_jj z_j)², as a factor 1 − β·Σ_jj z_j² in ``scratch.extra``."""
    for r in range(np.uint64(count)):
        scratch.extra[r] = 1.0 - beta * scratch.extra[r]
