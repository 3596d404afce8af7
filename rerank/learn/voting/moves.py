"""Moves: at which predictors a column's a_j and v_j change inside the active sums, and to what (see ``votes``).

Column j is active under predictor k while |a_j| > τ_k·|v_j|. What it brings into the sums of its candidates, its
*level*, is a_j (or v_j) while it is active and 0 while it is not. An update that touches the column moves it to another
level; where τ grows it also leaves, untouched, at the first k with τ_k·|v_j| ≥ |a_j|. A block of predictors is laid out
as ROWS rows: running sums over time are then additions of whole rows.
"""

from typing import NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel, prefetch
from rerank.learn.voting.electorate import is_real
from rerank.learn.voting.votes import Votes

ROWS = 8  # predictor t of a block of T is at column t // ROWS of row t % ROWS
DENSE = 12  # columns that move at one in so many predictors, or more, have a row of moves
# Where other columns are whole, all real ones have a row of levels; elsewhere, those that move at one in so many
# predictors, or more.
TRACKED = 8
MOST_TRACKS = 512  # at most so many of them, those updated most: a row takes T float64


class Moves(NamedTuple):
    """By column (C of them), in time: the moves first[c]..end[c] of column c take it to their levels."""

    first: np.ndarray  # int32 [C]
    end: np.ndarray  # int32 [C]
    at: np.ndarray  # uint16 [moves]: the predictor's place in the block's layout
    level: np.ndarray  # float64 [moves]: from then on
    start: np.ndarray  # float64 [C]: before the block
    height: np.ndarray  # float64 [C]: largest |level|, that before the block included
    floor: np.ndarray  # float64 [C]: least |level| from the first on that is not 0; infinite where there is none
    size: np.ndarray  # int16 [moves]: by how much it moves; [0] where levels are not whole, or moves too large for it
    peak: np.ndarray  # float64 [C]: largest |size|; infinite for (real) columns whose sizes mean nothing
    row: np.ndarray  # int32 [C]: the row of ``dense`` that has the same moves, -1 for none
    dense: np.ndarray  # int8 [rows, T]: small whole moves of columns that move often
    track: np.ndarray  # int32 [C]: the row of ``levels``, -1 for none
    levels: np.ndarray  # float64 [rows, T]: the levels of columns that move often and have real values


@kernel
def count_touches(columns: np.ndarray, touches: np.ndarray) -> None:
    """How many updates touch each column (int64 [D])."""
    for e in range(columns.shape[0]):
        touches[columns[e]] += 1


@kernel
def mark_owned(columns: np.ndarray, values: np.ndarray, owned: np.ndarray, real: np.ndarray) -> None:
    """owned[j] ← does any candidate own column j? real[j] ← does any have a real value of it (see ``electorate``)?"""
    for p in range(columns.shape[0]):
        owned[columns[p]] = True
        real[columns[p]] |= is_real(values[p])


@kernel
def sort_block(
    votes: Votes, name: np.ndarray, begin: int, end: int, start: int, first: np.ndarray, named: np.ndarray,
    at: np.ndarray, value: np.ndarray, slope: np.ndarray,
) -> None:  # fmt: skip
    """The entries of updates begin..end − 1 by column, in time; update k makes predictor k + 1, at k + 1 − start.

    first: int64 [C + 1], zeros; named: int32 [entries], scratch space; slope: [0] where the votes have none.
    """
    base = votes.first[begin]
    for e in range(named.shape[0]):
        c = named[e] = name[votes.columns[base + e]]
        if c >= 0:
            first[c] += 1
    total = 0
    for c in range(first.shape[0]):
        total += first[c]
        first[c] = total
    # Entries are placed from the last to the first: ends become beginnings, and a column's entries stay in time.
    for k in range(end - 1, begin - 1, -1):
        for e in range(votes.first[k + 1] - base - 1, votes.first[k] - base - 1, -1):
            if e >= 8 and named[e - 8] >= 0:  # places are all over memory
                prefetch(at, first[named[e - 8]] - 1)
                prefetch(value, first[named[e - 8]] - 1)
            c = named[e]
            if c < 0:
                continue
            first[c] -= 1
            at[first[c]], value[first[c]] = k + 1 - start, votes.value[base + e]
            if slope.shape[0] > 0:
                slope[first[c]] = votes.slope[base + e]


@kernel
def leaving(size: float, slope: float, threshold: np.ndarray, begin: int, end: int) -> int:
    """The first k of begin..end − 1 with τ_k·slope ≥ size; ``end`` where there is none. By bisection: τ never falls."""
    while begin < end:
        middle = (begin + end) // 2
        if threshold[middle] * slope >= size:
            end = middle
        else:
            begin = middle + 1
    return begin


@kernel
def layout(t: int, lanes: int) -> int:
    """The place of predictor t in a block of ROWS · lanes."""
    return (t % ROWS) * lanes + t // ROWS


