"""The compiled part of exact voting: what the predictors of a block make of the candidates of every list.

For every candidate of a list and every predictor of the block: U, the sum of its columns' levels times its values (and
V likewise, see ``voting``). All sums are *exact*, so that they depend on the active columns and their levels alone, not
on what was active before: candidates with the same active columns and values tie, and one without any scores exactly 0.
Rounded sums would keep a residue of every column that has come and gone.

* Whole numbers that fit are summed in 16 bits; what real patterns bring is added to each candidate's sum in float64.
* Otherwise levels, or products of levels with real values, are rounded to multiples of a unit of the list's own, a
  power of two so large that float64 holds every sum of such multiples without rounding. Predictors for which that unit
  is not small enough are decided again, in groups with units of their own (see ``faint``).
"""

from typing import NamedTuple

import numpy as np

from rerank.kernels.compile import kernel, prefetch
from rerank.learn.voting.block_rows import add, add_multiples, clear, copy, run_up
from rerank.learn.voting.electorate import Electorate, has_real
from rerank.learn.voting.faint import (
    GROUP,
    call,
    fits,
    largest_of,
    limit_of,
    mark_faint,
    pick,
    rounded,
    rounder,
    size_of,
)
from rerank.learn.voting.moves import ROWS, Moves, layout


class Terms(NamedTuple):
    """What turns U and V into scores, for the predictors of a block, in the block's layout."""

    scale: np.ndarray  # float64 [T]: d_k, 0 where there is no predictor
    threshold: np.ndarray  # float64 [T]: τ_k, or [0] where nothing shrinks
    beta: np.ndarray  # float64 [T]: weight of the base score
    survived: np.ndarray  # int64 [T]: c_k, 0 where there is no predictor


class Sums(NamedTuple):
    """U or V of a list in a block: T predictors, M candidates of the longest list; numbers are int16 or float64."""

    moves: np.ndarray  # [M, T]: by how much the sum of a candidate moves
    before: np.ndarray  # float64 [M]: what it was before the block
    total: np.ndarray  # float64 [T]: by how much the sum of one candidate has moved since then


class Tables(NamedTuple):
    """Scratch space of a thread, T predictors wide; P patterns of the list that has the most."""

    patterns: np.ndarray  # [P, T]: the moves of the whole patterns of a list
    moving: np.ndarray  # bool [P]: does the pattern have any moves?
    start: np.ndarray  # float64 [P]: its level before the block
    u: Sums
    v: Sums
    lane: np.ndarray  # int32 or float64 [T / ROWS]: for ``run_up``
    best: np.ndarray  # float64 [T]: the highest score so far
    winner: np.ndarray  # int32 [T]: the place of the candidate that has it


class FaintRoom(NamedTuple):
    """Room of a thread for the predictors that are faint on a list (see ``faint``), a GROUP of them at a time."""

    faint: np.ndarray  # bool [T]: is the predictor faint?
    lane: np.ndarray  # float64 [T / ROWS]: for ``run_up``
    total: np.ndarray  # float64 [T]
    times: np.ndarray  # int64 [GROUP]: the predictors of a group
    size_u: np.ndarray  # float64 [GROUP]: what the products of U come to
    size_v: np.ndarray
    u: Moves  # moves of the block, with the levels that the group sees
    v: Moves
    terms: Terms
    tables: Tables


@kernel
def scatter(moves: Moves, column: int, sums: np.ndarray) -> None:
    """Add the moves of ``column``, in whole numbers, to ``sums`` [T]."""
    for e in range(np.uint64(moves.first[column]), np.uint64(moves.end[column])):
        sums[moves.at[e]] += moves.size[e]


@kernel
def scatter_products(at: np.ndarray, level: np.ndarray, start: float, value: float, r: float, sums: np.ndarray) -> None:
    """Add the moves of value · level, of a column, to ``sums`` [T].

    Products are rounded, and not their differences: what a column brings when it becomes active it takes back to the
    last bit when it leaves.
    """
    before = rounded(value * start, r)
    for e in range(at.shape[0]):
        product = rounded(value * level[e], r)
        sums[at[e]] += product - before
        before = product


# How many columns ahead memory is asked for: where the moves of one are noted, and then for the moves themselves.
FAR, NEAR = 8, 3


