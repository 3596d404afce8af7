"""Units of features: what makes adaptive learners indifferent to them (Ross, Mineiro & Langford 2013, Alg. 2).

A normalised learner works on φ_j/c_j, where c_j is the largest difference that column j has made so far. In an update
with g = Σ a_y φ(y),

* x_j = max φ_j(y) − min φ_j(y) over the candidates with a_y ≠ 0: |φ_j(y*) − φ_j(y')| for losses of two candidates;
* c_j ← max(c_j, x_j) in the columns of g;
* N ← N + Σ_j (g_j/c_j)² / max a_y², and t ← t + 1 unless g = 0.

Step sizes are multiplied by √(t/N), so that they do not depend on the number of features. Where c_j grows, all that is
remembered of the column in its unit is multiplied by the ratio of the old c_j to the new, as if it had always been the
new one. The base score is not normalised.

With a step size per column even the smallest subgradient counts. So rounding has to be kept out, also of learners that
do not normalise: entries |g_j| ≤ 1e-12 · x_j · max |a_y| are 0 (as where all candidates share a feature, and a sum over
a softmax is 0 except for rounding), and an update with all |a_y| ≤ 1e-12 counts as an update, but changes nothing else.
"""

import math
from typing import Any

import numpy as np

from rerank.kernels.by_type import by_type
from rerank.kernels.compile import kernel
from rerank.learn.judge import accumulate_spread, append, base_of, subgradient
from rerank.learn.workspace import GREATEST, LEAST, OWNERS, ListArrays, Scratch

NOISE = 1e-12  # coefficients up to this may be rounding alone


@kernel
def largest_coefficient(scratch: Scratch, n: int) -> float:
    """max |a_y| of the subgradient's n candidates."""
    top = 0.0
    for r in range(n):
        top = max(top, abs(scratch.a[r]))
    return top


@kernel
def find_spreads(scratch: Scratch, n: int, count: int, top: float) -> None:
    """From their spread, x_j of the n candidates with a_y ≠ 0 in ``scratch.extra``, and g_j, or 0, as values."""
    candidates = 0
    for i in range(n):
        candidates += scratch.a[i] != 0.0
    for r in range(np.uint64(count)):
        entry = scratch.spread[r]
        low, high = entry[LEAST], entry[GREATEST]
        if entry[OWNERS] < candidates:
            low, high = min(low, 0.0), max(high, 0.0)
        x, g = high - low, scratch.value[r]
        scratch.extra[r], scratch.value[r] = x, 0.0 if x == 0.0 or abs(g) <= NOISE * top * x else g


@kernel
def spread_subgradient(data: ListArrays, scratch: Scratch, n: int) -> int:
    """The subgradient, with x_j in ``scratch.extra``; entries that may be rounding alone are 0."""
    top = largest_coefficient(scratch, n)
    if scratch.spread.shape[0] > 0:
        count = accumulate_spread(data, scratch, n)
        find_spreads(scratch, n, count, top)
    else:
        count = subgradient(data, scratch, n)
        for r in range(count):
            scratch.extra[r] = abs(scratch.value[r]) / top
    return count


@kernel
def spread_base(data: ListArrays, scratch: Scratch, n: int) -> float:
    """``base_of``; 0 where the candidates have the same base score."""
    for r in range(1, n):
        if data.base[scratch.who[r]] != data.base[scratch.who[0]]:
            return base_of(data, scratch, n)
    return 0.0


@kernel
def pace(now: Any) -> float:
    """d_k = √(t/N); 1 before the first update."""
    return math.sqrt(now.times / now.squares) if now.squares > 0.0 else 1.0


@kernel
def squared_units(scratch: Scratch, count: int, base: int, top: float) -> float:
    """Σ_j (g_j/c_j)² / max a_y², with 1/c_j (anything where g_j = 0) in ``scratch.extra`` and max |a_y| = ``top``.

    The base score, the column ``base``, does not count.
    """
    squared, inverse = 0.0, 1.0 / top if count > 0 else 0.0
    for r in range(np.uint64(count)):
        if scratch.column[r] != base:
            squared += (scratch.value[r] * scratch.extra[r] * inverse) ** 2
    return squared


@kernel
def count_size(now: Any, squared: float) -> None:
    """Count an update with Σ_j (g_j/c_j)² / max a_y² = ``squared``."""
    if squared > 0.0:
        now.times += 1.0
        now.squares += squared


def gather_spread(data: ListArrays, scratch: Scratch, n: int, last: int, loss: Any, params: Any) -> int:
    """The body of ``gather``: g with its spreads x_j, without what is rounding alone; no unit is the base score's."""
    count = spread_subgradient(data, scratch, n)
    scratch.extra[count] = 1.0
    return append(scratch, count, last, params.base_rate * spread_base(data, scratch, n))


@by_type
def adapt(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
    """Take in a subgradient column by column, each in its unit, which grows to the x_j in ``scratch.extra`` before."""
    top, base = largest_coefficient(scratch, n), state.a.shape[0] - 1
    if top <= NOISE:
        count = 0
    for r in range(np.uint64(count)):
        j, x = scratch.column[r], scratch.extra[r]
        scratch.extra[r] = 1.0
        if params.normalized and scratch.value[r] != 0.0 and j != base:
            scratch.extra[r] = grow(state, j, x, params)
    if params.normalized:
        count_size(state.now, squared_units(scratch, count, base, top))
    speed = pace(state.now)
    for r in range(np.uint64(count)):
        if scratch.value[r] != 0.0:
            take_in(state, scratch.column[r], weight * scratch.value[r], scratch.extra[r], speed, params)


@by_type
def grow(state: Any, j: int, x: float, params: Any) -> float:
    """c_j ← max(c_j, x), with what is remembered of the column in the new unit; returns 1/c_j."""
    return 1.0


@by_type
def take_in(state: Any, j: int, g: float, inverse: float, speed: float, params: Any) -> None:
    """Learn from the entry g of a subgradient, in a column with 1/c_j = ``inverse``, where √(t/N) = ``speed``."""
