"""Units that sums are rounded to, and the predictors that a block's unit is too coarse for.

A list's sums in a block share a unit, a 2^50th of the most that the list's products can come to in the block. Where
weights grow or shrink by orders of magnitude within a block (as with exponential loss), the products of some predictors
are far smaller than that. Such predictors are *faint* on the list: they are picked out and decided again, in groups of
like size with units of their own.
"""

import math

import numpy as np

from rerank.kernels.compile import kernel
from rerank.learn.voting.block_rows import clear, run_up
from rerank.learn.voting.electorate import Electorate, has_real
from rerank.learn.voting.moves import ROWS, Moves, layout, when

# A predictor is faint on a list where its products come to less than this part of the most in the block. Rounding moves
# a product by at most a 2^50th of that most, so by at most a 2^34th of what they come to under predictors that are not.
FAINT = 2.0**-16
GROUP = 8 * ROWS  # so many faint predictors are picked at a time
NEVER = 1 << 40  # after every predictor


@kernel
def limit_of(seats: Electorate, moves: Moves, i: int) -> float:
    """Σ |value|·|level| over the columns of list i, with the largest of each: no sum of a candidate is larger."""
    limit = 0.0
    for p in range(seats.patterns[i], seats.patterns[i + 1]):
        for q in range(seats.members[p], seats.members[p + 1]):
            limit += moves.height[seats.column[q]] * seats.largest[p]
    return limit


@kernel
def fits(seats: Electorate, moves: Moves, i: int, limit: float) -> bool:
    """Are all sums of ``spread`` for list i whole numbers within 16 bits, and can real patterns be added to them?

    A column moves at most once at a predictor, so that no entry exceeds Σ |value|·|move|. Intermediate results may
    wrap around: whole numbers that end within 16 bits are right all the same. Real patterns need rows of levels, and a
    unit of which 1 is a multiple. limit: see ``limit_of``.
    """
    if has_real(seats, i) and limit >= 2.0**50:
        return False
    largest, real = 0.0, seats.patterns[i] + seats.whole[i]
    for p in range(seats.patterns[i], real):
        for q in range(seats.members[p], seats.members[p + 1]):
            largest += moves.peak[seats.column[q]] * seats.largest[p]
    for p in range(real, seats.patterns[i + 1]):
        c = seats.column[seats.members[p]]
        if moves.track[c] < 0 and (moves.start[c] != 0.0 or moves.first[c] < moves.end[c]):
            return False
    return largest <= 32767.0


@kernel
def rounder(limit: float) -> float:
    """The number r = 1.5·2^52 units: (x + r) − r is x, rounded to whole units (see ``rounded``).

    No sum is larger than ``limit``, and what is summed on the way to it is at most four times as large. With limit <
    2^e a unit of 2^(e − 50) leaves all of it below 2^52 units. (e is capped so that r is finite.)
    """
    return math.ldexp(1.5, 52 + min(math.frexp(limit)[1], 900) - 50)


@kernel
def rounded(x: float, r: float) -> float:
    """x as the nearest multiple of the unit of ``r``: between 2^52 and 2^53 units float64 holds whole units only."""
    return (x + r) - r


@kernel
def suspected(seats: Electorate, moves: Moves, i: int, least: float, lanes: int) -> tuple[int, int]:
    """Outside of predictors from..to - 1, list i's products come to ``least`` or more, or no column is active.

    Before, none is yet; and from then on, one column's own products come to that. On most lists such a column is among
    the first to be active.
    """
    first = lasting = NEVER
    for p in range(seats.patterns[i], seats.patterns[i + 1]):
        for q in range(seats.members[p], seats.members[p + 1]):
            c = seats.column[q]
            t = NEVER
            if moves.start[c] != 0.0:
                t = 0
            elif moves.first[c] < moves.end[c]:
                t = when(moves.at[moves.first[c]], lanes)
            first = min(first, t)
            if moves.floor[c] * seats.largest[p] >= least:
                lasting = min(lasting, t)
        if lasting == 0:
            break
    return first, lasting


@kernel
def counted(product: float, r: float, unit: float) -> float:
    """|product| in whole units, and at least one unless it is 0, so that sums of 0 tell that no column is active."""
    return max(rounded(abs(product), r), unit) if product != 0.0 else 0.0


