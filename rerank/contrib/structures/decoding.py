"""The best labels of a chain by Viterbi's algorithm (1967), the best k, and how probable each label is.

All are exact; of equals, the first in the order of labels.
"""

from typing import Any, NamedTuple

import numpy as np

from rerank.contrib.structures.chain import (
    UNKNOWN,
    ChainRoom,
    Chains,
    add_cost,
    read_transitions,
    room_for,
    score_tokens,
)
from rerank.contrib.structures.crf import all_marginals, marginal_room
from rerank.kernels.by_type import by_type
from rerank.kernels.compile import kernel
from rerank.learn.predictor import State, fresh
from rerank.learn.scoring import single
from rerank.learn.workspace import ListArrays

HASH, HIGH = np.uint64(2654435769), np.uint64(16)  # 2^32 divided by the golden ratio (Knuth, volume 3, section 6.4)


@by_type
def best_labels(state: Any, tilt: float, i: int, room: ChainRoom, chains: Chains) -> float:
    """The labels of example i with the highest score + tilt·(how many are wrong) into ``room``; returns that score."""
    read_transitions(chains, state, room)
    length = score_tokens(chains, i, state, room)
    if tilt != 0.0:
        add_cost(chains, i, tilt, room)
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


@kernel
def differing_columns(data: ListArrays, i: int, room: ChainRoom, chains: Chains) -> tuple[int, float]:
    """Write φ(y*) − φ(y') into ``data``; returns how many columns, −1 for equal ones, and how many labels are wrong."""
    first, K, count, wrong = chains.starts[i], room.highest.shape[0], 0, 0
    before: Any = 0
    best_before: Any = 0
    for t in range(first, chains.starts[i + 1]):
        gold, best = np.int64(chains.gold[t]), np.int64(room.output[t - first])
        if gold != best:
            wrong += 1
            for p in range(np.uint64(chains.rows[t]), np.uint64(chains.rows[t + 1])):
                j = K * (K + np.int64(chains.attributes[p]))
                value = 1.0 if chains.values.shape[0] == 0 else single(chains.values[p])
                count = add_entry(data, room.slots, count, j + gold, value)
                count = add_entry(data, room.slots, count, j + best, -value)
        if t > first and (gold != best or before != best_before):
            count = add_entry(data, room.slots, count, before * K + gold, 1.0)
            count = add_entry(data, room.slots, count, best_before * K + best, -1.0)
        before, best_before = gold, best
    for r in range(count):
        clear(room.slots, data.columns[r])
    return int(count) if wrong > 0 else -1, float(wrong)


@kernel
def slot_of(slots: np.ndarray, column: int) -> int:
    """The place where the search for a column begins."""
    return int(int((HASH * np.uint64(column)) >> HIGH) & (slots.shape[0] - 1))


@kernel
def add_entry(data: ListArrays, slots: np.ndarray, count: int, column: int, value: float) -> int:
    """Add ``value`` to the entry of ``column``, a new one if it has none; returns how many entries there are."""
    slot = slot_of(slots, column)
    while slots[slot] >= 0:
        if data.columns[slots[slot]] == column:
            data.values[slots[slot]] += value
            return count
        slot = (slot + 1) & (slots.shape[0] - 1)
    slots[slot], data.columns[count], data.values[count] = count, column, value
    return count + 1


@kernel
def clear(slots: np.ndarray, column: int) -> None:
    """Empty the slots from a column's first one to the next that is empty: what came after it lies there too."""
    slot = slot_of(slots, column)
    while slots[slot] >= 0:
        slots[slot] = -1
        slot = (slot + 1) & (slots.shape[0] - 1)


class BestRoom(NamedTuple):
    """Space for the k best labels of M tokens; way r from label x at token t is the r-th best."""

    chain: ChainRoom
    scores: np.ndarray  # [M, K, k]
    label: np.ndarray  # int32 [M, K, k]: the next label on the way
    way: np.ndarray  # int32 [M, K, k]: and the way from there
    known: np.ndarray  # int32 [M, K]: how many ways there are
    heads: np.ndarray  # int32 [K]: how many of each label's ways have been taken
    total: np.ndarray  # [k]: scores of what was found
    output: np.ndarray  # int32 [k, M]


def best_room(chains: Chains, k: int, kind: type) -> BestRoom:
    """Space for the k best labels of ``chains``, with scores of this type."""
    chain, integer = room_for(chains, kind), np.int32
    M, K = chain.emissions.shape
    return BestRoom(
        chain, np.empty((M, K, k), kind), np.empty((M, K, k), integer), np.empty((M, K, k), integer),
        np.empty((M, K), integer), np.empty(K, integer), np.empty(k, kind), np.empty((k, M), integer),
    )  # fmt: skip


