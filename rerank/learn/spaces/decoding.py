"""The best labels of all examples under a predictor, the best k, and how probable each label is."""

import numpy as np

from rerank.kernels.compile import kernel
from rerank.learn.predictor import REST, SCALE, State
from rerank.learn.spaces.best_k import BestRoom, best_k_labels, best_room
from rerank.learn.spaces.chain import UNKNOWN, ChainRoom, Chains, room_for
from rerank.learn.spaces.marginals import all_marginals, marginal_room
from rerank.learn.spaces.viterbi import best_labels


def state_of(weights: np.ndarray) -> State:
    """A predictor with these weights (float32 or float64 [D]) for ``best_labels`` and the like."""
    nothing, numbers = np.zeros(0), np.zeros(REST)
    numbers[SCALE] = 1.0
    return State(
        np.ascontiguousarray(weights), nothing, nothing, nothing, numbers, np.zeros(5, np.int64), np.zeros((0, 0)),
        nothing,
    )  # fmt: skip


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
