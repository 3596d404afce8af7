"""Logged updates, repeated on the lists, or on what they touched of lists that are larger than memory."""

from typing import Any, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import by_type, kernel
from rerank.learn.hooks import gather, learn, update_pair
from rerank.learn.judge import difference
from rerank.learn.log import UpdateLog
from rerank.learn.predictor import beta, close, slope_of
from rerank.learn.voting.votes import Votes
from rerank.learn.workspace import ListArrays, Scratch


class Updates(NamedTuple):
    """An UpdateLog for kernels."""

    lists: np.ndarray  # int64 [M]
    first: np.ndarray  # int64 [M + 1]
    candidate: np.ndarray  # int64 [entries]
    a: np.ndarray  # float64 [entries]
    rate: np.ndarray  # float64 [M]


@kernel
def load(log: Updates, k: int, t: Scratch) -> int:
    """The candidates and coefficients of update k, in ``t.who`` and ``t.a``; returns their number."""
    n = log.first[k + 1] - log.first[k]
    for r in range(n):
        t.who[r], t.a[r] = log.candidate[log.first[k] + r], log.a[log.first[k] + r]
    return int(n)


@kernel
def repeat_updates(
    data: ListArrays, log: Updates, state: Any, sums: Any, scratch: Scratch, room: Votes, params: Any
) -> None:
    """Repeat the logged updates from subgradients, and write down what each of them left."""
    write_numbers(room, 0, state, beta(state, params.base, params.base_rate))
    for k in range(log.lists.shape[0]):
        n = load(log, k, scratch)
        count = gather(data, scratch, n, state.a.shape[0] - 1, params.loss, params)
        learn(state, scratch, count, n, log.rate[k], params)
        close(state)
        write_columns(room, k, scratch, count, state)
        write_numbers(room, k + 1, state, beta(state, params.base, params.base_rate))


@kernel
def repeat_pairs(
    data: ListArrays, log: Updates, state: Any, sums: Any, scratch: Scratch, room: Votes, params: Any
) -> None:
    """Learn from the logged pairs again, and write down what each of them left."""
    write_numbers(room, 0, state, beta(state, params.base, params.base_rate))
    for k in range(log.lists.shape[0]):
        load(log, k, scratch)
        star, rival, weight = scratch.who[0], scratch.who[1], data.weight[log.lists[k]]
        count = difference(data, star, rival, params.base_rate, state.a.shape[0] - 1, scratch)
        update_pair(state, sums, scratch, count, log.rate[k], 1.0, weight, params)
        close(state)
        if sums is None:
            write_columns(room, k, scratch, count, state)
        else:
            write_correlated(room, k, sums, state)
        write_numbers(room, k + 1, state, beta(state, params.base, params.base_rate))


@by_type
def write_numbers(room: Votes, k: int, state: Any, weight: float) -> None:
    """The numbers of predictor k, which is the current one, for ``Votes``."""
    threshold = state.now.tau if state.v.shape[0] > 0 else state.now.tau * state.now.slope
    room.beta[k], room.scale[k], room.threshold[k] = weight, state.now.d, threshold


@by_type
def write_columns(room: Votes, k: int, scratch: Scratch, count: int, state: Any) -> None:
    """The remains of update k in its columns and, where free ones have a scale of their own, in all of these."""
    at, apart = room.first[k], state.now.d != state.now.d_free
    for r in range(count):
        j = scratch.column[r]
        if j < state.a.shape[0] - 1 and not (apart and j < state.counts.free):
            at = write_column(room, at, j, 1.0, state)
    if apart:
        for free in range(state.counts.free):
            j = np.uint32(free)
            at = write_column(room, at, j, state.now.d_free / state.now.d, state)
    room.first[k + 1] = at


@by_type
def write_correlated(room: Votes, k: int, moved: np.ndarray, state: Any) -> None:
    """The remains of update k in all columns that an update so far was correlated with: ``moved`` is not 0."""
    at = room.first[k]
    for j in range(state.a.shape[0] - 1):
        if moved[j] != 0.0:
            at = write_column(room, at, np.uint32(j), 1.0, state)
    room.first[k + 1] = at


@by_type
def write_column(room: Votes, at: int, j: Any, factor: float, state: Any) -> int:
    """Write column j as the entry ``at``; returns the place of the next."""
    room.columns[at] = j
    room.value[at] = state.a[j] * factor
    if room.slope.shape[0] > 0:
        slope = slope_of(state, j)
        room.slope[at] = np.sign(room.value[at]) * (slope if state.v.shape[0] > 0 or slope == 0.0 else 1.0)
    return int(at + 1)


def room_for(log: UpdateLog, corpus: Corpus, *, full: bool, slopes: bool, more: int) -> tuple[Updates, Votes]:
    """The updates of ``log`` for kernels, and votes that repeating them on their ``corpus`` fills.

    full: an update touches every column; slopes: slopes are stored; more: how many columns an update touches in
    addition to those of its candidates.
    """
    arrays = log.arrays()
    survived = arrays.pop("survived")
    M, D = arrays["lists"].size, corpus.width
    nonzeros = np.append(0, np.cumsum(np.diff(corpus.rows)[arrays["candidate"]]))
    room = M * D if full else int(np.minimum(np.diff(nonzeros[arrays["first"]]), D).sum()) + M * more
    beta, scale, threshold = np.empty((3, M + 1))
    columns, value = np.empty(room, np.int32), np.empty(room)
    first, slope = np.zeros(M + 1, np.int64), np.empty(room if slopes else 0)
    return Updates(**arrays), Votes(first, columns, value, slope, threshold, scale, beta, survived)


def filled(room: Votes) -> Votes:
    """The votes without the room that none of them took."""
    end, shrinks = int(room.first[-1]), bool(room.threshold.any())
    return room._replace(
        columns=room.columns[:end].copy(), value=room.value[:end].copy(),
        slope=room.slope[: end if shrinks else 0].copy(), threshold=room.threshold if shrinks else np.zeros(0),
    )  # fmt: skip


def in_memory(log: UpdateLog, lists: Corpus) -> tuple[UpdateLog, Corpus]:
    """The updates of ``log`` and a corpus that they can be repeated on in their order.

    That is ``lists`` itself or, where an epoch goes by parts, the candidates that were part of an update: what
    repeating needs grows with the updates, not with the lists.
    """
    if lists.cuts.size == 2:
        return log, lists
    arrays = log.arrays()
    touched, candidates = np.unique(arrays["lists"]), np.unique(arrays["candidate"])
    arrays["lists"] = np.searchsorted(touched, arrays["lists"])
    arrays["candidate"] = np.searchsorted(candidates, arrays["candidate"])
    return UpdateLog.from_arrays(arrays), lists.only(touched, candidates)