@kernel
def when(place: int, lanes: int) -> int:
    """Which predictor is at ``place`` (the inverse of ``layout``)."""
    return (place % lanes) * ROWS + place // lanes


@kernel
def put(to: Moves, c: int, n: int, t: int, lanes: int, before: float, level: float) -> int:
    """Append column c's move to ``level`` at predictor t, unless it is there already; returns the number of moves."""
    if level != before:
        to.at[n], to.level[n] = layout(t, lanes), level
        to.height[c], to.floor[c] = max(to.height[c], abs(level)), min(to.floor[c], abs(level))
        n += 1
    return n


@kernel
def begin_with(to: Moves, c: int, level: float) -> None:
    """Column c is at ``level`` before the block."""
    to.start[c], to.height[c] = level, abs(level)
    to.floor[c] = abs(level) if level != 0.0 else np.inf


@kernel
def active(k: int, a: float, v: float, threshold: np.ndarray) -> bool:
    """Does a column with a_j = a and v_j = v weigh anything under predictor k?"""
    return abs(a) > (threshold[k] * abs(v) if threshold.shape[0] > 0 else 0.0)


@kernel
def active_moves(
    first: np.ndarray, at: np.ndarray, value: np.ndarray, slope: np.ndarray, start: int, stop: int, lanes: int,
    threshold: np.ndarray, own: np.ndarray, u: Moves, v: Moves,
) -> None:  # fmt: skip
    """The moves of predictors start..stop − 1 from the block's sorted entries.

    own: float64 [2, C], a_j and v_j before the block; they become those after it.
    """
    n = m = 0
    shrinks = threshold.shape[0] > 0
    for c in range(own.shape[1]):
        u.first[c], v.first[c] = n, m
        a, b = own[0, c], own[1, c]
        inside = active(max(0, start - 1), a, b, threshold)  # under the last predictor of the block before
        level_u, level_v = (a, b) if inside else (0.0, 0.0)
        begin_with(u, c, level_u)
        begin_with(v, c, level_v)
        for e in range(first[c], first[c + 1] + 1):  # and after the last one: τ may outgrow the column there too
            final = e == first[c + 1]
            k = stop if final else start + at[e]
            if inside and not active(k - 1, a, b, threshold):
                t = leaving(abs(a), abs(b), threshold, start, k) - start
                n = put(u, c, n, t, lanes, level_u, 0.0)
                m = put(v, c, m, t, lanes, level_v, 0.0)  # only a threshold makes columns leave untouched
                level_u = level_v = 0.0
            if final:
                break
            a = value[e]
            b = slope[e] if slope.shape[0] > 0 else np.sign(a)
            inside = active(k, a, b, threshold)
            before_u, before_v = level_u, level_v
            level_u, level_v = (a, b) if inside else (0.0, 0.0)
            n = put(u, c, n, k - start, lanes, before_u, level_u)
            if shrinks:  # otherwise V is not used
                m = put(v, c, m, k - start, lanes, before_v, level_v)
        own[0, c], own[1, c] = a, b
        u.end[c], v.end[c] = n, m


@kernel
def size_up(moves: Moves, real: np.ndarray) -> bool:
    """Fill ``size`` and ``peak``; False, and they mean nothing, if a level of a column without real values (``real``,
    bool [C]) is not whole, or a move beyond 16 bits."""
    for c in range(moves.peak.shape[0]):
        moves.peak[c] = size_of_column(moves, c)
        if moves.peak[c] == np.inf and not real[c]:
            return False
    return True


@kernel
def size_of_column(moves: Moves, c: int) -> float:
    """Fill ``size`` for column c; returns its peak."""
    before, peak = moves.start[c], 0.0
    if before != np.rint(before):
        return np.inf
    for e in range(moves.first[c], moves.end[c]):
        size = moves.level[e] - before
        if size != np.rint(size) or abs(size) > 32767.0:
            return np.inf
        before, moves.size[e] = moves.level[e], size
        peak = max(peak, abs(size))
    return peak


@kernel
def choose_dense(moves: Moves, least: int) -> int:
    """Number the columns with at least so many small moves in ``moves.row``; returns how many there are."""
    rows = 0
    for c in range(moves.peak.shape[0]):
        moves.row[c] = -1
        if moves.end[c] - moves.first[c] >= least and moves.peak[c] <= 127.0:  # rows are int8
            moves.row[c] = rows
            rows += 1
    return rows


@kernel
def fill_dense(moves: Moves, dense: np.ndarray) -> None:
    """The rows that ``choose_dense`` numbered."""
    for c in range(moves.peak.shape[0]):
        if moves.row[c] >= 0:
            for e in range(moves.first[c], moves.end[c]):
                dense[moves.row[c], moves.at[e]] += moves.size[e]


