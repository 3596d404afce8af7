"""What learners with w ← w + Δ share: their state, the step itself, its average and its replay.

The average is exact without a second loop: with T lists seen and NOW of them before an update,

    Σ_k c_k w_k = T·w − Σ_updates NOW·Δ,

so one more sum u ← u + NOW·Δ, kept where the update is made, gives it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.learn.base import Learner, Weights
from rerank.learn.judge import base_of, subgradient
from rerank.learn.log import UpdateLog
from rerank.learn.voting.votes import Replay, Updates, VoteRoom, Votes, emit, load
from rerank.learn.workspace import RADIUS, UPDATES, ListArrays, Scratch

# Indices of AdditiveState.counts and AdditiveState.base.
M, ALIVE, NOW = range(3)
WEIGHT, SUM = range(2)


class AdditiveState(NamedTuple):
    """What training changes; D columns. ``u`` holds Σ NOW·Δ, or nothing where no average is wanted."""

    w: np.ndarray  # float64 [D]
    u: np.ndarray  # float64 [D]
    counts: np.ndarray  # int64 [3]: updates; lists the current predictor survived; lists seen (Σ c_k)
    base: np.ndarray  # float64 [2]: learned weight of the base score, and its u


@kernel
def survive(counts: np.ndarray) -> None:
    """The current predictor has survived a list, the one on which it was made included."""
    counts[ALIVE] += 1
    counts[NOW] += 1


@kernel
def close(counts: np.ndarray) -> None:
    """An update ends the current predictor."""
    counts[M] += 1
    counts[ALIVE] = 0


@kernel
def count_update(tally: np.ndarray, squared_radius: float) -> None:
    """Count an update and the length of its difference vector."""
    tally[UPDATES] += 1
    tally[RADIUS] = max(tally[RADIUS], squared_radius)


@kernel
def add(state: AdditiveState, t: Scratch, count: int, rate: float, g_base: float) -> None:
    """w ← w − rate·g for the g in ``t.value`` and, for the base score, ``g_base``; a new predictor begins."""
    now = float(state.counts[NOW])
    for r in range(np.uint64(count)):
        state.w[t.column[r]] -= rate * t.value[r]
    if state.u.shape[0] > 0:
        for r in range(np.uint64(count)):
            state.u[t.column[r]] -= now * (rate * t.value[r])
    state.base[WEIGHT] -= rate * g_base
    state.base[SUM] -= now * (rate * g_base)
    close(state.counts)


@kernel
def replay_additive(
    data: ListArrays, log: Updates, state: AdditiveState, t: Scratch, room: VoteRoom, base: float, base_rate: float
) -> None:
    """Repeat the updates w ← w − rate·g of ``log``."""
    for k in range(log.lists.shape[0]):
        n = load(log, k, t)
        count = subgradient(data, t, n)
        add(state, t, count, log.rate[k], base_rate * base_of(data, t, n))
        emit(room, k, t, count, state.w, 1.0, base + base_rate * state.base[WEIGHT])


def averaged_lists(state: Any) -> int:
    """Σ c_k of a state that keeps an average.

    Raises
    ------
    ValueError: it does not (see ``Learner.light``).
    """
    if state.u.size < len(state[0]) and state.counts[M] > 0:  # a state of no columns keeps one of no columns
        raise ValueError("this state keeps no average; train without `light`")
    return int(state.counts[NOW])


def averaged(last: np.ndarray, u: np.ndarray, total: int) -> np.ndarray:
    """Σ c_k w_k / Σ c_k of weights that are ``last`` now, with u = Σ NOW·Δ and ``total`` = Σ c_k."""
    return np.asarray(last - u / total if total else last.copy())


class Additive(Learner):
    """A learner with an AdditiveState whose updates are w ← w − rate·g."""

    base: float
    base_rate: float

    def init(self, columns: int, candidates: int = 0) -> AdditiveState:  # noqa: ARG002
        """See ``Learner.init``."""
        return AdditiveState(np.zeros(columns), np.zeros(columns), np.zeros(3, np.int64), np.zeros(2))

    def light(self, state: AdditiveState) -> AdditiveState:
        """See ``Learner.light``."""
        return state._replace(u=np.zeros(0))

    def alive(self, state: AdditiveState) -> int:
        """See ``Learner.alive``."""
        return int(state.counts[ALIVE])

    def nonzero_weights(self, state: AdditiveState) -> int:
        """See ``Learner.nonzero_weights``."""
        return int(np.count_nonzero(state.w))

    def last(self, state: AdditiveState) -> Weights:
        """See ``Learner.last``."""
        return Weights(state.w.copy(), float(self.base + self.base_rate * state.base[WEIGHT]))

    def average(self, state: AdditiveState) -> Weights:
        """See ``Learner.average``."""
        total = averaged_lists(state)
        beta = averaged(state.base[WEIGHT], state.base[SUM], total)
        return Weights(averaged(state.w, state.u, total), float(self.base + self.base_rate * beta))

    def votes(self, log: UpdateLog, corpus: Corpus) -> Votes:
        """See ``Learner.votes``."""
        replay = Replay(log, corpus, self.base)
        state, rates = self.init(corpus.width), (float(self.base), float(self.base_rate))
        replay_additive(replay.data, replay.updates, state, replay.space, replay.room, *rates)
        return replay.votes()

    def updates(self, state: AdditiveState) -> int:
        """See ``Learner.updates``."""
        return int(state.counts[M])
