"""Exact voting: what every list's winner is under every predictor, without a weight vector per predictor.

Under predictor k a candidate scores −(U − k·λ₁·V)·d_k + β_k·b, with U = Σ φ_j s_j and V = Σ φ_j sign(s_j) over the
columns whose |s_j| exceeds k·λ₁ (ALGORITHMS of the papers: Gao et al. 2013, Fig. 2, with eq. 10 for w). Three steps:

1. columns with the same values on all candidates of the corpus act as one: they form a *group*;
2. the updates are replayed once, in time, as *moves* of the groups' sums of s and of sign(s): an update moves the
   groups of its columns, and a column leaves both sums at the first k with k·λ₁ ≥ |s_j|;
3. list by list, the moves of the list's own groups are spread over its candidates, a block of predictors at a time,
   and the winner is followed from predictor to predictor.

Lists do not depend on one another, so threads share them out and the result is the same for any number of them.
Whole-numbered moves and values (the perceptron and hinge losses on counts) use 16-bit arithmetic, with the same result.
Sums of other numbers are kept up from move to move; where two candidates tie exactly, rounding in them may break the tie.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rerank.compile import kernel
from rerank.corpus import Corpus
from rerank.learn.base import VotingRule
from rerank.learn.log import Votes
from rerank.symbols import mix

BLOCK = 2048  # predictors at a time: their moves of one list fit into a core's cache
LANES = 16
NONE = -1


class Moves(NamedTuple):
    """By group, in time: at predictor ``at`` the group's Σ s_j moves by ``u`` and its Σ sign(s_j) by ``v``."""

    first: np.ndarray  # int64 [G + 1]
    at: np.ndarray  # int32 [moves]
    u: np.ndarray  # int16 or float64 [moves]
    v: np.ndarray  # the same [moves], or [0] where λ₁ = 0


@kernel
def hash_columns(rows: np.ndarray, columns: np.ndarray, bits: np.ndarray, one: np.ndarray, two: np.ndarray) -> None:
    """128 bits for every column, sums of hashes of (candidate, value); ``bits`` (uint32) are the values' bits."""
    for y in range(rows.shape[0] - 1):
        key = mix(np.uint64(y + 1))
        for p in range(rows[y], rows[y + 1]):
            h = mix(key ^ np.uint64(bits[p]))
            one[columns[p]] += h
            two[columns[p]] += mix(h + key)


def group_columns(corpus: Corpus) -> tuple[np.ndarray, int]:
    """The group of every column (int32 [D], NONE where no candidate owns it) and the number of groups G."""
    one, two = np.zeros(corpus.width, np.uint64), np.zeros(corpus.width, np.uint64)
    hash_columns(corpus.rows, corpus.columns, corpus.values.view(np.uint32), one, two)
    owned = np.flatnonzero(one | two)
    order = owned[np.lexsort((two[owned], one[owned]))]
    fresh = np.ones(order.size, np.bool_)
    fresh[1:] = (one[order[1:]] != one[order[:-1]]) | (two[order[1:]] != two[order[:-1]])
    group = np.full(corpus.width, NONE, np.int32)
    group[order] = np.cumsum(fresh) - 1
    return group, int(np.count_nonzero(fresh))


