"""Levels: what the columns bring into U and V (see ``voting``), by column and in time."""

from typing import NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.learn.voting.votes import Votes


class Levels(NamedTuple):
    """The contributions of C columns to U, or to V, by column and in time: a_j, or v_j, while they are active, else 0.

    The first entry of a column says that it is 0 before any update; one behind all predictors ends the last.
    """

    first: np.ndarray  # int64 [C]
    time: np.ndarray  # int32: the predictor that the entry begins with
    level: np.ndarray  # float64


class Changes(NamedTuple):
    """Changes of levels, in time."""

    column: np.ndarray  # int32
    time: np.ndarray  # int32
    level: np.ndarray  # float64


def sort_levels(votes: Votes, corpus: Corpus) -> tuple[np.ndarray, Levels, Levels]:
    """The levels of columns that occur in ``corpus``, for U and V, and the numbers of these columns.

    int32 [D], -1 for columns that do not matter; the most often updated first. All 0 for V where nothing shrinks.
    """
    touches = np.bincount(votes.columns, minlength=corpus.width)
    touches[np.bincount(corpus.columns, minlength=corpus.width) == 0] = 0
    chosen = np.argsort(-touches, kind="stable")[: np.count_nonzero(touches)]
    name = np.full(corpus.width, -1, np.int32)
    name[chosen] = np.arange(chosen.size)

    def room(n: int) -> Changes:
        return Changes(np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n))

    C, updates, shrinks = chosen.size, int(touches.sum()), votes.threshold.size > 0
    # Where τ grows a column may leave before each of its updates, and after the last; room without changes is not used.
    u, v = room(2 * updates + C if shrinks else updates), room(2 * updates + C if shrinks else 0)
    ends = find_changes(votes, name, np.zeros((2, C)), u, v)
    return name, _by_column(u, ends[0], C, votes.survived.size), _by_column(v, ends[1], C, votes.survived.size)


def _by_column(changes: Changes, n: int, C: int, predictors: int) -> Levels:
    """The first n changes by column, in time."""
    entries = np.bincount(changes.column[:n], minlength=C) + 2
    first = np.cumsum(entries) - entries
    levels = Levels(first, np.full(entries.sum(), predictors, np.int32), np.zeros(entries.sum()))
    levels.time[first] = 0
    place(changes, n, first.copy(), levels)
    return levels


@kernel
def find_changes(votes: Votes, name: np.ndarray, now: np.ndarray, u: Changes, v: Changes) -> tuple[int, int]:
    """Find the changes of a_j and v_j, which are 0 in ``now`` (float64 [2, C]); returns how many there are of each."""
    n = m = 0
    shrinks, predictors = votes.threshold.shape[0] > 0, votes.survived.shape[0]
    for k in range(1, predictors):
        for e in range(votes.first[k - 1], votes.first[k]):
            c = name[votes.columns[e]]
            if c < 0:
                continue
            a, b = votes.value[e], 0.0
            if shrinks:
                n, m = leave(votes.threshold, k, c, now, u, n, v, m)
                b = votes.slope[e] if votes.slope.shape[0] > 0 else np.sign(a)
                if votes.threshold[k] * abs(b) >= abs(a):
                    a = b = 0.0
            n, m = change(c, k, a, b, now, u, n, v, m)
    if shrinks:
        for c in range(now.shape[1]):
            n, m = leave(votes.threshold, predictors, c, now, u, n, v, m)
    return n, m


@kernel
def change(
    c: int, k: int, a: float, b: float, now: np.ndarray, u: Changes, n: int, v: Changes, m: int
) -> tuple[int, int]:
    """Append the change of column c to these levels, unless it has them already."""
    if a != now[0, c]:
        u.column[n], u.time[n], u.level[n] = c, k, a
        n += 1
    if b != now[1, c]:
        v.column[m], v.time[m], v.level[m] = c, k, b
        m += 1
    now[0, c], now[1, c] = a, b
    return n, m


@kernel
def leave(
    threshold: np.ndarray, k: int, c: int, now: np.ndarray, u: Changes, n: int, v: Changes, m: int
) -> tuple[int, int]:
    """Column c leaves at the first predictor before k with τ·|v| ≥ |a|, if it does. By bisection: τ never falls."""
    a, b, begin, end = abs(now[0, c]), abs(now[1, c]), 0, k
    if a == 0.0 or threshold[k - 1] * b < a:
        return n, m
    while begin < end:
        middle = (begin + end) // 2
        if threshold[middle] * b >= a:
            end = middle
        else:
            begin = middle + 1
    return change(c, begin, 0.0, 0.0, now, u, n, v, m)


@kernel
def place(changes: Changes, n: int, last: np.ndarray, levels: Levels) -> None:
    """Fill ``levels``; last (int64 [C]): the last entry of a column so far."""
    for e in range(n):
        c = changes.column[e]
        last[c] += 1
        levels.time[last[c]], levels.level[last[c]] = changes.time[e], changes.level[e]
