"""Chains of first order: sequences of tokens, each with attributes and one of K labels.

The score of labels y_0 … y_n is Σ_t Σ_a x_ta·w(a, y_t) + Σ_t w(y_{t−1}, y_t). Columns of the weights are the K·K
transitions (from, to) and then, for every attribute, its K labels side by side, so that a token's scores are sums of a
few rows of a dense table. A mask says which labels may follow each other, begin and end an example.

The best labels are found by Viterbi's algorithm (1967), and the best k; all exact; of equals, the first in the order of
labels.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from rerank.data.corpus import freeze, offsets, ranges_of
from rerank.kernels.compile import by_type, kernel
from rerank.learn.predictor import Predictor, new_state, predictor_view, shrink, slope_of
from rerank.learn.scoring import single
from rerank.learn.workspace import ListArrays

UNKNOWN = -1  # in place of a label
R = TypeVar("R")


class Chains(NamedTuple):
    """Examples for kernels, frozen: L of them with T tokens and A attributes; made by ``chains_of``.

    Learners take them for a corpus of this many columns, D = ``width``.
    """

    starts: np.ndarray  # int64 [L + 1]: example i has the tokens starts[i] … starts[i + 1] − 1
    rows: np.ndarray  # int64 [T + 1]: where the attributes of each token begin
    attributes: np.ndarray  # uint32 [nnz]: 0 … A − 1
    values: np.ndarray  # float32 [nnz]
    gold: np.ndarray  # int32 [T]: the right labels, ``UNKNOWN`` where there are none
    mask: np.ndarray  # uint8 [K + 2, K]: 1 where a label may follow another; row K: where it may begin, K + 1: end
    attribute_count: int  # A

    @property
    def example_count(self) -> int:
        """L."""
        return self.starts.size - 1

    @property
    def labels(self) -> int:
        """K."""
        return int(self.mask.shape[1])

    @property
    def width(self) -> int:
        """D = K·K + A·K, the number of columns."""
        return self.labels * (self.labels + self.attribute_count)

    @property
    def free(self) -> int:
        """The number of columns without a penalty: none."""
        return 0

    @property
    def candidate_count(self) -> int:
        """Outputs are not counted."""
        return 0

    @property
    def nonzeros(self) -> int:
        """The number of stored attributes."""
        return int(self.attributes.size)

    @property
    def longest(self) -> int:
        """Tokens of the longest example."""
        return int(np.diff(self.starts).max(initial=0))

    def split(self, rows: list[R]) -> list[list[R]]:
        """What there is of every token, example by example."""
        return [rows[first:end] for first, end in pairwise(self.starts.tolist())]

    def take(self, examples: np.ndarray) -> "Chains":
        """The ``examples`` (int64) alone, in this order, with the attributes and labels of all."""
        tokens = ranges_of(self.starts, examples)
        entries = ranges_of(self.rows, tokens)
        return self._replace(
            starts=freeze(offsets(np.diff(self.starts)[examples])), rows=freeze(offsets(np.diff(self.rows)[tokens])),
            attributes=freeze(self.attributes[entries]), gold=freeze(self.gold[tokens]),
            values=freeze(self.values[entries]),
        )  # fmt: skip


def chains_of(
    starts: ArrayLike,
    rows: ArrayLike,
    attributes: ArrayLike,
    gold: ArrayLike | None,
    mask: ArrayLike,
    *,
    attribute_count: int,
    values: ArrayLike | None = None,
) -> Chains:
    """Freeze arrays as ``Chains``, which describes them; gold: None where no label is known; values: by default 1."""
    labels = np.full(np.size(rows) - 1, UNKNOWN) if gold is None else gold
    numbers = np.ones(np.size(attributes), np.float32) if values is None else values

    def array(values: ArrayLike, dtype: type) -> np.ndarray:
        return freeze(np.asarray(values, dtype))

    return Chains(
        array(starts, np.int64), array(rows, np.int64), array(attributes, np.uint32), array(numbers, np.float32),
        array(labels, np.int32), array(mask, np.uint8), attribute_count,
    )  # fmt: skip


class ChainRoom(NamedTuple):
    """Space that kernels write, for M tokens of the longest example; all scores are of one type."""

    transitions: np.ndarray  # [K, K] (to, from): scores, −∞ where a transition is not allowed
    highest: np.ndarray  # [K]: the greatest of a row of them
    stamp: np.ndarray  # int64 [1]: the number of updates after which ``transitions`` were read
    emissions: np.ndarray  # [M, K]: scores of a token's labels, −∞ where they may not begin or end
    best: np.ndarray  # [M, K]: score of the best labels from here on, for each label here
    output: np.ndarray  # int32 [M]: the labels that were found


def room_for(chains: Chains, kind: Any = np.float64) -> ChainRoom:
    """Space for ``chains`` with scores of this type."""
    M, K = max(1, chains.longest), chains.labels
    square, wide = (K, K), (M, K)
    return ChainRoom(
        np.empty(square, kind), np.empty(K, kind), np.full(1, -1, np.int64), np.empty(wide, kind),
        np.empty(wide, kind), np.empty(M, np.int32),
    )  # fmt: skip


@by_type
def read_transitions(chains: Chains, state: Any, room: ChainRoom) -> None:
    """The weights of transitions, if an update has changed them since they were last read."""
    if room.stamp[0] == state.counts.updates:
        return
    room.stamp[0] = state.counts.updates
    K, now = room.highest.shape[0], state.now
    for y in range(K):
        room.highest[y] = -np.inf
    for x in range(K):
        for y in range(K):
            w = -np.inf
            if chains.mask[x, y]:
                w = now.d * shrink(state.a[x * K + y], now.tau * slope_of(state, x * K + y))
            room.transitions[y, x] = w
            room.highest[y] = max(room.highest[y], room.transitions[y, x])


@kernel
def add_row(a: np.ndarray, first: int, value: float, out: np.ndarray) -> None:
    """out ← out + value·a[first …]: the weights of an attribute's labels, times its value."""
    j = np.uint64(first)
    for y in range(np.uint64(out.shape[0])):
        out[y] += a[j + y] * value


