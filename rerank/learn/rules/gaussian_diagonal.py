"""The step of Gaussian learners with a diagonal covariance."""

from typing import Any

import numpy as np

from rerank.kernels.compile import by_type
from rerank.learn.hooks import IDLE, SKIP, UPDATE, Lesson, exact_rates, rates_of
from rerank.learn.judge import inner, margin
from rerank.learn.rules.gaussian_full import SMALLEST
from rerank.learn.workspace import Scratch

KL, L2, EXACT = range(3)  # the places of these choices in every learner's ``covariance``


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
