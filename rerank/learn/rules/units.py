"""Units of features: what makes adaptive learners indifferent to them (Ross, Mineiro & Langford 2013, Alg. 2).

A normalised learner works on φ_j/c_j, with c_j the largest difference of column j so far. In an update g = Σ a_y φ(y),

* c_j ← max(c_j, x_j) in the columns of g, with x_j = max φ_j(y) − min φ_j(y) over the candidates with a_y ≠ 0;
* N ← N + Σ_j (g_j/c_j)² / max a_y², and t ← t + 1 unless g = 0.

Step sizes are multiplied by √(t/N): they do not depend on the number of features. Where c_j grows, all that is
remembered of the column in its unit is multiplied by the ratio of the old c_j to the new. The base score has no unit.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.kernels.compile import kernel
from rerank.learn.base import Learner
from rerank.learn.hooks import rescale_column, set_scales, update_column
from rerank.learn.judge import append, base_of
from rerank.learn.rules.spread import NOISE, gather_spread, largest_coefficient
from rerank.learn.settings import Update
from rerank.learn.workspace import ListArrays, Scratch


@dataclass(frozen=True, kw_only=True)
class Adaptive(Learner):
    """The common part of learners with a step size per column, which take in g entry by entry, each in its unit.

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
                share = g * scratch.extra[r] * (1.0 / top)
                squared += share * share
        if squared > 0.0:
            now.times, now.squares = now.times + 1.0, now.squares + squared
        speed = speed_of(now)
        for r in range(np.uint64(count if top > NOISE else 0)):
            j, g, inverse = scratch.column[r], weight * scratch.value[r], scratch.extra[r]
            if scratch.value[r] != 0.0:
                update_column(state, j, g * inverse, inverse, 1.0 if j == state.a.shape[0] - 1 else speed, params)
        set_scales(state, params)


@kernel
def speed_of(now: Any) -> float:
    """√(t/N); 1 before the first update."""
    return math.sqrt(now.times / now.squares) if now.squares > 0.0 else 1.0