@kernel
def mark_faint(
    seats: Electorate, moves: Moves, i: int, limit: float, moved: np.ndarray, lane: np.ndarray, total: np.ndarray,
    faint: np.ndarray,
) -> bool:  # fmt: skip
    """faint[t] ← True where predictor t is faint on list i, whose sums come to ``limit``; is any?

    moved, total (float64 [T]) and lane (float64 [T / ROWS]) are scratch space.
    """
    lanes = lane.shape[0]
    begin, end = suspected(seats, moves, i, FAINT * limit, lanes)
    end = min(end, total.shape[0])
    if begin >= end:
        return False
    r, before, found = rounder(limit), 0.0, False
    unit = np.spacing(r)
    clear(moved)
    for p in range(seats.patterns[i], seats.patterns[i + 1]):
        for q in range(seats.members[p], seats.members[p + 1]):
            c = seats.column[q]
            product = counted(moves.start[c] * seats.largest[p], r, unit)
            before += product
            for e in range(moves.first[c], moves.end[c]):
                if when(moves.at[e], lanes) >= end:
                    break
                following = counted(moves.level[e] * seats.largest[p], r, unit)
                moved[moves.at[e]] += following - product
                product = following
    run_up(moved, lane, total)
    for t in range(begin, end):
        here = layout(t, lanes)
        if 0.0 < before + total[here] < FAINT * limit:  # 0: no column is active, and base scores decide unrounded
            faint[here] = found = True
    return found


@kernel
def call(faint: np.ndarray, survived: np.ndarray, t: int, lanes: int, times: np.ndarray) -> int:
    """The next faint predictors with votes, from predictor t of the block on, in ``times``; returns how many."""
    n = 0
    while t < faint.shape[0] and n < times.shape[0]:
        if faint[layout(t, lanes)] and survived[layout(t, lanes)] > 0:
            times[n] = t
            n += 1
        t += 1
    return n


@kernel
def behind(moves: Moves, c: int, t: int, lanes: int) -> int:
    """The first move of column c after predictor t of the block. By bisection: moves are in time."""
    low, high = moves.first[c], moves.end[c]
    while low < high:
        middle = (low + high) // 2
        if when(moves.at[middle], lanes) <= t:
            low = middle + 1
        else:
            high = middle
    return int(low)


@kernel
def pick(seats: Electorate, moves: Moves, i: int, lanes: int, times: np.ndarray, to: Moves) -> None:
    """The moves of list i's columns as a block of the predictors ``times`` (rising) alone sees them.

    A move that another one follows before the next of these predictors keeps the level before it: its own, which none
    of them sees, may be too large for the sums. No column has a row of levels.
    """
    n = times.shape[0]
    for m in range(seats.members[seats.patterns[i]], seats.members[seats.patterns[i + 1]]):
        c, r = seats.column[m], 1  # the first of these predictors sees the level at the start
        first, end = behind(moves, c, times[0], lanes), behind(moves, c, times[n - 1], lanes)
        level = moves.level[first - 1] if first > moves.first[c] else moves.start[c]
        to.first[c], to.end[c], to.start[c], to.track[c] = first, end, level, -1
        for e in range(first, end):
            while times[r] < when(moves.at[e], lanes):
                r += 1
            if e + 1 == end or when(moves.at[e + 1], lanes) > times[r]:
                level = moves.level[e]
            to.at[e], to.level[e] = layout(r, GROUP // ROWS), level


@kernel
def size_of(seats: Electorate, picked: Moves, i: int, n: int, size: np.ndarray) -> int:
    """size[r] ← what list i's products come to under the r-th of n picked predictors; how many may share a unit?

    As many, from the first on, as are not faint compared with one another.
    """
    own = GROUP // ROWS
    clear(size)
    for p in range(seats.patterns[i], seats.patterns[i + 1]):
        for q in range(seats.members[p], seats.members[p + 1]):
            c = seats.column[q]
            product, r = abs(picked.start[c]) * seats.largest[p], 0
            for e in range(picked.first[c], picked.end[c]):
                while r < when(picked.at[e], own):
                    size[r] += product
                    r += 1
                product = abs(picked.level[e]) * seats.largest[p]
            while r < n:
                size[r] += product
                r += 1
    most, least = 0.0, np.inf
    for r in range(n):
        most = max(most, size[r])
        least = min(least, size[r]) if size[r] > 0.0 else least
        if least < FAINT * most:
            return r
    return n


@kernel
def largest_of(size: np.ndarray) -> float:
    """The largest of some sizes."""
    most = 0.0
    for r in range(size.shape[0]):
        most = max(most, size[r])
    return most
