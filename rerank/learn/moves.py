"""Moves: at which predictors, and by how much, a column's a_j and v_j change inside the active sums (see ``votes``).

Column j is active under predictor k while |a_j| > τ_k·|v_j|. An update that touches it moves it; where τ grows it also
leaves, untouched, at the first k with τ_k·|v_j| ≥ |a_j|. A block of predictors is laid out as ROWS rows: sums that run
up over time are then additions of whole rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rerank.compile import kernel
from rerank.corpus import Corpus
from rerank.learn.votes import Votes

ROWS = 8  # predictor t of a block of T is at column t // ROWS of row t % ROWS
DENSE = 24  # a column that moves at 1 in so many predictors has a dense row


class Moves(NamedTuple):
    """By column (C of them): at predictor ``at`` of the block its sum moves by ``size``."""

    first: np.ndarray  # int32 [C + 1]
    at: np.ndarray  # uint16 [moves]: places in the block's layout
    size: np.ndarray  # int16 or float64 [moves]
    peak: np.ndarray  # float64 [C]: largest |size|
    row: np.ndarray  # int32 [C]: the row of ``dense`` that has the same moves, -1 for none
    dense: np.ndarray  # int8 [rows, T]

    def cast(self, kind: type) -> Moves:
        """The same moves as numbers of another kind."""
        return self if self.size.dtype == kind else self._replace(size=self.size.astype(kind))


@kernel
def count_touches(columns: np.ndarray, touches: np.ndarray) -> None:
    """How many updates touch each column (int64 [D])."""
    for e in range(columns.shape[0]):
        touches[columns[e]] += 1


@kernel
def mark_owned(columns: np.ndarray, owned: np.ndarray) -> None:
    """owned[j] ← does any candidate own column j?"""
    for p in range(columns.shape[0]):
        owned[columns[p]] = True


@kernel
def sort_block(
    votes: Votes, name: np.ndarray, begin: int, end: int, start: int, first: np.ndarray, at: np.ndarray,
    value: np.ndarray, slope: np.ndarray,
) -> None:  # fmt: skip
    """The entries of updates begin..end − 1 by column, in time; update k makes predictor k + 1, at k + 1 − start."""
    for c in range(first.shape[0]):
        first[c] = 0
    for e in range(votes.first[begin], votes.first[end]):
        if name[votes.columns[e]] >= 0:
            first[name[votes.columns[e]]] += 1
    total = 0
    for c in range(first.shape[0]):
        total += first[c]
        first[c] = total
    for k in range(end - 1, begin - 1, -1):
        for e in range(votes.first[k + 1] - 1, votes.first[k] - 1, -1):
            c = name[votes.columns[e]]
            if c >= 0:
                first[c] -= 1
                at[first[c]], value[first[c]] = k + 1 - start, votes.value[e]
                slope[first[c]] = votes.slope[e] if votes.slope.shape[0] > 0 else np.sign(votes.value[e])


@kernel
def leaving(size: float, slope: float, threshold: np.ndarray, begin: int, end: int) -> int:
    """The first k of begin..end − 1 with τ_k·slope ≥ size; ``end`` where there is none."""
    while begin < end:
        middle = (begin + end) // 2
        if threshold[middle] * slope >= size:
            end = middle
        else:
            begin = middle + 1
    return begin


@kernel
def layout(t: int, lanes: int) -> int:
    """Where predictor t of a block of ROWS · lanes is."""
    return (t % ROWS) * lanes + t // ROWS


@kernel
def put(to: Moves, c: int, n: int, t: int, size: float) -> int:
    """Append a move unless it is 0; returns the number of moves."""
    if size != 0.0:
        to.at[n], to.size[n] = t, size
        to.peak[c] = max(to.peak[c], abs(size))
        n += 1
    return n


@kernel
def active(k: int, a: float, v: float, threshold: np.ndarray) -> bool:
    """Does a column with a_j = a and v_j = v weigh anything under predictor k?"""
    return abs(a) > (threshold[k] * abs(v) if threshold.shape[0] > 0 else 0.0)


@kernel
def active_moves(
    first: np.ndarray, at: np.ndarray, value: np.ndarray, slope: np.ndarray, start: int, stop: int, lanes: int,
    threshold: np.ndarray, own: np.ndarray, u: Moves, v: Moves,
) -> None:  # fmt: skip
    """The moves of predictors start..stop − 1 from the block's sorted entries; ``own`` (float64 [2, C]) goes on."""
    n = m = 0
    shrinks = threshold.shape[0] > 0
    for c in range(own.shape[1]):
        u.first[c], v.first[c] = n, m
        u.peak[c] = v.peak[c] = 0.0
        a, b = own[0, c], own[1, c]
        inside = active(max(0, start - 1), a, b, threshold)
        for e in range(first[c], first[c + 1] + 1):
            final = e == first[c + 1]
            k = stop if final else start + at[e]
            if inside and not active(k - 1, a, b, threshold):
                t = layout(leaving(abs(a), abs(b), threshold, start, k) - start, lanes)
                n = put(u, c, n, t, -a)
                m = put(v, c, m, t, -b)
                inside = False
            if final:
                break
            before_a, before_b = (a, b) if inside else (0.0, 0.0)
            a, b = value[e], slope[e]
            inside = active(k, a, b, threshold)
            t = layout(k - start, lanes)
            n = put(u, c, n, t, (a if inside else 0.0) - before_a)
            if shrinks:
                m = put(v, c, m, t, (b if inside else 0.0) - before_b)
        own[0, c], own[1, c] = a, b
    u.first[own.shape[1]], v.first[own.shape[1]] = n, m


