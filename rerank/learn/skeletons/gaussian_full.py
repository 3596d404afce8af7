"""Gaussian learners with a full covariance matrix: O(D²) per update, for problems of a few thousand columns."""

from typing import Any, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.kernels.by_type import body, by_type
from rerank.kernels.compile import kernel
from rerank.learn.apart import ByColumn, ByPair, TrainedApart
from rerank.learn.judge import difference, score_list, squared_norm
from rerank.learn.skeletons.additive import history
from rerank.learn.steps import (
    IDLE,
    IN_VAIN,
    SEEN,
    SKIP,
    UPDATE,
    Lesson,
    beta,
    close,
    coordinate,
    emit,
    inclusive,
    learn_pair,
    put,
    rates_of,
    score,
)
from rerank.learn.voting.votes import VoteRoom
from rerank.learn.workspace import ListArrays, Scratch

ROUNDING = 1e-12  # of a variance that was 1 at first: how exactly it can be known
MOST_COLUMNS = 8192  # Σ then takes half a gigabyte
SMALLEST = 1e-100  # an update whose v is below it is skipped


class FullState(NamedTuple):
    """What training changes; D columns and the base score. ``u`` holds Σ NOW·Δμ, or nothing."""

    mu: ByColumn  # float64 [D + 1]
    u: ByColumn  # float64 [D + 1]
    sigma: ByPair  # float64 [D + 1, D + 1]
    counts: np.ndarray  # int64 [3]: updates; lists the current predictor survived; lists seen (Σ c_k)


def fresh_full(columns: int, prior: float) -> FullState:
    """μ = 0 and Σ = prior · I.

    Raises
    ------
    RecipeError: there are more than MOST_COLUMNS columns.
    """
    if columns > MOST_COLUMNS:
        raise RecipeError(
            f"a full matrix over {columns:,} columns is more than the {MOST_COLUMNS:,} that are allowed; "
            "use a diagonal covariance, or fewer features",
            key="covariance",
        )
    n = columns + 1
    return FullState(np.zeros(n), np.zeros(n), prior * np.eye(n), np.zeros(3, np.int64))


def combined_full(apart: TrainedApart, rule: str) -> FullState:
    """``Gaussian.combined`` for full matrices."""
    if rule == "kl":
        known = inverse(apart.start.sigma)
        precision, weighted = np.zeros_like(known), np.zeros(len(known))
        for end in apart.ends:
            own = inverse(end.sigma)
            precision += own
            weighted += times(own, end.mu)
        mu = times(inverse(precision), weighted)
        if not apart.fresh:
            precision -= (len(apart.ends) - 1) * known
        sigma = inverse(precision)
    else:
        mu, sigma = apart.mean(lambda end: end.mu), apart.mean(lambda end: end.sigma)
    return full_state(apart, mu, sigma)


@kernel
def invert(a: np.ndarray) -> None:
    """A symmetric, positive definite matrix becomes its inverse, by Gauss-Jordan elimination."""
    for k in range(a.shape[0]):
        pivot = a[k, k]
        a[k, k] = 1.0
        for j in range(a.shape[1]):
            a[k, j] /= pivot
        for i in range(a.shape[0]):
            factor = a[i, k]
            if i != k and factor != 0.0:
                a[i, k] = 0.0
                for j in range(a.shape[1]):
                    a[i, j] -= factor * a[k, j]


def inverse(matrix: np.ndarray) -> np.ndarray:
    """The inverse of a symmetric, positive definite matrix; LAPACK's bits depend on the number of its threads."""
    found = np.array(matrix, np.float64)
    invert(found)
    return found


