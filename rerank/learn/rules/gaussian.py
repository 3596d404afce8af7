"""Gaussian learners: N(μ, Σ) over the weights, predicting with μ; Σ is diagonal, or a full matrix.

A vector z of a list has m = μ·z and v = zᵀΣz. Every rule moves the mean by αΣz and shrinks the covariance,
Σ ← Σ − βΣzzᵀΣ, or its inverse, 1/Σ_jj ← 1/Σ_jj + ξz_j²; α, β and ξ are those of its ``gaussian_step``. Forms without
cancellation are used throughout. The base score's weight, where it is learned, is one more coordinate after the D
columns.

A full matrix takes O(D²) per update: it is for problems of a few thousand columns. For learners whose updates meet a
constraint of confidence see ``confidence``.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from rerank.base.ranges import Count, Positive
from rerank.kernels.compile import by_type, kernel
from rerank.learn.epoch import pair_epoch, repeat_pairs
from rerank.learn.learner import Learner, State
from rerank.learn.predictor import add, assign, new_state
from rerank.learn.workspace import (
    NO_UPDATE,
    SKIP,
    UPDATE,
    PairUpdate,
    Scratch,
    exact_step,
    gaussian_step,
    inner,
    margin,
    squared_norm,
)

ROUNDING = 1e-12  # of a variance that was 1 at first: how exactly it can be known
MIN_VARIANCE = 1e-100  # an update whose v is below it is skipped
KL, L2, EXACT = range(3)  # the indices of these choices in every learner's ``covariance``


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
            state = new_state(columns, matrix=True)
            state.matrix[:] *= self.prior
            return state
        state = super().init(columns)
        self.view(state).cells["variance"] = self.prior
        return state

    def variances(self, state: State) -> np.ndarray:
        """float64 [D]: the diagonal of Σ."""
        return np.array((np.diag(state.matrix) if self.full else self.view(state).cells["variance"])[:-1])

    @staticmethod
    def update_pair(
        state: Any, sums: Any, scratch: Scratch, count: int, offset: float, cost: float, weight: float, params: Any
    ) -> PairUpdate:  # fmt: skip
        """With a full matrix where ``sums`` is room for Σz, else with a diagonal; settled while it is compiled."""
        if sums is None:
            return learn_diagonal(state, scratch, count, offset, weight, params)
        return learn_full(state, sums, scratch, count, offset, weight, params)


@by_type
def learn_full(
    state: Any, sz: np.ndarray, scratch: Scratch, count: int, offset: float, weight: float, params: Any
) -> PairUpdate:  # fmt: skip
    """μ ← μ + αΣz, Σ ← Σ − βΣzzᵀΣ, where the margin is short of what is asked; ``sz`` is room for Σz.

    The second-order perceptron judges with z in its matrix already, which divides w·z by 1 + v. The variance along z
    stays above what rounding leaves of it, so that Σ stays positive definite.
    """
    m, v = spread_difference(state, scratch, count, sz)
    after = params.judges_after_update
    full_margin = offset + (m / (1.0 + v) if after else m)
    loss, alpha, shrinkage, _ = gaussian_step(m if after else full_margin, max(v, 0.0), weight, params)
    loss = max(0.0, -full_margin) if after else loss
    if not (loss > 0.0 or (after and full_margin == 0.0)) or count == 0 or weight == 0.0:
        return PairUpdate(full_margin, loss, offset, NO_UPDATE)
    floor = ROUNDING * squared_norm(scratch, count)
    if not v > max(floor, MIN_VARIANCE):
        return PairUpdate(full_margin, loss, offset, SKIP)
    shrinkage = min(shrinkage, (1.0 - floor / v) / v)  # zᵀΣz becomes v − βv²
    whiten(state, sz, alpha, shrinkage)
    return PairUpdate(full_margin, loss, offset, UPDATE)


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


@by_type
def learn_diagonal(state: Any, scratch: Scratch, count: int, offset: float, weight: float, params: Any) -> PairUpdate:
    """μ ← μ + αΣz, and 1/Σ_jj ← 1/Σ_jj + ξz_j² or Σ_jj ← Σ_jj − β(Σ_jj z_j)², where the margin is short."""
    cells, sums, P = state.cells, state.sums, state.now.survived  # read once
    z, part, keeps_average = scratch.value, scratch.extra, sums.shape[0] > 0
    for r in range(np.uint64(count)):
        part[r] = cells[scratch.column[r]].variance * z[r]
    m, v = offset + margin(state.a, scratch, count), inner(part, z, count)
    loss, alpha, beta, xi = gaussian_step(m, v, weight, params)
    if not loss > 0.0 or count == 0 or weight == 0.0:
        return PairUpdate(m, loss, offset, NO_UPDATE)
    if not v > MIN_VARIANCE:
        return PairUpdate(m, loss, offset, SKIP)
    if params.covariance == EXACT:
        for r in range(np.uint64(count)):
            part[r] *= z[r]
        alpha, xi = exact_step(scratch, count, m, v, weight, params)
    for r in range(np.uint64(count)):  # the factors of variances
        square = part[r] if params.covariance == EXACT else part[r] * z[r]
        part[r] = 1.0 - beta * square if params.covariance == L2 else 1.0 / (1.0 + xi * square)
    for r in range(np.uint64(count)):
        cell = cells[scratch.column[r]]
        step = alpha * cell.variance * z[r]
        cell.mean += step
        if keeps_average:
            sums[scratch.column[r]] += P * step
        cell.variance = max(MIN_VARIANCE, cell.variance * part[r])
    return PairUpdate(m, loss, offset, UPDATE)


@dataclass(frozen=True, kw_only=True)
class AROW(Gaussian):
    """AROW: the squared hinge loss instead of CW's hard constraint, so that noisy labels do less harm.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(AROW(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.0244, 'short': 0.1463}

    Reference: Crammer, Kulesza & Dredze 2009 (NIPS), Fig. 1. Memory: 32 bytes a column, 16 without the average;
    8·D² for a full matrix, whose updates take O(D²) time.

    Parameters
    ----------
    r: > 0; larger means smaller steps: 1/(2λ₁) = 1/(2λ₂) of the paper. A list of weight ω has r/ω.
    covariance: "kl" or "l2" (diagonals of the full update), or "full".
    top: how many rivals of a list to learn from, the best-scoring first.
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "arow"

    r: Positive = 10.0
    covariance: Literal["kl", "l2", "full"] = "kl"

    @staticmethod
    def gaussian_step(m: float, v: float, weight: float, params: Any) -> tuple[float, float, float, float]:
        """α = max(0, 1 − m)/(v + r), Σ ← Σ − Σzzᵀ/(v + r)Σ or 1/Σ ← 1/Σ + zzᵀ/r (Crammer et al. 2009, Fig. 1)."""
        loss, r = max(0.0, 1.0 - m), params.r / weight
        return loss, loss / (v + r), 1.0 / (v + r), 1.0 / r