@kernel
def add_shrunk_row(
    a: np.ndarray, v: np.ndarray, first: int, value: float, tau: float, slope: float, out: np.ndarray
) -> None:
    """``add_row`` under a threshold."""
    j: Any = np.uint64(first)
    for y in range(np.uint64(out.shape[0])):
        threshold = tau * (v[j + y] if v.shape[0] > 0 else slope)
        out[y] += shrink(a[j + y], threshold) * value


@by_type
def score_tokens(chains: Chains, i: int, state: Any, room: ChainRoom) -> int:
    """The scores of all labels of the tokens of example i; returns how many tokens there are."""
    K, first, end = room.highest.shape[0], chains.starts[i], chains.starts[i + 1]
    d, tau, slope = room.highest.dtype.type(state.now.d), state.now.tau, state.now.slope
    for t in range(first, end):
        out = room.emissions[t - first]
        for y in range(K):
            out[y] = 0.0
        for p in range(np.uint64(chains.rows[t]), np.uint64(chains.rows[t + 1])):
            j = K * (K + np.int64(chains.attributes[p]))
            value = room.highest.dtype.type(single(chains.values[p]))
            if tau > 0.0:
                add_shrunk_row(state.a, state.v, j, value, tau, slope, out)
            else:
                add_row(state.a, j, value, out)
        for y in range(K):
            out[y] *= d
    if first < end:
        for y in range(K):
            if not chains.mask[K, y]:
                room.emissions[0, y] = -np.inf
            if not chains.mask[K + 1, y]:
                room.emissions[end - first - 1, y] = -np.inf
    return int(end - first)


@by_type
def best_labels(state: Any, tilt: float, i: int, room: ChainRoom, chains: Chains) -> float:
    """The labels of example i with the highest score + tilt·(how many are wrong) into ``room``; returns that score."""
    read_transitions(chains, state, room)
    length = score_tokens(chains, i, state, room)
    for t in range(length if tilt != 0.0 else 0):
        for y in range(room.highest.shape[0]):
            if y != chains.gold[chains.starts[i] + t]:
                room.emissions[t, y] += room.highest.dtype.type(tilt)
    if length == 0:
        return 0.0
    look_back(length, room)
    return trace(length, room)


