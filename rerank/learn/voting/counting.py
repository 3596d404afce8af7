"""The compiled part of exact voting: what a run of predictors makes of the candidates of a list.

The sums of all candidates are *exact*, so that they depend on the active columns and their levels alone, not on what
was active before: candidates with the same active columns and values tie, and one without any scores exactly 0. Rounded
sums would keep a residue of every column that has come and gone. So levels, or their products with real values, are
rounded to multiples of a unit, a power of two so large that float64 holds every sum of such multiples.
"""

import math
from typing import NamedTuple

import numpy as np

from rerank.kernels.compile import kernel
from rerank.learn.voting.levels import Levels
from rerank.learn.voting.seats import Seats
from rerank.learn.voting.votes import Votes

# A run of predictors ends where the products of a list come to less than this part of the most in the run. Rounding
# moves a product by at most a 2^50th of that most, so by at most a 2^34th of what they come to under any of these.
FAINT = 2.0**-16


class Room(NamedTuple):
    """Scratch space for U, or V: Q columns, W whole and R real patterns, N candidates, T predictors at a time.

    ``rows`` and ``moves`` are of float32 where all numbers are whole, else of float64.
    """

    begin: np.ndarray  # int64 [Q]: the entry of a column that holds when the run begins
    end: np.ndarray  # int64 [Q]: the one that holds when it ends
    size: np.ndarray  # float64 [T]: Σ |level| times the column's largest |value|
    row: np.ndarray  # int64 [W + R]: which row is the pattern's, -1 for none: it does not move
    still: np.ndarray  # float64 [W + R]: the level of the pattern, all columns together, when the run begins
    rows: np.ndarray  # [W, T]: by how much the whole patterns move
    levels: np.ndarray  # float64 [R, T]: the levels of the real ones
    start: np.ndarray  # float64 [N]: what whole patterns bring a candidate when the run begins
    moves: np.ndarray  # [N, T]: by how much that moves
    total: np.ndarray  # float64 [T]: the sum of a candidate


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
def counted(product: float, r: float) -> float:
    """|product| in whole units, and at least one unless it is 0, so that sums of 0 tell that no column is active."""
    return max(rounded(abs(product), r), r * 2.0**-52) if product != 0.0 else 0.0


@kernel
def fill(out: np.ndarray, x: float) -> None:
    """out = x."""
    for t in range(out.shape[0]):
        out[t] = x


@kernel
def add_multiples(out: np.ndarray, a: float, x: np.ndarray, b: float, y: np.ndarray) -> None:
    """out += a·x + b·y, in the number type of ``out``."""
    for t in range(out.shape[0]):
        out[t] += a * x[t] + b * y[t]


@kernel
def add_rounded(out: np.ndarray, a: float, x: np.ndarray, r: float) -> None:
    """out += a·x, every product rounded."""
    for t in range(out.shape[0]):
        out[t] += rounded(a * x[t], r)


@kernel
def shrink(out: np.ndarray, threshold: np.ndarray, v: np.ndarray) -> None:
    """out −= τ·V."""
    for t in range(out.shape[0]):
        out[t] -= threshold[t] * v[t]


@kernel
def run_up(start: float, moves: np.ndarray, total: np.ndarray) -> None:
    """total[t] ← start + moves[0] + … + moves[t]. In four stretches at a time: an addition waits for the one before."""
    n = moves.shape[0] // 4
    a, b, c, d = start, 0.0, 0.0, 0.0
    for t in range(n):
        a += moves[t]
        b += moves[n + t]
        c += moves[2 * n + t]
        d += moves[3 * n + t]
        total[t], total[n + t], total[2 * n + t], total[3 * n + t] = a, b, c, d
    for t in range(4 * n, moves.shape[0]):
        d += moves[t]
        total[t] = d
    for t in range(n):
        total[n + t] += a
        total[2 * n + t] += a + b
    for t in range(3 * n, moves.shape[0]):
        total[t] += a + b + c


@kernel
def add_moves(time: np.ndarray, level: np.ndarray, e: int, start: int, stop: int, r: float, row: np.ndarray) -> int:
    """Add a column's moves to ``row``; entry e holds when the run begins, the one that is returned when it ends.

    Levels are rounded, and not their differences: what a column brings it takes back to the last bit when it leaves.
    Whole numbers (r = 0) are not rounded.
    """
    before = rounded(level[e], r)
    for p in range(np.uint64(e + 1), np.uint64(time.shape[0])):
        if time[p] >= stop:
            return int(p) - 1
        following, t = rounded(level[p], r), np.uint64(time[p] - start)
        row[t] += row.dtype.type(following - before)
        before = following
    return int(e)


