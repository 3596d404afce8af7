"""Templates for numbers that come with a list: Rank and BaseGap of its base scores, Given of its sparse features."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from rerank.base.ranges import Range
from rerank.features.marks import NUMBER, NUMBER_OFFSET, RANK_FROM, RANKS
from rerank.features.sink import Sink, begin, emit_value, put
from rerank.features.template import Symbols, TextTemplate
from rerank.features.text.agreement import bin_of
from rerank.features.text.view import TextView
from rerank.kernels.compile import kernel
from rerank.readers.nbest import NBestList


@kernel
def best_base(view: TextView) -> int:
    """The candidate with the highest base score, the first of several; 0 if there is none."""
    best = 0
    for y in range(1, view.base.shape[0]):
        if view.base[y] > view.base[best]:
            best = y
    return best


def ranks_of(view: TextView) -> np.ndarray:
    """int64 [N]: 1 + the number of candidates ahead of each by base score; among equals, the first comes first."""
    ranks = np.empty(view.base.size, np.int64)
    ranks[np.argsort(-view.base, kind="stable")] = np.arange(1, view.base.size + 1)
    return ranks


@kernel
def _emit_ranks(ranks: np.ndarray, sink: Sink, ids: np.ndarray, seeds: np.ndarray) -> None:
    for y in range(ranks.shape[0]):
        symbol = RANKS[bin_of(ranks[y], RANK_FROM)]
        for v in range(ids.shape[0]):
            emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), symbol), y, 1.0)


def _fire_rank(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
    """Sort, then run the kernel."""
    _emit_ranks(ranks_of(view), sink, ids, seeds)


@dataclass(frozen=True)
class Rank(TextTemplate):
    """The candidate's place in the list by base score, binned.

    >>> from rerank.features.fired import fired
    >>> fired("Rank", "a", "b")
    {'1': 1.0}

    One feature per candidate.
    """

    fire = staticmethod(_fire_rank)


@kernel
def _fire_gap(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    if view.base.shape[0] == 0:
        return
    best = view.base[best_base(view)]
    for y in range(view.base.shape[0]):
        for v in range(ids.shape[0]):
            units = int(min((best - view.base[y]) * 10.0 / options[v].bin, float(NUMBER_OFFSET)))
            emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), NUMBER[NUMBER_OFFSET + units]), y, 1.0)


@dataclass(frozen=True)
class BaseGap(TextTemplate):
    """The distance of the base score below the list's best, in units of ``bin``/10, cut to whole numbers up to 64.

    >>> from rerank.features.fired import fired
    >>> fired("BaseGap", "a", "b")
    {'0': 1.0}

    One feature per candidate.
    """

    bin: Annotated[int, Range(1, 1000)] = 5

    fire = staticmethod(_fire_gap)


@kernel
def _fire_given(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
    for y in range(view.base.shape[0]):
        for e in range(view.given_first[y], view.given_first[y + 1]):
            for v in range(ids.shape[0]):
                emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), view.given_names[e]), y, view.given[e])


@dataclass(frozen=True)
class Given(TextTemplate):
    """The sparse features in the list itself, with their values.

    >>> from rerank.features.fired import fired
    >>> from rerank.readers.texts.text_list import SparseScores
    >>> fired("Given", "a", "b", sparse=SparseScores(np.array([0, 1, 1]), [b"seen"], np.array([0.5])))
    {'seen': 0.5}

    One feature per entry of the list.
    """

    fire = staticmethod(_fire_given)

    def columns(self, rows: NBestList, lists: np.ndarray) -> dict[Symbols, np.ndarray]:  # noqa: ARG002
        """None: lists with sparse features are in no block."""
        return {}
