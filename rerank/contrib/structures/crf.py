"""The conditional random field (Lafferty et al. 2001): maximum entropy over all labels of a chain, by L-BFGS.

    L(w) = −Σ_i weight_i · log P(gold_i) + (l2/2)·‖w‖² + l1·‖w‖₁

Columns are those of transitions and of the labels that an attribute has in the training set, as is usual: those of
other labels stay 0. That is a small part of the columns, and hardly worse.
"""

import numpy as np

from rerank.contrib.structures.chain import ChainRoom, Chains, read_transitions, score_tokens
from rerank.contrib.structures.marginals import (
    MarginalRoom,
    add_multiple,
    label_probabilities,
    marginal_room,
    read_factors,
)
from rerank.kernels.compile import kernel
from rerank.learn.predictor import UPDATES, State
from rerank.learn.rules.maxent import Maxent, minimised
from rerank.learn.scoring import single
from rerank.learn.workspace import LISTS, LOSS, MISTAKES, EpochStats, stats_of

CURVATURE = 0.05  # of the loss by a weight, for each occurrence: of p·(1 − p), for probabilities as they are mostly
NO_FURTHER = 1e-4  # what a step betters L by, in relation to it, where the search ends
FAINT = 1e-9  # probabilities up to here are left out of gradients, not of the loss
SPARSE = 4  # labels are added one by one where they are less than this part of all


def solve_chains(learner: Maxent, chains: Chains, state: State) -> EpochStats:
    """Minimise L(w) from where ``state`` is, and leave the optimum there; ``l2`` is 1 where the learner says none."""
    l2, tally, room = 1.0 if learner.l2 is None else learner.l2, np.zeros(6), marginal_room(chains)
    gradient, active, counts = np.zeros(chains.width), np.empty(chains.labels, np.int64), occurrences(chains)
    mark_seen(chains, gradient)
    columns = np.flatnonzero(gradient)
    scale = 1.0 / np.sqrt(l2 + CURVATURE * counts[columns // chains.labels])

    def penalised(u: np.ndarray) -> tuple[float, np.ndarray]:
        """L and its gradient by u = w / scale, of ``columns``."""
        w = u * scale
        state.cells[columns] = w
        gradient[:] = tally[:] = 0.0
        room.chain.stamp[0] = -1
        add_chain_loss(chains, state, room, gradient, active, tally)
        return tally[LOSS] + 0.5 * l2 * float(np.square(w).sum()), scale * (gradient[columns] + l2 * w)

    start, l1 = state.cells[columns] / scale, learner.l1 * scale
    state.counts[UPDATES] += minimised(penalised, start, l1, maxiter=learner.iterations, ftol=NO_FURTHER)[1]
    tally[LISTS] = chains.example_count
    return stats_of(tally, learner.nonzero_weights(state))


def occurrences(chains: Chains) -> np.ndarray:
    """float64 [K + A]: how much of each label there is to begin a transition, and then of each attribute."""
    values = None if chains.values.size == 0 else np.square(chains.values.astype(np.float64))
    attributes = np.bincount(chains.attributes, values, chains.attribute_count)
    return np.concatenate([np.bincount(chains.gold, minlength=chains.labels), attributes]).astype(np.float64)


def mark_seen(chains: Chains, seen: np.ndarray) -> None:
    """seen[j] ← 1 for transitions that are allowed, and for attributes with the right labels of their tokens."""
    K, gold = chains.labels, np.repeat(chains.gold, np.diff(chains.rows)).astype(np.int64)
    seen[: K * K] = chains.allowed[:K].ravel()
    seen[(K * (K + chains.attributes.astype(np.int64)) + gold)[gold >= 0]] = 1.0


@kernel
def add_chain_loss(
    chains: Chains, state: State, room: MarginalRoom, gradient: np.ndarray, active: np.ndarray,
    tally: np.ndarray,
) -> None:  # fmt: skip
    """Add −Σ_i weight_i·log P(gold_i) and mistakes to ``tally``, its gradient to ``gradient``; active: space."""
    K = chains.allowed.shape[1]
    read_transitions(chains, state, room.chain)
    read_factors(room)
    for i in range(chains.starts.shape[0] - 1):
        length, first, weight = score_tokens(chains, i, state, room.chain), chains.starts[i], chains.weight[i]
        tally[LOSS] += weight * (label_probabilities(length, weight, FAINT, room) - gold_score(chains, i, room.chain))
        wrong = False
        for t in range(length):
            gold, row = np.int64(chains.gold[first + t]), room.forward[t]
            for y in range(K):
                wrong |= row[y] > row[gold]
            row[gold] -= 1.0
            add_token(chains, first + t, weight, row, gradient, active)
            if t > 0:
                gradient[np.int64(chains.gold[first + t - 1]) * K + gold] -= weight
        tally[MISTAKES] += wrong
    for x in range(K):
        for y in range(K):
            gradient[x * K + y] += room.pairs[x, y] + room.quotients[x, y] * room.factors[x, y]


@kernel
def add_token(
    chains: Chains, t: int, weight: float, row: np.ndarray, gradient: np.ndarray, active: np.ndarray
) -> None:  # fmt: skip
    """Add weight·row, of a token's labels, to the gradient of all its attributes, for labels that are not nearly 0."""
    K, count = row.shape[0], 0
    for y in range(K):
        if abs(row[y]) > FAINT:
            active[count] = y
            count += 1
    for p in range(np.uint64(chains.rows[t]), np.uint64(chains.rows[t + 1])):
        j = K * (K + np.int64(chains.attributes[p]))
        value = weight if chains.values.shape[0] == 0 else weight * single(chains.values[p])
        if count > K // SPARSE:
            add_multiple(gradient[j : j + K], value, row)
        else:
            for r in range(np.uint64(count)):
                gradient[j + active[r]] += value * row[active[r]]


@kernel
def gold_score(chains: Chains, i: int, room: ChainRoom) -> float:
    """The score of the right labels of example i, whose tokens were scored last."""
    first, total = chains.starts[i], 0.0
    for t in range(first, chains.starts[i + 1]):
        gold = np.int64(chains.gold[t])
        total += room.emissions[t - first, gold]
        if t > first:
            total += room.transitions[gold, np.int64(chains.gold[t - 1])]
    return total
