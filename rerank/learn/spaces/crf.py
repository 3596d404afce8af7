"""The conditional random field (Lafferty et al. 2001): maximum entropy over all labels of a chain, by L-BFGS.

    L(w) = −Σ_i weight_i · log P(gold_i) + (l2/2)·‖w‖²

Columns are those of transitions and of the labels that an attribute has in the training set, as is usual: those of
other labels stay 0 (``possible`` takes all). That is a small part of the columns, and hardly worse.
"""

import numpy as np

from rerank.kernels.compile import kernel
from rerank.learn.predictor import UPDATES, State
from rerank.learn.rules.maxent import MEMORY, Maxent
from rerank.learn.scoring import single
from rerank.learn.spaces.chain import ChainRoom, Chains, read_transitions, score_tokens
from rerank.learn.spaces.marginals import MarginalRoom, add_multiple, label_probabilities, marginal_room, read_factors
from rerank.learn.workspace import LISTS, LOSS, MISTAKES, EpochStats, stats_of


def solve_chains(learner: Maxent, chains: Chains, state: State, *, possible: bool = False) -> EpochStats:
    """Minimise L(w) from where ``state`` is, and leave the optimum there; ``l2`` is 1 where the learner says none.

    possible: learn the weights of all labels of every attribute.
    """
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits

    l2, tally, room = 1.0 if learner.l2 is None else learner.l2, np.zeros(6), marginal_room(chains)
    gradient, columns = np.zeros(chains.width), np.arange(chains.width)
    if not possible:
        mark_seen(chains, gradient)
        columns = np.flatnonzero(gradient)

    def penalised(x: np.ndarray) -> tuple[float, np.ndarray]:
        """L and its gradient by the weights of ``columns``."""
        state.cells[columns] = x
        gradient[:] = tally[:] = 0.0
        room.chain.stamp[0] = -1
        add_chain_loss(chains, state, room, gradient, tally)
        return tally[LOSS] + 0.5 * l2 * float(np.square(x).sum()), gradient[columns] + l2 * x

    with threadpool_limits(1, "blas"):  # sums by several threads differ in the last bit
        options = {"maxiter": learner.iterations, "maxcor": MEMORY}
        optimum = minimize(penalised, state.cells[columns], jac=True, method="L-BFGS-B", options=options)
        penalised(optimum.x)
    state.counts[UPDATES] += optimum.nit
    tally[LISTS] = chains.count
    return stats_of(tally, learner.nonzero_weights(state))


@kernel
def mark_seen(chains: Chains, seen: np.ndarray) -> None:
    """seen[j] ← 1 for transitions that are allowed, and for attributes with the right labels of their tokens."""
    K = chains.allowed.shape[1]
    for x in range(K):
        for y in range(K):
            seen[x * K + y] = chains.allowed[x, y]
    for t in range(chains.gold.shape[0]):
        for p in range(chains.rows[t], chains.rows[t + 1]):
            if chains.gold[t] >= 0:
                seen[K * (K + np.int64(chains.attributes[p])) + chains.gold[t]] = 1.0


@kernel
def add_chain_loss(
    chains: Chains, state: State, room: MarginalRoom, gradient: np.ndarray, tally: np.ndarray
) -> None:  # fmt: skip
    """Add −Σ_i weight_i · log P(gold_i) and the examples with a label that is not its token's most probable to
    ``tally``, and the gradient, but for the penalty's, to ``gradient`` (float64 [D])."""
    K = chains.allowed.shape[1]
    read_transitions(chains, state, room.chain)
    read_factors(room)
    for i in range(chains.starts.shape[0] - 1):
        length, first, weight = score_tokens(chains, i, state, room.chain), chains.starts[i], chains.weight[i]
        tally[LOSS] += weight * (label_probabilities(length, weight, room) - gold_score(chains, i, room.chain))
        wrong = False
        for t in range(length):
            gold, row = np.int64(chains.gold[first + t]), room.forward[t]
            for y in range(K):
                wrong |= row[y] > row[gold]
                row[y] *= weight
            row[gold] -= weight
            for p in range(np.uint64(chains.rows[first + t]), np.uint64(chains.rows[first + t + 1])):
                j = K * (K + np.int64(chains.attributes[p]))
                value = 1.0 if chains.values.shape[0] == 0 else single(chains.values[p])
                add_multiple(gradient[j : j + K], value, row)
            if t > 0:
                gradient[np.int64(chains.gold[first + t - 1]) * K + gold] -= weight
        tally[MISTAKES] += wrong
    for x in range(K):
        for y in range(K):
            gradient[x * K + y] += room.pairs[x, y] + room.quotients[x, y] * room.factors[x, y]


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