@kernel
def fetch_ahead(seats: Electorate, moves: Moves, at: int, small: bool) -> None:
    """Ask for the moves of the columns behind position ``at``: they are all over memory."""
    if at + FAR < seats.column.shape[0]:
        soon, later = seats.column[at + NEAR], seats.column[at + FAR]
        prefetch(moves.start, later)
        prefetch(moves.first, later)
        prefetch(moves.end, later)
        prefetch(moves.at, moves.first[soon])
        if small:
            prefetch(moves.row, later)
            prefetch(moves.size, moves.first[soon])


@kernel
def sum_patterns(seats: Electorate, moves: Moves, i: int, small: bool, r: float, T: Tables) -> None:
    """The whole patterns of list i: what their columns move in the block, all together, and their levels before it."""
    p0 = seats.patterns[i]
    for p in range(seats.whole[i]):
        T.moving[p] = False
        T.start[p] = 0.0
        for q in range(seats.members[p0 + p], seats.members[p0 + p + 1]):
            c = seats.column[q]
            fetch_ahead(seats, moves, q, small)
            T.start[p] += moves.start[c] if small else rounded(moves.start[c], r)
            first, end = moves.first[c], moves.end[c]
            if first == end:
                continue
            if not T.moving[p]:  # a row that no column moves is never read, and need not be cleared
                T.moving[p] = True
                clear(T.patterns[p])
            if not small:  # value 1: ``spread`` multiplies by whole numbers, which keeps multiples of the unit exact
                scatter_products(moves.at[first:end], moves.level[first:end], moves.start[c], 1.0, r, T.patterns[p])
            elif moves.row[c] >= 0:
                add(T.patterns[p], moves.dense[moves.row[c]])
            else:
                scatter(moves, c, T.patterns[p])


@kernel
def spread(seats: Electorate, i: int, T: Tables, out: Sums) -> None:
    """What the whole patterns of list i, in ``T``, contribute to its candidates: sums before the block, and their
    moves."""
    a = seats.lists[i]
    for y in range(seats.lists[i + 1] - a):
        x = seats.like[a + y]
        if x >= 0:
            copy(out.moves[y], out.moves[x])
            out.before[y] = out.before[x]
        else:
            clear(out.moves[y])
            out.before[y] = 0.0
        waiting = -1  # edges are added in pairs: half as many passes over ``out``
        for e in range(seats.edges[a + y], seats.edges[a + y + 1]):
            p = seats.pattern[e]
            if p >= seats.whole[i]:  # edges rise by pattern, and real patterns come last
                break
            out.before[y] += seats.value[e] * T.start[p]
            if not T.moving[p]:
                continue
            if waiting < 0:
                waiting = e
            else:
                add_pair(seats, waiting, e, T.patterns, out.moves[y])
                waiting = -1
        if waiting >= 0:
            add_pair(seats, waiting, -1, T.patterns, out.moves[y])


@kernel
def spread_real(seats: Electorate, moves: Moves, i: int, r: float, out: Sums) -> None:
    """Add what the real patterns of list i contribute to its candidates, except for those with rows of levels.

    Such a row holds levels, not moves: ``add_levels`` adds it after the moves have been summed up over time.
    """
    a, p0 = seats.lists[i], seats.patterns[i]
    for y in range(seats.lists[i + 1] - a):
        for e in range(seats.edges[a + y], seats.edges[a + y + 1]):
            c = seats.column[seats.members[p0 + seats.pattern[e]]]
            if seats.pattern[e] >= seats.whole[i] and moves.track[c] < 0:
                value = np.float64(seats.value[e])
                out.before[y] += rounded(value * moves.start[c], r)
                first, end = moves.first[c], moves.end[c]
                scatter_products(moves.at[first:end], moves.level[first:end], moves.start[c], value, r, out.moves[y])


@kernel
def add_levels(seats: Electorate, moves: Moves, i: int, y: int, r: float, total: np.ndarray) -> None:
    """Add value · level of the real patterns that have rows of levels to the sum of list i's candidate at place y."""
    a, p0, waiting = seats.lists[i], seats.patterns[i], -1  # added in pairs, as in ``spread``
    for e in range(seats.edges[a + y + 1] - 1, seats.edges[a + y] - 1, -1):  # real patterns come last
        if seats.pattern[e] < seats.whole[i]:
            break
        if moves.track[seats.column[seats.members[p0 + seats.pattern[e]]]] < 0:
            continue
        if waiting < 0:
            waiting = e
        else:
            add_products(seats, moves, p0, waiting, e, r, total)
            waiting = -1
    if waiting >= 0:
        add_products(seats, moves, p0, waiting, -1, r, total)


