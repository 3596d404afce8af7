"""The pass that trains any learner over chains.

To a learner, an example is a list of two: the right labels y* with the features φ(y*) − φ(y'), and the rival y' with
none. It is handed to the learner's own pass over lists, so that updates, averages and counts are those of lists. Where
the best labels are the right ones, the list has nothing else in it.
"""

from typing import Any, NamedTuple

import numpy as np

from rerank.kernels.by_type import ByType
from rerank.kernels.compile import kernel
from rerank.learn.log import LogBuffers
from rerank.learn.losses import COST
from rerank.learn.spaces.chain import ChainRoom, Chains
from rerank.learn.spaces.viterbi import best_labels, differing_columns
from rerank.learn.workspace import ORACLES, ListArrays, Scratch


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
def chain_pass(
    order: np.ndarray, state: Any, sums: Any, pair: ListArrays, scratch: Scratch, log: LogBuffers, tally: np.ndarray,
    room: ChainRoom, chains: Chains, params: Any,
) -> None:  # fmt: skip
    """Pass over the examples ``order`` once: find the rival of each, and learn from the pair.

    pair: from ``pair_for``, scratch space here; with the loss ``cost`` the rival is the best by score + cost.
    """
    for at in range(order.shape[0]):
        i = order[at]
        best_labels(state, pair.pairs.tilt if params.loss == COST else 0.0, i, room, chains)
        count, cost = differing_columns(pair, i, room, chains)
        pair.lists[1] = 2 if count >= 0 else 1
        pair.rows[1] = pair.rows[2] = max(count, 0)
        pair.gain[1], pair.weight[0] = -cost, chains.weight[i]
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
