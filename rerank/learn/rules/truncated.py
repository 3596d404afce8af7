"""Truncated gradient (Langford, Li & Zhang 2009, section 3.3) and FOBOS with L1 (Duchi & Singer 2009, section 5.1).

Update k is a step w ← w − α_k·g with α_k = η/√k. At every k that ``every`` divides, all weights with |w_j| ≤ θ then
move by every·α_k·λ₁ toward 0, but not past it. FOBOS truncates after every step, and without a θ.

Nothing loops over all columns. With G_k the sum of the truncations up to update k, a column keeps

    a_j = w_j + sign(w_j)·G_k as it was last touched, and weighs shrink(a_j, G_k) = sign(a_j)·max(|a_j| − G_k, 0) since.

A weight above θ is exempt: it keeps a_j = w_j, and stays exempt until an update touches it. Free columns of a corpus
are always exempt.

The average is exact and lazy. While a_j stays the same for the predictors a..b,

    Σ_k c_k w_kj = sign(a_j)·(|a_j|·(C_e − C_{a−1}) − (Q_e − Q_{a−1})),   C = Σ c_k, Q = Σ c_k G_k,

where e is the last k ≤ b with G_k < |a_j|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.learn.base import Learner, Weights, learners, require, require_common, require_count
from rerank.learn.judge import base_of, judge, look_ahead, score_list, squared_radius, subgradient
from rerank.learn.log import LogRoom, UpdateLog, record
from rerank.learn.losses import LOSSES
from rerank.learn.rules.additive import count_update
from rerank.learn.rules.lazy import ALIVE, FREE, PENDING, SUM, TOTAL, K, first_penalised, set_free, summed_average
from rerank.learn.scoring import dot
from rerank.learn.voting.moves import leaving
from rerank.learn.voting.votes import Replay, Updates, VoteRoom, Votes, emit, load
from rerank.learn.workspace import ListArrays, Scratch

WEIGHT = 0  # index of TruncatedState.base, before SUM
LARGEST = 1e150  # the most that one truncation takes away, so that their sum stays finite


class TruncatedState(NamedTuple):
    """What training changes; D columns."""

    a: np.ndarray  # float64 [D]
    exempt: np.ndarray  # bool [D]: is |w_j| above θ? [0] without a θ
    total: np.ndarray  # float64 [D]: Σ c_k w_k
    threshold: np.ndarray  # float64 [1]: G_k
    counts: np.ndarray  # int64 [5]: see ``lazy``
    base: np.ndarray  # float64 [2]: learned weight of the base score, and Σ c_k β_k


class TruncationSums(NamedTuple):
    """Sums over the predictors of an epoch, k0 being the first: those of predictor k are at k − k0 + 1, 0 at 0."""

    C: np.ndarray  # float64 [updates + 2]
    Q: np.ndarray  # float64 [updates + 2]
    G: np.ndarray  # float64 [updates + 2]
    since: np.ndarray  # int64 [D]: the first predictor that is not in total yet
    k0: int


class TruncatedSettings(NamedTuple):
    """The parameters for kernels."""

    loss: int
    eta: float
    l1: float
    theta: float  # ∞ for none
    every: int
    base: float
    base_rate: float
    always: bool
    any_ties: bool


@kernel
def shrink(a: float, threshold: float) -> float:
    """sign(a)·max(|a| − threshold, 0)."""
    return max(a - threshold, 0.0) + min(a + threshold, 0.0)


@kernel
def step_size(k: int, eta: float) -> float:
    """α_k."""
    return eta / math.sqrt(k)


@kernel
def truncation(k: int, q: TruncatedSettings) -> float:
    """What update k takes from the weights up to θ."""
    return min(q.every * step_size(k, q.eta) * q.l1, LARGEST) if k % q.every == 0 else 0.0


@kernel
def is_exempt(state: TruncatedState, j: int) -> bool:
    """Is column j beyond the reach of truncation?"""
    return bool(j < state.counts[FREE] or (state.exempt.shape[0] > 0 and state.exempt[j]))


@kernel
def weight_of(state: TruncatedState, j: int) -> float:
    """w_j."""
    return state.a[j] if is_exempt(state, j) else shrink(state.a[j], state.threshold[0])


@kernel
def score_truncated(data: ListArrays, i: int, state: TruncatedState, beta: float, scores: np.ndarray) -> None:
    """β·b(y) + w·φ(y) for the candidates of list i; where nothing was truncated, by a plain sum."""
    G = state.threshold[0]
    if G == 0.0:
        score_list(data, i, state.a, beta, scores)
        return
    first, last = data.lists[i], data.lists[i + 1]
    for y in range(first, last):
        middle = first_penalised(data, y) if data.free > 0 else data.rows[y]
        total = dot(state.a, data.columns, data.values, data.rows[y], middle)
        for p in range(middle, data.rows[y + 1]):
            j = data.columns[p]
            exempt = state.exempt.shape[0] > 0 and state.exempt[j]
            total += shrink(state.a[j], 0.0 if exempt else G) * data.values[p]
        scores[y - first] = beta * data.base[y] + total


@kernel
def settle(state: TruncatedState, j: int, k: int, prefix: TruncationSums) -> None:
    """Enter what column j weighed, up to predictor k, into its total."""
    size, begin, end = abs(state.a[j]), prefix.since[j] - prefix.k0, k - prefix.k0 + 1
    prefix.since[j] = k + 1
    if size == 0.0:
        return
    if is_exempt(state, j):
        summed = size * (prefix.C[end] - prefix.C[begin])
    else:
        e = end if prefix.G[end] < size else leaving(size, 1.0, prefix.G, begin + 1, end) - 1
        summed = size * (prefix.C[e] - prefix.C[begin]) - (prefix.Q[e] - prefix.Q[begin])
    state.total[j] += summed if state.a[j] > 0 else -summed


@kernel
def move(state: TruncatedState, t: Scratch, count: int, rate: float, g_base: float, q: TruncatedSettings) -> None:
    """w ← w − rate·g for the g in ``t.value`` and, for the base score, ``g_base``; then the truncation of update k + 1.

    The weights of the touched columns, as they are before the truncation, decide which of them it reaches.
    """
    for r in range(count):
        j = t.column[r]
        w = weight_of(state, j) - rate * t.value[r]
        if state.exempt.shape[0] > 0:
            state.exempt[j] = abs(w) > q.theta
        state.a[j] = w if is_exempt(state, j) or w == 0.0 else w + math.copysign(state.threshold[0], w)
    state.base[WEIGHT] -= rate * g_base
    state.counts[K] += 1
    state.threshold[0] += truncation(state.counts[K], q)


@kernel
def close_predictor(state: TruncatedState, prefix: TruncationSums, beta: float) -> None:
    """Enter the current predictor, with what it has survived since it was last entered, into the prefix sums."""
    at, c, G = state.counts[K] - prefix.k0 + 1, state.counts[PENDING], state.threshold[0]
    prefix.C[at] = prefix.C[at - 1] + c
    prefix.Q[at] = prefix.Q[at - 1] + c * G
    prefix.G[at] = G
    state.base[SUM] += c * beta
    state.counts[TOTAL] += c
    state.counts[PENDING] = 0


@kernel
def truncated_epoch(
    data: ListArrays,
    order: np.ndarray,
    state: TruncatedState,
    prefix: TruncationSums,
    t: Scratch,
    log: LogRoom,
    tally: np.ndarray,
    q: TruncatedSettings,
) -> None:
    """Pass over ``order``: on a mistake (or, always, a loss) a step, then perhaps a truncation."""
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        i, k = order[at], state.counts[K]
        beta = q.base + q.base_rate * state.base[WEIGHT]
        score_truncated(data, i, state, beta, t.scores)
        n = judge(data, i, t, q.loss, q.always, q.any_ties, tally)
        if n > 0:
            rate = step_size(k + 1, q.eta) * data.weight[i]
            record(log, i, t.who, t.a, n, rate, state.counts[ALIVE])
            close_predictor(state, prefix, beta)
            count, g_base = subgradient(data, t, n), q.base_rate * base_of(data, t, n)
            count_update(tally, squared_radius(t, count, g_base, q.loss))
            for r in range(count):
                settle(state, t.column[r], k, prefix)
            move(state, t, count, rate, g_base, q)
            state.counts[ALIVE] = 0
        state.counts[ALIVE] += 1  # the list on which a predictor errs is the first that the next one counts
        state.counts[PENDING] += 1


@kernel
def replay_truncated(
    data: ListArrays,
    log: Updates,
    state: TruncatedState,
    t: Scratch,
    room: VoteRoom,
    threshold: np.ndarray,
    q: TruncatedSettings,
) -> None:
    """Repeat the updates of ``log``; threshold[k] ← G_k (float64 [M + 1])."""
    for k in range(log.lists.shape[0]):
        n = load(log, k, t)
        count = subgradient(data, t, n)
        move(state, t, count, log.rate[k], q.base_rate * base_of(data, t, n), q)
        emit(room, k, t, count, state.a, 1.0, q.base + q.base_rate * state.base[WEIGHT])
        if room.slope.shape[0] > 0:
            for r in range(count):
                j = t.column[r]
                room.slope[room.first[k] + r] = 0.0 if is_exempt(state, j) else np.sign(state.a[j])
        threshold[k + 1] = state.threshold[0]


@kernel
def flush(state: TruncatedState, prefix: TruncationSums, q: TruncatedSettings) -> None:
    """Bring every column's total up to date; nothing lazy is left."""
    close_predictor(state, prefix, q.base + q.base_rate * state.base[WEIGHT])
    for j in range(state.a.shape[0]):
        settle(state, j, state.counts[K], prefix)


