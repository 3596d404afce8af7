"""Gaussian learners with a full covariance matrix: O(D²) per update, for problems of a few thousand columns."""

from typing import Any

import numpy as np

from rerank.kernels.compile import by_type, kernel
from rerank.learn.hooks import IDLE, SKIP, UPDATE, Lesson, rates_of
from rerank.learn.judge import squared_norm
from rerank.learn.predictor import add
from rerank.learn.workspace import Scratch

ROUNDING = 1e-12  # of a variance that was 1 at first: how exactly it can be known
SMALLEST = 1e-100  # an update whose v is below it is skipped


@by_type
def learn_full(
    state: Any, sz: np.ndarray, scratch: Scratch, count: int, fixed: float, weight: float, params: Any
) -> Lesson:  # fmt: skip
    """μ ← μ + αΣz, Σ ← Σ − βΣzzᵀΣ, where the margin is short of what is asked; ``sz`` is room for Σz.

    The second-order perceptron judges with z in its matrix already, which divides w·z by 1 + v. The variance along z
    stays above what rounding leaves of it, so that Σ stays positive definite.
    """
    m, v = spread_difference(state, scratch, count, sz)
    after = params.judges_after_update
    judged = fixed + (m / (1.0 + v) if after else m)
    loss, alpha, shrinkage, _ = rates_of(m if after else judged, max(v, 0.0), weight, params)
    loss = max(0.0, -judged) if after else loss
    if not (loss > 0.0 or (after and judged == 0.0)) or count == 0 or weight == 0.0:
        return Lesson(judged, loss, fixed, IDLE)
    floor = ROUNDING * squared_norm(scratch, count)
    if not v > max(floor, SMALLEST):
        return Lesson(judged, loss, fixed, SKIP)
    shrinkage = min(shrinkage, (1.0 - floor / v) / v)  # zᵀΣz becomes v − βv²
    whiten(state, sz, alpha, shrinkage)
    return Lesson(judged, loss, fixed, UPDATE)


@kernel
def spread_difference(state: Any, scratch: Scratch, count: int, sz: np.ndarray) -> tuple[float, float]:
    """m = μ·z and v = zᵀΣz; Σz goes to ``sz``."""
    for j in range(sz.shape[0]):
        sz[j] = 0.0
    m = v = 0.0
    for r in range(count):
        row, z = state.matrix[scratch.column[r]], scratch.value[r]
        m += state.a[scratch.column[r]] * z
        for j in range(sz.shape[0]):
            sz[j] += row[j] * z
    for r in range(count):
        v += sz[scratch.column[r]] * scratch.value[r]
    return m, v


@by_type
def whiten(state: Any, sz: np.ndarray, alpha: float, shrinkage: float) -> None:
    """μ ← μ + αΣz, Σ ← Σ − βΣzzᵀΣ, with Σz in ``sz``."""
    for j in range(sz.shape[0]):
        if sz[j] == 0.0:
            continue
        add(state, j, alpha * sz[j])
        row = state.matrix[j]
        for k in range(sz.shape[0]):
            row[k] -= shrinkage * (sz[j] * sz[k])