@kernel
def add_products(seats: Electorate, moves: Moves, p0: int, d: int, e: int, r: float, out: np.ndarray) -> None:
    """Add what edges d and e, of real patterns with rows of levels, contribute to a candidate; e = -1 for none."""
    x = moves.levels[moves.track[seats.column[seats.members[p0 + seats.pattern[d]]]]]
    if e < 0:
        add_rounded(out, np.float64(seats.value[d]), x, r)
    else:
        y = moves.levels[moves.track[seats.column[seats.members[p0 + seats.pattern[e]]]]]
        add_two_rounded(out, np.float64(seats.value[d]), x, np.float64(seats.value[e]), y, r)


@kernel
def add_rounded(out: np.ndarray, a: float, x: np.ndarray, r: float) -> None:
    """out += a·x, every product rounded."""
    for t in range(out.shape[0]):
        out[t] += rounded(a * x[t], r)


@kernel
def add_two_rounded(out: np.ndarray, a: float, x: np.ndarray, b: float, y: np.ndarray, r: float) -> None:
    """out += a·x + b·y, every product rounded."""
    for t in range(out.shape[0]):
        out[t] += rounded(a * x[t], r) + rounded(b * y[t], r)


@kernel
def add_pair(seats: Electorate, d: int, e: int, patterns: np.ndarray, out: np.ndarray) -> None:
    """Add what edges d and e, of whole patterns, contribute to a candidate; e = -1 for none."""
    number = out.dtype.type
    a, x = number(seats.value[d]), patterns[seats.pattern[d]]
    if e < 0:
        add_multiples(out, a, x, number(0), x)
    else:
        add_multiples(out, a, x, number(seats.value[e]), patterns[seats.pattern[e]])


@kernel
def gather(seats: Electorate, moves: Moves, i: int, small: bool, r: float, T: Tables, out: Sums) -> None:
    """What all patterns of list i contribute to its candidates, except those with rows of levels (see ``total_up``)."""
    sum_patterns(seats, moves, i, small, r, T)
    spread(seats, i, T, out)
    if not small:
        spread_real(seats, moves, i, r, out)


@kernel
def total_up(seats: Electorate, moves: Moves, i: int, y: int, r: float, lane: np.ndarray, sums: Sums) -> None:
    """sums.total ← the sum of list i's candidate at place y, less what it was before the block."""
    run_up(sums.moves[y], lane, sums.total)
    if has_real(seats, i):
        add_levels(seats, moves, i, y, r, sums.total)


@kernel
def challenge(
    y: int, b: float, before: float, u: np.ndarray, terms: Terms, best: np.ndarray, winner: np.ndarray
) -> None:
    """Make candidate y the winner wherever it scores higher than the best so far (τ = 0); U is ``before`` + ``u``.

    A maximum, here and where τ > 0, is stored as a whole; what an ``if`` chooses is stored under a mask, which takes
    several times as long.
    """
    place = np.int32(y)
    for t in range(best.shape[0]):
        score = terms.beta[t] * b + terms.scale[t] * (before + u[t])
        winner[t] = place if score > best[t] else winner[t]
        best[t] = max(best[t], score)


@kernel
def challenge_shrunk(
    y: int, b: float, before_u: float, u: np.ndarray, before_v: float, v: np.ndarray, terms: Terms, best: np.ndarray,
    winner: np.ndarray,
) -> None:  # fmt: skip
    """Make candidate y the winner wherever it scores higher than the best so far (τ > 0)."""
    place = np.int32(y)
    for t in range(best.shape[0]):
        shrunk = (before_u + u[t]) - terms.threshold[t] * (before_v + v[t])
        score = terms.beta[t] * b + terms.scale[t] * shrunk
        winner[t] = place if score > best[t] else winner[t]
        best[t] = max(best[t], score)


@kernel
def elect(
    seats: Electorate, moves_u: Moves, moves_v: Moves, i: int, terms: Terms, small: bool, r_u: float, r_v: float,
    T: Tables,
) -> None:  # fmt: skip
    """T.winner[t] ← the place, in list i, of the candidate that wins it under predictor t of ``terms``."""
    a, shrunk = seats.lists[i], terms.threshold.shape[0] > 0
    gather(seats, moves_u, i, small, r_u, T, T.u)
    if shrunk:
        gather(seats, moves_v, i, small, r_v, T, T.v)
    for t in range(T.best.shape[0]):
        T.best[t] = -np.inf
        T.winner[t] = 0
    for y in range(seats.lists[i + 1] - a):  # by falling base score, then index: a tie leaves the winner
        b = seats.base[a + y]
        total_up(seats, moves_u, i, y, r_u, T.lane, T.u)
        if shrunk:
            total_up(seats, moves_v, i, y, r_v, T.lane, T.v)
            challenge_shrunk(y, b, T.u.before[y], T.u.total, T.v.before[y], T.v.total, terms, T.best, T.winner)
        else:
            challenge(y, b, T.u.before[y], T.u.total, terms, T.best, T.winner)