class Truncating(Learner):
    """A learner with a TruncatedState."""

    loss: str
    eta: float
    l1: float
    update: Literal["always", "mistakes"]
    base: float
    base_rate: float

    def __post_init__(self) -> None:
        require("eta", self.eta, low=0.0, strict=True)
        require_common(self)
        require("l1", self.l1, low=0.0)

    def reach(self) -> tuple[float | None, int]:
        """θ, and every how many updates weights are truncated."""
        return None, 1

    def settings(self, any_ties: bool = False) -> TruncatedSettings:
        """The parameters for kernels."""
        theta, every = self.reach()
        return TruncatedSettings(
            loss=LOSSES[self.loss],
            eta=float(self.eta),
            l1=float(self.l1),
            theta=math.inf if theta is None else float(theta),
            every=every,
            base=float(self.base),
            base_rate=float(self.base_rate),
            always=self.update == "always",
            any_ties=any_ties,
        )

    def init(self, columns: int, candidates: int = 0) -> TruncatedState:  # noqa: ARG002
        """See ``Learner.init``."""
        exempt = np.zeros(0 if self.reach()[0] is None else columns, np.bool_)
        a, total = np.zeros(columns), np.zeros(columns)
        return TruncatedState(a, exempt, total, np.zeros(1), np.zeros(5, np.int64), np.zeros(2))

    def begin(self, corpus: Corpus, order: np.ndarray, state: TruncatedState) -> TruncationSums:
        """See ``Learner.begin``."""
        set_free(state.counts, corpus)
        k0, n = int(state.counts[K]), order.size + 2
        return TruncationSums(np.zeros(n), np.zeros(n), np.zeros(n), np.full(corpus.width, k0, np.int64), k0)

    def walk(
        self,
        data: ListArrays,
        part: np.ndarray,
        state: TruncatedState,
        lazy: TruncationSums,
        space: Scratch,
        room: LogRoom,
        tally: np.ndarray,
        any_ties: bool,
    ) -> None:
        """See ``Learner.walk``."""
        truncated_epoch(data, part, state, lazy, space, room, tally, self.settings(any_ties))

    def finish(self, state: TruncatedState, lazy: TruncationSums) -> None:
        """See ``Learner.finish``."""
        flush(state, lazy, self.settings())

    def alive(self, state: TruncatedState) -> int:
        """See ``Learner.alive``."""
        return int(state.counts[ALIVE])

    def nonzero_weights(self, state: TruncatedState) -> int:
        """See ``Learner.nonzero_weights``."""
        return int(np.count_nonzero(self._weights(state)))

    def last(self, state: TruncatedState) -> Weights:
        """See ``Learner.last``."""
        return Weights(self._weights(state), float(self.base + self.base_rate * state.base[WEIGHT]))

    def average(self, state: TruncatedState) -> Weights:
        """See ``Learner.average``."""
        return summed_average(state, self.base, self.base_rate)

    def votes(self, log: UpdateLog, corpus: Corpus) -> Votes:
        """See ``Learner.votes``: a_j, τ_k = G_k, and for exempt columns v_j = 0."""
        replay = Replay(log, corpus, self.base, slopes=self.reach()[0] is not None or corpus.free > 0)
        state, threshold = self.init(corpus.width), np.zeros(replay.updates.lists.size + 1)
        set_free(state.counts, corpus)
        replay_truncated(replay.data, replay.updates, state, replay.space, replay.room, threshold, self.settings())
        return replay.votes(threshold=threshold if self.l1 > 0 else None)

    def updates(self, state: TruncatedState) -> int:
        """See ``Learner.updates``."""
        return int(state.counts[K])

    @staticmethod
    def _weights(state: TruncatedState) -> np.ndarray:
        """w."""
        shrunk = np.sign(state.a) * np.maximum(np.abs(state.a) - state.threshold[0], 0.0)
        exempt = np.arange(state.a.size) < state.counts[FREE]
        return np.where(exempt | state.exempt if state.exempt.size else exempt, state.a, shrunk)