@kernel
def choose_dense(moves: Moves, least: int) -> int:
    """Number the columns with at least so many small moves in ``moves.row``; returns how many there are."""
    rows = 0
    for c in range(moves.peak.shape[0]):
        moves.row[c] = -1
        if moves.first[c + 1] - moves.first[c] >= least and moves.peak[c] <= 127.0:
            moves.row[c] = rows
            rows += 1
    return rows


@kernel
def fill_dense(moves: Moves, dense: np.ndarray) -> None:
    """The rows that ``choose_dense`` numbered."""
    for c in range(moves.peak.shape[0]):
        if moves.row[c] >= 0:
            for e in range(moves.first[c], moves.first[c + 1]):
                dense[moves.row[c], moves.at[e]] += moves.size[e]


def _frozen(array: np.ndarray) -> np.ndarray:
    """A read-only view, so that no kernel compiles for arrays of both kinds."""
    view = array.view()
    view.flags.writeable = False
    return view


class MoveFinder:
    """The moves of the updates ``votes``, block by block, for the columns that ``corpus`` owns.

    ``name`` (int32 [D]): the number of a column among the C that matter, the most often updated first; -1 for others.
    ``own`` (float64 [2, C]): a_j and v_j of these columns behind the last block; to begin with 0, or what is given to
    go on from.
    """

    def __init__(self, votes: Votes, corpus: Corpus, T: int, own: np.ndarray | None = None) -> None:
        votes = Votes(*(_frozen(array) for array in votes))
        touches, owned = np.zeros(corpus.width, np.int64), np.zeros(corpus.width, np.bool_)
        count_touches(votes.columns, touches)
        mark_owned(corpus.columns, owned)
        touches *= owned
        order = np.argsort(-touches, kind="stable")
        C = int(np.count_nonzero(touches))
        self.name = np.full(corpus.width, -1, np.int32)
        self.name[order[:C]] = np.arange(C)
        self._votes, self._lanes = votes, T // ROWS
        self.own = np.zeros((2, C)) if own is None else own

    def block(self, start: int) -> tuple[Moves, Moves, bool]:
        """Moves of a and of v at the T predictors from ``start``; are they whole numbers of at most 16 bits?

        Blocks are to be asked for in order.
        """
        stop = min(self._votes.survived.size, start + ROWS * self._lanes)
        begin, end = max(0, start - 1), stop - 1
        C, room = self.own.shape[1], int(self._votes.first[end] - self._votes.first[begin])
        first, at, (value, slope) = np.zeros(C + 1, np.int64), np.empty(room, np.int64), np.empty((2, room))
        sort_block(self._votes, self.name, begin, end, start, first, at, value, slope)
        threshold = self._votes.threshold
        more = 2 * room + C if threshold.size else room
        u, v = self._room(more), self._room(more if threshold.size else 0)
        active_moves(first, at, value, slope, start, stop, self._lanes, threshold, self.own, u, v)
        u, v = (x._replace(at=x.at[: x.first[C]], size=x.size[: x.first[C]]) for x in (u, v))
        whole = all(
            np.abs(x.size).max(initial=0.0) <= 32767 and np.array_equal(x.size, np.rint(x.size)) for x in (u, v)
        )
        if not whole:
            return u, v, False
        return self._with_dense(u.cast(np.int16)), self._with_dense(v.cast(np.int16)), True

    def _room(self, moves: int) -> Moves:
        """Room for so many moves."""
        C = self.own.shape[1]
        none = np.full(C, -1, np.int32), np.zeros((0, ROWS * self._lanes), np.int8)
        return Moves(np.empty(C + 1, np.int32), np.empty(moves, np.uint16), np.empty(moves), np.empty(C), *none)

    def _with_dense(self, moves: Moves) -> Moves:
        """Add dense rows for the columns that move often."""
        T = ROWS * self._lanes
        dense = np.zeros((choose_dense(moves, max(1, T // DENSE)), T), np.int8)
        fill_dense(moves, dense)
        return moves._replace(dense=dense)
