"""Exact voting: the winner of every list under every predictor, without a weight vector per predictor.

Under predictor k a candidate scores β_k·b + d_k·(U − τ_k·V), with U = Σ φ_j a_j and V = Σ φ_j v_j over the active
columns (Gao et al. 2013, Fig. 2; see ``epoch``). Lists do not depend on one another, and threads share them out. On a
list, time is replayed: a column changes its level, the candidates that have it change their sums, the best is looked up
again, and what the predictor survived is its vote.

Sums are exact, so that what candidates share ties, and what a column brings it takes back to the last bit. A product is
cut into multiples of units that are 30 bits apart (``exchange``). Each unit is so large that float64 holds all sums of
its multiples; there are as many as the numbers of the list have bits. Whole numbers are multiples of the first.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from rerank.base.interrupts import check, defer_signals
from rerank.data.corpus import Corpus
from rerank.data.symbols import mix
from rerank.kernels.compile import kernel, thread_count
from rerank.learn.epoch import Votes


class Levels(NamedTuple):
    """The contributions of C columns to U, or to V, by column and in time: a_j, or v_j, while they are active, else 0.

    The first entry of a column says that it is 0 before any update; one behind all predictors ends the last.
    """

    first: np.ndarray  # int64 [C]
    time: np.ndarray  # int32: the predictor that the entry begins with
    level: np.ndarray  # float64


def sort_levels(votes: Votes, corpus: Corpus) -> tuple[np.ndarray, Levels, Levels]:
    """The levels of columns that occur in ``corpus``, for U and V, and the numbers of these columns.

    int32 [D], -1 for columns that do not matter; the most often updated first. All 0 for V where nothing shrinks.
    """
    touches = np.bincount(votes.columns, minlength=corpus.width)
    touches[sum(np.bincount(part.columns, minlength=corpus.width) for part in corpus.parts()) == 0] = 0
    order = np.argsort(-touches, kind="stable")[: np.count_nonzero(touches)]
    name = np.full(corpus.width, -1, np.int32)
    name[order] = np.arange(order.size)

    predictors, shrinks = votes.survived.size, votes.threshold.size > 0
    entries = np.flatnonzero(name[votes.columns] >= 0)
    entries = entries[np.argsort(name[votes.columns[entries]], kind="stable")]  # by column, in time
    c, k, a = name[votes.columns[entries]], np.searchsorted(votes.first, entries, side="right"), votes.value[entries]
    b = np.zeros(0)
    if shrinks:
        b = votes.slope[entries] if votes.slope.size else np.sign(a)
        leave = leaving_times(np.abs(a), np.abs(b), votes.threshold)
        a, b = (np.where(leave > k, side, 0.0) for side in (a, b))
        until = np.append(k, predictors)[1:]
        until[np.flatnonzero(np.diff(c, append=-1))] = predictors
        exits = np.flatnonzero((a != 0.0) & (leave < until))  # before its next update
        c, k = np.insert(c, exits + 1, c[exits]), np.insert(k, exits + 1, leave[exits])
        a, b = (np.insert(side, exits + 1, 0.0) for side in (a, b))
    return name, _levels(c, k, a, order.size, predictors), _levels(c[: b.size], k, b, order.size, predictors)


def leaving_times(a: np.ndarray, b: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    """int64: the first predictor with τ·b ≥ a, their number where there is none; τ never falls."""
    tau, first = np.unique(threshold, return_index=True)
    tau, first = np.append(tau, math.inf), np.append(first, threshold.size)
    with np.errstate(divide="ignore", invalid="ignore"):  # b may be 0: such a column never leaves
        at = np.minimum(np.searchsorted(tau, a / b), tau.size - 1)
        # quotients are rounded, products decide
        while (late := (at > 0) & (tau[at - 1] * b >= a)).any():
            at -= late
        while (early := tau[at] * b < a).any():
            at += early
    return np.asarray(first[at])


def _levels(column: np.ndarray, time: np.ndarray, level: np.ndarray, C: int, predictors: int) -> Levels:
    """The changes among these levels, which lie by column, in time; every column begins at 0."""
    before = np.append(0.0, level)[:-1]
    before[np.flatnonzero(np.diff(column, prepend=-1))] = 0.0
    changes = np.flatnonzero(level != before)
    entries = np.bincount(column[changes], minlength=C) + 2
    first = np.cumsum(entries) - entries
    levels = Levels(first, np.full(entries.sum(), predictors, np.int32), np.zeros(entries.sum()))
    levels.time[first] = 0
    at = np.arange(changes.size) + 2 * column[changes] + 1
    levels.time[at], levels.level[at] = time[changes], level[changes]
    return levels


UNIT_BITS = 30  # bits from one unit to the next
UNIT_RATIO = 2.0**-UNIT_BITS
HALF = np.uint64(32)


class Patterns(NamedTuple):
    """A list of N candidates, *in this order*: by falling base score, then by index; the first of a tie wins.

    Columns with the same values on all candidates are one pattern; a pattern of equal values decides nothing, and is
    left out.
    """

    base: np.ndarray  # float64 [N]
    column: np.ndarray  # int64 [Q]: the numbers of its columns
    pattern: np.ndarray  # int64 [Q]: and the pattern of each
    first: np.ndarray  # int64 [P + 1]: its candidates are first[p]..first[p + 1]
    candidate: np.ndarray  # int64: in this order
    value: np.ndarray  # float64


class Sums(NamedTuple):
    """U, or V, of a list: E changes of levels by time, and what they come to so far."""

    at: np.ndarray  # int64 [M + 2]: the changes of predictor k are at[k]..at[k + 1]
    column: np.ndarray  # int64 [E]: indices in ``Patterns.column``
    level: np.ndarray  # float64 [E]
    column_level: np.ndarray  # float64 [Q]
    pattern_level: np.ndarray  # float64 [P, parts]: a number of each unit
    old_level: np.ndarray  # float64 [P]: the levels of patterns that ``total`` holds
    queue: np.ndarray  # int64 [P]: patterns whose level has changed
    total: np.ndarray  # float64 [N, parts]: of candidates
    rounder: tuple[float, float]  # of levels and of products: see ``exchange``


def vote(
    votes: Votes, corpus: Corpus, threads: int | None = None, *, on_list: Callable[[], object] | None = None
) -> np.ndarray:
    """float64 [N]: for every candidate Σ_k c_k · [it wins its list under predictor k].

    Ties go to the higher base score, then the lower index. ``on_list``: called after each of the lists.
    """
    name, *levels = sort_levels(votes, corpus)
    ranges = [  # by column, float64 [C]: the largest |level|, and the lowest bit of all levels
        (np.maximum.reduceat(np.abs(side.level), side.first), np.minimum.reduceat(bits(side.level), side.first))
        for side in levels
    ]
    counts = np.zeros(corpus.candidate_count)

    def count(i: int) -> None:
        first, last = corpus.lists[i], corpus.lists[i + 1]
        if first < last:
            order = np.argsort(-corpus.base[first:last], kind="stable")
            patterns, wins = patterns_of(corpus, i, name, order), np.zeros(last - first)
            u, v = (sums_of(patterns, *side, votes.survived.size) for side in zip(levels, ranges, strict=True))
            count_list(patterns, u, v, votes, wins)
            counts[first + order] = wins

    with defer_signals(), ThreadPoolExecutor(max(1, min(threads or thread_count(), 16))) as pool:
        for _ in pool.map(count, range(corpus.list_count)):
            if on_list is not None:
                on_list()
            check()
    return counts


def patterns_of(corpus: Corpus, i: int, name: np.ndarray, order: np.ndarray) -> Patterns:
    """List i of ``corpus``, with the columns that have a ``name`` (int32 [D]; -1 for none), in this order."""
    first, last = corpus.lists[i], corpus.lists[i + 1]
    nonzeros = slice(corpus.rows[first], corpus.rows[last])
    names, values = name[corpus.columns[nonzeros]], np.asarray(corpus.values[nonzeros], np.float32)
    mask = (names >= 0) & (values != 0.0)
    owner = np.repeat(np.argsort(order), np.diff(corpus.rows[first : last + 1]))[mask]
    column, index = np.unique(names[mask], return_inverse=True)
    hashes = np.zeros(column.size, np.uint64)
    add_hashes(owner, index, values[mask].view(np.uint32), hashes)
    _, sample, pattern = np.unique(hashes, return_index=True, return_inverse=True)
    one = sample[pattern[index]] == index  # the nonzeros of one column of each pattern
    rows = csr_matrix((values[mask][one], (pattern[index[one]], owner[one])), (sample.size, order.size))
    low, high = rows.min(axis=1).toarray().ravel(), rows.max(axis=1).toarray().ravel()
    differs = low != high
    rows, varies = rows[differs], differs[pattern]
    return Patterns(
        base=corpus.base[first:last][order],
        column=column[varies].astype(np.int64),
        pattern=(np.cumsum(differs) - 1)[pattern[varies]],
        first=rows.indptr.astype(np.int64),
        candidate=rows.indices.astype(np.int64),
        value=rows.data.astype(np.float64),
    )


@kernel
def add_hashes(owner: np.ndarray, index: np.ndarray, bits: np.ndarray, hashes: np.ndarray) -> None:
    """Add hashes of a list's nonzeros to those of their columns: 64 bits, so that values need not be compared."""
    for e in range(owner.shape[0]):
        hashes[index[e]] += mix((np.uint64(owner[e]) << HALF) | np.uint64(bits[e]))