def times(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The product of a matrix and a vector, likewise in a fixed order."""
    return np.asarray((matrix * x).sum(axis=1))


def full_state(apart: TrainedApart, mu: np.ndarray, sigma: np.ndarray) -> FullState:
    """A combined state."""
    u, counts = history(apart, mu, lambda end: end.mu)
    return FullState(mu, u, (sigma + sigma.T) / 2.0, counts)


@body(score, FullState)
def score_full(data: ListArrays, i: int, state: Any, q: Any, scores: np.ndarray) -> None:
    """β·b(y) + μ·φ(y)."""
    score_list(data, i, state.mu, beta(state, q), scores)


@body(beta, FullState)
def beta_full(state: Any, q: Any) -> float:
    """The last coordinate is the base score's."""
    return float(q.base + q.base_rate * state.mu[state.mu.shape[0] - 1])


@body(coordinate, FullState)
def mean_of_full(state: Any, j: int, free: int, q: Any) -> tuple[float, float]:
    """μ_j."""
    return state.mu[j], 0.0


@kernel
def difference_with_base(data: ListArrays, star: int, rival: int, base_rate: float, t: Scratch, last: int) -> int:
    """z = φ(y*) − φ(y') with ρ·(b(y*) − b(y')) at the column ``last``, if that is not 0; returns its length."""
    count = difference(data, star, rival, t)
    z_base = base_rate * (data.base[star] - data.base[rival])
    t.column[count], t.value[count] = last, z_base
    return int(count + (z_base != 0.0))


@by_type
def spread_difference(state: Any, t: Scratch, count: int, sz: np.ndarray) -> tuple[float, float]:
    """m = μ·z and v = zᵀΣz; Σz goes to ``sz``."""
    for j in range(sz.shape[0]):
        sz[j] = 0.0
    m = v = 0.0
    for r in range(count):
        row, z = state.sigma[t.column[r]], t.value[r]
        m += state.mu[t.column[r]] * z
        for j in range(sz.shape[0]):
            sz[j] += row[j] * z
    for r in range(count):
        v += sz[t.column[r]] * t.value[r]
    return m, v


@body(learn_pair, FullState)
def learn_full(
    data: ListArrays, i: int, star: int, rival: int, fixed: float, state: Any, lazy: Any, t: Scratch, q: Any
) -> Lesson:  # fmt: skip
    """μ ← μ + αΣz, Σ ← Σ − βΣzzᵀΣ, where the margin is short of what is asked; ``lazy`` is room for Σz.

    The second-order perceptron judges with z in its matrix already, which divides w·z by 1 + v. The variance along z
    stays above what rounding leaves of it, so that Σ stays positive definite.
    """
    count = difference_with_base(data, star, rival, q.base_rate, t, state.mu.shape[0] - 1)
    weight = data.weight[i]
    m, v = spread_difference(state, t, count, lazy)
    judged = fixed + (m / (1.0 + v) if inclusive(q) else m)
    loss, alpha, shrinkage, _ = rates_of(m if inclusive(q) else judged, max(v, 0.0), weight, q)
    loss = max(0.0, -judged) if inclusive(q) else loss
    if not (loss > 0.0 or (inclusive(q) and judged == 0.0)):
        return Lesson(judged, loss, count, 0.0, fixed, IDLE)
    if count == 0 or weight == 0.0:
        return Lesson(judged, loss, count, 0.0, fixed, IN_VAIN)
    norm = squared_norm(t, count)
    floor = ROUNDING * norm
    if not v > max(floor, SMALLEST):
        return Lesson(judged, loss, count, 0.0, fixed, SKIP)
    shrinkage = min(shrinkage, (1.0 - floor / v) / v)  # zᵀΣz becomes v − βv²
    whiten(state, lazy, alpha, shrinkage)
    close(state.counts)
    return Lesson(judged, loss, count, norm, fixed, UPDATE)


@by_type
def whiten(state: Any, sz: np.ndarray, alpha: float, shrinkage: float) -> None:
    """μ ← μ + αΣz, Σ ← Σ − βΣzzᵀΣ, with Σz in ``sz``."""
    now = float(state.counts[SEEN])
    for j in range(sz.shape[0]):
        if sz[j] == 0.0:
            continue
        state.mu[j] += alpha * sz[j]
        if state.u.shape[0] > 0:
            state.u[j] += now * (alpha * sz[j])
        row = state.sigma[j]
        for k in range(sz.shape[0]):
            row[k] -= shrinkage * (sz[j] * sz[k])


@body(emit, FullState)
def emit_full(room: VoteRoom, k: int, t: Scratch, count: int, state: Any, lazy: Any, free: int, q: Any) -> None:
    """An update moves every column that any update before it was correlated with."""
    at = room.first[k]
    for j in range(room.width):
        if lazy[j] != 0.0:
            at = put(room, at, j, state, free, q)
    room.first[k + 1] = at
