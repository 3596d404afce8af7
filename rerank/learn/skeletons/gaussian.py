"""Gaussian learners: N(μ, Σ) over the weights, predicting with μ; Σ is diagonal, or a full matrix (``gaussian_full``).

A vector z of a list has m = μ·z and v = zᵀΣz. Every rule moves the mean by αΣz and shrinks the covariance,
Σ ← Σ − βΣzzᵀΣ, or its inverse, 1/Σ_jj ← 1/Σ_jj + ξz_j²; what it says of α, β and ξ is the body of ``rates_of``. Forms
without cancellation are used throughout. The base score's weight, where it is learned, is one more coordinate after the
D columns.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.kernels.by_type import body, by_type
from rerank.kernels.compile import kernel
from rerank.learn.apart import ByColumn, TrainedApart, cells_of, ratio
from rerank.learn.base import Learner, Weights
from rerank.learn.judge import look_up, squared_norm, sum_of
from rerank.learn.passes import pair_pass, repeat_pairs
from rerank.learn.scoring import ONE, THREE, TWO, single
from rerank.learn.settings import Count
from rerank.learn.skeletons.additive import averaged, averaged_lists, history, past_of
from rerank.learn.skeletons.gaussian_full import SMALLEST, combined_full, difference_with_base, fresh_full
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
    learn_pair,
    look_up_weights,
    rates_of,
    score,
)
from rerank.learn.workspace import ListArrays, Scratch

KL, L2, EXACT = range(3)  # of a diagonal: the places of these choices in every learner's ``covariance``
LARGEST = 1e100  # variances stay between SMALLEST and this
MEAN, VARIANCE, PAST = range(3)


class GaussianState(NamedTuple):
    """What training changes; D columns and the base score."""

    # float64 [D + 1, 4]: mean, variance, Σ NOW·Δμ and nothing, side by side; without an average [D + 1, 2]
    g: ByColumn
    scale: ByColumn  # float64 [D + 1], the largest |z_j| of an update; or [0] where scales are left alone
    counts: np.ndarray  # int64 [3]: updates; lists the current predictor survived; lists seen (Σ c_k)


@by_type
def shrink_exactly(t: Scratch, count: int, m: float, v: float, weight: float, alpha: float, q: Any) -> float:
    """For ``covariance: exact``: the factors of all Σ_jj in ``t.extra``, which holds Σ_jj z_j²; returns α."""
    return alpha


@dataclass(frozen=True, kw_only=True)
class Gaussian(Learner):
    """What the Gaussian learners share.

    Parameters
    ----------
    covariance: how it is kept: "kl" or "l2" (diagonals of the full update), or "full".
    top: how many rivals of a list to learn from, the best-scoring first.
    """

    passes: ClassVar[Any] = pair_pass
    replays: ClassVar[Any] = repeat_pairs
    mixes: ClassVar[tuple[str, ...]] = ("kl", "mean", "updates")

    covariance: str = "kl"
    top: Count = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.full and self.scale_free:
            raise RecipeError("found true; a full matrix keeps no scales, use a diagonal covariance", key="normalize")

    @property
    def full(self) -> bool:
        """Is the covariance a full matrix?"""
        return self.covariance == "full"

    @property
    def scale_free(self) -> bool:
        """Are variances kept in units of their columns?"""
        return bool(getattr(self, "normalize", False))

    @property
    def prior(self) -> float:
        """Σ₁ = prior · I."""
        return 1.0

    def init(self, columns: int, candidates: int = 0) -> Any:  # noqa: ARG002
        """See ``Learner.init``: μ = 0, Σ = 1."""
        if self.full:
            return fresh_full(columns, self.prior)
        g = cells_of(columns + 1, 4)
        g[:, VARIANCE] = 1.0
        scale = np.zeros(columns + 1 if self.scale_free else 0)
        return GaussianState(g, scale, np.zeros(3, np.int64))

    def stored(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """See ``Learner.stored``: Σ NOW·Δμ was an array of its own, ``u``, and ``g`` had two columns."""
        if self.full or "u" not in arrays or arrays.get("g", arrays["u"]).shape != (arrays["u"].size, 2):
            return arrays
        g = cells_of(arrays["u"].size, 4)
        g[:, :PAST], g[:, PAST] = arrays["g"], arrays["u"]
        return {name: array for name, array in arrays.items() if name != "u"} | {"g": g}

    def light(self, state: Any) -> Any:
        return state._replace(u=np.zeros(0)) if self.full else state._replace(g=state.g[:, :PAST].copy())

    def begin(self, corpus: Corpus, order: np.ndarray, state: Any) -> Any:  # noqa: ARG002
        """See ``Learner.begin``: float64 [D + 1], room for Σz, where the matrix is full."""
        return np.zeros(corpus.width + 1) if self.full else None

    def means(self, state: Any) -> np.ndarray:
        """float64 [D + 1]: μ, the base score's coordinate last."""
        return np.asarray(state.mu if self.full else state.g[:, MEAN])

    def variances(self, state: Any) -> np.ndarray:
        """float64 [D]: the diagonal of Σ."""
        return np.array((np.diag(state.sigma) if self.full else state.g[:, VARIANCE])[:-1])

    def past(self, state: Any) -> np.ndarray:
        """float64 [D + 1]: Σ NOW·Δμ; [0] where the state keeps no average."""
        return past_of(state) if self.full else past_of_cells(state)

    def weights(self, state: Any) -> np.ndarray:
        return self.means(state)[:-1]

    def average(self, state: Any) -> Weights:
        past = self.past(state)
        mu = self.means(state)
        mu = averaged(mu, past, averaged_lists(state, past, mu.size))
        return Weights(mu[:-1].copy(), float(self.base + self.base_rate * mu[-1]))

    def vote_room(self, corpus: Corpus) -> dict[str, Any]:  # noqa: ARG002
        return {"full": self.full}

    def combined(self, apart: TrainedApart, rule: str) -> Any:
        """See ``Learner.combined``; means of μ and Σ, or KL (Crammer, Dredze & Pereira 2012, section 7.10):

        μ = (Σ Σ_s⁻¹)⁻¹ Σ Σ_s⁻¹μ_s, Σ⁻¹ = Σ Σ_s⁻¹, with what all of them knew at the start counted once. In the first
        round nothing was known.
        """
        if self.full:
            return combined_full(apart, rule)
        unit = apart.largest(lambda end: end.scale)

        def variances(state: GaussianState) -> np.ndarray:
            """Σ_jj in the common unit; see ``variance_of``."""
            variance = state.g[:, VARIANCE]
            if unit.size == 0:
                return np.asarray(variance)
            with np.errstate(divide="ignore"):
                unseen = np.where(unit > 0, 1.0 / unit / unit, variance)
            return np.minimum(np.where(state.scale > 0, variance * ratio(state.scale, unit) ** 2, unseen), LARGEST)

        if rule == "kl":
            known = 1.0 / variances(apart.start)
            precision, weighted = np.zeros_like(known), np.zeros_like(known)
            for end in apart.ends:
                own = 1.0 / variances(end)
                precision += own
                weighted += own * end.g[:, MEAN]
            mu = weighted / precision
            if not apart.fresh:
                precision = np.maximum(precision - (len(apart.ends) - 1) * known, known)
            variance = np.clip(1.0 / precision, SMALLEST, LARGEST)
        else:
            mu, variance = apart.mean(lambda end: end.g[:, MEAN]), apart.mean(variances)
        past, counts = history(apart, mu, lambda end: end.g[:, MEAN], past_of_cells)
        g = cells_of(*apart.start.g.shape)
        g[:, MEAN], g[:, VARIANCE] = mu, variance
        if past.size:
            g[:, PAST] = past
        return GaussianState(g, unit, counts)


