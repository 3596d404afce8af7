"""The value of the order of a list's candidates, at a point and along a line."""

import numpy as np

from rerank.kernels.compile import kernel
from rerank.learn.mert.error_surface import is_ahead

NDCG, AVERAGE_PRECISION, RECIPROCAL_RANK, RECALL, PRECISION, EXPECTED_RECIPROCAL_RANK = range(6)


@kernel
def order_value(kind: int, k: int, useful: np.ndarray, order: np.ndarray, first: int, last: int, ideal: float) -> float:
    """The measure ``kind`` of a list's first k candidates, order[first:last]; useful, ideal: see ``OrderMetric``."""
    value, found, left = 0.0, 0.0, 1.0
    for r in range(min(k, last - first)):
        u = useful[order[first + r]]
        if u == 0.0:
            continue
        found += u
        if kind == NDCG:
            value += u / np.log2(r + 2.0)
        elif kind == AVERAGE_PRECISION:
            value += found / (r + 1.0)
        elif kind == RECIPROCAL_RANK:
            return 1.0 / (r + 1.0)
        elif kind == EXPECTED_RECIPROCAL_RANK:
            value += left * u / (r + 1.0)
            left *= 1.0 - u
        else:
            value += 1.0
    return value / (k if kind == PRECISION else ideal if kind != EXPECTED_RECIPROCAL_RANK else 1.0)


@kernel
def order_values(
    kind: int, k: int, none: float, lists: np.ndarray, order: np.ndarray, useful: np.ndarray, ideal: np.ndarray,
    values: np.ndarray,
) -> None:  # fmt: skip
    """``order_value`` of every list to ``values``; ``none`` where nothing in it is relevant."""
    for i in range(values.shape[0]):
        values[i] = none
        if ideal[i] > 0.0:
            values[i] = order_value(kind, k, useful, order, lists[i], lists[i + 1], ideal[i])


@kernel
def order_crossings(
    lists: np.ndarray, intercept: np.ndarray, slope: np.ndarray, useful: np.ndarray, starts: np.ndarray, at: np.ndarray
) -> int:
    """The γ at which two candidates of a list that are not equally useful score the same, list after list to
    ``at`` (float64 [E]), and where those of a list begin to ``starts`` (int64 [L + 1]); with an empty ``at`` they are
    only counted. Returns E.

    A candidate scores intercept + γ·slope. Where equally useful ones cross, nothing is lost or gained.
    """
    E, fill = 0, at.shape[0] > 0
    for i in range(lists.shape[0] - 1):
        starts[i] = E
        for y in range(lists[i], lists[i + 1]):
            for z in range(y + 1, lists[i + 1]):
                if slope[y] != slope[z] and useful[y] != useful[z]:
                    if fill:
                        at[E] = (intercept[z] - intercept[y]) / (slope[y] - slope[z])
                    E += 1
    starts[lists.shape[0] - 1] = E
    return E


@kernel
def walk_orders(
    kind: int, k: int, none: float, lists: np.ndarray, intercept: np.ndarray, slope: np.ndarray, ties: np.ndarray,
    useful: np.ndarray, ideal: np.ndarray, starts: np.ndarray, at: np.ndarray, order: np.ndarray, change: np.ndarray,
) -> float:  # fmt: skip
    """The values of all lists along a line: their sum for γ → −∞ is returned, and ``change`` (float64 [E]) gets how
    much every crossing adds to it.

    ``at`` (float64 [E]): the crossings of list i, rising, are at starts[i]..starts[i + 1]; ``order`` (int64 [N]): the
    candidates in any order within lists. Between crossings a list is sorted anew: by insertion, as little changes.
    """
    total = 0.0
    for i in range(lists.shape[0] - 1):
        before = none
        for e in range(starts[i] - 1, starts[i + 1]):
            here, there = e >= starts[i], e + 1 < starts[i + 1]
            if here:
                change[e] = 0.0
            if ideal[i] <= 0.0 or (here and there and not at[e] < at[e + 1]):
                continue
            gamma = 0.0
            if here and there:
                gamma = at[e] + (at[e + 1] - at[e]) / 2
            elif here:
                gamma = at[e] + max(1.0, abs(at[e]))
            elif there:
                gamma = at[e + 1] - max(1.0, abs(at[e + 1]))
            highest = lists[i + 1] if here else lists[i]  # the first place with another candidate than before
            for r in range(lists[i] + 1, lists[i + 1]):
                y, place = order[r], r
                while place > lists[i] and is_ahead(y, order[place - 1], gamma, intercept, slope, ties):
                    order[place] = order[place - 1]
                    place -= 1
                if place < r:
                    order[place] = y
                    highest = min(highest, place)
            value = before
            if highest - lists[i] < k:
                value = order_value(kind, k, useful, order, lists[i], lists[i + 1], ideal[i])
            if here:
                change[e] = value - before
            before = value
            if not here:
                total += value
        if ideal[i] <= 0.0:
            total += none
    return total
