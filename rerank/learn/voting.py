"""Exact voting: the winner of every list under every predictor, without a weight vector per predictor.

Under predictor k a candidate scores β_k·b + d_k·(U − τ_k·V), with U = Σ φ_j a_j and V = Σ φ_j v_j over the active
columns (Gao et al. 2013, Fig. 2, with eq. 10 for w; see ``votes``). The predictors are replayed in blocks:

1. moves: by column, at which predictors of the block the column's a_j and v_j change inside U and V;
2. per list, the moves of columns with the same values on all its candidates are summed over time; candidate y gets
   U_y = U_x + differences, where x is the earlier candidate that it is most like (see ``electorate``);
3. the scores of all candidates are compared at all predictors of the block at once.

Lists do not depend on one another: threads share them out, and the result is the same for any number of threads.
Whole-numbered moves and values (perceptron and hinge on counts) are summed as 16-bit integers where they fit, all else
as float64. Sums of whole numbers, and of small multiples of a power of two, are exact in both: then every winner, ties
included, is the one that the predictor itself gives. Other sums are rounded, which only matters to candidates whose
scores agree to about 12 digits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rerank.checkpoints import Checkpoint
from rerank.compile import kernel
from rerank.corpus import Corpus
from rerank.interrupts import check, deferred, requested
from rerank.learn.electorate import Electorate, assemble
from rerank.learn.moves import ROWS, MoveFinder, Moves
from rerank.learn.votes import Votes

BLOCK = 512 * ROWS  # predictors at a time


class Terms(NamedTuple):
    """What turns U and V into scores, for the predictors of a block, in the block's layout."""

    scale: np.ndarray  # float64 [T]: d_k, 0 where there is no predictor
    threshold: np.ndarray  # float64 [T]: τ_k, or [0] where nothing shrinks
    beta: np.ndarray  # float64 [T]: weight of the base score
    survived: np.ndarray  # int64 [T]: c_k, 0 where there is no predictor


class Tables(NamedTuple):
    """Scratch space of a thread: T predictors, M candidates of the longest list; numbers are int16 or float64."""

    sums: np.ndarray  # [P, T]: the moves of the patterns of a list
    moving: np.ndarray  # bool [P]: has the pattern any?
    u: np.ndarray  # [M, T]: moves of U by candidate
    v: np.ndarray  # [M, T] or [0, T]: moves of V
    lane: np.ndarray  # int64 or float64 [T / ROWS]
    total_u: np.ndarray  # int64 or float64 [T]: U since the start of the block
    total_v: np.ndarray  # the same for V
    best: np.ndarray  # float64 [T]
    winner: np.ndarray  # int32 [T]


@kernel
def add(out: np.ndarray, x: np.ndarray) -> None:
    """out += x."""
    for t in range(out.shape[0]):
        out[t] += x[t]