def bits(x: np.ndarray) -> np.ndarray:
    """The lowest bit of every number; ∞ for 0."""
    mantissa, exponent = np.frexp(x)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    return np.where(x == 0.0, np.inf, np.ldexp((whole & -whole).astype(np.float64), np.maximum(exponent - 53, -1020)))


def sums_of(patterns: Patterns, levels: Levels, reach: tuple[np.ndarray, np.ndarray], predictors: int) -> Sums:
    """The changes of a list's levels by time, and sums that are 0."""
    P, Q, N = patterns.first.size - 1, patterns.column.size, patterns.base.size
    largest = np.zeros(P)
    np.maximum.at(largest, np.repeat(np.arange(P), np.diff(patterns.first)), np.abs(patterns.value))
    height, lowest = (side[patterns.column] for side in reach)
    low = float(lowest.min(initial=np.inf))
    one, cut_one = units(float(height.sum()), low)
    other, cut_other = units(
        float((height * largest[patterns.pattern]).sum()), low * float(bits(patterns.value).min(initial=1.0))
    )
    ends = np.append(levels.first, levels.time.size)
    room = int((ends[patterns.column + 1] - ends[patterns.column]).sum()) - 2 * Q
    sums = Sums(
        np.zeros(predictors + 2, np.int64), np.empty(room, np.int64), np.empty(room), np.zeros(Q), np.zeros((P, one)),
        np.zeros(P), np.empty(P, np.int64), np.zeros((N, other)), (cut_one, cut_other),
    )  # fmt: skip
    sort_by_time(patterns.column, levels, ends, sums.at, sums.column, sums.level)
    return sums