def past_of_cells(state: Any) -> np.ndarray:
    """Σ NOW·Δμ of a GaussianState."""
    return np.asarray(state.g[:, PAST] if state.g.shape[1] > PAST else np.zeros(0))


@body(score, GaussianState)
def score_means(data: ListArrays, i: int, state: Any, q: Any, scores: np.ndarray) -> None:
    """β·b(y) + μ·φ(y)."""
    first, last, g, weight = data.lists[i], data.lists[i + 1], state.g, beta(state, q)
    for y in range(first, last):
        score = 0.0
        for p in range(np.uint64(data.rows[y]), np.uint64(data.rows[y + 1])):
            score += g[data.columns[p], MEAN] * single(data.values[p])
        scores[y - first] = weight * data.base[y] + score


@body(beta, GaussianState)
def beta_mean(state: Any, q: Any) -> float:
    """The last coordinate is the base score's."""
    return float(q.base + q.base_rate * state.g[state.g.shape[0] - 1, MEAN])


@body(coordinate, GaussianState)
def mean_of(state: Any, j: int, free: int, q: Any) -> tuple[float, float]:
    """μ_j."""
    return state.g[j, MEAN], 0.0


@body(look_up_weights, GaussianState)
def look_up_means(data: ListArrays, order: np.ndarray, at: int, state: Any, lazy: Any, q: Any) -> None:
    """Means and variances."""
    look_up(data, order, at, state.g)


