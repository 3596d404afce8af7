"""States that were trained separately, from the same start, and what of them is combined."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_type_hints

import numpy as np

State = Any  # a NamedTuple of arrays, one class per family of learners

# A field of a state whose first axis is that of columns, with or without a coordinate of the base score after the last.
ByColumn = Annotated[np.ndarray, "by column"]
# A field whose second axis is that of columns too: what belongs to a pair of them.
ByPair = Annotated[np.ndarray, "by column", "by column"]
LINE = 8  # float64 in a line of the processor's caches


def columns_of(state: State) -> frozenset[str]:
    """The fields of a state that are by column, or by pair of columns."""
    kind: Any = type(state)
    return _fields(kind, ByColumn) | _fields(kind, ByPair)


def pairs_of(state: State) -> frozenset[str]:
    """The fields of a state that are by pair of columns."""
    kind: Any = type(state)
    return _fields(kind, ByPair)


@cache
def _fields(kind: Any, annotated: Any) -> frozenset[str]:
    hints = get_type_hints(kind, include_extras=True)
    return frozenset(name for name, hint in hints.items() if hint == annotated)


def cells_of(columns: int, numbers: int) -> np.ndarray:
    """float64 [columns, numbers], all 0: cells of 2, 4 or 8 numbers lie within one line of the processor's caches."""
    room = np.zeros(columns * numbers + LINE)
    first = -room.ctypes.data // room.itemsize % LINE
    return room[first : first + columns * numbers].reshape(columns, numbers)


@dataclass(frozen=True)
class TrainedApart:
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
        found = np.array(of(self.ends[0]))
        for end in self.ends[1:]:
            np.maximum(found, of(end), out=found)
        return found


def ratio(own: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """own/unit; 1 where there is no unit."""
    return np.asarray(np.divide(own, unit, out=np.ones_like(unit), where=unit > 0))


def root(squares: Any) -> Any:
    """√ of sums that rounding may have made negative."""
    return np.sqrt(np.maximum(squares, 0.0))
