"""The steps of a pass over lists, each of which a family or a learner has in its own way (see ``by_type``).

Arguments mean the same everywhere: ``data`` the lists, ``i`` the list that is visited, ``state`` the learner's state,
``lazy`` what ``Learner.begin`` made, ``t`` scratch space, ``q`` the learner's settings. A subgradient g (or difference
vector z) of ``count`` columns is in ``t.column`` and ``t.value``, and ``g_base`` is the base score's part of it; ``n``
is the number of its candidates, in ``t.who`` with coefficients ``t.a``.
"""

from typing import Any, NamedTuple

import numpy as np

from rerank.kernels.by_type import by_type
from rerank.kernels.compile import kernel
from rerank.learn.judge import base_of, subgradient
from rerank.learn.voting.votes import VoteRoom
from rerank.learn.workspace import RADIUS, UPDATED, ListArrays, Scratch

# Indices of a state's counts: updates, lists that the current predictor survived. What follows depends on the family.
UPDATES, ALIVE = range(2)
SEEN = 2  # of families that keep u = Σ NOW·Δ: Σ c_k, the lists seen


# What was done about a pair: nothing was missing; an update; the variance was too small; z had nothing to teach.
IDLE, UPDATE, SKIP, IN_VAIN = range(4)


class Lesson(NamedTuple):
    """What ``learn_pair`` found and did."""

    m: float  # the margin, before the update
    loss: float
    columns: int  # of z
    norm: float  # ‖z‖², where there was an update
    rate: float  # goes to the log
    done: int


@kernel
def survive(counts: np.ndarray) -> None:
    """The current predictor has survived a list, the one on which it was made included."""
    counts[ALIVE] += 1
    counts[SEEN] += 1


@kernel
def close(counts: np.ndarray) -> None:
    """An update ends the current predictor."""
    counts[UPDATES] += 1
    counts[ALIVE] = 0


@kernel
def count_update(tally: np.ndarray, squared_radius: float) -> None:
    """Count an update and the length of its difference vector."""
    tally[UPDATED] += 1
    tally[RADIUS] = max(tally[RADIUS], squared_radius)


@by_type
def score(data: ListArrays, i: int, state: Any, q: Any, scores: np.ndarray) -> None:
    """β·b(y) + w·φ(y) for the candidates of list i."""


@by_type
def beta(state: Any, q: Any) -> float:
    """What the current predictor weighs the base score by."""
    return float(q.base)


@by_type
def rate_of(state: Any, weight: float, q: Any) -> float:
    """What the subgradient of a list of this weight is multiplied by; it goes to the log."""
    return weight


@by_type
def gather(data: ListArrays, t: Scratch, n: int, q: Any) -> tuple[int, float]:
    """Sum up g; returns ``count`` and ``g_base``."""
    return subgradient(data, t, n), q.base_rate * base_of(data, t, n)


@by_type
def settle(state: Any, lazy: Any, t: Scratch, count: int, free: int, q: Any) -> None:
    """Enter what the columns of g have weighed so far into lazy sums, before they change."""


@by_type
def step(state: Any, t: Scratch, count: int, n: int, rate: float, g_base: float, free: int, q: Any) -> None:
    """Learn from g: the update itself, which the repetition of updates for voting makes too."""


@by_type
def outlive(state: Any, q: Any) -> None:
    """The current predictor has survived a list."""
    survive(state.counts)


@by_type
def scale_of(state: Any, q: Any) -> float:
    """The d of the current predictor in ``Votes``."""
    return 1.0


@by_type
def threshold_of(state: Any, q: Any) -> float:
    """The τ of the current predictor in ``Votes``."""
    return 0.0


@by_type
def coordinate(state: Any, j: int, free: int, q: Any) -> tuple[float, float]:
    """The a_j and v_j of the current predictor in ``Votes``."""
    return 0.0, 0.0


@by_type
def emit(room: VoteRoom, k: int, t: Scratch, count: int, state: Any, lazy: Any, free: int, q: Any) -> None:
    """What update k has left in the columns of g; one beyond the last is the base score's coordinate."""
    at = room.first[k]
    for r in range(count):
        if t.column[r] < room.width:
            at = put(room, at, t.column[r], state, free, q)
    room.first[k + 1] = at


@by_type
def put(room: VoteRoom, at: int, j: int, state: Any, free: int, q: Any) -> int:
    """Write column j as the entry ``at``; returns the place of the next."""
    room.columns[at] = j
    room.value[at], slope = coordinate(state, j, free, q)
    if room.slope.shape[0] > 0:
        room.slope[at] = slope
    return at + 1


@by_type
def cast(room: VoteRoom, k: int, state: Any, q: Any) -> None:
    """The numbers of predictor k, which is the current one."""
    room.beta[k], room.scale[k], room.threshold[k] = beta(state, q), scale_of(state, q), threshold_of(state, q)


@by_type
def look_up_weights(data: ListArrays, order: np.ndarray, at: int, state: Any, lazy: Any, q: Any) -> None:
    """Prefetch what the next list is scored with and learned into; see ``look_up``."""


@by_type
def learn_pair(
    data: ListArrays, i: int, star: int, rival: int, fixed: float, state: Any, lazy: Any, t: Scratch, q: Any
) -> Lesson:
    """Learn from z = φ(y*) − φ(y'), left in ``t``; ``fixed`` is the part of the margin that is not learned."""
    return Lesson(0.0, 0.0, 0, 0.0, 0.0, IDLE)


@by_type
def rates_of(m: float, v: float, weight: float, q: Any) -> tuple[float, float, float, float]:
    """(loss, α, β, ξ): what is missing of the margin m of a list of this weight, and how far that moves the Gaussian.

    α, β and ξ may be anything where the loss is 0.
    """
    return 0.0, 0.0, 0.0, 0.0


@by_type
def inclusive(q: Any) -> bool:
    """Does the margin of ``learn_pair`` decide on mistakes, not scores: because it is judged with z learned already?"""
    return False


@by_type
def climb(missing: float, size: float, q: Any) -> float:
    """How far a dual variable moves where ``missing`` = 1 − m and ``size`` = ‖z‖²."""
    return 0.0
