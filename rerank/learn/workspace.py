"""The common part of epoch kernels: a view of the corpus, scratch space, counters."""

from typing import Any, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.learn.log import LogBuffers
from rerank.learn.pairs import ORACLES

# Of a column's values among candidates: the least, the greatest, and how many have one.
SPREAD = np.dtype((np.record, [("least", float), ("greatest", float), ("owners", np.int64)]))


class EpochStats(NamedTuple):
    """The counts of one pass."""

    lists: int
    mistakes: int  # lists whose oracle did not score strictly highest; with other pair sources: whose y* not above y'
    updates: int
    loss: float  # summed over the lists, before their updates
    skipped: int  # updates that were left out because numbers became too small for them


TALLY = np.dtype((np.record, list(EpochStats.__annotations__.items())))


def new_tally() -> Any:
    """EpochStats for kernels, all 0: a record."""
    return np.zeros(1, TALLY)[0]


class ListArrays(NamedTuple):
    """The arrays of a Corpus that training reads, the oracles, and which pairs of candidates are compared."""

    lists: np.ndarray
    rows: np.ndarray
    columns: np.ndarray  # as uint32: numba need not check for negative ones
    values: np.ndarray  # float32: kernels read single(values[p])
    base: np.ndarray
    gain: np.ndarray
    weight: np.ndarray
    oracle: np.ndarray  # int64 [L], -1 for empty lists
    pairs: Any  # the settings of a pair source
    free: int  # how many columns, the first ones, have no penalty


class Scratch(NamedTuple):
    """Space that kernels write; M candidates of the longest list, T columns of the longest subgradient."""

    scores: np.ndarray  # float64 [M]
    who: np.ndarray  # int64 [M]: the candidates of a subgradient
    a: np.ndarray  # float64 [M]: and their coefficients
    column: np.ndarray  # uint32 [T], or as many as a list has nonzeros: of a subgradient or difference vector
    value: np.ndarray  # float64 [T]: and their values
    extra: np.ndarray  # float64 [T]: what else a learner needs per column
    spread: np.ndarray  # SPREAD [T + 1], or [0] as ``sums``
    sums: np.ndarray  # float64 [D], all 0, or [0] where no subgradient has more than two candidates: see ``accumulate``


def view(corpus: Corpus, oracle: np.ndarray, pairs: Any = ORACLES) -> ListArrays:
    """The corpus for kernels.

    Offsets and oracles lie side by side, so that a list visited at random costs one memory access for both. So that no
    kernel compiles twice, all arrays are frozen, and there is room for two lists at least: a single number would be
    contiguous, which is another type.
    """
    sides = np.full((max(corpus.list_count, 2) + 1, 2), -1)
    sides[: corpus.list_count + 1, 0], sides[: corpus.list_count, 1] = corpus.lists, oracle
    sides.flags.writeable = False
    return ListArrays(
        lists=sides[:, 0],
        rows=corpus.rows,
        columns=corpus.columns.view(np.uint32),
        values=corpus.values,
        base=corpus.base,
        gain=corpus.gain,
        weight=corpus.weight,
        oracle=sides[:-1, 1],
        pairs=pairs,
        free=corpus.free,
    )


def scratch_for(corpus: Corpus, pairwise: bool) -> Scratch:
    """Scratch space for subgradients of a list, or where they are ``pairwise``, of two candidates."""
    longest = max(2, int(np.diff(corpus.lists).max(initial=0)))
    widest = mentions = 2 * int(np.diff(corpus.rows).max(initial=0)) + 1  # the base score may be one more column
    D = 0
    if not pairwise:
        D, nonzeros = corpus.width, int(np.diff(corpus.rows[corpus.lists]).max(initial=0))
        widest, mentions = max(widest, 1 + min(D, nonzeros)), max(mentions, 1 + nonzeros)
    return Scratch(
        scores=np.empty(longest),
        who=np.empty(longest, np.int64),
        a=np.empty(longest),
        column=np.empty(mentions, np.uint32),
        value=np.empty(widest),
        extra=np.empty(widest),
        spread=np.empty(widest + 1 if D else 0, SPREAD),
        sums=np.zeros(D),
    )


def log_buffers(corpus: Corpus, order: np.ndarray, pairwise: bool, top: int) -> LogBuffers:
    """Room for every list of ``order`` to update, ``top`` times where the loss is pairwise."""
    n = top * order.size
    entries = 2 * n if pairwise else int(np.diff(corpus.lists)[order].sum())
    lists, counts, survived = np.empty((3, n), np.int64)
    return LogBuffers(
        np.zeros(2, np.int64), lists, counts, survived, np.empty(n), np.empty(entries, np.int64), np.empty(entries)
    )
