"""The number of items that any two candidates of a list share: brackets of trees, n-grams of texts."""

from typing import NamedTuple

import numpy as np

from rerank.data.symbols import combine
from rerank.kernels.compile import kernel


@kernel
def overlaps(
    order: np.ndarray, item: np.ndarray, owner: np.ndarray, kind: np.ndarray, who: np.ndarray, times: np.ndarray,
    common: np.ndarray, matched: np.ndarray,
) -> None:  # fmt: skip
    """matched[k, y, r] = Σ over the items of kind k of min(times in y, times in r).

    item uint64 [n], owner int32 [n], kind int8 [n]: an item, the candidate that has it, and what it counts as; order
    int64 [n]: the occurrences by item and, for each, by owner. ``who`` and ``times`` (int32 [N]) are scratch;
    ``common`` (int32 [K], zeros) and ``matched`` (int32 [K, N, N], zeros) are filled. An item that all candidates have
    equally often, as most have, is added to ``common`` instead: it counts for every pair.
    """
    n, N, at = order.shape[0], matched.shape[1], 0
    while at < n:
        first = item[order[at]]
        k = kind[order[at]]
        owners, equal = 0, True
        while at < n and item[order[at]] == first:
            y = owner[order[at]]
            if owners == 0 or who[owners - 1] != y:
                who[owners], times[owners] = y, 0
                owners += 1
            times[owners - 1] += 1
            at += 1
        for i in range(1, owners):
            equal = equal and times[i] == times[0]
        if owners == N and equal:
            common[k] += times[0]
            continue
        for i in range(owners):
            row = matched[k, who[i]]
            for j in range(owners):
                row[who[j]] += min(times[i], times[j])


@kernel
def add_expected(gains: np.ndarray, weights: np.ndarray, expected: np.ndarray) -> None:
    """expected[a, y] += Σ_r gains[y, r] · weights[a, r]: float64 [N, N], [A, N] → [A, N], summed in the order of r."""
    for a in range(weights.shape[0]):
        for y in range(gains.shape[0]):
            total = 0.0
            for r in range(gains.shape[1]):
                total += gains[y, r] * weights[a, r]
            expected[a, y] += total


@kernel
def ngram_hashes(
    first: np.ndarray, symbols: np.ndarray, orders: int, seed: np.uint64, item: np.ndarray, owner: np.ndarray,
    kind: np.ndarray, at: int, kinds: int,
) -> int:  # fmt: skip
    """The n-grams of all texts as hashes, from ``at`` on, those of one symbol of kind ``kinds``; returns the end."""
    for t in range(first.shape[0] - 1):
        for i in range(first[t], first[t + 1]):
            h = seed
            for j in range(i, min(i + orders, first[t + 1])):
                h = combine(h, np.uint64(symbols[j]))
                item[at], owner[at], kind[at] = h, t, kinds + j - i
                at += 1
    return at


class Items(NamedTuple):
    """The items that N candidates are bags of, candidate after candidate."""

    item: np.ndarray  # uint64 [n]
    owner: np.ndarray  # int32 [n], rising
    kind: np.ndarray  # int8 [n]: which count an item belongs to


def shared(items: Items, candidates: int, kinds: int) -> np.ndarray:
    """int32 [K, N, N]: how many items of every kind two candidates share, each as often as the one that has fewer."""
    matched, common = np.zeros((kinds, candidates, candidates), np.int32), np.zeros(kinds, np.int32)
    who, times = np.empty((2, candidates), np.int32)
    order = np.argsort(items.item, kind="stable")
    overlaps(order, *items, who, times, common, matched)
    return matched + common[:, None, None]


def ngrams(sides: list[tuple[np.ndarray, np.ndarray, int]]) -> Items:
    """The n-grams of N texts: for each side its units as int64 [N + 1] and unsigned [n], and its longest n-gram.

    The n-grams of the first side have the kinds 0, 1, ..., those of the next the kinds after these. They come side by
    side, so that ``owner`` rises within a side alone.
    """
    room = sum(units.size * orders for _, units, orders in sides)
    items = Items(np.empty(room, np.uint64), np.empty(room, np.int32), np.empty(room, np.int8))
    at, kinds = 0, 0
    for number, (first, units, orders) in enumerate(sides):
        at = ngram_hashes(first, np.array(units, np.uint64), orders, np.uint64(number + 1), *items, at, kinds)
        kinds += orders
    return Items(*(array[:at] for array in items))


def lengths(first: np.ndarray, orders: int) -> np.ndarray:
    """float64 [orders, N]: the number of n-grams of every text, by order."""
    return np.maximum(np.diff(first) - np.arange(orders)[:, None], 0).astype(np.float64)
