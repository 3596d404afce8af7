"""Logged updates, repeated: on lists in memory, part by part, or on what they touched, gathered in memory."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.data.shards import Corpora, gathered, part_of, places
from rerank.kernels.compile import kernel
from rerank.learn.log import UpdateLog
from rerank.learn.voting.votes import Votes
from rerank.learn.workspace import ListArrays, Scratch, scratch_for, view


class Updates(NamedTuple):
    """An UpdateLog for kernels."""

    lists: np.ndarray  # int64 [M]
    first: np.ndarray  # int64 [M + 1]
    candidate: np.ndarray  # int64 [entries]
    a: np.ndarray  # float64 [entries]
    rate: np.ndarray  # float64 [M]


class VoteRoom(NamedTuple):
    """Room for the votes of all updates; arrays as in Votes."""

    first: np.ndarray
    columns: np.ndarray
    value: np.ndarray
    slope: np.ndarray  # [0] where none is stored
    threshold: np.ndarray  # float64 [M + 1]
    scale: np.ndarray
    beta: np.ndarray
    width: int  # D


@kernel
def load(log: Updates, k: int, t: Scratch) -> int:
    """The candidates and coefficients of update k, in ``t.who`` and ``t.a``; returns their number."""
    n = log.first[k + 1] - log.first[k]
    for r in range(n):
        t.who[r], t.a[r] = log.candidate[log.first[k] + r], log.a[log.first[k] + r]
    return int(n)


@kernel
def add_sizes(rows: np.ndarray, first: np.ndarray, candidate: np.ndarray, sizes: np.ndarray) -> None:
    """Upper limits on the columns of every update: the nonzeros of its candidates."""
    for k in range(sizes.shape[0]):
        for e in range(first[k], first[k + 1]):
            sizes[k] += rows[candidate[e] + 1] - rows[candidate[e]]


class Replay:
    """The arrays that a learner needs to repeat the updates of ``log`` on their ``corpus``, and where it leaves them.

    base: the weight of the base score under the first predictor; loss: the number of the loss that updates were made
    for; full: an update touches every column; slopes: slopes are stored; more: how many columns an update touches in
    addition to those of its candidates.
    """

    def __init__(
        self, log: UpdateLog, corpus: Corpus, base: float, loss: int, *,
        full: bool = False, slopes: bool = False, more: int = 0,
    ) -> None:  # fmt: skip
        arrays = log.arrays()
        self._survived = arrays.pop("survived")
        self.updates = Updates(**arrays)
        M, D = self.updates.lists.size, corpus.width
        sizes = np.zeros(M, np.int64)
        add_sizes(corpus.rows, self.updates.first, self.updates.candidate, sizes)
        room = M * D if full else int(np.minimum(sizes + more, D + more).sum())
        self.data: ListArrays = view(corpus, np.full(corpus.list_count, -1))
        self.space = scratch_for(corpus, loss)
        self.room = VoteRoom(
            first=np.zeros(M + 1, np.int64),
            columns=np.empty(room, np.int32),
            value=np.empty(room),
            slope=np.empty(room if slopes else 0),
            threshold=np.zeros(M + 1),
            scale=np.ones(M + 1),
            beta=np.full(M + 1, float(base)),
            width=D,
        )

    def votes(self) -> Votes:
        """The replayed updates."""
        room, end = self.room, int(self.room.first[-1])
        return Votes(
            first=room.first,
            columns=room.columns[:end].copy(),
            value=room.value[:end].copy(),
            slope=room.slope[: end if room.threshold.any() else 0].copy(),
            threshold=room.threshold if room.threshold.any() else np.zeros(0),
            scale=room.scale,
            beta=room.beta,
            survived=self._survived,
        )


def gather(log: UpdateLog, lists: Corpora) -> tuple[UpdateLog, Corpus]:
    """The updates of ``log`` and a corpus in memory that they can be repeated on.

    That is ``lists`` itself where it is in memory, else the candidates that were part of an update: what repeating
    needs grows with the updates, not with the lists.
    """
    if isinstance(lists, Corpus):
        return log, lists
    if lists.count == 1:
        return log, lists.part(0)
    arrays = log.arrays()
    touched, candidates = np.unique(arrays["lists"]), np.unique(arrays["candidate"])
    if touched.size == 0:
        return log, lists.part(0).slice(0, 0)
    arrays["lists"] = np.searchsorted(touched, arrays["lists"])
    arrays["candidate"] = np.searchsorted(candidates, arrays["candidate"])
    return UpdateLog.from_arrays(arrays), gathered(lists, touched, candidates)


def stretches(log: UpdateLog, lists: Corpora) -> Iterator[tuple[UpdateLog, Corpus]]:
    """The updates of ``log`` in their order, as stretches on one part of ``lists`` each, and that part.

    Training visits the parts one after the other: there are as many stretches as visits to parts with updates.
    """
    arrays, where = log.arrays(), places(lists)
    part = np.searchsorted([place.lists for place in where], arrays["lists"], side="right") - 1
    ends = [0, *(np.flatnonzero(np.diff(part)) + 1), part.size]
    for start, end in pairwise(ends):
        if start == end:
            return
        place = where[int(part[start])]
        yield UpdateLog.between(arrays, start, end, place.lists, place.candidates), part_of(lists, place.number)
