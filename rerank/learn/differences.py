"""The logged updates as vectors: what the mistake bounds are about."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.learn.judge import base_of, subgradient
from rerank.learn.log import UpdateLog
from rerank.learn.losses import LOG
from rerank.learn.voting.votes import Replay, Updates, VoteRoom, load
from rerank.learn.workspace import ListArrays, Scratch


class Differences(NamedTuple):
    """The subgradients of M updates, each with the weight of its list."""

    first: np.ndarray  # int64 [M + 1]: entries of update k are first[k]..first[k + 1]
    columns: np.ndarray  # int32 [entries]
    delta: np.ndarray  # float64 [entries]: what is added to s_j
    base: np.ndarray  # float64 [M]: what is added to the base score's s


@kernel
def expand_updates(
    data: ListArrays, log: Updates, base_rate: float, t: Scratch, room: VoteRoom, base: np.ndarray
) -> None:
    """Sum up the subgradient of every update, in the order in which training did."""
    for k in range(log.lists.shape[0]):
        weight, at = data.weight[log.lists[k]], room.first[k]
        n = load(log, k, t)
        count = subgradient(data, t, n)
        for r in range(count):
            room.columns[at + r], room.value[at + r] = t.column[r], weight * t.value[r]
        room.first[k + 1] = at + count
        base[k] = weight * (base_of(data, t, n) * base_rate)


def expand(log: UpdateLog, corpus: Corpus, base_rate: float) -> Differences:
    """The logged updates as vectors over the columns of the training ``corpus``, the base score as base_rate·b(y)."""
    replay = Replay(log, corpus, 0.0, LOG)
    base = np.zeros(replay.updates.lists.size)
    expand_updates(replay.data, replay.updates, float(base_rate), replay.space, replay.room, base)
    end = int(replay.room.first[-1])
    return Differences(replay.room.first, replay.room.columns[:end].copy(), replay.room.value[:end].copy(), base)