@dataclass(frozen=True, kw_only=True)
class NormalHerd(Gaussian):
    """Normal herding: every weight vector of the Gaussian is moved as PA-II would move it.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(NormalHerd(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.0301, 'short': 0.1472}

    Reference: Crammer & Lee 2010 (NIPS). Memory: 32 bytes a column, 16 without the average; 8·D² for a full
    matrix, whose updates take O(D²) time.

    Parameters
    ----------
    C: > 0; aggressiveness, times the weight of a list.
    covariance: "kl" or "l2" (diagonals of the full update), or "full".
    top: how many rivals of a list to learn from, the best-scoring first.
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "nherd"

    C: Positive = 0.1
    covariance: Literal["kl", "l2", "full"] = "kl"

    @staticmethod
    def gaussian_step(m: float, v: float, weight: float, params: Any) -> tuple[float, float, float, float]:
        """α = max(0, 1 − m)/(v + 1/C), and ξ = 2C + C²v for the covariance (Crammer & Lee 2010, Fig. 1)."""
        loss, C = max(0.0, 1.0 - m), params.C * weight
        xi = C * (2.0 + C * v)
        factor = 1.0 + C * v
        return loss, loss / (v + 1.0 / C), xi / (factor * factor), xi


@dataclass(frozen=True, kw_only=True)
class SecondOrderPerceptron(Gaussian):
    """The second-order perceptron: a perceptron on examples whitened by those that it erred on.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(SecondOrderPerceptron(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 0.4}

    Reference: Cesa-Bianchi, Conconi & Gentile 2005 (SIAM J. Comput. 34), Fig. 1. Memory: 32 bytes a column; 8·D²
    for a full matrix, whose updates take O(D²) time.

    Parameters
    ----------
    a: > 0; larger means closer to the plain perceptron.
    covariance: "diagonal" or "full".
    top: how many rivals of a list to learn from, the best-scoring first.
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "sop"
    cell: ClassVar[tuple[str, ...]] = ("w", "total", "squares")  # w = v/(a + A), v = Σ z, A = Σ z²
    judges_after_update: ClassVar[bool] = True  # the example is in A before it is judged

    a: Positive = 1.0
    covariance: Literal["diagonal", "full"] = "diagonal"

    @property
    def prior(self) -> float:
        return 1.0 / self.a

    def init(self, columns: int, candidates: int = 0) -> State:
        return super().init(columns, candidates) if self.full else Learner.init(self, columns)

    def variances(self, state: State) -> np.ndarray:
        return super().variances(state) if self.full else 1.0 / (self.a + self.view(state).cells["squares"][:-1])

    @staticmethod
    def gaussian_step(m: float, v: float, weight: float, params: Any) -> tuple[float, float, float, float]:
        """With A = aI + Σ zzᵀ and w = A⁻¹ Σ z, one more z makes w + A⁻¹z·(1 − w·z)/(1 + v) (their Fig. 1)."""
        return max(0.0, -m), weight * (1.0 - m) / (1.0 + weight * v), weight / (1.0 + weight * v), weight

    @staticmethod
    def learn_diagonal(
        state: Any, scratch: Scratch, count: int, offset: float, weight: float, params: Any
    ) -> PairUpdate:
        """On a mistake, with the current example in A, v ← v + z and A ← A + z² (Cesa-Bianchi et al. 2005, Fig. 1)."""
        m = 0.0  # of z where A holds it already
        for r in range(count):
            cell, z = state.cells[scratch.column[r]], scratch.value[r]
            m += cell.total * z / (params.a + cell.squares + z * z)
        m += offset
        if m > 0.0 or count == 0 or not weight > 0.0:
            return PairUpdate(m, max(0.0, -m), offset, NO_UPDATE)
        for r in range(count):
            j, z = scratch.column[r], scratch.value[r]
            cell = state.cells[j]
            cell.total += weight * z
            cell.squares += weight * (z * z)
            assign(state, j, cell.total / (params.a + cell.squares))
        return PairUpdate(m, -m, offset, UPDATE)
