"""Gaussian learners with a diagonal covariance: N(μ, Σ) over the weights, predicting with μ (see ``confidence``).

The base score's weight, where it is learned, is one more coordinate after the D columns.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.learn.base import Learner, Weights, require, require_choice, require_common, require_count, require_switch
from rerank.learn.judge import (
    difference,
    duel,
    duellists,
    face,
    look_ahead,
    look_up,
    squared_norm,
    sum_of,
)
from rerank.learn.log import LogRoom, UpdateLog, record
from rerank.learn.pairs import confront_next
from rerank.learn.rules.additive import ALIVE, NOW, M, averaged, averaged_lists, close, count_update, survive
from rerank.learn.rules.confidence import CW_VAR, exact_alpha, rates, shortfall
from rerank.learn.scoring import ONE, THREE, TWO
from rerank.learn.voting.votes import Replay, Updates, VoteRoom, Votes, load
from rerank.learn.workspace import LOSS, MISTAKES, SKIPPED, ListArrays, Scratch

KL, L2, EXACT, HERD = range(4)
IDLE, UPDATE, SKIP, IN_VAIN = range(4)  # what was done about a pair: nothing was missing; an update; v was too small;
# there was nothing to learn from
SMALLEST, LARGEST = 1e-100, 1e100  # variances stay between them; an update whose v is below SMALLEST is skipped
MEAN, VARIANCE = range(2)


class GaussianState(NamedTuple):
    """What training changes; D columns and the base score. ``u`` holds Σ NOW·Δμ, or nothing."""

    g: np.ndarray  # float64 [D + 1, 2]: mean and variance, side by side
    u: np.ndarray  # float64 [D + 1]
    scale: np.ndarray  # float64 [D + 1], the largest |z_j| of an update; or [0] where scales are left alone
    counts: np.ndarray  # int64 [3]: updates; lists the current predictor survived; lists seen (Σ c_k)


class GaussianSettings(NamedTuple):
    """The parameters for kernels; ``a`` is φ or r."""

    rule: int
    covariance: int
    a: float
    C: float
    top: int
    base: float
    base_rate: float
    any_ties: bool


@kernel
def score_means(data: ListArrays, i: int, g: np.ndarray, beta: float, scores: np.ndarray) -> None:
    """β·b(y) + μ·φ(y) for the candidates of list i."""
    first, last = data.lists[i], data.lists[i + 1]
    for y in range(first, last):
        score = 0.0
        for p in range(np.uint64(data.rows[y]), np.uint64(data.rows[y + 1])):
            score += g[data.columns[p], MEAN] * data.values[p]
        scores[y - first] = beta * data.base[y] + score


@kernel
def difference_with_base(data: ListArrays, star: int, rival: int, base_rate: float, t: Scratch, last: int) -> int:
    """z = φ(y*) − φ(y') with ρ·(b(y*) − b(y')) at the column ``last``, if that is not 0; returns its length."""
    count = difference(data, star, rival, t)
    z_base = base_rate * (data.base[star] - data.base[rival])
    t.column[count], t.value[count] = last, z_base
    return int(count + (z_base != 0.0))


@kernel
def variance_of(state: GaussianState, j: int, size: float) -> float:
    """Σ_jj for a |z_j| = size: as it is or, where scales matter, as if values were divided by the largest |z_j|."""
    variance = state.g[j, VARIANCE]
    if state.scale.shape[0] > 0 and size > state.scale[j]:
        variance = 1.0 / size / size if state.scale[j] == 0.0 else variance * (state.scale[j] / size) ** 2
    return float(min(variance, LARGEST))


@kernel
def margin_and_variance(state: GaussianState, t: Scratch, count: int) -> tuple[float, float]:
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


@kernel
def rescale(state: GaussianState, t: Scratch, count: int) -> None:
    """Keep the variances and scales that an update's z was judged with."""
    for r in range(count):
        j, size = t.column[r], abs(t.value[r])
        state.g[j, VARIANCE] = variance_of(state, j, size)
        state.scale[j] = max(state.scale[j], size)