@kernel
def fill_levels(moves: Moves, levels: np.ndarray) -> None:
    """The rows that ``track`` numbers: a column's level under every predictor of the block, in its layout."""
    lanes = levels.shape[1] // ROWS
    for c in range(moves.track.shape[0]):
        if moves.track[c] < 0:
            continue
        row, level, t = levels[moves.track[c]], moves.start[c], 0
        for e in range(moves.first[c], moves.end[c] + 1):
            final = e == moves.end[c]
            until = levels.shape[1] if final else when(moves.at[e], lanes)
            while t < until:
                row[layout(t, lanes)] = level
                t += 1
            if not final:
                level = moves.level[e]


def _cut(moves: Moves) -> Moves:
    """``moves`` without the room that none has taken, and with room for the sizes."""
    end = int(moves.end.max(initial=0))
    return moves._replace(at=moves.at[:end], level=moves.level[:end], size=np.empty(end, np.int16))


def _frozen(array: np.ndarray) -> np.ndarray:
    """A read-only view, so that no kernel compiles for arrays of both kinds."""
    view = array.view()
    view.flags.writeable = False
    return view


class MoveFinder:
    """The moves of the updates ``votes``, block by block, for the columns that ``corpus`` owns.

    ``name`` (int32 [D]): the number of a column among the C that matter, the most often updated first; -1 for others.
    ``own`` (float64 [2, C]): a_j and v_j of these columns after the last block; at first 0, or what is given to
    continue from.
    """

    def __init__(self, votes: Votes, corpus: Corpus, T: int, own: np.ndarray | None = None) -> None:
        votes = Votes(*(_frozen(array) for array in votes))
        touches, (owned, real) = np.zeros(corpus.width, np.int64), np.zeros((2, corpus.width), np.bool_)
        count_touches(votes.columns, touches)
        mark_owned(corpus.columns, corpus.values, owned, real)
        touches *= owned
        order = np.argsort(-touches, kind="stable")
        C = int(np.count_nonzero(touches))
        self.name = np.full(corpus.width, -1, np.int32)
        self.name[order[:C]] = np.arange(C)
        self._real = real[order[:C]]
        self._votes, self._T = votes, T
        self.own = np.zeros((2, C)) if own is None else own

    def block(self, start: int) -> tuple[Moves, Moves, bool]:
        """Moves of a and of v at the T predictors from ``start``; are they whole numbers of at most 16 bits?

        Blocks must be asked for in order.
        """
        stop = min(self._votes.survived.size, start + self._T)
        begin, end = max(0, start - 1), stop - 1
        C, room = self.own.shape[1], int(self._votes.first[end] - self._votes.first[begin])
        first, (named, at) = np.zeros(C + 1, np.int64), np.empty((2, room), np.int32)
        value, slope = np.empty(room), np.empty(room if self._votes.slope.size else 0)
        sort_block(self._votes, self.name, begin, end, start, first, named, at, value, slope)
        threshold = self._votes.threshold
        # An update may follow a column's leaving, and every column may leave once more after its last update.
        more = 2 * room + C if threshold.size else room
        u, v = self._room(more), self._room(more if threshold.size else 0)
        active_moves(first, at, value, slope, start, stop, self._T // ROWS, threshold, self.own, u, v)
        u, v = (_cut(x) for x in (u, v))
        whole = size_up(u, self._real) and size_up(v, self._real)
        return self._with_rows(u, whole), self._with_rows(v, whole) if threshold.size else v, whole

    def _room(self, moves: int) -> Moves:
        """Room for so many moves."""
        C = self.own.shape[1]
        start, height, floor, peak = np.empty((4, C))
        first, end, row, track = np.full((4, C), -1, np.int32)
        dense, levels = np.zeros((0, self._T), np.int8), np.zeros((0, self._T))
        return Moves(
            first=first, end=end, at=np.empty(moves, np.uint16), level=np.empty(moves), start=start,
            height=height, floor=floor, size=np.empty(0, np.int16), peak=peak, row=row, dense=dense, track=track,
            levels=levels,
        )  # fmt: skip

    def _with_rows(self, moves: Moves, whole: bool) -> Moves:
        """Add rows of levels for real columns, and of sizes for others that move often; or drop the sizes."""
        counts = moves.end - moves.first
        chosen = (counts > 0) | (moves.start != 0) if whole else counts >= max(1, self._T // TRACKED)
        tracked = np.flatnonzero(chosen & self._real)[:MOST_TRACKS]
        moves.track[tracked] = np.arange(tracked.size)
        levels = np.empty((tracked.size, self._T))
        fill_levels(moves, levels)
        if not whole:
            return moves._replace(size=np.zeros(0, np.int16), levels=levels)
        dense = np.zeros((choose_dense(moves, max(1, self._T // DENSE)), self._T), np.int8)
        fill_dense(moves, dense)
        return moves._replace(dense=dense, levels=levels)