@kernel
def replay(
    votes: Votes,
    l1: float,
    group: np.ndarray,
    s: np.ndarray,
    leaves: np.ndarray,
    bucket: np.ndarray,
    following: np.ndarray,
    move: np.ndarray,
    seen: np.ndarray,
    touched: np.ndarray,
    out_group: np.ndarray,
    out_at: np.ndarray,
    out_u: np.ndarray,
    out_v: np.ndarray,
) -> int:
    """All updates in time; returns the number of moves written.

    ``s`` (float64 [D]) and ``leaves`` (int64 [D]: the k at which an active column falls out, 0 while inactive) start at
    0; ``bucket`` (int64 [M + 2], NONE) and ``following`` (int64 [entries]) queue entries by that k; ``move`` (float64
    [G, 2]), ``seen`` (int64 [G], 0) and ``touched`` (int64 [G]) collect the moves of one predictor.
    """
    M, n = votes.first.shape[0] - 1, 0
    for k in range(1, M + 1):
        count = 0
        for e in range(votes.first[k - 1], votes.first[k]):
            j = votes.columns[e]
            old, new = s[j] if leaves[j] >= k else 0.0, s[j] + votes.delta[e]
            s[j] = new
            if group[j] == NONE:
                continue
            leaves[j] = 0
            if abs(new) > k * l1:
                leaves[j] = M + 1
                if (M + 1) * l1 >= abs(new):
                    leaves[j] = max(k + 1, math.ceil(abs(new) / l1))
                    following[e] = bucket[leaves[j]]
                    bucket[leaves[j]] = e
            else:
                new = 0.0
            count = collect(group[j], new - old, np.sign(new) - np.sign(old), k, move, seen, touched, count)
        e = bucket[k]
        while e != NONE:
            j = votes.columns[e]
            if leaves[j] == k:
                leaves[j] = 0
                count = collect(group[j], -s[j], -np.sign(s[j]), k, move, seen, touched, count)
            e = following[e]
        for r in range(count):
            g = touched[r]
            if move[g, 0] != 0.0 or (l1 > 0.0 and move[g, 1] != 0.0):
                out_group[n], out_at[n], out_u[n] = g, k, move[g, 0]
                if l1 > 0.0:
                    out_v[n] = move[g, 1]
                n += 1
    return n


@kernel
def collect(
    g: int, u: float, v: float, k: int, move: np.ndarray, seen: np.ndarray, touched: np.ndarray, count: int
) -> int:
    """Add a column's move to its group's; returns how many groups have moved at predictor k."""
    if seen[g] != k:
        seen[g] = k
        move[g, 0], move[g, 1] = 0.0, 0.0
        touched[count] = g
        count += 1
    move[g, 0] += u
    move[g, 1] += v
    return count


@kernel
def sort_moves(group: np.ndarray, n: int, first: np.ndarray, place: np.ndarray) -> None:
    """Where each of the n moves goes so that they lie by group, in time (``first`` int64 [G + 1], 0)."""
    for r in range(n):
        first[group[r] + 1] += 1
    for g in range(first.shape[0] - 1):
        first[g + 1] += first[g]
    for r in range(n):
        place[first[group[r]]] = r
        first[group[r]] += 1
    for g in range(first.shape[0] - 1, 0, -1):
        first[g] = first[g - 1]
    first[0] = 0


def find_moves(votes: Votes, l1: float, group: np.ndarray, groups: int) -> Moves:
    """The moves of all groups under the updates ``votes``."""
    D, M, entries = group.size, votes.base.size, votes.columns.size
    room = 2 * entries if l1 > 0 else entries
    out_group, out_at, out_u = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room)
    out_v = np.empty(room if l1 > 0 else 0)
    n = replay(
        votes,
        l1,
        group,
        np.zeros(D),
        np.zeros(D, np.int64),
        np.full(M + 2, NONE, np.int64),
        np.empty(entries if l1 > 0 else 0, np.int64),
        np.empty((groups, 2)),
        np.zeros(groups, np.int64),
        np.empty(groups, np.int64),
        out_group,
        out_at,
        out_u,
        out_v,
    )
    first, place = np.zeros(groups + 1, np.int64), np.empty(n, np.int64)
    sort_moves(out_group, n, first, place)
    return Moves(first, out_at[place], out_u[place], out_v[place] if l1 > 0 else out_v)


@kernel
def fill_local(
    a: int,
    b: int,
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    group: np.ndarray,
    lanes: int,
    owner: np.ndarray,
    own: np.ndarray,
    local: np.ndarray,
) -> int:
    """The groups of the list of candidates a..b (``own``), and a dense row of values for each (``local``).

    ``owner`` (int32 [G], NONE, and NONE again afterwards) is scratch. Returns the number of groups.
    """
    count = 0
    for y in range(a, b):
        for p in range(rows[y], rows[y + 1]):
            g = group[columns[p]]
            if owner[g] == NONE:
                owner[g] = count
                own[count] = g
                local[count * lanes : (count + 1) * lanes] = 0
                count += 1
            local[owner[g] * lanes + y - a] = values[p]
    for r in range(count):
        owner[own[r]] = NONE
    return count