@by_type
def best_k_labels(state: Any, i: int, k: int, room: BestRoom, chains: Chains) -> int:
    """The k best labels of example i into ``room``; returns how many there are: one, of score 0, without tokens."""
    read_transitions(chains, state, room.chain)
    length = score_tokens(chains, i, state, room.chain)
    if length == 0:
        room.total[0] = 0.0
        return 1
    K, emissions = room.heads.shape[0], room.chain.emissions
    for back in range(length):
        t = length - 1 - back
        for x in range(K):
            room.known[t, x] = 0
            if emissions[t, x] == -np.inf:
                continue
            if back == 0:
                room.scores[t, x, 0], room.known[t, x] = emissions[t, x], 1
            else:
                find_ways(t, x, k, room)
    return read_ways(length, k, room)


@kernel
def find_ways(t: int, x: int, k: int, room: BestRoom) -> None:
    """The k best ways from label x at token t, from those of the next token, which are merged."""
    transitions, scores = room.chain.transitions, room.scores[t + 1]
    room.heads[:] = 0
    for r in range(k):
        top, highest = -1, -np.inf
        for y in range(room.heads.shape[0]):
            if room.heads[y] < room.known[t + 1, y]:
                score = transitions[y, x] + scores[y, room.heads[y]]
                if score > highest:
                    top, highest = y, score
        if top < 0:
            return
        room.scores[t, x, r] = room.chain.emissions[t, x] + highest
        room.label[t, x, r], room.way[t, x, r] = top, room.heads[top]
        room.heads[top] += 1
        room.known[t, x] += 1


@kernel
def read_ways(length: int, k: int, room: BestRoom) -> int:
    """The k best of all ways from the first token, as labels; returns how many there are."""
    room.heads[:] = 0
    for r in range(k):
        top, highest = -1, -np.inf
        for y in range(room.heads.shape[0]):
            if room.heads[y] < room.known[0, y] and room.scores[0, y, room.heads[y]] > highest:
                top, highest = y, room.scores[0, y, room.heads[y]]
        if top < 0:
            return r
        room.total[r] = highest
        x: Any = top
        way: Any = np.int64(room.heads[top])
        room.heads[top] += 1
        for t in range(length):
            room.output[r, t] = x
            if t + 1 < length:
                x, way = np.int64(room.label[t, x, way]), np.int64(room.way[t, x, way])
    return k


def state_of(weights: np.ndarray) -> State:
    """A predictor with these weights (float32 or float64 [D]) for ``best_labels`` and the like."""
    return fresh(0)._replace(cells=np.ascontiguousarray(weights))


def _checked(chains: Chains, weights: np.ndarray) -> State:
    if weights.shape != (chains.width,):
        raise ValueError(f"found weights of shape {weights.shape}; expected ({chains.width},) for these chains")
    return state_of(weights)


def decode(chains: Chains, weights: np.ndarray) -> np.ndarray:
    """int32 [T]: the best labels of all tokens; of equally good sequences the first in the order of labels.

    weights: float32 or float64 [D]; scores are computed with the same precision.
    """
    labels = np.empty(chains.rows.size - 1, np.int32)
    decode_all(chains, _checked(chains, weights), room_for(chains, weights.dtype), labels)
    return labels


@kernel
def decode_all(chains: Chains, state: State, room: ChainRoom, labels: np.ndarray) -> None:
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
    scores, labels = np.full((chains.example_count, k), -np.inf), np.full((k, chains.rows.size - 1), UNKNOWN, np.int32)
    find_k_best(chains, _checked(chains, weights), k, best_room(chains, k, weights.dtype.type), scores, labels)
    return scores, labels


@kernel
def find_k_best(
    chains: Chains, state: State, k: int, room: BestRoom, scores: np.ndarray, labels: np.ndarray
) -> None:  # fmt: skip
    """The k best labels of all examples."""
    for i in range(chains.starts.shape[0] - 1):
        first = chains.starts[i]
        for r in range(best_k_labels(state, i, k, room, chains)):
            scores[i, r] = room.total[r]
            for t in range(first, chains.starts[i + 1]):
                labels[r, t] = room.output[r, t - first]


def marginals(chains: Chains, weights: np.ndarray) -> np.ndarray:
    """float64 [T, K]: P(label) of every token under P(y) ∝ e^score(y)."""
    probabilities = np.empty((chains.rows.size - 1, chains.labels))
    all_marginals(chains, _checked(chains, np.asarray(weights, np.float64)), marginal_room(chains), probabilities)
    return probabilities