@kernel
def look_back(length: int, room: ChainRoom) -> None:
    """best[t, x] ← emissions[t, x] + max_y transitions[y, x] + best[t + 1, y], from the end.

    From there, so that the first of equal outputs is found by going forward. A label y is left out where it can be the
    best after no x at all: where its score and the greatest of its transitions are no more than what every x has.
    """
    K = room.highest.shape[0]
    for x in range(K):
        room.best[length - 1, x] = room.emissions[length - 1, x]
    for back in range(1, length):
        t = length - 1 - back
        row, after, emissions = room.best[t], room.best[t + 1], room.emissions[t]
        top = 0
        for y in range(1, K):
            if after[y] > after[top]:
                top = y
        for x in range(K):
            row[x] = room.transitions[top, x] + after[top]
        least = row[0]
        for x in range(1, K):
            least = min(least, row[x])
        for y in range(K):
            if y != top and after[y] + room.highest[y] > least:
                raise_row(row, room.transitions[y], after[y])
        for x in range(K):
            row[x] += emissions[x]


@kernel
def raise_row(row: np.ndarray, transitions: np.ndarray, score: float) -> None:
    """row[x] ← max(row[x], transitions[x] + score)."""
    for x in range(np.uint64(row.shape[0])):
        row[x] = max(row[x], transitions[x] + score)


@kernel
def trace(length: int, room: ChainRoom) -> float:
    """The best labels, from the front; returns their score."""
    K, y = room.highest.shape[0], 0
    for x in range(1, K):
        if room.best[0, x] > room.best[0, y]:
            y = x
    score = room.best[0, y]
    room.output[0] = y
    for t in range(1, length):
        x, y = y, 0
        for other in range(1, K):
            if room.transitions[other, x] + room.best[t, other] > room.transitions[y, x] + room.best[t, y]:
                y = other
        room.output[t] = y
    return float(score)


def predictor_with(weights: np.ndarray) -> Predictor:
    """A predictor with these weights (float32 or float64 [D]), for kernels."""
    return predictor_view(new_state(0)._replace(cells=np.ascontiguousarray(weights)))


def decode(chains: Chains, weights: np.ndarray) -> np.ndarray:
    """int32 [T]: the best labels of all tokens; of equally good sequences the first in the order of labels.

    weights: float32 or float64 [D]; scores are computed with the same precision.
    """
    labels = np.empty(chains.rows.size - 1, np.int32)
    decode_all(chains, predictor_with(weights), room_for(chains, weights.dtype), labels)
    return labels


@kernel
def decode_all(chains: Chains, state: Predictor, room: ChainRoom, labels: np.ndarray) -> None:
    """The best labels of all examples."""
    for i in range(chains.starts.shape[0] - 1):
        best_labels(state, 0.0, i, room, chains)
        first = chains.starts[i]
        for t in range(first, chains.starts[i + 1]):
            labels[t] = room.output[t - first]