@learners.add("tg")
@dataclass(frozen=True)
class TruncatedGradient(Truncating):
    """Gradient steps with truncation every so many updates.

    Parameters
    ----------
    loss: one of LOSSES.
    eta: > 0; the first step's size, η/√k the k-th's. The weight of a list scales its step.
    l1: ≥ 0; strength of the regulariser λ₁‖w‖₁.
    theta: > 0; larger weights are not truncated; None for no limit.
    every: ≥ 1; updates from one truncation to the next; a truncation is as many times as large.
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 learns it as the weight of
        a feature ρ·b(y) that is not truncated.

    A truncation takes at most 1e150.
    """

    name: ClassVar[str] = "tg"

    loss: str = "hinge"
    eta: float = 1.0
    l1: float = 0.0
    theta: float | None = None
    every: int = 1
    update: Literal["always", "mistakes"] = "always"
    base: float = 1.0
    base_rate: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("every", self.every)
        if self.theta is not None:
            require("theta", self.theta, low=0.0, strict=True)

    def reach(self) -> tuple[float | None, int]:
        """See ``Truncating.reach``."""
        return self.theta, self.every


@learners.add("fobos")
@dataclass(frozen=True)
class Fobos(Truncating):
    """Forward-backward splitting with L1: a gradient step, then the truncation of all weights by α_k·λ₁.

    The parameters are those of TruncatedGradient, with every = 1 and no θ.
    """

    name: ClassVar[str] = "fobos"

    loss: str = "hinge"
    eta: float = 1.0
    l1: float = 0.0
    update: Literal["always", "mistakes"] = "always"
    base: float = 1.0
    base_rate: float = 0.0
