"""Training over chains: epochs in a seeded order, and the best of them by a measure after each.

To a learner, an example is a list of two: the right labels y* with the features φ(y*) − φ(y'), and the rival y' with
none. It is handed to the learner's own pass over lists, so that updates, averages and counts are those of lists. Where
the best labels are the right ones, the list has nothing else in it.

The learner maxent makes a conditional random field (Lafferty et al. 2001): maximum entropy over all labels of a chain,
by L-BFGS.

    L(w) = −Σ_i log P(gold_i) + (l2/2)·‖w‖² + l1·‖w‖₁

P(y) = e^{score(y)} / Z, by the forward-backward algorithm. Probabilities are products of numbers that are scaled at
every token (Rabiner 1989, section V.A). Where one of these is so small that a product might be 0, sums of logarithms
are used instead, for this example: a zero is always that of a transition that is not allowed.

Columns are those of transitions and of the labels that an attribute has in the training set, as is usual: those of
other labels stay 0. That is a small part of the columns, and hardly worse.
"""

import logging
import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.contrib.structures.chain import (
    ChainRoom,
    Chains,
    add_row,
    best_labels,
    decode,
    differing_columns,
    predictor_with,
    read_transitions,
    room_for,
    score_tokens,
)
from rerank.kernels.compile import ByType, kernel, kernel_of
from rerank.learn.epoch import NO_LOG, LogBuffers, UpdateLog
from rerank.learn.folds import FOLDS, sections
from rerank.learn.learner import Learner, State
from rerank.learn.losses import Cost
from rerank.learn.pairs import ORACLES
from rerank.learn.predictor import Predictor, predictor_view
from rerank.learn.rules.maxent import Maxent, minimise
from rerank.learn.scoring import single
from rerank.learn.train import epoch_order
from rerank.learn.workspace import EpochStats, ListArrays, Scratch, new_tally

log = logging.getLogger("rerank")
PENALTIES = 1.0, 0.1, 0.01, 0.001  # of maxent, where it says none
FOLD_TOKENS = 25_000  # to learn from in all folds together: with more, fewer sections are held out, one at least


class PassOfLearner(ByType):
    """A function whose body is the pass over lists of the learner whose settings come last."""

    def body_of(self, kinds: list[Any]) -> Any:
        passes = kinds[-1].owner.passes
        return getattr(passes, "function", passes)


@PassOfLearner
def learn_from_list(
    data: ListArrays, order: np.ndarray, state: Any, sums: Any, scratch: Scratch, log: LogBuffers, tally: Any,
    params: Any,
) -> None:  # fmt: skip
    """Pass over ``order`` and learn, as the learner does."""


@kernel
def chain_pass(
    order: np.ndarray, state: Any, sums: Any, pair: ListArrays, scratch: Scratch, log: LogBuffers, tally: Any,
    room: ChainRoom, chains: Chains, tilt: float, params: Any,
) -> None:  # fmt: skip
    """Pass over the examples ``order``: find the rival of each, and learn from the pair; ``pair`` is scratch space.

    tilt: what a wrong label counts in the search for the rival.
    """
    for at in range(order.shape[0]):
        i = order[at]
        best_labels(state, tilt, i, room, chains)
        count, cost = differing_columns(pair, scratch.sums, i, room, chains)
        pair.lists[1] = 2 if count >= 0 else 1
        pair.rows[1] = pair.rows[2] = max(count, 0)
        pair.gain[1] = -cost
        learn_from_list(pair, pair.oracle, state, sums, scratch, log, tally, params)


def pair_for(chains: Chains) -> tuple[ListArrays, Scratch]:
    """A list of two, for kernels to fill with what two outputs of an example differ in, and scratch space."""
    nonzeros = np.diff(chains.rows[chains.starts]).max(initial=0)
    entries = 2 * int(nonzeros + chains.longest) + 2
    data = ListArrays(
        lists=np.zeros(2, np.int64), rows=np.zeros(3, np.int64), columns=np.empty(entries, np.uint32),
        values=np.empty(entries), base=np.zeros(2), gain=np.zeros(2), weight=np.ones(1), oracle=np.zeros(1, np.int64),
        pairs=ORACLES, free=0,
    )  # fmt: skip
    column, sums = np.empty(entries, np.uint32), np.zeros(chains.width)
    return data, Scratch(
        np.empty(2), np.empty(2, np.int64), np.empty(2), column, np.empty(entries), np.empty(entries),
        np.empty((0, 3)), sums,
    )  # fmt: skip


