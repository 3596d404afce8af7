"""What learners with w ← w + Δ share: their state, the step itself, and its average.

The average is exact without a second loop: with T lists seen and NOW of them before an update,

    Σ_k c_k w_k = T·w − Σ_updates NOW·Δ,

so one more sum u ← u + NOW·Δ, kept where the update is made, gives it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.kernels.by_type import body, by_type
from rerank.learn.apart import ByColumn, State, TrainedApart
from rerank.learn.base import Learner, Weights
from rerank.learn.judge import look_up, score_list
from rerank.learn.passes import gradient_pass, repeat_steps
from rerank.learn.steps import ALIVE, SEEN, UPDATES, beta, close, coordinate, look_up_weights, score, step
from rerank.learn.workspace import ListArrays, Scratch

# Indices of AdditiveState.base.
WEIGHT, SUM = range(2)


class AdditiveState(NamedTuple):
    """What training changes; D columns. ``u`` holds Σ NOW·Δ, or nothing where no average is wanted."""

    w: ByColumn  # float64 [D]
    u: ByColumn  # float64 [D]
    counts: np.ndarray  # int64 [3]: updates; lists the current predictor survived; lists seen (Σ c_k)
    base: np.ndarray  # float64 [2]: learned weight of the base score, and its u


def require_average(state: Any, past: np.ndarray, columns: int) -> None:
    """Refuse a state that keeps no average; ``past``: its sums for so many columns, [0] where it keeps none.

    Raises
    ------
    ValueError: it does not (see ``Learner.light``).
    """
    if past.size < columns and state.counts[UPDATES] > 0:
        raise ValueError("this state keeps no average; train without `light`")


def averaged_lists(state: Any, past: np.ndarray, columns: int) -> int:
    """Σ c_k of a state that keeps an average; see ``require_average``."""
    require_average(state, past, columns)
    return int(state.counts[SEEN])


def averaged(last: np.ndarray, u: np.ndarray, total: int) -> np.ndarray:
    """Σ c_k w_k / Σ c_k of weights that are ``last`` now, with u = Σ NOW·Δ and ``total`` = Σ c_k."""
    return np.asarray(last - u / total if total else last.copy())


def counted(apart: TrainedApart) -> np.ndarray:
    """All counts added up; the new predictor has survived no list yet."""
    counts = np.asarray(apart.summed(lambda end: end.counts))
    counts[ALIVE] = 0
    return counts


def past_of(state: Any) -> np.ndarray:
    """The ``u`` of a state."""
    return np.asarray(state.u)


def history(
    apart: TrainedApart,
    w: np.ndarray,
    last: Callable[[State], np.ndarray],
    past: Callable[[State], np.ndarray] = past_of,
) -> tuple[np.ndarray, np.ndarray]:
    """u = Σ NOW·Δ of a combined state whose weights are w, and its counts; ``last`` reads the weights of a state, and
    ``past`` its u."""
    counts = counted(apart)
    if past(apart.start).size == 0:
        return np.zeros(0), counts
    return counts[SEEN] * w - apart.summed(lambda end: end.counts[SEEN] * last(end) - past(end)), counts


def base_history(apart: TrainedApart, weight: float) -> np.ndarray:
    """The ``base`` of a combined state whose base score weighs ``weight``."""
    survived = apart.summed(lambda end: end.counts[SEEN] * end.base[WEIGHT] - end.base[SUM])
    return np.array([weight, counted(apart)[SEEN] * weight - survived])


@dataclass(frozen=True, kw_only=True)
class Additive(Learner):
    """A learner with an AdditiveState whose updates are w ← w − rate·g."""

    passes: ClassVar[Any] = gradient_pass
    replays: ClassVar[Any] = repeat_steps
    mixes: ClassVar[tuple[str, ...]] = ("updates", "mean")

    def init(self, columns: int, candidates: int = 0) -> Any:  # noqa: ARG002
        return AdditiveState(np.zeros(columns), np.zeros(columns), np.zeros(3, np.int64), np.zeros(2))

    def light(self, state: Any) -> Any:
        return state._replace(u=np.zeros(0))

    def weights(self, state: Any) -> np.ndarray:
        return np.asarray(state.w)

    def past(self, state: Any) -> np.ndarray:
        """float64 [D]: Σ NOW·Δ; [0] where the state keeps no average."""
        return past_of(state)

    def average(self, state: Any) -> Weights:
        w, past = self.weights(state), self.past(state)
        total = averaged_lists(state, past, w.size)
        weight = averaged(state.base[WEIGHT], state.base[SUM], total)
        return Weights(averaged(w, past, total), float(self.base + self.base_rate * weight))

    def combined(self, apart: TrainedApart, rule: str) -> Any:  # noqa: ARG002
        """See ``Learner.combined``: w = Σ share·w_s."""
        w = apart.mean(lambda end: end.w)
        u, counts = history(apart, w, lambda end: end.w)
        return AdditiveState(w, u, counts, base_history(apart, apart.mean(lambda end: end.base[WEIGHT])))


@body(score, Additive)
def score_additive(data: ListArrays, i: int, state: Any, q: Any, scores: np.ndarray) -> None:
    """β·b(y) + w·φ(y)."""
    score_list(data, i, state.w, q.base + q.base_rate * state.base[WEIGHT], scores)


@body(look_up_weights, Additive)
def look_up_w(data: ListArrays, order: np.ndarray, at: int, state: Any, lazy: Any, q: Any) -> None:
    """The weights."""
    look_up(data, order, at, state.w)


@body(beta, Additive)
def beta_additive(state: Any, q: Any) -> float:
    """The start and what was learned."""
    return float(q.base + q.base_rate * state.base[WEIGHT])


@body(step, Additive)
def subtract(state: Any, t: Scratch, count: int, n: int, rate: float, g_base: float, free: int, q: Any) -> None:
    """w ← w − rate·g; a new predictor begins."""
    add(state, t, count, rate, g_base)


@by_type
def add(state: Any, t: Scratch, count: int, rate: float, g_base: float) -> None:
    """w ← w − rate·g for the g in ``t`` and, for the base score, ``g_base``; a new predictor begins."""
    now = float(state.counts[SEEN])
    for r in range(np.uint64(count)):
        state.w[t.column[r]] -= rate * t.value[r]
    if state.u.shape[0] > 0:
        for r in range(np.uint64(count)):
            state.u[t.column[r]] -= now * (rate * t.value[r])
    state.base[WEIGHT] -= rate * g_base
    state.base[SUM] -= now * (rate * g_base)
    close(state.counts)


@body(coordinate, Additive)
def weight_additive(state: Any, j: int, free: int, q: Any) -> tuple[float, float]:
    """The weight itself."""
    return state.w[j], 0.0
