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
from rerank.learn.predictor import Predictor, fresh, named
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


def state_of(weights: np.ndarray) -> Predictor:
    """A predictor with these weights (float32 or float64 [D]) for ``best_labels`` and the like."""
    return named(fresh(0)._replace(cells=np.ascontiguousarray(weights)))


def checked_state(chains: Chains, weights: np.ndarray) -> Predictor:
    """The same for these chains alone; a ValueError for weights of other columns."""
    if weights.shape != (chains.width,):
        raise ValueError(f"found weights of shape {weights.shape}; expected ({chains.width},) for these chains")
    return state_of(weights)


def decode(chains: Chains, weights: np.ndarray) -> np.ndarray:
    """int32 [T]: the best labels of all tokens; of equally good sequences the first in the order of labels.

    weights: float32 or float64 [D]; scores are computed with the same precision.
    """
    labels = np.empty(chains.rows.size - 1, np.int32)
    decode_all(chains, checked_state(chains, weights), room_for(chains, weights.dtype), labels)
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
        np.empty((M, K, k), kind), np.empty((M, K, k, 2), np.int32), np.empty((M, K), np.int32), np.empty(K, np.int32),
        np.zeros(K, kind),
    )  # fmt: skip
    find_k_best(chains, checked_state(chains, weights), room, ways, scores, labels)
    return scores, labels


class Ways(NamedTuple):
    """The k best ways from every label x of M tokens on, best first."""

    scores: np.ndarray  # [M, K, k]
    steps: np.ndarray  # int32 [M, K, k, 2]: the next label, and which of its ways
    sizes: np.ndarray  # int32 [M, K]: how many there are
    heads: np.ndarray  # int32 [K]: scratch, how many of each label's ways have been taken
    none: np.ndarray  # [K]: zeros


@kernel
def best_head(added: np.ndarray, scores: np.ndarray, sizes: np.ndarray, heads: np.ndarray) -> int:
    """The label whose next way is best, with what is ``added`` to it; −1 where all are taken."""
    top, highest = -1, -np.inf
    for y in range(heads.shape[0]):
        if heads[y] < sizes[y] and added[y] + scores[y, heads[y]] > highest:
            top, highest = y, added[y] + scores[y, heads[y]]
    return top


@kernel
def find_k_best(
    chains: Chains, state: Predictor, room: ChainRoom, ways: Ways, scores: np.ndarray, labels: np.ndarray
) -> None:
    """The k best labels of all examples; an example without tokens has one, of score 0."""
    K, heads, k = ways.heads.shape[0], ways.heads, scores.shape[1]
    read_transitions(chains, state, room)
    for i in range(chains.starts.shape[0] - 1):
        length, first = score_tokens(chains, i, state, room), chains.starts[i]
        if length == 0:
            scores[i, 0] = 0.0
            continue
        for back in range(length):
            t = length - 1 - back
            for x in range(K):
                emission, count = room.emissions[t, x], 0
                if emission > -np.inf and back == 0:
                    ways.scores[t, x, 0], count = emission, 1
                heads[:] = 0
                while emission > -np.inf and back > 0 and count < k:
                    y = best_head(room.transitions[:, x], ways.scores[t + 1], ways.sizes[t + 1], heads)
                    if y < 0:
                        break
                    ways.scores[t, x, count] = emission + (room.transitions[y, x] + ways.scores[t + 1, y, heads[y]])
                    ways.steps[t, x, count, 0], ways.steps[t, x, count, 1] = y, heads[y]
                    heads[y] += 1
                    count += 1
                ways.sizes[t, x] = count
        heads[:] = 0
        for r in range(k):
            label: Any = best_head(ways.none, ways.scores[0], ways.sizes[0], heads)
            if label < 0:
                break
            way: Any = np.int64(heads[label])
            scores[i, r] = ways.scores[0, label, way]
            heads[label] += 1
            for t in range(length):
                labels[r, first + t] = label
                if t + 1 < length:
                    step = ways.steps[t, label, way]
                    label, way = np.int64(step[0]), np.int64(step[1])


def marginals(chains: Chains, weights: np.ndarray) -> np.ndarray:
    """float64 [T, K]: P(label) of every token under P(y) ∝ e^score(y)."""
    probabilities = np.empty((chains.rows.size - 1, chains.labels))
    state = checked_state(chains, np.asarray(weights, np.float64))
    all_marginals(chains, state, marginal_room(chains), probabilities)
    return probabilities