@kernel
def spread(
    at: np.ndarray,
    size: np.ndarray,
    first: np.ndarray,
    own: np.ndarray,
    count: int,
    local: np.ndarray,
    lanes: int,
    begin: int,
    end: int,
    cursor: np.ndarray,
    block: np.ndarray,
) -> None:
    """block[k − begin] ← the moves of all candidates at predictors begin..end − 1; ``cursor`` moves on.

    Unsigned indices: they need no test for counting from the end, so the inner loop runs on vector registers.
    """
    width = np.uint64(lanes)
    block[: (end - begin) * lanes] = 0
    for r in range(count):
        e, stop, row = cursor[r], first[own[r] + 1], np.uint64(r * lanes)
        while e < stop and at[e] < end:
            move, to = size[e], np.uint64((at[e] - begin) * lanes)
            t = np.uint64(0)
            while t < width:
                block[to + t] += move * local[row + t]
                t += np.uint64(1)
            e += 1
        cursor[r] = e


@kernel
def add_row(total: np.ndarray, block: np.ndarray, row: int, lanes: int) -> None:
    """total ← total + block[row], both of ``lanes`` numbers."""
    width, begin, t = np.uint64(lanes), np.uint64(row * lanes), np.uint64(0)
    while t < width:
        total[t] += block[begin + t]
        t += np.uint64(1)


@kernel
def follow_winner(
    base: np.ndarray,
    lanes: int,
    begin: int,
    end: int,
    survived: np.ndarray,
    scale: np.ndarray,
    beta: np.ndarray,
    l1: float,
    block_u: np.ndarray,
    block_v: np.ndarray,
    U: np.ndarray,
    V: np.ndarray,
    winner: int,
    votes: np.ndarray,
) -> int:
    """Go through predictors begin..end − 1, give each one's votes to its winner, and return the last winner.

    One look at all candidates says whether any comes up to the winner; only then are they ranked anew.
    """
    n = base.shape[0]
    for k in range(begin, end):
        add_row(U, block_u, k - begin, lanes)
        if l1 > 0.0:
            add_row(V, block_v, k - begin, lanes)
        if survived[k] == 0:
            continue
        b, d, threshold = beta[k], scale[k], k * l1
        rivals = 0
        if l1 > 0.0:
            top = b * base[winner] - d * (U[winner] - threshold * V[winner])
            for t in range(n):
                rivals += b * base[t] - d * (U[t] - threshold * V[t]) >= top
        else:
            top = b * base[winner] - d * U[winner]
            for t in range(n):
                rivals += b * base[t] - d * U[t] >= top
        if rivals > 1:
            winner = best_lane(base, b, d, threshold, U, V)
        votes[winner] += survived[k]
    return winner


@kernel
def best_lane(base: np.ndarray, b: float, d: float, threshold: float, U: np.ndarray, V: np.ndarray) -> int:
    """The best candidate: highest score, then higher base score, then lower index."""
    best, top = 0, 0.0
    for t in range(base.shape[0]):
        score = b * base[t] - d * (U[t] - threshold * V[t] if threshold > 0.0 else U[t])
        if t == 0 or score > top or (score == top and base[t] > base[best]):
            best, top = t, score
    return best


@kernel
def vote_lists(
    begin: int,
    end: int,
    lists: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    base: np.ndarray,
    group: np.ndarray,
    moves: Moves,
    survived: np.ndarray,
    scale: np.ndarray,
    beta: np.ndarray,
    l1: float,
    owner: np.ndarray,
    own: np.ndarray,
    cursor_u: np.ndarray,
    cursor_v: np.ndarray,
    local: np.ndarray,
    block_u: np.ndarray,
    block_v: np.ndarray,
    U: np.ndarray,
    V: np.ndarray,
    votes: np.ndarray,
) -> None:
    """The lists begin..end − 1, each over all predictors in blocks."""
    predictors = survived.shape[0]
    for i in range(begin, end):
        a, b = lists[i], lists[i + 1]
        n = b - a
        if n == 0:
            continue
        lanes = (n + LANES - 1) // LANES * LANES
        count = fill_local(a, b, rows, columns, values, group, lanes, owner, own, local)
        for r in range(count):
            cursor_u[r] = cursor_v[r] = moves.first[own[r]]
        U[:lanes] = 0.0
        V[:lanes] = 0.0
        winner = 0
        for k in range(0, predictors, BLOCK):
            stop = min(predictors, k + BLOCK)
            spread(moves.at, moves.u, moves.first, own, count, local, lanes, k, stop, cursor_u, block_u)
            if l1 > 0.0:
                spread(moves.at, moves.v, moves.first, own, count, local, lanes, k, stop, cursor_v, block_v)
            winner = follow_winner(
                base[a:b], lanes, k, stop, survived, scale, beta, l1, block_u, block_v, U, V, winner, votes[a:b]
            )  # fmt: skip


