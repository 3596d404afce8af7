"""The best labels of all examples under a predictor, the best k, and how probable each label is.

The k best labels of a chain are exact: every label of a token keeps the k best ways on from there (the n-best form of
Viterbi's algorithm, Schwartz & Chow 1990), from the end, so that equals come in the order of labels.
"""

from typing import Any, NamedTuple

import numpy as np

from rerank.contrib.structures.chain import UNKNOWN, ChainRoom, Chains, read_transitions, room_for, score_tokens
from rerank.contrib.structures.marginals import all_marginals, marginal_room
from rerank.contrib.structures.viterbi import best_labels
from rerank.kernels.by_type import by_type
from rerank.kernels.compile import kernel
from rerank.learn.predictor import State, fresh


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
    """The k best labels of example i into ``room``; returns how many there are: one, of score 0, without tokens."""
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


def state_of(weights: np.ndarray) -> State:
    """A predictor with these weights (float32 or float64 [D]) for ``best_labels`` and the like."""
    return fresh(0)._replace(cells=np.ascontiguousarray(weights))


def _checked(chains: Chains, weights: np.ndarray) -> State:
    if weights.shape != (chains.width,):
        raise ValueError(f"found weights of shape {weights.shape}; expected ({chains.width},) for these chains")
    return state_of(weights)


def decode(chains: Chains, weights: np.ndarray) -> np.ndarray:
    """int32 [T]: the best labels of all tokens; of equally good sequences the first in the order of labels.

    weights: float32 or float64 [D]; scores are computed with the same precision.
    """
    labels = np.empty(chains.rows.size - 1, np.int32)
    decode_all(chains, _checked(chains, weights), room_for(chains, weights.dtype), labels)
    return labels


@kernel
def decode_all(chains: Chains, state: State, room: ChainRoom, labels: np.ndarray) -> None:
    """The best labels of all examples."""
    for i in range(chains.starts.shape[0] - 1):
        best_labels(state, 0.0, i, room, chains)
        first = chains.starts[i]
        for t in range(first, chains.starts[i + 1]):
            labels[t] = room.output[t - first]


def k_best(chains: Chains, weights: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(float64 [L, k], int32 [k, T]): scores and labels of the k best sequences of every example, best first.

    Equals come in the order of labels. Where there are fewer, the rest has the score −∞ and the labels −1.
    """
    if k < 1:
        raise ValueError(f"found k={k}; expected 1 or more")
    scores, labels = np.full((chains.example_count, k), -np.inf), np.full((k, chains.rows.size - 1), UNKNOWN, np.int32)
    find_k_best(chains, _checked(chains, weights), k, best_room(chains, k, weights.dtype.type), scores, labels)
    return scores, labels


@kernel
def find_k_best(
    chains: Chains, state: State, k: int, room: BestRoom, scores: np.ndarray, labels: np.ndarray
) -> None:  # fmt: skip
    """The k best labels of all examples."""
    for i in range(chains.starts.shape[0] - 1):
        first = chains.starts[i]
        for r in range(best_k_labels(state, i, k, room, chains)):
            scores[i, r] = room.total[r]
            for t in range(first, chains.starts[i + 1]):
                labels[r, t] = room.output[r, t - first]


def marginals(chains: Chains, weights: np.ndarray) -> np.ndarray:
    """float64 [T, K]: P(label) of every token under P(y) ∝ e^score(y)."""
    probabilities = np.empty((chains.rows.size - 1, chains.labels))
    all_marginals(chains, _checked(chains, np.asarray(weights, np.float64)), marginal_room(chains), probabilities)
    return probabilities
