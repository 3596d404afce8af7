"""The best labels of a chain by Viterbi's algorithm (1967), exactly; of equals, the first in the order of labels."""

from typing import Any

import numpy as np

from rerank.contrib.structures.chain import ChainRoom, Chains, add_cost, read_transitions, score_tokens
from rerank.kernels.by_type import by_type
from rerank.kernels.compile import kernel
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
