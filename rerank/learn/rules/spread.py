"""The subgradient of adaptive learners: with the largest difference x_j of two candidates, without what is rounding
alone.
"""

from typing import Any

import numpy as np

from rerank.kernels.compile import body, by_type, kernel
from rerank.learn.judge import accumulate, merge
from rerank.learn.losses import PairLoss
from rerank.learn.scoring import ONE, single
from rerank.learn.workspace import ListArrays, Scratch

# With a step size per column even the smallest subgradient counts, so rounding is kept out, normalised or not: entries
# |g_j| ≤ NOISE·x_j·max |a_y| are 0 (of a feature that all candidates share, say), and an update with all |a_y| ≤ NOISE
# counts as an update, but changes nothing else.
NOISE = 1e-12


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


@kernel
def accumulate_spread(data: ListArrays, scratch: Scratch, n: int, noise: float) -> int:
    """``accumulate``, with the largest difference x_j of two candidates with a_y ≠ 0 in ``scratch.extra``; entries up
    to x_j·noise are 0."""
    candidates, count, place = 0, accumulate(data, scratch, n), scratch.sums
    for r in range(np.uint64(count)):
        entry, place[scratch.column[r]] = scratch.spread[r + ONE], r + ONE  # 0 is for columns whose sum is 0
        entry.least, entry.greatest, entry.owners = np.inf, -np.inf, 0
    for i in range(n):
        if scratch.a[i] == 0.0:
            continue
        candidates += 1
        for p in range(np.uint64(data.rows[scratch.who[i]]), np.uint64(data.rows[scratch.who[i] + 1])):
            entry, x = scratch.spread[np.uint32(place[data.columns[p]])], single(data.values[p])
            entry.least, entry.greatest = min(entry.least, x), max(entry.greatest, x)
            entry.owners += 1
    for r in range(np.uint64(count)):
        entry, g, place[scratch.column[r]] = scratch.spread[r + ONE], scratch.value[r], 0.0
        if entry.owners < candidates:  # others have 0
            entry.least, entry.greatest = min(entry.least, 0.0), max(entry.greatest, 0.0)
        x = entry.greatest - entry.least
        scratch.extra[r], scratch.value[r] = x, 0.0 if x == 0.0 or abs(g) <= noise * x else g
    return count
