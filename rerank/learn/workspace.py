"""What epoch kernels share: a view of the corpus, scratch space, counters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rerank.corpus import Corpus
from rerank.learn.log import LogRoom
from rerank.learn.losses import PAIRWISE

# Indices of Tally.
LISTS, MISTAKES, UPDATES, LOSS, RADIUS = range(5)


class EpochStats(NamedTuple):
    """What happened in one pass (or a part of one)."""

    lists: int
    mistakes: int  # lists whose oracle did not score strictly highest
    updates: int
    loss: float  # summed over the lists, before their updates
    radius: float  # largest norm of an update's difference vector φ(y*) − φ(y'), base score included
    nonzero_weights: int  # of the last predictor


class Lists(NamedTuple):
    """The arrays of a Corpus that training reads, and the oracles."""

    lists: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    base: np.ndarray
    gain: np.ndarray
    weight: np.ndarray
    oracle: np.ndarray  # int64 [L], -1 for empty lists


class Scratch(NamedTuple):
    """Space that kernels write and nobody reads afterwards; M candidates of the longest list, T its nonzeros."""

    scores: np.ndarray  # float64 [M]
    who: np.ndarray  # int64 [M]
    a: np.ndarray  # float64 [M]
    g: np.ndarray  # float64 [D]
    seen: np.ndarray  # int64 [D]: -1 at first
    touched: np.ndarray  # int64 [D]


def view(corpus: Corpus, oracle: np.ndarray) -> Lists:
    """The corpus for kernels; ``oracle`` is frozen like all else, so that no kernel compiles twice."""
    frozen = np.ascontiguousarray(oracle, dtype=np.int64).view()
    frozen.flags.writeable = False
    arrays = (corpus.lists, corpus.rows, corpus.columns, corpus.values, corpus.base, corpus.gain, corpus.weight)
    return Lists(*arrays, frozen)


def scratch(corpus: Corpus) -> Scratch:
    """Scratch space for ``corpus``."""
    longest = max(2, int(np.diff(corpus.lists).max(initial=0)))
    D = corpus.width
    numbers = np.empty(longest), np.empty(longest, np.int64), np.empty(longest)
    return Scratch(*numbers, np.empty(D), np.full(D, -1, np.int64), np.empty(D, np.int64))


def log_room(corpus: Corpus, order: np.ndarray, loss: int) -> LogRoom:
    """Room for every list of ``order`` to update."""
    n = order.size
    entries = 2 * n if loss in PAIRWISE else int(np.diff(corpus.lists)[order].sum())
    lists, counts, survived = np.empty((3, n), np.int64)
    return LogRoom(np.zeros(2, np.int64), lists, counts, survived, np.empty(entries, np.int64), np.empty(entries))


def parts(order: np.ndarray, points: int) -> Iterator[np.ndarray]:
    """``order`` (int64) in ``points`` parts of nearly equal length."""
    yield from (part for part in np.array_split(np.ascontiguousarray(order, dtype=np.int64), max(1, points)))


def stats_of(tally: np.ndarray, nonzero: int) -> EpochStats:
    """Counters (float64 [5]) as EpochStats."""
    return EpochStats(
        lists=int(tally[LISTS]),
        mistakes=int(tally[MISTAKES]),
        updates=int(tally[UPDATES]),
        loss=float(tally[LOSS]),
        radius=float(np.sqrt(tally[RADIUS])),
        nonzero_weights=nonzero,
    )
