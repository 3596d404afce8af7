"""States that were trained separately, from the same start, and what of them is combined."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rerank.learn.average import survived_sums
from rerank.learn.predictor import ALIVE, FREE, PENDING, SURVIVED, State, sums_of


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

    def summed(self, of: Callable[[State], Any]) -> Any:
        """What ``of`` reads from the start, plus all that the sections have added to it."""
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


def ratio(size: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """size/unit; 1 where there is no unit."""
    return np.asarray(np.divide(size, unit, out=np.ones_like(unit), where=unit > 0))


def inverted(x: np.ndarray) -> np.ndarray:
    """1/x; 0 where x is 0."""
    return np.asarray(np.divide(1.0, x, out=np.zeros_like(x), where=x > 0))


def root(squares: Any) -> Any:
    """√ of sums that rounding may have made negative."""
    return np.sqrt(np.maximum(squares, 0.0))