@kernel
def pick_terms(terms: Terms, times: np.ndarray, lanes: int, to: Terms) -> None:
    """The terms of the predictors ``times`` alone."""
    for r in range(times.shape[0]):
        t, own = layout(times[r], lanes), layout(r, GROUP // ROWS)
        to.scale[own], to.beta[own] = terms.scale[t], terms.beta[t]
        if terms.threshold.shape[0] > 0:
            to.threshold[own] = terms.threshold[t]


@kernel
def elect_faint(
    seats: Electorate, moves_u: Moves, moves_v: Moves, i: int, terms: Terms, limit_u: float, limit_v: float, T: Tables,
    apart: FaintRoom,
) -> None:  # fmt: skip
    """Decide list i once more under the predictors that are faint on it."""
    lanes, shrunk, t = T.lane.shape[0], terms.threshold.shape[0] > 0, 0
    clear(apart.faint)
    # The list is decided: ``best`` is free to be scratch space.
    found = mark_faint(seats, moves_u, i, limit_u, T.best, apart.lane, apart.total, apart.faint)
    if shrunk:
        found |= mark_faint(seats, moves_v, i, limit_v, T.best, apart.lane, apart.total, apart.faint)
    while found:
        n = call(apart.faint, terms.survived, t, lanes, apart.times)
        if n == 0:
            return
        times = apart.times[:n]
        pick_terms(terms, times, lanes, apart.terms)
        pick(seats, moves_u, i, lanes, times, apart.u)
        n = size_of(seats, apart.u, i, n, apart.size_u)
        if shrunk:
            pick(seats, moves_v, i, lanes, times, apart.v)
            n = size_of(seats, apart.v, i, n, apart.size_v)
        r_u, r_v = rounder(largest_of(apart.size_u[:n])), rounder(largest_of(apart.size_v[:n]))
        elect(seats, apart.u, apart.v, i, apart.terms, False, r_u, r_v, apart.tables)
        for r in range(n):
            T.winner[layout(times[r], lanes)] = apart.tables.winner[layout(r, GROUP // ROWS)]
        t = times[n - 1] + 1  # those of the group that could not share its unit are called again


@kernel
def count_votes(winner: np.ndarray, survived: np.ndarray, candidate: np.ndarray, votes: np.ndarray) -> None:
    """Add the votes of a list's winners. Predictors mostly agree with the one before: their votes are added at once."""
    same, together = winner[0], 0
    for t in range(winner.shape[0]):
        if winner[t] != same:
            votes[candidate[same]] += together
            same, together = winner[t], 0
        together += survived[t]
    votes[candidate[same]] += together


@kernel
def vote_block(
    pending: np.ndarray, seats: Electorate, moves_u: Moves, moves_v: Moves, terms: Terms, small: bool, T: Tables,
    apart: FaintRoom, votes: np.ndarray,
) -> None:  # fmt: skip
    """The predictors of a block vote on those of the lists that are ``pending`` (bool [L]).

    Where ``small`` (16 bits), a list that does not fit stays pending and is left alone.
    """
    shrunk = terms.threshold.shape[0] > 0
    for i in range(pending.shape[0]):
        a, n = seats.lists[i], seats.lists[i + 1] - seats.lists[i]
        if not pending[i]:
            continue
        whole = small and not has_real(seats, i)  # nothing is rounded then
        limit_u = 0.0 if whole else limit_of(seats, moves_u, i)
        limit_v = 0.0 if whole or not shrunk else limit_of(seats, moves_v, i)
        if small and not (fits(seats, moves_u, i, limit_u) and (not shrunk or fits(seats, moves_v, i, limit_v))):
            continue
        pending[i] = False
        if n == 0:
            continue
        elect(seats, moves_u, moves_v, i, terms, small, rounder(limit_u), rounder(limit_v), T)
        if not whole and n > 1:  # a single candidate wins anyway
            elect_faint(seats, moves_u, moves_v, i, terms, limit_u, limit_v, T, apart)
        count_votes(T.winner, terms.survived, seats.candidate[a : a + n], votes)
