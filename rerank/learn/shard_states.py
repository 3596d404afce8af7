"""States that were trained separately, from the same start, and what of them is combined (see ``mixing.formulas``)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rerank.kernels.by_type import by_type
from rerank.learn.average import survived_sums
from rerank.learn.predictor import (
    ALIVE,
    FREE,
    PENDING,
    SURVIVED,
    TAU,
    State,
    coordinates,
    copy_state,
    sums_of,
    weights_of,
)


@dataclass(frozen=True)
class ShardStates:
    """States that were trained separately, from the same start.

    start: where they began; fresh: had nothing been learned there yet? ends: what became of it, read one after the
    other; shares: float64 [sections], sum 1, the weight of every end in means; free: the number of free columns.
    """

    start: State
    fresh: bool
    ends: Sequence[State]
    shares: np.ndarray
    free: int

    @property
    def columns(self) -> int:
        """D."""
        return len(self.start.cells) - 1

    def summed(self, of: Callable[[State], Any]) -> Any:
        """The state that ``of`` reads from the start, plus all that the sections have added to it."""
        first = np.array(of(self.start))
        total = first.copy()
        for end in self.ends:
            total += of(end) - first
        return total

    def mean(self, of: Callable[[State], Any]) -> Any:
        """The mean of what ``of`` reads from the ends, by their shares."""
        total = np.zeros_like(np.asarray(of(self.start), np.float64))
        for share, end in zip(self.shares, self.ends, strict=True):
            total += share * of(end)
        return total

    def largest(self, of: Callable[[State], Any]) -> np.ndarray:
        """The element-wise maximum of what ``of`` reads from the ends."""
        largest = np.array(of(self.ends[0]))
        for end in self.ends[1:]:
            np.maximum(largest, of(end), out=largest)
        return largest

    def completed(self, state: State, shrinks: bool) -> State:
        """``state``, which holds what was learned, with the counts and the average of all sections.

        Its predictor has survived no list yet; what all before it add to the average becomes the sums.
        """
        counts = np.asarray(self.summed(lambda end: end.counts))
        counts[ALIVE] = counts[PENDING] = 0
        counts[FREE] = max(int(end.counts[FREE]) for end in self.ends)
        state.numbers[SURVIVED] = 0.0
        state = state._replace(counts=counts, sums=np.zeros_like(self.start.sums))
        if (sums := sums_of(state)).size:
            survived = self.summed(lambda end: survived_sums(end, shrinks))
            sums[:] = survived if shrinks else -survived
        return state


def mean_of_weights(shards: ShardStates, shrinks: bool) -> State:
    """w = Σ share·w_s, without a threshold."""
    state = copy_state(shards.ends[0])
    coordinates(state)[:] = shards.mean(weights_of)
    state.numbers[TAU] = 0.0
    return shards.completed(state, shrinks)


@by_type
def combined(shards: ShardStates, rule: str, learner: Any) -> State:
    """One state of ``shards``, by a rule of the learner's ``mixes``; weights are averaged."""
    return mean_of_weights(shards, learner.shrinks)