@kernel
def add_sizes(
    time: np.ndarray, level: np.ndarray, e: int, start: int, stop: int, r: float, largest: float, size: np.ndarray
) -> None:
    """Add to ``size`` by how much the size of a column's largest product moves."""
    before = counted(level[e] * largest, r)
    size[0] += before
    while time[e + 1] < stop:
        e += 1
        following = counted(level[e] * largest, r)
        size[time[e] - start] += following - before
        before = following


@kernel
def extremes(time: np.ndarray, level: np.ndarray, e: int, stop: int) -> tuple[float, float]:
    """The least and the largest |level| of a column in a run."""
    least = most = abs(level[e])
    while time[e + 1] < stop:
        e += 1
        least, most = min(least, abs(level[e])), max(most, abs(level[e]))
    return least, most


@kernel
def write_levels(time: np.ndarray, level: np.ndarray, e: int, start: int, stop: int, row: np.ndarray) -> int:
    """Write a column's levels to ``row``; entries as for ``add_moves``."""
    begin = start
    while time[e + 1] < stop:
        fill(row[begin - start : time[e + 1] - start], level[e])
        begin, e = time[e + 1], e + 1
    fill(row[begin - start : stop - start], level[e])
    return int(e)


@kernel
def sum_patterns(
    seats: Seats, levels: Levels, start: int, stop: int, whole: bool, sized: bool, r: float, room: Room
) -> tuple[float, float]:
    """Levels and moves of all patterns under predictors start..stop − 1, and sizes, if ``sized``.

    Returns limits of what sizes come to, if anything is rounded: one that none is below, and one that none is above.
    """
    time, level, T, W = levels.time, levels.level, stop - start, seats.whole
    least = most = 0.0
    fill(room.size[:T], 0.0)
    for p in range(seats.largest.shape[0]):
        room.row[p], room.still[p], largest = -1, 0.0, seats.largest[p]
        for q in range(seats.members[p], seats.members[p + 1]):
            e = room.begin[q]
            room.end[q] = e
            room.still[p] += level[e] if whole or p >= W else rounded(level[e], r)
            if sized:
                add_sizes(time, level, e, start, stop, r, largest, room.size)
            elif not whole or seats.largest.shape[0] > W:
                low, high = extremes(time, level, e, stop)
                least, most = max(least, low * largest), most + high * largest
            if time[e + 1] >= stop:
                continue
            if p >= W:
                room.row[p] = p - W
                room.end[q] = write_levels(time, level, e, start, stop, room.levels[p - W])
                continue
            if room.row[p] < 0:  # a row that no column moves is never read, and need not be cleared
                room.row[p] = p
                fill(room.rows[p, :T], 0)
            room.end[q] = add_moves(time, level, e, start, stop, 0.0 if whole else r, room.rows[p])
    if sized:
        run_up(0.0, room.size[:T], room.size[:T])
    return least, most


@kernel
def run_of(size: np.ndarray) -> tuple[int, float, float]:
    """The number of predictors that may share a unit, and the least and the largest of their sizes."""
    least, most = np.inf, 0.0
    for t in range(size.shape[0]):
        if size[t] > 0.0:  # else base scores decide, unrounded
            low, high = min(least, size[t]), max(most, size[t])
            if low < 2.0 * FAINT * high:
                return t, least, most
            least, most = low, high
    return size.shape[0], least, most


@kernel
def prepare(
    seats: Seats, levels: Levels, start: int, stop: int, whole: bool, guess: float, room: Room
) -> tuple[int, float]:
    """Sum the patterns for a run from ``start``; returns where it ends, ``stop`` at most, and a limit of its sums.

    They are rounded before it is known what they come to; where ``guess`` was wrong, this is done again. Sizes are
    summed only where the columns, each by itself, do not tell that no predictor is faint.
    """
    sized = False
    while True:
        least, most = sum_patterns(seats, levels, start, stop, whole, sized, rounder(guess), room)
        if whole and seats.whole == seats.largest.shape[0]:
            return stop, 0.0
        n = stop - start
        if sized:
            n, least, most = run_of(room.size[:n])
        if n == stop - start and most <= guess and least >= FAINT * guess:
            return stop, guess
        stop, guess = start + n, 2.0 * most
        sized |= least < FAINT * guess


