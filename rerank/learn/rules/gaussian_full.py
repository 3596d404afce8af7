"""Gaussian learners with a full covariance matrix: O(D²) per update, for problems of a few thousand columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.learn.judge import face, look_ahead, score_list, squared_norm
from rerank.learn.log import LogRoom, UpdateLog, record
from rerank.learn.pairs import confront_next
from rerank.learn.rules.additive import ALIVE, NOW, close, count_update, survive
from rerank.learn.rules.confidence import SOP, rates, shortfall
from rerank.learn.rules.gaussian import (
    IDLE,
    IN_VAIN,
    SKIP,
    SMALLEST,
    UPDATE,
    Gaussian,
    GaussianSettings,
    difference_with_base,
)
from rerank.learn.voting.votes import Replay, Updates, VoteRoom, Votes, load
from rerank.learn.workspace import LOSS, MISTAKES, SKIPPED, ListArrays, Scratch

FULL = -1  # the number of the covariance
ROUNDING = 1e-12  # of a variance that was 1 at first: how exactly it can be known
MOST_COLUMNS = 8192  # Σ then takes half a gigabyte


class FullState(NamedTuple):
    """What training changes; D columns and the base score. ``u`` holds Σ NOW·Δμ, or nothing."""

    mu: np.ndarray  # float64 [D + 1]
    u: np.ndarray  # float64 [D + 1]
    sigma: np.ndarray  # float64 [D + 1, D + 1]
    counts: np.ndarray  # int64 [3]: updates; lists the current predictor survived; lists seen (Σ c_k)


@kernel
def spread_difference(state: FullState, t: Scratch, count: int, sz: np.ndarray) -> tuple[float, float]:
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


@kernel
def learn_pair_full(
    state: FullState, t: Scratch, count: int, fixed: float, weight: float, sz: np.ndarray, q: GaussianSettings
) -> tuple[float, int]:
    """μ ← μ + αΣz, Σ ← Σ − βΣzzᵀΣ; see ``gaussian.learn_pair``.

    The second-order perceptron judges with z in its matrix already, which divides w·z by 1 + v. The variance along z
    stays above what rounding leaves of it, so that Σ stays positive definite.
    """
    m, v = spread_difference(state, t, count, sz)
    judged = fixed + (m / (1.0 + v) if q.rule == SOP else m)
    loss = shortfall(q.rule, q.a, judged, max(v, 0.0))
    if not (loss > 0.0 or (q.rule == SOP and judged == 0.0)):
        return loss, IDLE
    if count == 0 or weight == 0.0:
        return loss, IN_VAIN
    floor = ROUNDING * squared_norm(t, count)
    if not v > max(floor, SMALLEST):
        return loss, SKIP
    alpha, beta, _ = rates(q.rule, q.a, q.C, m if q.rule == SOP else judged, v, weight)
    beta = min(beta, (1.0 - floor / v) / v)  # zᵀΣz becomes v − βv²
    now = float(state.counts[NOW])
    for j in range(sz.shape[0]):
        if sz[j] == 0.0:
            continue
        state.mu[j] += alpha * sz[j]
        if state.u.shape[0] > 0:
            state.u[j] += now * (alpha * sz[j])
        row = state.sigma[j]
        for k in range(sz.shape[0]):
            row[k] -= beta * (sz[j] * sz[k])
    close(state.counts)
    return loss, UPDATE


@kernel
def full_epoch(
    data: ListArrays,
    order: np.ndarray,
    state: FullState,
    sz: np.ndarray,
    t: Scratch,
    log: LogRoom,
    tally: np.ndarray,
    q: GaussianSettings,
) -> None:
    """Pass over ``order``: learn from the differences of y* and its top rivals in turn (CW, Alg. 1; AROW, Fig. 1)."""
    D = state.mu.shape[0] - 1
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        i = order[at]
        score_list(data, i, state.mu, q.base + q.base_rate * state.mu[D], t.scores)
        mistakes = tally[MISTAKES]
        star, rival = face(data, i, t, q.any_ties, tally)
        for number in range(q.top):
            if rival < 0:
                break
            survived = state.counts[ALIVE]
            count = difference_with_base(data, star, rival, q.base_rate, t, D)
            fixed = q.base * (data.base[star] - data.base[rival])
            loss, done = learn_pair_full(state, t, count, fixed, data.weight[i], sz, q)
            if q.rule == SOP and number == 0:
                tally[MISTAKES] = mistakes + (done != IDLE)
            tally[SKIPPED] += done == SKIP
            tally[LOSS] += loss if number == 0 else 0.0
            if done == UPDATE:
                record(log, i, t.who, t.a, 2, fixed, survived)
                count_update(tally, squared_norm(t, count))
            if number + 1 < q.top:
                star, rival = confront_next(data, i, t.scores, q.any_ties, star, rival)
        survive(state.counts)


@kernel
def replay_full(
    data: ListArrays, log: Updates, state: FullState, sz: np.ndarray, t: Scratch, room: VoteRoom, q: GaussianSettings
) -> None:
    """Repeat the updates of ``log``; an update moves every column that any update before it was correlated with."""
    D = state.mu.shape[0] - 1
    for k in range(log.lists.shape[0]):
        load(log, k, t)
        count = difference_with_base(data, t.who[0], t.who[1], q.base_rate, t, D)
        learn_pair_full(state, t, count, log.rate[k], data.weight[log.lists[k]], sz, q)
        at = room.first[k]
        for j in range(D):
            if sz[j] != 0.0:
                room.columns[at], room.value[at] = j, state.mu[j]
                at += 1
        room.first[k + 1] = at
        room.beta[k + 1] = q.base + q.base_rate * state.mu[D]


class FullGaussian(Gaussian):
    """A Gaussian learner that also knows ``covariance: full``."""

    prior: float = 1.0  # Σ₁ = prior · I

    @property
    def full(self) -> bool:
        """Is the covariance a full matrix?"""
        return self.covariances[self.covariance] == FULL

    def init(self, columns: int, candidates: int = 0) -> Any:
        """See ``Learner.init``.

        Raises
        ------
        RecipeError: a full matrix of more than MOST_COLUMNS columns.
        """
        if not self.full:
            return super().init(columns, candidates)
        if columns > MOST_COLUMNS:
            raise RecipeError(
                f"a full matrix over {columns:,} columns is more than the {MOST_COLUMNS:,} that are allowed; "
                "use a diagonal covariance, or fewer features",
                key="covariance",
            )
        n = columns + 1
        return FullState(np.zeros(n), np.zeros(n), self.prior * np.eye(n), np.zeros(3, np.int64))

    def begin(self, corpus: Corpus, order: np.ndarray, state: Any) -> Any:  # noqa: ARG002
        """See ``Learner.begin``: float64 [D + 1], room for Σz."""
        return np.zeros(corpus.width + 1) if self.full else None

    def walk(
        self,
        data: ListArrays,
        part: np.ndarray,
        state: Any,
        lazy: Any,
        space: Scratch,
        room: LogRoom,
        tally: np.ndarray,
        any_ties: bool,
    ) -> None:
        """See ``Learner.walk``."""
        if self.full:
            full_epoch(data, part, state, lazy, space, room, tally, self.settings(any_ties))
        else:
            super().walk(data, part, state, lazy, space, room, tally, any_ties)

    def means(self, state: Any) -> np.ndarray:
        """See ``Gaussian.means``."""
        return np.asarray(state.mu) if self.full else super().means(state)

    def variances(self, state: Any) -> np.ndarray:
        """See ``Gaussian.variances``."""
        return np.diag(state.sigma)[:-1].copy() if self.full else super().variances(state)

    def nonzero_weights(self, state: Any) -> int:
        """See ``Learner.nonzero_weights``."""
        return int(np.count_nonzero(state.mu[:-1])) if self.full else super().nonzero_weights(state)

    def votes(self, log: UpdateLog, corpus: Corpus) -> Votes:
        """See ``Learner.votes``."""
        if not self.full:
            return super().votes(log, corpus)
        replay, state = Replay(log, corpus, self.base, full=True), self.init(corpus.width)
        sz = np.zeros(corpus.width + 1)
        replay_full(replay.data, replay.updates, state, sz, replay.space, replay.room, self.settings())
        return replay.votes()
