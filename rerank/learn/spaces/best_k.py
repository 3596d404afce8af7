"""The k best labels of a chain, exactly: every label of a token keeps the k best ways on from there.

Reference: the n-best form of Viterbi's algorithm (Schwartz & Chow 1990), from the end, so that equals come in the order
of labels.
"""

from typing import Any, NamedTuple

import numpy as np

from rerank.kernels.by_type import by_type
from rerank.kernels.compile import kernel
from rerank.learn.spaces.chain import ChainRoom, Chains, read_transitions, room_for, score_tokens


class BestRoom(NamedTuple):
    """Space for the k best labels of M tokens; way r from label x at token t is the r-th best."""

    chain: ChainRoom
    scores: np.ndarray  # [M, K, k]
    label: np.ndarray  # int32 [M, K, k]: the next label on the way
    way: np.ndarray  # int32 [M, K, k]: and the way from there
    known: np.ndarray  # int32 [M, K]: how many ways there are
    heads: np.ndarray  # int32 [K]: how many of each label's ways have been taken
    total: np.ndarray  # [k]: scores of what was found
    output: np.ndarray  # int32 [k, M]


def best_room(chains: Chains, k: int, kind: type) -> BestRoom:
    """Space for the k best labels of ``chains``, with scores of this type."""
    chain, integer = room_for(chains, kind), np.int32
    M, K = chain.emissions.shape
    return BestRoom(
        chain, np.empty((M, K, k), kind), np.empty((M, K, k), integer), np.empty((M, K, k), integer),
        np.empty((M, K), integer), np.empty(K, integer), np.empty(k, kind), np.empty((k, M), integer),
    )  # fmt: skip


@by_type
def best_k_labels(state: Any, i: int, k: int, room: BestRoom, chains: Chains) -> int:
    """The k best labels of example i into ``room.output``, scores into ``room.total``; returns how many there are. An
    example without tokens has one output, of score 0.
    """
    read_transitions(chains, state, room.chain)
    length = score_tokens(chains, i, state, room.chain)
    if length == 0:
        room.total[0] = 0.0
        return 1
    K, emissions = room.heads.shape[0], room.chain.emissions
    for back in range(length):
        t = length - 1 - back
        for x in range(K):
            room.known[t, x] = 0
            if emissions[t, x] == -np.inf:
                continue
            if back == 0:
                room.scores[t, x, 0], room.known[t, x] = emissions[t, x], 1
            else:
                find_ways(t, x, k, room)
    return read_ways(length, k, room)


@kernel
def find_ways(t: int, x: int, k: int, room: BestRoom) -> None:
    """The k best ways from label x at token t, from those of the next token, which are merged."""
    transitions, scores = room.chain.transitions, room.scores[t + 1]
    room.heads[:] = 0
    for r in range(k):
        top, highest = -1, -np.inf
        for y in range(room.heads.shape[0]):
            if room.heads[y] < room.known[t + 1, y]:
                score = transitions[y, x] + scores[y, room.heads[y]]
                if score > highest:
                    top, highest = y, score
        if top < 0:
            return
        room.scores[t, x, r] = room.chain.emissions[t, x] + highest
        room.label[t, x, r], room.way[t, x, r] = top, room.heads[top]
        room.heads[top] += 1
        room.known[t, x] += 1


@kernel
def read_ways(length: int, k: int, room: BestRoom) -> int:
    """The k best of all ways from the first token, as labels; returns how many there are."""
    room.heads[:] = 0
    for r in range(k):
        top, highest = -1, -np.inf
        for y in range(room.heads.shape[0]):
            if room.heads[y] < room.known[0, y] and room.scores[0, y, room.heads[y]] > highest:
                top, highest = y, room.scores[0, y, room.heads[y]]
        if top < 0:
            return r
        room.total[r] = highest
        x: Any = top
        way: Any = np.int64(room.heads[top])
        room.heads[top] += 1
        for t in range(length):
            room.output[r, t] = x
            if t + 1 < length:
                x, way = np.int64(room.label[t, x, way]), np.int64(room.way[t, x, way])
    return k