@kernel
def sum_whole(seats: Seats, y: int, T: int, room: Room) -> int:
    """The features that whole patterns give the candidate at place y, in ``room``; returns its first edge of a real
    pattern."""
    x, out = seats.like[y], room.moves[y, :T]
    room.start[y] = room.start[x] if x >= 0 else 0.0
    for t in range(T):
        out[t] = room.moves[x, t] if x >= 0 else 0
    number, waiting = out.dtype.type, -1  # edges are added in pairs: half as many passes over ``out``
    e = seats.edges[y]
    while e < seats.edges[y + 1] and seats.pattern[e] < seats.whole:  # real patterns come last
        p = seats.pattern[e]
        room.start[y] += seats.value[e] * room.still[p]
        if room.row[p] >= 0 and waiting < 0:
            waiting = e
        elif room.row[p] >= 0:
            x = seats.pattern[waiting]
            add_multiples(out, number(seats.value[waiting]), room.rows[x], number(seats.value[e]), room.rows[p])
            waiting = -1
        e += 1
    if waiting >= 0:
        row = room.rows[seats.pattern[waiting]]
        add_multiples(out, number(seats.value[waiting]), row, number(0), row)
    return int(e)


@kernel
def sum_candidate(seats: Seats, y: int, T: int, r: float, room: Room) -> None:
    """room.total ← the sum of the candidate at place y."""
    first, end = sum_whole(seats, y, T, room), seats.edges[y + 1]
    start = room.start[y]
    for e in range(first, end):
        if room.row[seats.pattern[e]] < 0:
            start += rounded(seats.value[e] * room.still[seats.pattern[e]], r)
    run_up(start, room.moves[y, :T], room.total)
    for e in range(first, end):
        row = room.row[seats.pattern[e]]
        if row >= 0:
            add_rounded(room.total[:T], seats.value[e], room.levels[row], r)


@kernel
def advance(levels: Levels, start: int, room: Room) -> None:
    """Find the entries that hold when a run begins where the one before has ended."""
    for q in range(room.begin.shape[0]):
        e = room.end[q]
        while levels.time[e + 1] <= start:
            e += 1
        room.begin[q] = e


@kernel
def challenge(
    y: int, b: float, total: np.ndarray, beta: np.ndarray, scale: np.ndarray, best: np.ndarray, winner: np.ndarray
) -> None:
    """Make candidate y the winner wherever it scores higher than the best so far.

    A maximum is stored as a whole; what an ``if`` chooses is stored under a mask, which takes several times as long.
    """
    for t in range(best.shape[0]):
        score = beta[t] * b + scale[t] * total[t]
        winner[t] = y if score > best[t] else winner[t]
        best[t] = max(best[t], score)


@kernel
def count_votes(winner: np.ndarray, survived: np.ndarray, counted: np.ndarray) -> None:
    """Add the votes of the winners. Predictors mostly agree with the one before: their votes are added at once."""
    same, together = winner[0], 0
    for t in range(winner.shape[0]):
        if winner[t] != same:
            counted[same] += together
            same, together = winner[t], 0
        together += survived[t]
    counted[same] += together


@kernel
def vote_list(
    seats: Seats, u: Levels, v: Levels, votes: Votes, whole: bool, room_u: Room, room_v: Room, best: np.ndarray,
    winner: np.ndarray, counted: np.ndarray,
) -> None:  # fmt: skip
    """Count the votes of all predictors; ``whole``: all levels of whole patterns are whole numbers."""
    start, end, limit_u, limit_v = 0, votes.survived.shape[0], 0.0, 0.0
    shrinks = votes.threshold.shape[0] > 0
    while start < end:
        stop, longest = 0, min(start + best.shape[0], end)
        while stop < longest:  # a run of V may have to end earlier than one of U
            longest, limit_u = prepare(seats, u, start, stop or longest, whole, limit_u, room_u)
            stop = longest
            if shrinks:
                stop, limit_v = prepare(seats, v, start, longest, whole, limit_v, room_v)
        T, beta, scale = stop - start, votes.beta[start:stop], votes.scale[start:stop]
        fill(best, -np.inf)
        fill(winner, 0)
        for y in range(seats.base.shape[0]):  # by falling base score, then index: a tie leaves the winner
            sum_candidate(seats, y, T, rounder(limit_u), room_u)
            if shrinks:
                sum_candidate(seats, y, T, rounder(limit_v), room_v)
                shrink(room_u.total[:T], votes.threshold[start:stop], room_v.total)
            challenge(y, seats.base[y], room_u.total, beta, scale, best[:T], winner)
        count_votes(winner[:T], votes.survived[start:stop], counted)
        start = stop
        if start < end:
            advance(u, start, room_u)
            if shrinks:
                advance(v, start, room_v)