@kernel
def move(state: GaussianState, t: Scratch, count: int, alpha: float) -> None:
    """μ ← μ + αΣz, and Σ_jj ← Σ_jj times the factor in ``t.extra``."""
    now, averaged = float(state.counts[NOW]), state.u.shape[0] > 0
    for r in range(np.uint64(count)):
        j, variance = t.column[r], state.g[t.column[r], VARIANCE]
        step = alpha * variance * t.value[r]
        state.g[j, MEAN] += step
        state.g[j, VARIANCE] = max(SMALLEST, variance * t.extra[r])
        if averaged:
            state.u[j] += now * step


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


@kernel
def shrink_herd(t: Scratch, count: int, C: float) -> None:
    """Σ_jj ← Σ_jj/(1 + C·Σ_jj z_j²)² (Crammer & Lee 2010, exact diagonal), as a factor in ``t.extra``."""
    for r in range(np.uint64(count)):
        t.extra[r] = 1.0 / (1.0 + C * t.extra[r]) ** 2


@kernel
def learn_pair(
    state: GaussianState, t: Scratch, count: int, fixed: float, weight: float, q: GaussianSettings
) -> tuple[float, float, int]:
    """Learn from the z in ``t.value``: (m, loss, what was done); β·(b(y*) − b(y')) is the ``fixed`` part of m."""
    m, v = margin_and_variance(state, t, count)
    m += fixed
    loss = shortfall(q.rule, q.a, m, v)
    if not loss > 0.0:
        return m, loss, IDLE
    if count == 0 or weight == 0.0:
        return m, loss, IN_VAIN
    if not v > SMALLEST:
        return m, loss, SKIP
    alpha, beta, xi = rates(q.rule, q.a, q.C, m, v, weight)
    if q.covariance == EXACT:
        alpha = exact_alpha(q.rule, m, v, q.a, t.extra, count)
        xi = weight * (2.0 * alpha * q.a if q.rule == CW_VAR else alpha * q.a * q.a / (m + alpha * v))
        alpha *= weight
    if state.scale.shape[0] > 0:
        rescale(state, t, count)
    if q.covariance == L2:
        shrink_l2(t, count, beta)
    elif q.covariance == HERD:
        shrink_herd(t, count, q.C * weight)
    else:
        shrink_kl(t, count, xi)
    move(state, t, count, alpha)
    close(state.counts)
    return m, loss, UPDATE


@kernel
def gaussian_epoch(
    data: ListArrays,
    order: np.ndarray,
    state: GaussianState,
    t: Scratch,
    log: LogRoom,
    tally: np.ndarray,
    q: GaussianSettings,
) -> None:
    """Pass over ``order``: learn from the differences of y* and its top rivals in turn (CW, Alg. 1; AROW, Fig. 1)."""
    D = state.g.shape[0] - 1
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        i = order[at]
        look_up(data, order, at, state.g)
        two = duel(data, i, q.any_ties)
        if two:
            star, rival = duellists(data, i, tally)
        else:
            score_means(data, i, state.g, q.base + q.base_rate * state.g[D, MEAN], t.scores)
            star, rival = face(data, i, t, q.any_ties, tally)
        for number in range(q.top):
            if rival < 0:
                break
            survived = state.counts[ALIVE]
            count = difference_with_base(data, star, rival, q.base_rate, t, D)
            fixed = q.base * (data.base[star] - data.base[rival])
            m, loss, done = learn_pair(state, t, count, fixed, data.weight[i], q)
            if number == 0:
                tally[LOSS] += loss
                tally[MISTAKES] += two and not m > 0.0
            tally[SKIPPED] += done == SKIP
            if done == UPDATE:
                record(log, i, t.who, t.a, 2, fixed, survived)
                count_update(tally, squared_norm(t, count))
            if two:
                break
            if number + 1 < q.top:
                star, rival = confront_next(data, i, t.scores, q.any_ties, star, rival)
        survive(state.counts)


@kernel
def replay_gaussian(
    data: ListArrays, log: Updates, state: GaussianState, t: Scratch, room: VoteRoom, q: GaussianSettings
) -> None:
    """Repeat the updates of ``log``."""
    D = state.g.shape[0] - 1
    for k in range(log.lists.shape[0]):
        load(log, k, t)
        count = difference_with_base(data, t.who[0], t.who[1], q.base_rate, t, D)
        learn_pair(state, t, count, log.rate[k], data.weight[log.lists[k]], q)
        at = room.first[k]
        for r in range(count):
            if t.column[r] < D:
                room.columns[at], room.value[at] = t.column[r], state.g[t.column[r], MEAN]
                at += 1
        room.first[k + 1] = at
        room.beta[k + 1] = q.base + q.base_rate * state.g[D, MEAN]


