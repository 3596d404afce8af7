"""The second-order perceptron (Cesa-Bianchi, Conconi & Gentile 2005), with a diagonal or a full matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.learn.base import learners
from rerank.learn.judge import look_ahead, squared_norm
from rerank.learn.log import LogRoom, UpdateLog, record
from rerank.learn.pairs import confront, confront_next
from rerank.learn.rules.additive import ALIVE, NOW, close, count_update, survive
from rerank.learn.rules.confidence import SOP as RULE
from rerank.learn.rules.gaussian import difference_with_base
from rerank.learn.rules.gaussian_full import FULL, FullGaussian
from rerank.learn.voting.votes import Replay, Updates, VoteRoom, Votes, load
from rerank.learn.workspace import LISTS, LOSS, MISTAKES, ListArrays, Scratch

WEIGHT, TOTAL, SQUARES = range(3)


class SOPState(NamedTuple):
    """What training changes; D columns and the base score. ``u`` holds Σ NOW·Δw, or nothing."""

    g: np.ndarray  # float64 [D + 1, 3]: w = v/(a + A), v = Σ z, A = Σ z² of every column, side by side
    u: np.ndarray  # float64 [D + 1]
    counts: np.ndarray  # int64 [3]: updates; lists the current predictor survived; lists seen (Σ c_k)


class SOPSettings(NamedTuple):
    """The parameters for kernels."""

    a: float
    top: int
    base: float
    base_rate: float
    any_ties: bool


@kernel
def score_sop(data: ListArrays, i: int, g: np.ndarray, beta: float, scores: np.ndarray) -> None:
    """β·b(y) + w·φ(y) for the candidates of list i."""
    first, last = data.lists[i], data.lists[i + 1]
    for y in range(first, last):
        score = 0.0
        for p in range(np.uint64(data.rows[y]), np.uint64(data.rows[y + 1])):
            score += g[data.columns[p], WEIGHT] * data.values[p]
        scores[y - first] = beta * data.base[y] + score


@kernel
def inclusive_margin(g: np.ndarray, a: float, t: Scratch, count: int) -> float:
    """Σ v_j z_j/(a + A_j + z_j²): the margin of z when A holds it already."""
    m = 0.0
    for r in range(count):
        j, z = t.column[r], t.value[r]
        m += g[j, TOTAL] * z / (a + g[j, SQUARES] + z * z)
    return m


@kernel
def add_example(state: SOPState, a: float, t: Scratch, count: int, weight: float) -> None:
    """v ← v + z, A ← A + z²."""
    now, averaged = float(state.counts[NOW]), state.u.shape[0] > 0
    for r in range(count):
        j, z = t.column[r], t.value[r]
        before = state.g[j, WEIGHT]
        state.g[j, TOTAL] += weight * z
        state.g[j, SQUARES] += weight * (z * z)
        state.g[j, WEIGHT] = state.g[j, TOTAL] / (a + state.g[j, SQUARES])
        if averaged:
            state.u[j] += now * (state.g[j, WEIGHT] - before)
    close(state.counts)


@kernel
def sop_epoch(
    data: ListArrays, order: np.ndarray, state: SOPState, t: Scratch, log: LogRoom, tally: np.ndarray, q: SOPSettings
) -> None:
    """Pass over ``order``: on a mistake, with the current example in A, v ← v + z and A ← A + z² (Fig. 1)."""
    D = state.g.shape[0] - 1
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        i = order[at]
        score_sop(data, i, state.g, q.base + q.base_rate * state.g[D, WEIGHT], t.scores)
        tally[LISTS] += 1
        star, rival = confront(data, i, t.scores, q.any_ties)
        for number in range(q.top):
            if rival < 0:
                break
            count = difference_with_base(data, star, rival, q.base_rate, t, D)
            fixed = q.base * (data.base[star] - data.base[rival])
            m = fixed + inclusive_margin(state.g, q.a, t, count)
            if not m > 0.0:
                if number == 0:
                    tally[MISTAKES] += 1
                    tally[LOSS] -= m
                if count > 0 and data.weight[i] > 0.0:
                    record(log, i, t.who, t.a, 2, fixed, state.counts[ALIVE])
                    count_update(tally, squared_norm(t, count))
                    add_example(state, q.a, t, count, data.weight[i])
            if number + 1 < q.top:
                star, rival = confront_next(data, i, t.scores, q.any_ties, star, rival)
        survive(state.counts)


@kernel
def replay_sop(data: ListArrays, log: Updates, state: SOPState, t: Scratch, room: VoteRoom, q: SOPSettings) -> None:
    """Repeat the updates of ``log``."""
    D = state.g.shape[0] - 1
    for k in range(log.lists.shape[0]):
        load(log, k, t)
        count = difference_with_base(data, t.who[0], t.who[1], q.base_rate, t, D)
        add_example(state, q.a, t, count, data.weight[log.lists[k]])
        at = room.first[k]
        for r in range(count):
            if t.column[r] < D:
                room.columns[at], room.value[at] = t.column[r], state.g[t.column[r], WEIGHT]
                at += 1
        room.first[k + 1] = at
        room.beta[k + 1] = q.base + q.base_rate * state.g[D, WEIGHT]


@learners.add("sop")
@dataclass(frozen=True)
class SecondOrderPerceptron(FullGaussian):
    """The second-order perceptron: a perceptron on examples whitened by those that it erred on.

    Parameters
    ----------
    a: > 0; larger means closer to the plain perceptron.
    covariance: "diagonal" or "full".
    top: how many rivals of a list to learn from, the best-scoring first.
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 learns it as the weight of
        a feature ρ·b(y).
    """

    name: ClassVar[str] = "sop"
    covariances: ClassVar[dict[str, int]] = {"diagonal": 0, "full": FULL}
    normalize: ClassVar[bool] = False  # type: ignore[misc]

    a: float = 1.0
    covariance: Literal["diagonal", "full"] = "diagonal"
    top: int = 1
    base: float = 1.0
    base_rate: float = 0.0

    def __post_init__(self) -> None:
        self.check("a")

    @property
    def prior(self) -> float:  # type: ignore[override]
        """See ``FullGaussian``."""
        return 1.0 / self.a

    def rule(self) -> tuple[int, float, float]:
        """See ``Gaussian.rule``."""
        return RULE, self.a, 0.0

    def _settings(self, any_ties: bool = False) -> SOPSettings:
        return SOPSettings(float(self.a), self.top, float(self.base), float(self.base_rate), any_ties)

    def init(self, columns: int, candidates: int = 0) -> Any:
        """See ``Learner.init``."""
        if self.full:
            return super().init(columns, candidates)
        return SOPState(np.zeros((columns + 1, 3)), np.zeros(columns + 1), np.zeros(3, np.int64))

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
            super().walk(data, part, state, lazy, space, room, tally, any_ties)
        else:
            sop_epoch(data, part, state, space, room, tally, self._settings(any_ties))

    def variances(self, state: Any) -> np.ndarray:
        """See ``Gaussian.variances``."""
        return super().variances(state) if self.full else 1.0 / (self.a + state.g[:-1, SQUARES])

    def votes(self, log: UpdateLog, corpus: Corpus) -> Votes:
        """See ``Learner.votes``."""
        if self.full:
            return super().votes(log, corpus)
        replay, state = Replay(log, corpus, self.base), self.init(corpus.width)
        replay_sop(replay.data, replay.updates, state, replay.space, replay.room, self._settings())
        return replay.votes()