@body(learn_pair, GaussianState)
def learn_diagonal(
    data: ListArrays, i: int, star: int, rival: int, fixed: float, state: Any, lazy: Any, t: Scratch, q: Any
) -> Lesson:  # fmt: skip
    """μ ← μ + αΣz, Σ_jj ← Σ_jj times a factor, where the margin is short of what is asked."""
    count = difference_with_base(data, star, rival, q.base_rate, t, state.g.shape[0] - 1)
    weight = data.weight[i]
    m, v = margin_and_variance(state, t, count)
    m += fixed
    loss, alpha, shrinkage, xi = rates_of(m, v, weight, q)
    if not loss > 0.0:
        return Lesson(m, loss, count, 0.0, fixed, IDLE)
    if count == 0 or weight == 0.0:
        return Lesson(m, loss, count, 0.0, fixed, IN_VAIN)
    if not v > SMALLEST:
        return Lesson(m, loss, count, 0.0, fixed, SKIP)
    if state.scale.shape[0] > 0:
        rescale(state, t, count)
    if q.covariance == L2:
        shrink_l2(t, count, shrinkage)
    elif q.covariance == EXACT:
        alpha = shrink_exactly(t, count, m, v, weight, alpha, q)
    else:
        shrink_kl(t, count, xi)
    move(state, t, count, alpha)
    close(state.counts)
    return Lesson(m, loss, count, squared_norm(t, count), fixed, UPDATE)


@by_type
def variance_of(state: Any, j: int, size: float) -> float:
    """Σ_jj for a |z_j| = size: as it is or, where scales matter, as if values were divided by the largest |z_j|."""
    variance = state.g[j, VARIANCE]
    if state.scale.shape[0] > 0 and size > state.scale[j]:
        variance = 1.0 / size / size if state.scale[j] == 0.0 else variance * (state.scale[j] / size) ** 2
    return float(min(variance, LARGEST))


@by_type
def margin_and_variance(state: Any, t: Scratch, count: int) -> tuple[float, float]:
    """m = μ·z and v = zᵀΣz; Σ_jj z_j² stays in ``t.extra``. m is four sums that the processor computes at once."""
    g, j, z, part = state.g, t.column, t.value, t.extra
    scaled, end = state.scale.shape[0] > 0, np.uint64(count)
    one = two = three = four = 0.0
    quarters = np.uint64(0) if scaled else end - end % np.uint64(4)
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
        variance = variance_of(state, j[r], abs(z[r])) if scaled else g[j[r], VARIANCE]
        part[r] = variance * z[r] * z[r]
    return float((one + two) + (three + four)), float(sum_of(part, count))


@by_type
def rescale(state: Any, t: Scratch, count: int) -> None:
    """Keep the variances and scales that an update's z was judged with."""
    for r in range(count):
        j, size = t.column[r], abs(t.value[r])
        state.g[j, VARIANCE] = variance_of(state, j, size)
        state.scale[j] = max(state.scale[j], size)


@by_type
def move(state: Any, t: Scratch, count: int, alpha: float) -> None:
    """μ ← μ + αΣz, and Σ_jj ← Σ_jj times the factor in ``t.extra``."""
    now, averaged = float(state.counts[SEEN]), state.g.shape[1] > PAST
    for r in range(np.uint64(count)):
        j, variance = t.column[r], state.g[t.column[r], VARIANCE]
        step = alpha * variance * t.value[r]
        state.g[j, MEAN] += step
        state.g[j, VARIANCE] = max(SMALLEST, variance * t.extra[r])
        if averaged:
            state.g[j, PAST] += now * step


@kernel
def shrink_kl(t: Scratch, count: int, xi: float) -> None:
    """1/Σ_jj ← 1/Σ_jj + ξz_j², as a factor 1/(1 + ξ·Σ_jj z_j²) in ``t.extra``."""
    for r in range(np.uint64(count)):
        t.extra[r] = 1.0 / (1.0 + xi * t.extra[r])


@kernel
def shrink_l2(t: Scratch, count: int, beta: float) -> None:
    """Σ_jj ← Σ_jj − β(Σ_jj z_j)², as a factor 1 − β·Σ_jj z_j² in ``t.extra``."""
    for r in range(np.uint64(count)):
        t.extra[r] = 1.0 - beta * t.extra[r]