@kernel
def count_means(g: np.ndarray) -> int:
    """How many columns weigh something."""
    count = 0
    for j in range(g.shape[0] - 1):
        count += g[j, MEAN] != 0.0
    return count


class Gaussian(Learner):
    """What the Gaussian learners share; ``covariance: full`` is in ``gaussian_full``."""

    covariances: ClassVar[dict[str, int]] = {"kl": KL, "l2": L2}

    covariance: str
    normalize: bool
    top: int
    base: float
    base_rate: float

    @abstractmethod
    def rule(self) -> tuple[int, float, float]:
        """The number of the rule, its parameter φ or r, and its C."""

    def settings(self, any_ties: bool = False) -> GaussianSettings:
        """The parameters for kernels."""
        rule, a, C = self.rule()
        return GaussianSettings(
            rule=rule,
            covariance=self.covariances[self.covariance],
            a=float(a),
            C=float(C),
            top=self.top,
            base=float(self.base),
            base_rate=float(self.base_rate),
            any_ties=any_ties,
        )

    def check(self, *positive: str) -> None:
        """Refuse parameters out of range; ``positive`` are those of the rule."""
        require_choice("covariance", self.covariance, tuple(self.covariances))
        for name in positive:
            require(name, getattr(self, name), low=0.0, strict=True)
        require_switch("normalize", self.normalize)
        if self.covariance == "full" and self.normalize:
            raise RecipeError("found true; a full matrix keeps no scales, use a diagonal covariance", key="normalize")
        require_count("top", self.top)
        require_common(self)

    def init(self, columns: int, candidates: int = 0) -> Any:  # noqa: ARG002
        """See ``Learner.init``: μ = 0, Σ = 1."""
        g = np.zeros((columns + 1, 2))
        g[:, VARIANCE] = 1.0
        scale = np.zeros(columns + 1 if self.normalize else 0)
        return GaussianState(g, np.zeros(columns + 1), scale, np.zeros(3, np.int64))

    def light(self, state: Any) -> Any:
        """See ``Learner.light``."""
        return state._replace(u=np.zeros(0))

    def walk(
        self,
        data: ListArrays,
        part: np.ndarray,
        state: Any,
        lazy: Any,  # noqa: ARG002
        space: Scratch,
        room: LogRoom,
        tally: np.ndarray,
        any_ties: bool,
    ) -> None:
        """See ``Learner.walk``."""
        gaussian_epoch(data, part, state, space, room, tally, self.settings(any_ties))

    def alive(self, state: Any) -> int:
        """See ``Learner.alive``."""
        return int(state.counts[ALIVE])

    def means(self, state: Any) -> np.ndarray:
        """float64 [D + 1]: μ, the base score's coordinate last."""
        return np.asarray(state.g[:, MEAN])

    def variances(self, state: Any) -> np.ndarray:
        """float64 [D]: the diagonal of Σ."""
        return np.array(state.g[:-1, VARIANCE])

    def nonzero_weights(self, state: Any) -> int:
        """See ``Learner.nonzero_weights``."""
        return int(count_means(state.g))

    def last(self, state: Any) -> Weights:
        """See ``Learner.last``."""
        mu = self.means(state)
        return Weights(mu[:-1].copy(), float(self.base + self.base_rate * mu[-1]))

    def average(self, state: Any) -> Weights:
        """See ``Learner.average``."""
        mu = averaged(self.means(state), state.u, averaged_lists(state))
        return Weights(mu[:-1].copy(), float(self.base + self.base_rate * mu[-1]))

    def votes(self, log: UpdateLog, corpus: Corpus) -> Votes:
        """See ``Learner.votes``."""
        replay, state = Replay(log, corpus, self.base), self.init(corpus.width)
        replay_gaussian(replay.data, replay.updates, state, replay.space, replay.room, self.settings())
        return replay.votes()

    def updates(self, state: Any) -> int:
        """See ``Learner.updates``."""
        return int(state.counts[M])
