"""The interface of a space of outputs, and the pass that trains any learner over one.

A space is a named tuple of arrays with examples 0 … L − 1. It gives bodies (see ``by_type``) to the three functions
below: the best output under a predictor, the columns in which the right output differs from that, and the best k. All
of them leave what they find in ``room``, the space's own scratch arrays.

To a learner, an example is a list of two: the right output y* with the features φ(y*) − φ(y'), and the rival y' with
none. It is handed to the learner's own pass over lists, so that updates, averages and counts are those of lists. Where
the best output is the right one, the list has nothing else in it.
"""

from typing import Any, NamedTuple

import numpy as np

from rerank.kernels.by_type import ByType, by_type
from rerank.kernels.compile import kernel
from rerank.learn.log import LogBuffers
from rerank.learn.losses import COST
from rerank.learn.workspace import ORACLES, ListArrays, Scratch


@by_type
def argmax(state: Any, tilt: float, i: int, room: Any, space: Any) -> float:
    """Find the output of example i with the highest score + tilt·cost, of equals the first; returns that score.

    The cost is that of an output compared with the right one, and not looked at where ``tilt`` is 0.
    """
    return 0.0


@by_type
def difference(data: ListArrays, i: int, room: Any, space: Any) -> tuple[int, float]:
    """Write φ(y*) − φ(y') for the y' in ``room`` as the first row of ``data``, each column once.

    Returns how many columns there are, −1 where both are the same, and the cost of y'.
    """
    return -1, 0.0


@by_type
def nbest(state: Any, i: int, k: int, room: Any, space: Any) -> int:
    """Find the k outputs of example i with the highest scores, best first; returns how many there are."""
    return 0


class PassOfLearner(ByType):
    """A function whose body is the pass over lists of the learner whose settings come last."""

    def body_of(self, kinds: list[Any]) -> Any:
        passes = kinds[-1].learner.passes
        return getattr(passes, "function", passes)


@PassOfLearner
def learn_from_list(
    data: ListArrays, order: np.ndarray, state: Any, sums: Any, scratch: Scratch, log: LogBuffers, tally: np.ndarray,
    params: Any,
) -> None:  # fmt: skip
    """Pass over ``order`` and learn, as the learner does."""


@kernel
def structured_pass(
    order: np.ndarray, state: Any, sums: Any, pair: ListArrays, scratch: Scratch, log: LogBuffers, tally: np.ndarray,
    room: Any, space: Any, params: Any,
) -> None:  # fmt: skip
    """Pass over the examples ``order`` once: find the rival of each, and learn from the pair.

    pair: from ``pair_for``, scratch space here; with the loss ``cost`` the rival is the best output by score + cost.
    """
    for at in range(order.shape[0]):
        i = order[at]
        argmax(state, pair.pairs.tilt if params.loss == COST else 0.0, i, room, space)
        count, cost = difference(pair, i, room, space)
        pair.lists[1] = 2 if count >= 0 else 1
        pair.rows[1] = pair.rows[2] = max(count, 0)
        pair.gain[1], pair.weight[0] = -cost, space.weight[i]
        learn_from_list(pair, pair.oracle, state, sums, scratch, log, tally, params)


class PairSpace(NamedTuple):
    """A list of two for kernels to fill, and scratch space for what learners make of it."""

    data: ListArrays
    scratch: Scratch
    log: LogBuffers


def pair_for(entries: int) -> PairSpace:
    """A list of two that differ in up to this many columns."""
    lists, oracle, base = np.zeros(2, np.int64), np.zeros(1, np.int64), np.zeros(2)
    data = ListArrays(
        lists=lists, rows=np.zeros(3, np.int64), columns=np.empty(entries, np.uint32), values=np.empty(entries),
        base=base, gain=np.zeros(2), weight=np.ones(1), oracle=oracle, pairs=ORACLES, free=0,
    )  # fmt: skip
    column, value, extra = np.empty(entries + 1, np.uint32), np.empty(entries + 1), np.empty(entries + 1)
    scratch = Scratch(
        np.empty(2), np.empty(2, np.int64), np.empty(2), column, value, extra, np.empty((0, 4)), np.empty(0, np.int64),
        np.zeros(1, np.int64),
    )  # fmt: skip
    nothing = np.empty(0, np.int64)
    log = LogBuffers(np.zeros(2, np.int64), nothing, nothing, nothing, np.empty(0), nothing, np.empty(0))
    return PairSpace(data, scratch, log)
