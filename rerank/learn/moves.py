"""Moves: at which predictors, and by how much, a column's s_j and sign(s_j) change inside the active sums.

Column j is active under predictor k while |s_j| > k·λ₁. An update that touches it moves it; with λ₁ > 0 it also
leaves, untouched, at the first k with k·λ₁ ≥ |s_j|. A block of predictors is laid out as ROWS rows: sums that run up
over time are then additions of whole rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rerank.compile import kernel
from rerank.corpus import Corpus
from rerank.learn.log import Votes

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
def count_touches(columns: np.ndarray, delta: np.ndarray, touches: np.ndarray) -> None:
    """How many updates change each column (int64 [D])."""
    for e in range(columns.shape[0]):
        touches[columns[e]] += delta[e] != 0.0


@kernel
def mark_owned(columns: np.ndarray, owned: np.ndarray) -> None:
    """owned[j] ← does any candidate own column j?"""
    for p in range(columns.shape[0]):
        owned[columns[p]] = True


@kernel
def sort_block(
    votes: Votes,
    name: np.ndarray,
    begin: int,
    end: int,
    start: int,
    first: np.ndarray,
    at: np.ndarray,
    size: np.ndarray,
) -> None:
    """The entries of updates begin..end − 1 by column, in time; update k makes predictor k + 1, at k + 1 − start."""
    for c in range(first.shape[0]):
        first[c] = 0
    for e in range(votes.first[begin], votes.first[end]):
        c = name[votes.columns[e]]
        if c >= 0 and votes.delta[e] != 0.0:
            first[c] += 1
    total = 0
    for c in range(first.shape[0]):
        total += first[c]
        first[c] = total
    for k in range(end - 1, begin - 1, -1):
        for e in range(votes.first[k + 1] - 1, votes.first[k] - 1, -1):
            c = name[votes.columns[e]]
            if c >= 0 and votes.delta[e] != 0.0:
                first[c] -= 1
                at[first[c]], size[first[c]] = k + 1 - start, votes.delta[e]


@kernel
def leaving(size: float, l1: float) -> int:
    """The first k with k·λ₁ ≥ size, for sizes that some k of 31 bits reaches."""
    k = math.ceil(size / l1)
    while k * l1 < size:
        k += 1
    while (k - 1) * l1 >= size:
        k -= 1
    return k


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
def active_moves(
    first: np.ndarray, at: np.ndarray, delta: np.ndarray, start: int, stop: int, lanes: int, l1: float,
    s: np.ndarray, u: Moves, v: Moves,
) -> None:  # fmt: skip
    """The moves of predictors start..stop − 1 from the block's sorted entries; ``s`` (float64 [C]) goes on."""
    n = m = 0
    for c in range(s.shape[0]):
        u.first[c], v.first[c] = n, m
        u.peak[c] = v.peak[c] = 0.0
        now = s[c]
        inside = abs(now) > max(0, start - 1) * l1
        for e in range(first[c], first[c + 1] + 1):
            final = e == first[c + 1]
            k = stop if final else start + at[e]
            if inside and (k - 1) * l1 >= abs(now):
                t = layout(leaving(abs(now), l1) - start, lanes)
                n = put(u, c, n, t, -now)
                m = put(v, c, m, t, -np.sign(now))
                inside = False
            if final:
                break
            old, before = (now, np.sign(now)) if inside else (0.0, 0.0)
            now += delta[e]
            inside = abs(now) > k * l1
            t = layout(k - start, lanes)
            n = put(u, c, n, t, (now if inside else 0.0) - old)
            if l1 > 0.0:
                m = put(v, c, m, t, (np.sign(now) if inside else 0.0) - before)
        s[c] = now
    u.first[s.shape[0]], v.first[s.shape[0]] = n, m


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
    """

    def __init__(self, votes: Votes, l1: float, corpus: Corpus, T: int) -> None:
        votes = Votes(*(_frozen(array) for array in votes))
        touches, owned = np.zeros(corpus.width, np.int64), np.zeros(corpus.width, np.bool_)
        count_touches(votes.columns, votes.delta, touches)
        mark_owned(corpus.columns, owned)
        touches *= owned
        order = np.argsort(-touches, kind="stable")
        C = int(np.count_nonzero(touches))
        self.name = np.full(corpus.width, -1, np.int32)
        self.name[order[:C]] = np.arange(C)
        self._votes, self._l1, self._lanes = votes, l1, T // ROWS
        self._s = np.zeros(C)

    def block(self, start: int) -> tuple[Moves, Moves, bool]:
        """Moves of s and of sign(s) at the T predictors from ``start``; are they whole numbers of at most 16 bits?

        Blocks are to be asked for in order.
        """
        stop = min(self._votes.survived.size, start + ROWS * self._lanes)
        begin, end = max(0, start - 1), stop - 1
        C, room = self._s.size, int(self._votes.first[end] - self._votes.first[begin])
        first, at, delta = np.zeros(C + 1, np.int64), np.empty(room, np.int64), np.empty(room)
        sort_block(self._votes, self.name, begin, end, start, first, at, delta)
        more = 2 * room + C if self._l1 > 0 else room
        u, v = self._room(more), self._room(more if self._l1 > 0 else 0)
        active_moves(first, at, delta, start, stop, self._lanes, self._l1, self._s, u, v)
        u, v = (x._replace(at=x.at[: x.first[C]], size=x.size[: x.first[C]]) for x in (u, v))
        whole = bool(np.abs(u.size).max(initial=0.0) <= 32767 and np.array_equal(u.size, np.rint(u.size)))
        if not whole:
            return u, v, False
        return self._with_dense(u.cast(np.int16)), self._with_dense(v.cast(np.int16)), True

    def _room(self, moves: int) -> Moves:
        """Room for so many moves."""
        C = self._s.size
        none = np.full(C, -1, np.int32), np.zeros((0, ROWS * self._lanes), np.int8)
        return Moves(np.empty(C + 1, np.int32), np.empty(moves, np.uint16), np.empty(moves), np.empty(C), *none)

    def _with_dense(self, moves: Moves) -> Moves:
        """Add dense rows for the columns that move often."""
        T = ROWS * self._lanes
        dense = np.zeros((choose_dense(moves, max(1, T // DENSE)), T), np.int8)
        fill_dense(moves, dense)
        return moves._replace(dense=dense)