def vote(votes: Votes, rule: VotingRule, corpus: Corpus, threads: int | None = None) -> np.ndarray:
    """float64 [N]: for every candidate Σ_k c_k · [it wins its list under predictor k].

    Ties go to the higher base score, then the lower index. ``threads``: all cores by default.
    """
    group, groups = group_columns(corpus)
    moves = find_moves(votes, rule.l1, group, groups)
    small = _fit_small(moves, votes.survived.size, group, corpus)
    if small is not None:
        moves = small
    kind = np.int16 if small is not None else np.float64
    k = np.arange(votes.survived.size)
    scale, base_scale = _scale(rule, k, rule.l2), _scale(rule, k, 0.0)
    summed = np.concatenate([[0.0], np.cumsum(votes.base)])
    beta = rule.base - rule.base_rate * base_scale * summed
    values = corpus.values.astype(kind)
    values.flags.writeable = False
    counted = np.zeros(corpus.candidate_count)
    sizes = np.diff(corpus.lists)
    longest = -(-int(sizes.max(initial=1)) // LANES) * LANES
    workers = max(1, min(threads or os.cpu_count() or 1, 16, corpus.list_count))

    def work(begin: int, end: int) -> None:
        block = min(BLOCK, k.size) * longest
        widest = int(np.diff(corpus.rows[corpus.lists[begin : end + 1]]).max(initial=0))
        most = min(widest, groups)
        own, cursor_u, cursor_v = np.empty((3, most), np.int64)
        U, V = np.empty((2, longest))
        vote_lists(
            begin,
            end,
            corpus.lists,
            corpus.rows,
            corpus.columns,
            values,
            corpus.base,
            group,
            moves,
            votes.survived,
            scale,
            beta,
            rule.l1,
            np.full(groups, NONE, np.int32),
            own,
            cursor_u,
            cursor_v,
            np.empty(most * longest, kind),
            np.empty(block, kind),
            np.empty(block if rule.l1 > 0 else 0, kind),
            U,
            V,
            counted,
        )

    # Pieces of equal numbers of candidates; each writes its own part of ``counted``.
    ends = np.searchsorted(corpus.lists, np.linspace(0, corpus.candidate_count, 8 * workers + 1))
    ends[0], ends[-1] = 0, corpus.list_count
    pieces = [(int(a), int(b)) for a, b in pairwise(ends) if b > a]
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda piece: work(*piece), pieces))
    return counted


def _scale(rule: VotingRule, k: np.ndarray, l2: float) -> np.ndarray:
    """d_k for all predictors: 1 for the perceptron, else 1/(k·λ₂ + η√k), and 0 before the first update."""
    if rule.eta == 0.0:
        return np.ones(k.size)
    with np.errstate(divide="ignore"):
        return np.where(k > 0, 1.0 / (k * l2 + rule.eta * np.sqrt(k)), 0.0)


@kernel
def largest_values(columns: np.ndarray, values: np.ndarray, group: np.ndarray, largest: np.ndarray) -> bool:
    """Largest absolute value of every group (``largest`` float64 [G], 0); are all values whole numbers?"""
    whole = True
    for p in range(columns.shape[0]):
        g = group[columns[p]]
        largest[g] = max(largest[g], abs(values[p]))
        whole &= values[p] == np.rint(values[p])
    return whole


def _fit_small(moves: Moves, predictors: int, group: np.ndarray, corpus: Corpus) -> Moves | None:
    """The moves as 16-bit integers, if they and all values are whole and no candidate's move can overflow."""
    largest = np.zeros(moves.first.size - 1)
    if not largest_values(corpus.columns, corpus.values, group, largest):
        return None
    if not np.array_equal(moves.u, np.rint(moves.u)):
        return None
    sizes = np.abs(moves.u) * np.repeat(largest, np.diff(moves.first))
    totals = np.bincount(moves.at, weights=sizes, minlength=predictors)
    if max(totals.max(initial=0.0), largest.max(initial=0.0)) > np.iinfo(np.int16).max:
        return None
    return Moves(moves.first, moves.at, moves.u.astype(np.int16), moves.v.astype(np.int16))