def k_best(chains: Chains, weights: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(float64 [L, k], int32 [k, T]): scores and labels of the k best sequences of every example, best first.

    Every label of a token keeps the k best ways on from there (the n-best form of Viterbi's algorithm, Schwartz & Chow
    1990), from the end, so that equals come in the order of labels. Where there are fewer, the rest has the score −∞
    and the labels −1.
    """
    if k < 1:
        raise ValueError(f"found k={k}; expected 1 or more")
    room, kind, K = room_for(chains, weights.dtype.type), weights.dtype, chains.labels
    M = room.emissions.shape[0]
    scores, labels = np.full((chains.example_count, k), -np.inf), np.full((k, chains.rows.size - 1), UNKNOWN, np.int32)
    ways = Ways(
        np.empty((M, K, k), kind), np.zeros((M, K, k, 2), np.int32), np.empty((M, K), np.int32),
        np.empty((k, 2), np.int32), np.empty(K, np.int32), np.zeros(K, kind),
    )  # fmt: skip
    find_k_best(chains, predictor_with(weights), room, ways, scores, labels)
    return scores, labels


def named_k_best(chains: Chains, weights: np.ndarray, k: int, names: Sequence[R]) -> list[list[tuple[float, list[R]]]]:
    """For every example up to k (score, labels by their ``names``), the best ones, best first; see ``k_best``."""
    scores, labels = k_best(chains, weights, k)
    best = [chains.split([names[label] for label in row]) for row in labels.tolist()]
    return [
        [(score, best[r][i]) for r, score in enumerate(row) if score > -np.inf] for i, row in enumerate(scores.tolist())
    ]


class Ways(NamedTuple):
    """The k best ways from every label x of M tokens on, best first."""

    scores: np.ndarray  # [M, K, k]
    steps: np.ndarray  # int32 [M, K, k, 2]: the next label, and which of its ways
    sizes: np.ndarray  # int32 [M, K]: how many there are
    firsts: np.ndarray  # int32 [k, 2]: the labels that the k best of all begin with, and which of their ways
    heads: np.ndarray  # int32 [K]: scratch, how many of each label's ways have been taken
    zeros: np.ndarray  # [K]


@kernel
def merge_ways(
    bonus: np.ndarray, scores: np.ndarray, sizes: np.ndarray, heads: np.ndarray, best: np.ndarray, steps: np.ndarray
) -> int:
    """The k best of the ways from all labels, with a ``bonus`` for each label: their scores, labels and numbers among
    the ways of these; returns how many there are."""
    heads[:] = 0
    for count in range(best.shape[0]):
        top, highest = -1, -np.inf
        for y in range(heads.shape[0]):
            if heads[y] < sizes[y] and bonus[y] + scores[y, heads[y]] > highest:
                top, highest = y, bonus[y] + scores[y, heads[y]]
        if top < 0:
            return count
        best[count], steps[count, 0], steps[count, 1] = highest, top, heads[top]
        heads[top] += 1
    return int(best.shape[0])


@kernel
def find_k_best(
    chains: Chains, state: Predictor, room: ChainRoom, ways: Ways, scores: np.ndarray, labels: np.ndarray
) -> None:
    """The k best labels of all examples; an example without tokens has one, of score 0."""
    read_transitions(chains, state, room)
    for i in range(chains.starts.shape[0] - 1):
        length, first = score_tokens(chains, i, state, room), chains.starts[i]
        if length == 0:
            scores[i, 0] = 0.0
            continue
        for back in range(length):
            t = length - 1 - back
            for x in range(ways.heads.shape[0]):
                count, best = 1, ways.scores[t, x]
                if back == 0:
                    best[0] = 0.0
                else:
                    bonus, steps = room.transitions[:, x], ways.steps[t, x]
                    count = merge_ways(bonus, ways.scores[t + 1], ways.sizes[t + 1], ways.heads, best, steps)
                for r in range(count):
                    best[r] += room.emissions[t, x]
                ways.sizes[t, x] = count if room.emissions[t, x] > -np.inf else 0
        count = merge_ways(ways.zeros, ways.scores[0], ways.sizes[0], ways.heads, scores[i], ways.firsts)
        for r in range(count):
            step = ways.firsts[r]
            for t in range(length):
                labels[r, first + t] = step[0]
                step = ways.steps[t, step[0], step[1]]


@kernel
def differing_columns(data: ListArrays, sums: np.ndarray, i: int, room: ChainRoom, chains: Chains) -> tuple[int, float]:
    """Write φ(y*) − φ(y') into ``data``; returns how many columns, −1 for equal ones, and how many labels are wrong.

    sums: float64 [D], all 0 before and after.
    """
    first, K, mentions, wrong = chains.starts[i], room.highest.shape[0], 0, 0
    before: Any = 0
    best_before: Any = 0
    for t in range(first, chains.starts[i + 1]):
        gold, best = np.int64(chains.gold[t]), np.int64(room.output[t - first])
        if gold != best:
            wrong += 1
            for p in range(np.uint64(chains.rows[t]), np.uint64(chains.rows[t + 1])):
                j = K * (K + np.int64(chains.attributes[p]))
                value = single(chains.values[p])
                mentions = note(data.columns, sums, mentions, j + gold, value)
                mentions = note(data.columns, sums, mentions, j + best, -value)
        if t > first and (gold != best or before != best_before):
            mentions = note(data.columns, sums, mentions, before * K + gold, 1.0)
            mentions = note(data.columns, sums, mentions, best_before * K + best, -1.0)
        before, best_before = gold, best
    count = 0
    for r in range(mentions):
        j = np.int64(data.columns[r])
        data.columns[count], data.values[count] = j, sums[j]
        count += sums[j] != 0.0
        sums[j] = 0.0
    return int(count) if wrong > 0 else -1, float(wrong)


@kernel
def note(columns: np.ndarray, sums: np.ndarray, count: int, j: int, value: float) -> int:
    """Add ``value`` to the sum of column j, which is noted wherever its sum is 0; returns the new ``count``."""
    columns[count] = j
    count += sums[j] == 0.0
    sums[j] += value
    return count