@kernel
def add_to(out: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """out = x + y."""
    for t in range(out.shape[0]):
        out[t] = x[t] + y[t]


@kernel
def add_multiples(out: np.ndarray, a: float, x: np.ndarray, b: float, y: np.ndarray) -> None:
    """out += a·x + b·y, in the numbers of ``out``."""
    for t in range(out.shape[0]):
        out[t] += a * x[t] + b * y[t]


@kernel
def copy(out: np.ndarray, x: np.ndarray) -> None:
    """out = x."""
    for t in range(out.shape[0]):
        out[t] = x[t]


@kernel
def clear(out: np.ndarray) -> None:
    """out = 0."""
    for t in range(out.shape[0]):
        out[t] = 0


@kernel
def scatter(moves: Moves, column: int, sums: np.ndarray) -> None:
    """Add the moves of ``column`` to ``sums`` [T]."""
    for e in range(moves.first[column], moves.first[column + 1]):
        sums[moves.at[e]] += moves.size[e]


@kernel
def sum_patterns(seats: Electorate, moves: Moves, i: int, sums: np.ndarray, moving: np.ndarray) -> None:
    """sums[p, t] ← how much the columns of list i's pattern p move at t, all together."""
    for p in range(seats.patterns[i], seats.patterns[i + 1]):
        at = p - seats.patterns[i]
        moving[at] = False
        for q in range(seats.members[p], seats.members[p + 1]):
            c = seats.column[q]
            if moves.first[c] == moves.first[c + 1]:
                continue
            if not moving[at]:
                moving[at] = True
                clear(sums[at])
            if moves.row[c] >= 0:
                add(sums[at], moves.dense[moves.row[c]])
            else:
                scatter(moves, c, sums[at])


@kernel
def spread(
    seats: Electorate, difference: np.ndarray, i: int, sums: np.ndarray, moving: np.ndarray, out: np.ndarray
) -> None:
    """out[y, t] ← how much list i's candidate at place y moves at t; ``difference``: the electorate's, as numbers."""
    a = seats.lists[i]
    for y in range(seats.lists[i + 1] - a):
        if seats.like[a + y] >= 0:
            copy(out[y], out[seats.like[a + y]])
        else:
            clear(out[y])
        other = -1  # edges are added in pairs
        for e in range(seats.edges[a + y], seats.edges[a + y + 1]):
            if not moving[seats.pattern[e]]:
                continue
            if other < 0:
                other = e
            else:
                x, z = sums[seats.pattern[other]], sums[seats.pattern[e]]
                add_multiples(out[y], difference[other], x, difference[e], z)
                other = -1
        if other >= 0:
            x = sums[seats.pattern[other]]
            add_multiples(out[y], difference[other], x, difference.dtype.type(0), x)


@kernel
def fits(seats: Electorate, moves: Moves, i: int) -> bool:
    """Are all sums of ``spread`` for list i within 16 bits?"""
    limit = 0.0
    for p in range(seats.patterns[i], seats.patterns[i + 1]):
        for q in range(seats.members[p], seats.members[p + 1]):
            limit += moves.peak[seats.column[q]] * seats.largest[p]
    return limit <= 32767.0


@kernel
def run_up(moved: np.ndarray, lane: np.ndarray, total: np.ndarray) -> float:
    """total[t] ← the sum of ``moved`` up to predictor t, in the block's layout; returns the sum of all."""
    W = lane.shape[0]
    clear(lane)
    for r in range(ROWS):
        add(lane, moved[r * W : (r + 1) * W])
    run = lane.dtype.type(0)
    for b in range(W):
        x = lane[b]
        lane[b] = run
        run += x
    add_to(total[:W], lane, moved[:W])
    for r in range(1, ROWS):
        add_to(total[r * W : (r + 1) * W], total[(r - 1) * W : r * W], moved[r * W : (r + 1) * W])
    return float(run)


@kernel
def challenge(y: int, b: float, u: float, total_u: np.ndarray, terms: Terms, best: np.ndarray, who: np.ndarray) -> None:
    """Make candidate y the winner wherever it scores higher than the best so far (τ = 0)."""
    for t in range(best.shape[0]):
        score = terms.beta[t] * b + terms.scale[t] * (u + total_u[t])
        higher = score > best[t]
        best[t] = score if higher else best[t]
        who[t] = y if higher else who[t]


@kernel
def challenge_shrunk(
    y: int, b: float, u: float, v: float, total_u: np.ndarray, total_v: np.ndarray, terms: Terms,
    best: np.ndarray, who: np.ndarray,
) -> None:  # fmt: skip
    """Make candidate y the winner wherever it scores higher than the best so far (τ > 0)."""
    for t in range(best.shape[0]):
        shrunk = (u + total_u[t]) - terms.threshold[t] * (v + total_v[t])
        score = terms.beta[t] * b + terms.scale[t] * shrunk
        higher = score > best[t]
        best[t] = score if higher else best[t]
        who[t] = y if higher else who[t]


@kernel
def vote_block(
    pending: np.ndarray,
    seats: Electorate,
    difference: np.ndarray,
    moves_u: Moves,
    moves_v: Moves,
    terms: Terms,
    small: bool,
    T: Tables,
    U: np.ndarray,
    V: np.ndarray,
    votes: np.ndarray,
) -> None:
    """The predictors of a block vote on those of the lists that are ``pending`` (bool [L]).

    U, V (float64 [N], by place) are those of the last predictor before the block, and after it of its last. Where
    ``small`` (16 bits), a list that does not fit stays pending and is left alone.
    """
    shrunk = terms.threshold.shape[0] > 0
    for i in range(pending.shape[0]):
        a, n = seats.lists[i], seats.lists[i + 1] - seats.lists[i]
        if not pending[i] or (small and not (seats.whole[i] and fits(seats, moves_u, i))):
            continue
        pending[i] = False
        sum_patterns(seats, moves_u, i, T.sums, T.moving)
        spread(seats, difference, i, T.sums, T.moving, T.u)
        if shrunk:
            sum_patterns(seats, moves_v, i, T.sums, T.moving)
            spread(seats, difference, i, T.sums, T.moving, T.v)
        for t in range(T.best.shape[0]):
            T.best[t] = -np.inf
            T.winner[t] = 0
        for y in range(n):
            b = seats.base[a + y]
            du = run_up(T.u[y], T.lane, T.total_u)
            if shrunk:
                dv = run_up(T.v[y], T.lane, T.total_v)
                challenge_shrunk(y, b, U[a + y], V[a + y], T.total_u, T.total_v, terms, T.best, T.winner)
                V[a + y] += dv
            else:
                challenge(y, b, U[a + y], T.total_u, terms, T.best, T.winner)
            U[a + y] += du
        if n > 0:
            for t in range(T.best.shape[0]):
                votes[seats.candidate[a + T.winner[t]]] += terms.survived[t]


class Standing(NamedTuple):
    """How far voting has come: all that going on depends on."""

    predictors: int  # so many, at most, have voted: whole blocks
    counted: np.ndarray  # float64 [N]: votes
    U: np.ndarray  # float64 [N], or [0] when all predictors have voted: U and V under the last of them
    V: np.ndarray
    own: np.ndarray  # see MoveFinder; empty at the start and the end


class Ward:
    """The lists from..to - 1 of a corpus, ``part`` = (from, to), which a thread takes through a block of predictors."""

    def __init__(self, corpus: Corpus, name: np.ndarray, part: tuple[int, int], counted: np.ndarray) -> None:
        self._seats = assemble(corpus, name, *part)
        self._U, self._V = np.zeros((2, self._seats.candidate.size))
        self._counted = counted
        self.pending = np.zeros(part[1] - part[0], np.bool_)

    def leave(self, U: np.ndarray, V: np.ndarray) -> None:
        """Write the scores of the candidates (float64 [N] of the corpus) as the last predictor has left them."""
        U[self._seats.candidate], V[self._seats.candidate] = self._U, self._V

    def enter(self, U: np.ndarray, V: np.ndarray) -> None:
        """Go on from what ``leave`` wrote."""
        self._U, self._V = U[self._seats.candidate], V[self._seats.candidate]

    def vote(self, moves: tuple[Moves, Moves], terms: Terms, kind: type) -> None:
        """Let the block of predictors vote on the pending lists, in numbers of ``kind`` (int16 where that fits)."""
        seats, small = self._seats, kind is np.int16
        moves_u, moves_v = (x.cast(kind) for x in moves)
        vote_block(
            self.pending,
            seats,
            seats.difference.astype(kind),
            moves_u,
            moves_v,
            terms,
            small,
            self._tables(terms.scale.size, terms.threshold.size > 0, kind),
            self._U,
            self._V,
            self._counted,
        )

    def _tables(self, T: int, shrunk: bool, kind: type) -> Tables:
        """Scratch space for a block."""
        longest = int(np.diff(self._seats.lists).max(initial=0))
        patterns = int(np.diff(self._seats.patterns).max(initial=0))
        wide = np.int32 if kind is np.int16 else np.float64
        return Tables(
            np.empty((patterns, T), kind),
            np.empty(patterns, np.bool_),
            np.empty((longest, T), kind),
            np.empty((longest if shrunk else 0, T), kind),
            np.empty(T // ROWS, wide),
            np.empty(T, wide),
            np.empty(T, wide),
            np.empty(T),
            np.empty(T, np.int32),
        )


def vote(
    votes: Votes,
    corpus: Corpus,
    threads: int | None = None,
    *,
    checkpoint: Checkpoint | None = None,
    on_block: Callable[[], None] | None = None,
) -> np.ndarray:
    """float64 [N]: for every candidate Σ_k c_k · [it wins its list under predictor k].

    Ties go to the higher base score, then the lower index.

    Parameters
    ----------
    threads: all cores by default.
    checkpoint: where to leave how far voting has come, at last its result, and what to go on from.
    on_block: called after every one of ``block_count`` blocks of predictors, also after those behind a checkpoint.

    Raises
    ------
    RunError: a checkpoint cannot be written.
    Interrupted: the run was told to stop; a checkpoint is written first.
    """
    predictors = votes.survived.size
    T = min(BLOCK, -(-predictors // ROWS) * ROWS)
    workers = max(1, min(threads or os.cpu_count() or 1, 16))
    tell = on_block or _nothing
    N = corpus.candidate_count
    state = Standing(0, np.zeros(N), np.zeros(N), np.zeros(N), np.zeros(0))
    if checkpoint is not None and (stored := checkpoint.load()) is not None and stored[1]["counted"].size == N:
        state = Standing(stored[0]["predictors"], **stored[1])
    for _ in range(0, state.predictors, T):
        tell()
    counted, U, V = state.counted, state.U, state.V
    if state.predictors >= predictors:
        return counted
    finder = MoveFinder(votes, corpus, T, state.own if state.predictors else None)
    with deferred(), ThreadPoolExecutor(workers) as pool:
        wards = list(pool.map(lambda part: Ward(corpus, finder.name, part, counted), _parts(corpus, 8 * workers)))
        for ward in wards:
            ward.enter(U, V)
        ahead = pool.submit(finder.block, state.predictors)
        for start in range(state.predictors, predictors, T):
            moves_u, moves_v, whole = ahead.result()
            own = finder.own.copy()
            if start + T < predictors:  # the next block's moves are found while the lists vote on this one
                ahead = pool.submit(finder.block, start + T)
            terms = _terms(votes, start, T)
            for ward in wards:
                ward.pending[:] = True
            for kind in (np.int16, np.float64) if whole else (np.float64,):
                jobs = [pool.submit(ward.vote, (moves_u, moves_v), terms, kind) for ward in wards if ward.pending.any()]
                for job in jobs:
                    job.result()
            tell()
            last = start + T >= predictors
            if checkpoint is not None and (last or checkpoint.due() or requested()):
                for ward in wards:
                    ward.leave(U, V)
                state = Standing(start + T, counted, *([np.zeros(0)] * 3 if last else [U, V, own]))
                arrays = state._asdict()
                checkpoint.save({"predictors": arrays.pop("predictors")}, arrays)
            check()
    return counted


def block_count(votes: Votes) -> int:
    """How many blocks of predictors ``vote`` goes through."""
    return -(-votes.survived.size // BLOCK)


def _nothing() -> None:
    """Tell nobody."""


def _parts(corpus: Corpus, parts: int) -> list[tuple[int, int]]:
    """The lists in runs of about the same numbers of nonzeros."""
    ends = np.searchsorted(corpus.rows[corpus.lists], np.linspace(0, corpus.nonzeros, parts + 1))
    ends[0], ends[-1] = 0, corpus.list_count
    return [(int(a), int(b)) for a, b in pairwise(ends) if b > a]


def _terms(votes: Votes, start: int, T: int) -> Terms:
    """The terms of the predictors from ``start``, in the block's layout."""
    stop = min(votes.survived.size, start + T)

    def place(values: np.ndarray) -> np.ndarray:
        padded = np.zeros(T, values.dtype)
        padded[: stop - start] = values[start:stop]
        return np.ascontiguousarray(padded.reshape(-1, ROWS).T).ravel()

    threshold = place(votes.threshold) if votes.threshold.size else np.zeros(0)
    return Terms(place(votes.scale), threshold, place(votes.beta), place(votes.survived))
