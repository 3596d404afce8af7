"""Units of features: what makes adaptive learners indifferent to them (Ross, Mineiro & Langford 2013, Alg. 2).

A normalised learner works on φ_j/c_j, where c_j is the largest difference that column j has made so far. In an update
with g = Σ a_y φ(y),

* x_j = max φ_j(y) − min φ_j(y) over the candidates with a_y ≠ 0: |φ_j(y*) − φ_j(y')| for losses of two candidates;
* c_j ← max(c_j, x_j) in the columns of g;
* N ← N + Σ_j (g_j/c_j)² / max a_y², and t ← t + 1 unless g = 0.

Step sizes are multiplied by √(t/N), so that they do not depend on the number of features. Where c_j grows, all that is
remembered of the column in its unit is multiplied by the ratio of the old c_j to the new, as if it had always been the
new one. The base score is not normalised.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.kernels.by_type import body, by_type
from rerank.kernels.compile import kernel
from rerank.learn.base import Learner
from rerank.learn.judge import accumulate_spread, append, base_of, merge
from rerank.learn.losses import PairLoss
from rerank.learn.settings import Update
from rerank.learn.workspace import ListArrays, Scratch

# With a step size per column even the smallest subgradient counts, so rounding is kept out, normalised or not: entries
# |g_j| ≤ NOISE·x_j·max |a_y| are 0 (of a feature that all candidates share, say), and an update with all |a_y| ≤ NOISE
# counts as an update, but changes nothing else.
NOISE = 1e-12


@dataclass(frozen=True, kw_only=True)
class Adaptive(Learner):
    """The common part of learners with a step size per column: they take in a subgradient entry by entry, each in the
    unit of its column.

    Parameters
    ----------
    loss: the name of a loss, or its import path.
    normalized: make learning independent of the unit of every feature.
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base, base_rate: see Learner.
    """

    whole: ClassVar[tuple[str, ...]] = ("times", "squares")  # t, N

    loss: str = "logistic"
    normalized: bool = True
    update: Update = "always"

    @staticmethod
    def gather(data: ListArrays, scratch: Scratch, n: int, last: int, loss: Any, params: Any) -> int:
        """g, with the spreads x_j in ``scratch.extra``, without what is rounding alone; no unit is the base score's."""
        count, base = gather_spread(data, scratch, n, largest_coefficient(scratch, n), loss), 0.0
        for r in range(1, n):
            if data.base[scratch.who[r]] != data.base[scratch.who[0]]:
                base = base_of(data, scratch, n)
                break
        scratch.extra[count] = 1.0
        return append(scratch, count, last, params.base_rate * base)

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
        """Take in g, each entry in the unit of its column, which grows to x_j before."""
        now, top, squared = state.now, largest_coefficient(scratch, n), 0.0
        for r in range(np.uint64(count if top > NOISE else 0)):
            j, g, x = scratch.column[r], scratch.value[r], scratch.extra[r]
            scratch.extra[r] = 1.0
            if params.normalized and g != 0.0 and j != state.a.shape[0] - 1:
                scratch.extra[r] = rescale_column(state, j, x, params)
                squared += (g * scratch.extra[r] * (1.0 / top)) ** 2
        if squared > 0.0:
            now.times, now.squares = now.times + 1.0, now.squares + squared
        speed = speed_of(now)
        for r in range(np.uint64(count if top > NOISE else 0)):
            j, g, inverse = scratch.column[r], weight * scratch.value[r], scratch.extra[r]
            if scratch.value[r] != 0.0:
                update_column(state, j, g * inverse, inverse, 1.0 if j == state.a.shape[0] - 1 else speed, params)
        set_scales(state, params)


@by_type
def rescale_column(state: Any, j: int, x: float, params: Any) -> float:
    """c_j ← max(c_j, x), with what is remembered of the column in the new unit; returns 1/c_j."""
    return 1.0


@by_type
def update_column(state: Any, j: int, g: float, inverse: float, speed: float, params: Any) -> None:
    """Learn from g_j/c_j, with 1/c_j = ``inverse`` and √(t/N) = ``speed``, which is 1 for the base score."""


@by_type
def set_scales(state: Any, params: Any) -> None:
    """Set what moves all weights at once, at the end of an update."""


@kernel
def speed_of(now: Any) -> float:
    """√(t/N); 1 before the first update."""
    return math.sqrt(now.times / now.squares) if now.squares > 0.0 else 1.0


@kernel
def largest_coefficient(scratch: Scratch, n: int) -> float:
    """max |a_y| of the subgradient's n candidates."""
    top = 0.0
    for r in range(n):
        top = max(top, abs(scratch.a[r]))
    return top


@by_type
def gather_spread(data: ListArrays, scratch: Scratch, n: int, top: float, loss: Any) -> int:
    """The subgradient with x_j in ``scratch.extra``; entries that may be rounding alone are 0."""
    return accumulate_spread(data, scratch, n, NOISE * top)


@body(gather_spread, PairLoss)
def gather_difference(data: ListArrays, scratch: Scratch, n: int, top: float, loss: Any) -> int:
    """x_j = |g_j| / max |a_y|."""
    who, a = scratch.who, scratch.a
    count = merge(data, who[0], a[0], who[1], a[1], scratch.column, scratch.value)
    for r in range(count):
        scratch.extra[r] = abs(scratch.value[r]) / top
    return count
