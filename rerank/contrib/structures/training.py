"""Training over chains: epochs in a seeded order, and the best of them by what is measured after each.

To a learner, an example is a list of two: the right labels y* with the features φ(y*) − φ(y'), and the rival y' with
none. It is handed to the learner's own pass over lists, so that updates, averages and counts are those of lists. Where
the best labels are the right ones, the list has nothing else in it.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.contrib.structures.chain import ChainRoom, Chains, entries_of, room_for
from rerank.contrib.structures.crf import solve_chains
from rerank.contrib.structures.decoding import best_labels, decode, differing_columns
from rerank.kernels.by_type import ByType
from rerank.kernels.compile import kernel, kernel_of
from rerank.learn.base import Learner, State, Weights
from rerank.learn.contract import accepted
from rerank.learn.folds import FOLDS, sections
from rerank.learn.log import UpdateLog
from rerank.learn.losses import Cost
from rerank.learn.pairs import ORACLES
from rerank.learn.rules.maxent import Maxent
from rerank.learn.train import Training, epoch_order, score_on, train
from rerank.learn.workspace import EpochStats, ListArrays, Scratch, new_tally

log = logging.getLogger("rerank")
PENALTIES = 1.0, 0.1, 0.01, 0.001  # of maxent, where it says none
ENOUGH = 5_000  # tokens, the last ones, for a choice among these


class PassOfLearner(ByType):
    """A function whose body is the pass over lists of the learner whose settings come last."""

    def body_of(self, kinds: list[Any]) -> Any:
        passes = kinds[-1].owner.passes
        return getattr(passes, "declared", passes)


@PassOfLearner
def learn_from_list(
    data: ListArrays, order: np.ndarray, state: Any, sums: Any, scratch: Scratch, log: None, tally: Any,
    params: Any,
) -> None:  # fmt: skip
    """Pass over ``order`` and learn, as the learner does."""


@kernel
def chain_pass(
    order: np.ndarray, state: Any, sums: Any, pair: ListArrays, scratch: Scratch, log: None, tally: Any,
    room: ChainRoom, chains: Chains, tilt: float, params: Any,
) -> None:  # fmt: skip
    """Pass over the examples ``order``: find the rival of each, and learn from the pair; ``pair`` is scratch space.

    tilt: what a wrong label counts in the search for the rival.
    """
    for at in range(order.shape[0]):
        i = order[at]
        best_labels(state, tilt, i, room, chains)
        count, cost = differing_columns(pair, i, room, chains)
        pair.lists[1] = 2 if count >= 0 else 1
        pair.rows[1] = pair.rows[2] = max(count, 0)
        pair.gain[1] = -cost
        learn_from_list(pair, pair.oracle, state, sums, scratch, log, tally, params)


def pair_for(entries: int) -> tuple[ListArrays, Scratch]:
    """A list of two that differ in up to this many columns, for kernels to fill, and scratch space for learners."""
    data = ListArrays(
        lists=np.zeros(2, np.int64), rows=np.zeros(3, np.int64), columns=np.empty(entries, np.uint32),
        values=np.empty(entries), base=np.zeros(2), gain=np.zeros(2), weight=np.ones(1), oracle=np.zeros(1, np.int64),
        pairs=ORACLES, free=0,
    )  # fmt: skip
    column, value, extra = np.empty(entries + 1, np.uint32), np.empty(entries + 1), np.empty(entries + 1)
    return data, Scratch(
        np.empty(2), np.empty(2, np.int64), np.empty(2), column, value, extra, np.empty((0, 3)), np.zeros(0)
    )


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
    """What ``learner`` is penalised by on ``chains``, the last for good: its own penalty; or those down to the one that
    labels most tokens right in sections of the last examples, held out in turn.

    Each begins where the larger one before it ended, down to the first that brings nothing. What is found on this way
    is better than what is found from 0, in fewer steps: UD's Turkish-IMST, l2 .01, 90.6 and 90.3 % right.
    """
    if learner.l2 is not None:
        return [learner.l2]
    every = np.arange(np.searchsorted(chains.starts, chains.starts[-1] - ENOUGH), chains.example_count)
    if every.size < 2:
        return [PENALTIES[0]]
    folds, right = list[tuple[State, Chains, Chains]](), list[int]()
    for first, end in sections(every.size, min(FOLDS, every.size)):
        rest, apart = (chains.take(part) for part in (np.delete(every, slice(first, end)), every[first:end]))
        folds.append((learner.init(chains.width), rest, apart))
    for l2 in PENALTIES:
        for state, rest, _ in folds:
            solve_chains(replace(learner, l2=l2), rest, state)
        right.append(sum(int((decode(apart, state.cells[:-1]) == apart.gold).sum()) for state, _, apart in folds))
        if right[-1] <= max(right[:-1], default=-1):
            break
    best, tokens = right.index(max(right)), int(chains.starts[-1] - chains.starts[every[0]])
    tried = ", ".join(f"l2 {l2:g} {100 * count / tokens:.2f}" for l2, count in zip(PENALTIES, right, strict=False))
    log.info("maxent: l2 %g of %s %% right of %d tokens held out in turn", PENALTIES[best], tried, tokens)
    return list(PENALTIES[: best + 1])


def train_chains(
    learner: Learner,
    chains: Chains,
    *,
    evaluate: Callable[[Weights], float] | None = None,
    epochs: int = 10,
    seed: int = 0,
    shuffle: bool = True,
    predictor: str = "average",
    patience: int | None = None,
) -> Training:
    """Train for ``epochs`` passes over ``chains`` and keep the best by ``evaluate``, without one the last.

    ``maxent`` finds its optimum in place of epochs, see ``penalties``. Arguments are those of
    ``rerank.learn.train.train``; the weights of the result are ``training.weights[predictor].w``.

    Raises
    ------
    RecipeError: the learner needs all outputs, or cannot keep a state for this many columns.
    DataError: a token of ``chains`` has no label.
    """
    require_structured(accepted(learner))
    if (chains.gold < 0).any():
        i = int(np.searchsorted(chains.starts, np.argmax(chains.gold < 0), "right"))
        raise DataError(f"example {i}: found a token without a label; expected one for every token to train on")
    problem = ChainProblem(chains, seed, shuffle)
    observers = [] if evaluate is None else [score_on(evaluate)]
    return train(learner, problem, epochs=epochs, predictor=predictor, patience=patience, observers=observers)


class ChainProblem:
    """Chains as a ``TrainingProblem``, see ``train_chains``, with the scratch space for passes over them."""

    def __init__(self, chains: Chains, seed: int = 0, shuffle: bool = True) -> None:
        self.corpus: Any = chains  # a corpus of this many columns to the learner
        self.seed, self.shuffle = seed, shuffle
        self._room, self._pair = room_for(chains), pair_for(entries_of(chains))

    def visit(self, learner: Learner, state: State, epoch: int, log: UpdateLog | None) -> EpochStats:  # noqa: ARG002
        """See ``TrainingProblem``."""
        if learner.batch:
            field = cast(Maxent, learner)
            of_each = [solve_chains(replace(field, l2=l2), self.corpus, state) for l2 in penalties(field, self.corpus)]
            return of_each[-1]
        return self.learn(learner, epoch_order(self.corpus.example_count, self.seed, epoch, self.shuffle), state)

    def learn(self, learner: Learner, order: np.ndarray, state: State) -> EpochStats:
        """Pass over the examples ``order`` (int64) once and update ``state``; see ``Learner.epoch``."""
        sums, loss, kind = learner.begin(self.corpus, order.size, state), learner.loss_type(), cast(Any, type(learner))
        self._room.stamp[0] = -1  # other transitions than those of an earlier state
        kernel, tally, tilt = kernel_of(chain_pass, kind, loss), new_tally(), float(issubclass(loss, Cost))
        own, params = learner.named(state), learner.settings()
        kernel(order, own, sums, *self._pair, None, tally, self._room, self.corpus, tilt, params)
        learner.finish(state, sums)
        return EpochStats(*tally.item())