def require_structured(learner: Learner) -> None:
    """Refuse a learner that cannot learn over outputs too many to list."""
    reason = ""
    if learner.batch and not isinstance(learner, Maxent):
        reason = "it looks at every candidate of a list at once, and outputs are too many to list"
    elif learner.dual:
        reason = "it keeps a variable for every candidate, and outputs are too many to list"
    elif not (learner.pairwise or isinstance(learner, Maxent)):
        reason = f"its loss {getattr(learner, 'loss', '')} sums over all outputs; take the learner maxent, which does"
    if reason:
        raise RecipeError(f"the learner {learner.name!r} cannot train over structures: {reason}", key="learner")


def penalties(learner: Maxent, chains: Chains) -> list[float]:
    """The penalties of ``learner`` on ``chains``, the last for good: its own; or those down to the one that labels
    most tokens right in sections held out in turn: the last one, or up to all where tokens are few.

    Each begins where the larger one before it ended, down to the first that brings nothing. What is found on this way
    is better than what is found from 0, in fewer steps: UD's Turkish-IMST, l2 .01, 90.6 and 90.3 % right.
    """
    if learner.l2 is not None:
        return [learner.l2]
    every, count = np.arange(chains.example_count), min(FOLDS, chains.example_count)
    if count < 2:
        return [PENALTIES[0]]
    folds, right = list[tuple[State, Chains, Chains]](), list[int]()
    for first, end in sections(every.size, count)[-int(np.clip(FOLD_TOKENS // max(chains.gold.size, 1), 1, count)) :]:
        rest, fold = (chains.take(part) for part in (np.delete(every, slice(first, end)), every[first:end]))
        folds.append((learner.init(chains.width), rest, fold))
    for l2 in PENALTIES:
        for state, rest, _ in folds:
            solve_chains(replace(learner, l2=l2), rest, state)
        right.append(sum(int((decode(fold, state.cells[:-1]) == fold.gold).sum()) for state, _, fold in folds))
        if right[-1] <= max(right[:-1], default=-1):
            break
    best, tokens = right.index(max(right)), max(1, sum(fold.gold.size for _, _, fold in folds))
    trials = ", ".join(f"l2 {l2:g} {100 * count / tokens:.2f}" for l2, count in zip(PENALTIES, right, strict=False))
    log.info("maxent: l2 %g of %s %% right of %d tokens held out", PENALTIES[best], trials, tokens)
    return list(PENALTIES[: best + 1])


@dataclass(frozen=True)
class ChainProblem:
    """Chains as a ``TrainingProblem``; the learner maxent finds its optimum in place of epochs, see ``penalties``.

    corpus: the chains, to the learner a corpus of this many columns.

    Raises DataError: a token of ``corpus`` has no label.
    """

    corpus: Any
    seed: int = 0
    shuffle: bool = True

    def __post_init__(self) -> None:
        """Check the labels."""
        if (unknown := self.corpus.gold < 0).any():
            i = int(np.searchsorted(self.corpus.starts, np.argmax(unknown), "right"))
            raise DataError(f"example {i}: found a token without a label; expected one for every token to train on")

    def visit(self, learner: Learner, state: State, epoch: int, log: UpdateLog | None) -> EpochStats:  # noqa: ARG002
        """See ``TrainingProblem``."""
        require_structured(learner)
        chains = self.corpus
        if learner.batch:
            field = cast(Maxent, learner)
            return [solve_chains(replace(field, l2=l2), chains, state) for l2 in penalties(field, chains)][-1]
        order = epoch_order(chains.example_count, self.seed, epoch, self.shuffle)
        sums, loss, kind = learner.begin(chains, order.size, state), learner.loss_type(), cast(Any, type(learner))
        kernel, tally, tilt = kernel_of(chain_pass, kind, loss), new_tally(), float(issubclass(loss, Cost))
        view, params, room = learner.view(state), learner.settings(), room_for(chains)
        kernel(order, view, sums, *pair_for(chains), NO_LOG, tally, room, chains, tilt, params)
        learner.finish(state, sums)
        return EpochStats(*tally.item())


MIN_FACTOR = 1e-80  # products of three such numbers are far from underflow
NEGLIGIBLE = 1e-17  # compared with a probability of 1


class MarginalRoom(NamedTuple):
    """Space for the marginals of M tokens."""

    chain: ChainRoom
    factors: np.ndarray  # float64 [K, K] (from, to): e^(transition − the highest)
    across: np.ndarray  # float64 [K, K]: the same as (to, from)
    top: np.ndarray  # float64 [2]: the highest transition; is a factor too small?
    e: np.ndarray  # float64 [M, K]: e^(emission − the token's highest)
    forward: np.ndarray  # float64 [M, K]; in the end P(label)
    backward: np.ndarray  # float64 [M, K]
    onward: np.ndarray  # float64 [M, K]: e·backward
    sums: np.ndarray  # float64 [K]
    pairs: np.ndarray  # float64 [K, K] (from, to): Σ P(transition), together with ``quotients`` times ``factors``
    quotients: np.ndarray  # float64 [K, K] (from, to)


def marginal_room(chains: Chains) -> MarginalRoom:
    """Space for the marginals of ``chains``."""
    chain = room_for(chains)
    square, wide, (K,) = chain.transitions.shape, chain.emissions.shape, chain.highest.shape
    shapes: list[Any] = [square, square, 2, wide, wide, wide, wide, K, square, square]
    return MarginalRoom(chain, *map(np.zeros, shapes))


@kernel
def read_factors(room: MarginalRoom) -> None:
    """Exponentials of the transitions that are in ``room.chain``; Σ P(transition) begins anew."""
    K, transitions = room.sums.shape[0], room.chain.transitions
    highest, small = -np.inf, False
    for y in range(K):
        highest = max(highest, room.chain.highest[y])
    if highest == -np.inf:
        highest = 0.0  # nothing may follow anything
    for y in range(K):
        for x in range(K):
            factor = math.exp(transitions[y, x] - highest)
            small |= factor < MIN_FACTOR and transitions[y, x] > -np.inf
            room.factors[x, y] = room.across[y, x] = factor
            room.pairs[x, y] = room.quotients[x, y] = 0.0
    room.top[0], room.top[1] = highest, small


@kernel
def label_probabilities(length: int, pairs: bool, threshold: float, room: MarginalRoom) -> float:
    """Write P(label) into ``room.forward`` and, with ``pairs``, add up the P(transition); returns log Z.

    threshold: negligible, compared with a probability of 1. The scores are those of the last ``score_tokens``.
    """
    if length == 0:
        return 0.0
    if room.top[1] == 0.0:
        log_z, safe = by_scaling(length, pairs, threshold, room)
        if safe:
            return log_z
    return by_logarithms(length, pairs, room)


@kernel
def scale(row: np.ndarray) -> tuple[float, bool]:
    """Divide a row by its sum, which is returned, and whether no positive number is now too small."""
    total, safe = 0.0, True
    for y in range(row.shape[0]):
        total += row[y]
    least, inverse = MIN_FACTOR * total, 1.0 / total
    for y in range(row.shape[0]):
        safe &= row[y] == 0.0 or row[y] >= least
        row[y] *= inverse
    return total, safe


@kernel
def add_product(row: np.ndarray, x: np.ndarray, matrix: np.ndarray) -> None:
    """row ← row + x·matrix, four rows of the matrix at a time: the row is read and written less often."""
    K = row.shape[0]
    for y in range(0, K - 3, 4):
        one, two, three, four = matrix[y], matrix[y + 1], matrix[y + 2], matrix[y + 3]
        a, b, c, d = x[y], x[y + 1], x[y + 2], x[y + 3]
        for z in range(np.uint64(K)):
            row[z] += (a * one[z] + b * two[z]) + (c * three[z] + d * four[z])
    for y in range(K - K % 4, K):
        add_row(matrix[y], 0, x[y], row)


@kernel
def by_scaling(length: int, pairs: bool, threshold: float, room: MarginalRoom) -> tuple[float, bool]:
    """``label_probabilities``, unless a number is too small: then False, and nothing was added.

    Only the way back, which log Z follows from, is over all pairs of labels. The way forward leaves out labels that are
    no more probable than ``threshold``: mostly nearly all.
    """
    K, forward, backward, onward = room.sums.shape[0], room.forward, room.backward, room.onward
    log_z, safe = (length - 1) * room.top[0], True
    for back in range(length):
        t, highest = length - 1 - back, -np.inf
        emissions, row = room.chain.emissions[t], backward[t]
        for y in range(K):
            highest = max(highest, emissions[y])
            row[y] = 0.0 if back > 0 else 1.0
        if back > 0:
            add_product(row, onward[t + 1], room.across)
        total, fits = scale(row)
        log_z += highest + math.log(total)
        safe &= fits
        for y in range(K):
            room.e[t, y] = math.exp(emissions[y] - highest)
            safe &= room.e[t, y] >= MIN_FACTOR or emissions[y] == -np.inf
            onward[t, y] = room.e[t, y] * row[y]
    if not safe:
        return 0.0, False
    for t in range(length):
        total = 0.0
        for y in range(K):
            room.sums[y] = 1.0 if t == 0 else 0.0
        if t > 0:
            for x in range(K):
                if forward[t - 1, x] * backward[t - 1, x] > threshold:
                    add_row(room.factors[x], 0, forward[t - 1, x], room.sums)
        for y in range(K):
            total += room.sums[y] * onward[t, y]
        for y in range(K):
            forward[t, y] = room.sums[y] * (room.e[t, y] / total)
        if t == 0:
            log_z += math.log(total)
        elif pairs:
            for x in range(K):
                if forward[t - 1, x] * backward[t - 1, x] > threshold:
                    add_row(onward[t], 0, 1.0 / total * forward[t - 1, x], room.quotients[x])
    for t in range(length):
        for y in range(K):
            forward[t, y] *= backward[t, y]
    return log_z, True


@kernel
def by_logarithms(length: int, pairs: bool, room: MarginalRoom) -> float:
    """``label_probabilities`` by sums of logarithms."""
    K, forward, backward = room.sums.shape[0], room.forward, room.backward
    emissions, transitions = room.chain.emissions, room.chain.transitions
    for y in range(K):
        forward[0, y], backward[length - 1, y] = emissions[0, y], 0.0
    for t in range(1, length):
        for y in range(K):
            for x in range(K):
                room.sums[x] = forward[t - 1, x] + transitions[y, x]
            forward[t, y] = log_sum(room.sums) + emissions[t, y]
    log_z = log_sum(forward[length - 1])
    for back in range(1, length):
        t = length - 1 - back
        for x in range(K):
            for y in range(K):
                room.sums[y] = transitions[y, x] + emissions[t + 1, y] + backward[t + 1, y]
            backward[t, x] = log_sum(room.sums)
            if pairs:
                for y in range(K):
                    room.pairs[x, y] += math.exp(forward[t, x] + room.sums[y] - log_z)
    for t in range(length):
        for y in range(K):
            forward[t, y] = math.exp(forward[t, y] + backward[t, y] - log_z)
    return log_z


@kernel
def log_sum(x: np.ndarray) -> float:
    """log Σ e^x; −∞ where all are."""
    highest, total = -np.inf, 0.0
    for r in range(x.shape[0]):
        highest = max(highest, x[r])
    if highest == -np.inf:
        return highest
    for r in range(x.shape[0]):
        total += math.exp(x[r] - highest)
    return float(highest + math.log(total))


@kernel
def all_marginals(chains: Chains, state: Predictor, room: MarginalRoom, labels: np.ndarray) -> None:
    """P(label) of all tokens (float64 [T, K])."""
    read_transitions(chains, state, room.chain)
    read_factors(room)
    for i in range(chains.starts.shape[0] - 1):
        length, first = score_tokens(chains, i, state, room.chain), chains.starts[i]
        label_probabilities(length, False, NEGLIGIBLE, room)
        for t in range(length):
            for y in range(labels.shape[1]):
                labels[first + t, y] = room.forward[t, y]


CURVATURE = 0.05  # of the loss by a weight, for each occurrence: of p·(1 − p), for probabilities as they are mostly
TOLERANCE = 1e-4  # of L, relative: the search ends where a step gains less
MIN_PROBABILITY = 1e-9  # less is left out of gradients, not of the loss
SPARSE_PART = 4  # labels are added one by one where they are less than a quarter of all


def solve_chains(learner: Maxent, chains: Chains, state: State) -> EpochStats:
    """Minimise L(w) from where ``state`` is, and leave the optimum there."""
    assert learner.l2 is not None
    l2, tally, room = learner.l2, new_tally(), marginal_room(chains)
    gradient, active = np.zeros(chains.width), np.empty(chains.labels, np.int64)
    attributes = np.bincount(chains.attributes, np.square(chains.values.astype(np.float64)), chains.attribute_count)
    columns = active_columns(chains)
    occurrences = np.concatenate([np.bincount(chains.gold, minlength=chains.labels), attributes])
    scale = 1.0 / np.sqrt(l2 + CURVATURE * occurrences[columns // chains.labels])

    def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
        """L and its gradient by u = w / scale, of ``columns``."""
        w = u * scale
        state.cells[columns] = w
        gradient[:], tally.loss, tally.mistakes = 0.0, 0.0, 0
        room.chain.stamp[0] = -1
        add_chain_loss(chains, predictor_view(state), room, gradient, active, tally)
        return tally.loss + 0.5 * l2 * float(np.square(w).sum()), scale * (gradient[columns] + l2 * w)

    start, l1 = state.cells[columns] / scale, learner.l1 * scale
    steps = minimise(objective, start, l1, maxiter=learner.iterations, ftol=TOLERANCE)[1]
    predictor_view(state).counts.updates += steps
    tally.lists = chains.example_count
    return EpochStats(*tally.item())


def active_columns(chains: Chains) -> np.ndarray:
    """int64: the columns of allowed transitions, and of attributes with the right labels of their tokens."""
    K, mask = chains.labels, np.zeros(chains.width, np.bool_)
    mask[: K * K] = chains.mask[:K].ravel()
    mask[K * (K + chains.attributes.astype(np.int64)) + np.repeat(chains.gold, np.diff(chains.rows))] = True
    return np.flatnonzero(mask)


@kernel
def add_chain_loss(
    chains: Chains, state: Predictor, room: MarginalRoom, gradient: np.ndarray, active: np.ndarray,
    tally: Any,
) -> None:  # fmt: skip
    """Add −Σ_i log P(gold_i) and mistakes to ``tally``, its gradient to ``gradient``; active: space."""
    K = chains.mask.shape[1]
    read_transitions(chains, state, room.chain)
    read_factors(room)
    for i in range(chains.starts.shape[0] - 1):
        length, first = score_tokens(chains, i, state, room.chain), chains.starts[i]
        log_z, score, wrong = label_probabilities(length, True, MIN_PROBABILITY, room), 0.0, False
        for t in range(length):
            gold, row = np.int64(chains.gold[first + t]), room.forward[t]
            score += room.chain.emissions[t, gold]
            for y in range(K):
                wrong |= row[y] > row[gold]
            row[gold] -= 1.0
            add_token(chains, first + t, row, gradient, active)
            if t > 0:
                before = np.int64(chains.gold[first + t - 1])
                score += room.chain.transitions[gold, before]
                gradient[before * K + gold] -= 1.0
        tally.loss += log_z - score
        tally.mistakes += wrong
    for x in range(K):
        for y in range(K):
            gradient[x * K + y] += room.pairs[x, y] + room.quotients[x, y] * room.factors[x, y]


@kernel
def add_token(chains: Chains, t: int, row: np.ndarray, gradient: np.ndarray, active: np.ndarray) -> None:
    """Add the row of a token's labels to the gradient of all its attributes, for labels that are not nearly 0."""
    K, count = row.shape[0], 0
    for y in range(K):
        if abs(row[y]) > MIN_PROBABILITY:
            active[count] = y
            count += 1
    for p in range(np.uint64(chains.rows[t]), np.uint64(chains.rows[t + 1])):
        j = K * (K + np.int64(chains.attributes[p]))
        value = single(chains.values[p])
        if count > K // SPARSE_PART:
            add_row(row, 0, value, gradient[j : j + K])
        else:
            for r in range(np.uint64(count)):
                gradient[j + active[r]] += value * row[active[r]]


def marginals(chains: Chains, weights: np.ndarray) -> np.ndarray:
    """float64 [T, K]: P(label) of every token under P(y) ∝ e^score(y)."""
    probabilities = np.empty((chains.rows.size - 1, chains.labels))
    state = predictor_with(np.asarray(weights, np.float64))
    all_marginals(chains, state, marginal_room(chains), probabilities)
    return probabilities
