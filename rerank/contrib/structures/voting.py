"""Votes of all predictors over structures: a whole output has the votes of the predictors whose best it is."""

from collections import Counter

import numpy as np

from rerank.base.errors import RecipeError
from rerank.contrib.structures.chain import Chains, room_for
from rerank.contrib.structures.decoding import decode_all
from rerank.contrib.structures.training import ChainVisitor, require_structured
from rerank.learn.base import Learner, State
from rerank.learn.predictor import UPDATES
from rerank.learn.trainer import epoch_order


def vote(
    learner: Learner, chains: Chains, test: Chains, *, epochs: int = 10, seed: int = 0, shuffle: bool = True
) -> np.ndarray:
    """int32 [T]: labels of ``test`` by all predictors of a training on ``chains`` (Freund & Schapire 1999).

    The k-th predictor votes for one whole sequence of labels of every example, with as many votes as it survived
    examples; a label by itself has none. Of sequences with equally many, the first in the order of labels wins.

    It costs a training, and for every predictor, that is, every update, an argmax of all of ``test``: some 10,000 times
    as much as the average where 10,000 updates were made. Nothing is kept of a predictor but its votes. Take the
    average where that is too much.

    Raises
    ------
    RecipeError: see ``train_chains``.
    """
    require_voters(learner)
    visitor, state = ChainVisitor(learner, chains), learner.init(chains.width)
    ballot, seen = Ballot(test), 0
    ballot.enter(state, seen)
    for epoch in range(epochs):
        order = epoch_order(chains.example_count, seed, epoch, shuffle)
        sums = learner.begin(visitor.chains, order.size, state)
        for at in range(order.size):
            before = state.counts[UPDATES]
            visitor.visit(order[at : at + 1], state, sums)
            if state.counts[UPDATES] != before:
                ballot.enter(state, seen)
            seen += 1
        learner.finish(state, sums)
    return ballot.winners(seen)


def require_voters(learner: Learner) -> None:
    """Refuse a learner that has but one predictor, or cannot learn over structures."""
    require_structured(learner)
    if learner.batch:
        message = f"the learner {learner.name!r} has one predictor; expected one that learns online"
        raise RecipeError(message, key="learner")


class Ballot:
    """The votes for the sequences of each example."""

    def __init__(self, test: Chains) -> None:
        self.test, self.room, self.lengths = test, room_for(test), np.diff(test.starts)
        self.labels = np.zeros(test.rows.size - 1, np.int32)  # of the current predictor
        self.since = np.zeros(test.example_count, np.int64)  # how many examples had been seen when it first said so
        self.votes = [Counter[tuple[int, ...]]() for _ in range(test.example_count)]

    def enter(self, state: State, seen: int) -> None:
        """A new predictor, made on the example after the first ``seen``, which it survives."""
        labels = np.empty_like(self.labels)
        self.room.stamp[0] = -1
        decode_all(self.test, state, self.room, labels)
        example = np.repeat(np.arange(self.lengths.size), self.lengths)
        self._count(np.unique(example[labels != self.labels]), seen)
        self.labels = labels

    def _count(self, examples: np.ndarray, seen: int) -> None:
        for i in examples:
            sequence = tuple(self.labels[self.test.starts[i] : self.test.starts[i + 1]].tolist())
            self.votes[i][sequence] += seen - int(self.since[i])
            self.since[i] = seen

    def winners(self, seen: int) -> np.ndarray:
        """int32 [T]: the sequences with the most votes after ``seen`` examples."""
        self._count(np.arange(self.lengths.size), seen)
        best = [min(votes, key=lambda sequence: (-votes[sequence], sequence)) for votes in self.votes]
        return np.array([label for sequence in best for label in sequence], np.int32)
