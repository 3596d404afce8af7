"""How many items any two candidates of a list share: brackets of trees, n-grams of texts."""

from typing import NamedTuple

import numpy as np

from rerank.metrics.decoding.overlap_kernel import ngram_hashes, overlaps


class Items(NamedTuple):
    """What N candidates are bags of, candidate after candidate."""

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
    found = Items(np.empty(room, np.uint64), np.empty(room, np.int32), np.empty(room, np.int8))
    at, kinds = 0, 0
    for number, (first, units, orders) in enumerate(sides):
        at = ngram_hashes(first, np.array(units, np.uint64), orders, np.uint64(number + 1), *found, at, kinds)
        kinds += orders
    return Items(*(array[:at] for array in found))


def lengths(first: np.ndarray, orders: int) -> np.ndarray:
    """float64 [orders, N]: the number of n-grams of every text, by order."""
    return np.maximum(np.diff(first) - np.arange(orders)[:, None], 0).astype(np.float64)