def units(limit: float, lowest: float) -> tuple[int, float]:
    """The number of units for sums up to ``limit`` of multiples of ``lowest``, and the rounder of the largest unit."""
    top, low = math.frexp(limit)[1], math.frexp(lowest)[1] if 0.0 < lowest < math.inf else math.frexp(limit)[1]
    return 1 + max(0, -((low + 49 - top) // UNIT_BITS)), math.ldexp(1.5, min(top + 2, 1020))


@kernel
def sort_by_time(
    columns: np.ndarray, levels: Levels, ends: np.ndarray, at: np.ndarray, column: np.ndarray, level: np.ndarray
) -> None:
    """Counting sort; the first entry of a column, and the one that ends it, are no changes."""
    for c in columns:
        for e in range(ends[c] + 1, ends[c + 1] - 1):
            at[levels.time[e] + 1] += 1
    for k in range(1, at.shape[0]):
        at[k] += at[k - 1]
    for q in range(columns.shape[0]):
        for e in range(ends[columns[q]] + 1, ends[columns[q] + 1] - 1):
            slot = at[levels.time[e]]
            column[slot], level[slot] = q, levels.level[e]
            at[levels.time[e]] += 1
    for k in range(at.shape[0] - 1, 0, -1):
        at[k] = at[k - 1]
    at[0] = 0


@kernel
def exchange(out: np.ndarray, i: int, old: float, new: float, r: float) -> None:
    """out[i] += new − old, cut into multiples of units: (x + r) − r is x in whole ones where r = 1.5·2^52 of them."""
    for n in range(out.shape[1]):
        before, after = (old + r) - r, (new + r) - r
        out[i, n] += after - before
        old, new, r = old - before, new - after, r * UNIT_RATIO


@kernel
def sum_of(numbers: np.ndarray, i: int) -> float:
    """The sum of multiples of all units in numbers[i], from the smallest."""
    total = 0.0
    for n in range(numbers.shape[1] - 1, -1, -1):
        total += numbers[i, n]
    return total


@kernel
def move(patterns: Patterns, sums: Sums, k: int) -> bool:
    """Make the changes before predictor k; returns whether there were any."""
    count = 0
    for e in range(np.uint64(sums.at[k]), np.uint64(sums.at[k + 1])):
        q = sums.column[e]
        p = patterns.pattern[q]
        exchange(sums.pattern_level, p, sums.column_level[q], sums.level[e], sums.rounder[0])
        sums.column_level[q], sums.queue[count] = sums.level[e], p
        count += 1
        if count == sums.queue.shape[0]:
            count = carry(patterns, sums, count)
    carry(patterns, sums, count)
    return bool(sums.at[k] < sums.at[k + 1])


@kernel
def carry(patterns: Patterns, sums: Sums, count: int) -> int:
    """Bring the levels of moved patterns to the candidates that have them; none is left."""
    for n in range(count):
        p = sums.queue[n]
        before, now = sums.old_level[p], sum_of(sums.pattern_level, p)
        if now != before:
            sums.old_level[p] = now
            for e in range(np.uint64(patterns.first[p]), np.uint64(patterns.first[p + 1])):
                x = patterns.value[e]
                exchange(sums.total, patterns.candidate[e], before * x, now * x, sums.rounder[1])
    return 0


@kernel
def count_list(patterns: Patterns, u: Sums, v: Sums, votes: Votes, wins: np.ndarray) -> None:
    """Add what every predictor has survived to its winner."""
    winner, shrinks, beta, d, tau = 0, votes.threshold.shape[0] > 0, math.nan, math.nan, 0.0
    for k in range(votes.survived.shape[0]):
        differs = move(patterns, u, k)
        if shrinks:
            differs |= move(patterns, v, k) or votes.threshold[k] != tau
            tau = votes.threshold[k]
        if differs or votes.beta[k] != beta or votes.scale[k] != d:
            beta, d, winner, highest = votes.beta[k], votes.scale[k], 0, -np.inf
            for y in range(wins.shape[0]):
                total = sum_of(u.total, y) - (tau * sum_of(v.total, y) if shrinks else 0.0)
                score = beta * patterns.base[y] + d * total
                if score > highest:
                    winner, highest = y, score
        wins[winner] += votes.survived[k]
