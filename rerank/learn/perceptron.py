"""The perceptron on lists (Collins 2002): w ← w + φ(y*) − φ(ŷ) on a mistake, with the exact lazy average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from rerank.compile import kernel
from rerank.corpus import Corpus
from rerank.learn.base import Learner, VotingRule, Weights, learners, require
from rerank.learn.log import LogRoom, record
from rerank.learn.losses import PERCEPTRON, accumulate, coefficients, rivals
from rerank.learn.scoring import dot
from rerank.learn.workspace import LISTS, LOSS, MISTAKES, RADIUS, UPDATES, Lists, Scratch

# Indices of PerceptronState.counts and PerceptronState.base.
M, ALIVE, NOW = range(3)
WEIGHT, SUM = range(2)


class PerceptronState(NamedTuple):
    """What training changes; D columns. ``total`` holds Σ c_k w_k."""

    w: np.ndarray  # float64 [D]
    total: np.ndarray  # float64 [D]
    counts: np.ndarray  # int64 [3]: updates; lists the current predictor survived; lists seen (Σ c_k)
    base: np.ndarray  # float64 [2]: learned weight of the base score, Σ c_k β_k


class PerceptronSettings(NamedTuple):
    """The parameters for kernels."""

    base: float
    base_rate: float
    any_ties: bool


@kernel
def perceptron_epoch(
    data: Lists,
    order: np.ndarray,
    state: PerceptronState,
    since: np.ndarray,
    t: Scratch,
    log: LogRoom,
    tally: np.ndarray,
    q: PerceptronSettings,
) -> None:
    """Pass over ``order``; ``since`` (int64 [D]) is the number of lists up to which a column is in the total."""
    for at in range(order.shape[0]):
        i = order[at]
        first, last = data.lists[i], data.lists[i + 1]
        beta = q.base + q.base_rate * state.base[WEIGHT]
        for y in range(first, last):
            score = dot(state.w, data.columns, data.values, data.rows[y], data.rows[y + 1])
            t.scores[y - first] = beta * data.base[y] + score
        tally[LISTS] += 1
        star, rival = rivals(first, last, t.scores, data.gain, data.oracle[i], q.any_ties)
        if rival < 0 or t.scores[star - first] > t.scores[rival - first]:
            state.counts[ALIVE] += 1
            state.counts[NOW] += 1
            state.base[SUM] += beta
            continue
        value, n = coefficients(PERCEPTRON, first, last, t.scores, data.gain, star, rival, t.who, t.a)
        tally[MISTAKES] += 1
        tally[LOSS] += value
        record(log, i, t.who, t.a, n, state.counts[ALIVE])
        update(data, state, since, t, n, data.weight[i], tally, q)
        state.counts[ALIVE] = 1  # the list on which a predictor errs is the first of the next
        state.counts[NOW] += 1
        state.base[SUM] += q.base + q.base_rate * state.base[WEIGHT]


@kernel
def update(
    data: Lists,
    state: PerceptronState,
    since: np.ndarray,
    t: Scratch,
    n: int,
    weight: float,
    tally: np.ndarray,
    q: PerceptronSettings,
) -> None:
    """w ← w − weight·g; what a column has weighed so far goes into the total just before it changes."""
    now, stamp = state.counts[NOW], state.counts[M]
    touched = accumulate(data.rows, data.columns, data.values, t.who, t.a, n, t.g, t.seen, stamp, t.touched)
    norm = 0.0
    for r in range(touched):
        j = t.touched[r]
        state.total[j] += state.w[j] * (now - since[j])
        since[j] = now
        state.w[j] -= weight * t.g[j]
        norm += t.g[j] * t.g[j]
    g_base = q.base_rate * (data.base[t.who[1]] - data.base[t.who[0]])
    state.base[WEIGHT] -= weight * g_base
    tally[RADIUS] = max(tally[RADIUS], norm + g_base * g_base)
    tally[UPDATES] += 1
    state.counts[M] += 1


@kernel
def flush(state: PerceptronState, since: np.ndarray) -> None:
    """Bring every column's total up to date; nothing lazy is left."""
    for j in range(state.w.shape[0]):
        state.total[j] += state.w[j] * (state.counts[NOW] - since[j])


@learners.add("perceptron")
@dataclass(frozen=True)
class Perceptron(Learner):
    """The structured perceptron.

    Parameters
    ----------
    base: weight of the base score at the start, beside updates of size 1; base_rate: ≥ 0, 0 keeps it there, ρ > 0
        learns it as the weight of a feature ρ·b(y).
    """

    name: ClassVar[str] = "perceptron"

    base: float = 1.0
    base_rate: float = 0.0

    def __post_init__(self) -> None:
        for name in ("base", "base_rate"):
            require(name, getattr(self, name), low=0.0)

    def init(self, columns: int) -> PerceptronState:
        """See ``Learner.init``."""
        return PerceptronState(np.zeros(columns), np.zeros(columns), np.zeros(3, np.int64), np.zeros(2))

    def begin(self, corpus: Corpus, order: np.ndarray, state: PerceptronState) -> np.ndarray:  # noqa: ARG002
        """See ``Learner.begin``: int64 [D], the lists up to which a column is in the total."""
        return np.full(corpus.width, state.counts[NOW], np.int64)

    def walk(
        self,
        data: Lists,
        part: np.ndarray,
        state: PerceptronState,
        lazy: np.ndarray,
        space: Scratch,
        room: LogRoom,
        tally: np.ndarray,
        any_ties: bool,
    ) -> None:
        """See ``Learner.walk``."""
        q = PerceptronSettings(float(self.base), float(self.base_rate), any_ties)
        perceptron_epoch(data, part, state, lazy, space, room, tally, q)

    def finish(self, state: PerceptronState, lazy: np.ndarray) -> None:
        """See ``Learner.finish``."""
        flush(state, lazy)

    def alive(self, state: PerceptronState) -> int:
        """See ``Learner.alive``."""
        return int(state.counts[ALIVE])

    def nonzero_weights(self, state: PerceptronState) -> int:
        """See ``Learner.nonzero_weights``."""
        return int(np.count_nonzero(state.w))

    def last(self, state: PerceptronState) -> Weights:
        """See ``Learner.last``."""
        return Weights(state.w.copy(), float(self.base + self.base_rate * state.base[WEIGHT]))

    def average(self, state: PerceptronState) -> Weights:
        """See ``Learner.average``."""
        total = int(state.counts[NOW])
        if total == 0:
            return Weights(np.zeros(state.w.size), float(self.base))
        return Weights(state.total / total, float(state.base[SUM] / total) if self.base_rate else float(self.base))

    def voting_rule(self) -> VotingRule:
        """See ``Learner.voting_rule``: w = −s."""
        return VotingRule(eta=0.0, l1=0.0, l2=0.0, base=float(self.base), base_rate=float(self.base_rate))

    def updates(self, state: PerceptronState) -> int:
        """See ``Learner.updates``."""
        return int(state.counts[M])
