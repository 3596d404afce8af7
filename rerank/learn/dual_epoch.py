"""An epoch of learners with a dual variable for every pair of right and wrong candidate."""

from typing import Any

import numpy as np

from rerank.kernels.compile import kernel
from rerank.learn.hooks import climb, gather, learn
from rerank.learn.judge import look_ahead, squared_norm
from rerank.learn.log import LogBuffers, record
from rerank.learn.losses import judge
from rerank.learn.predictor import ALIVE, beta, close, look_up, score, survive
from rerank.learn.workspace import ListArrays, Scratch, count_update

NO_LIMIT = 1e150  # of a dual variable
ROUNDING = 1e-12  # margins so near to 1 are 1


@kernel
def dual_epoch(
    data: ListArrays, order: np.ndarray, state: Any, sums: Any, scratch: Scratch, log: LogBuffers | None,
    tally: np.ndarray, params: Any,
) -> None:  # fmt: skip
    """Pass over ``order``: dual ascent, a variable per pair (Zhang, section 2; Vapnik 1998, chapter 12).

    For every list the oracle y* is to be ahead of its rival y' by a margin of 1, or to pay C times what is missing. The
    dual variable α of the pair goes up where m < 1 and down where m > 1, α ← clip(α + climb(1 − m)) within
    [0, C·weight], and the weights follow by Δα·z. In longer lists than of two, each variable belongs to a candidate,
    and moves on the visits on which that candidate is the rival, whichever oracle it is compared with.
    """
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        look_up(data, order, at, state.cells)
        i = order[at]
        first, who = data.lists[i], scratch.who
        score(data, i, state, sums, beta(state, params.base, params.base_rate), scratch.scores)
        who[1] = -1
        judge(data, i, scratch, True, params.any_ties, tally, params.loss)
        missing = 0.0
        if who[1] >= 0:
            missing = 1.0 - (scratch.scores[who[0] - first] - scratch.scores[who[1] - first])
        limit, y = min(min(params.C, NO_LIMIT) * data.weight[i], NO_LIMIT), who[1]
        if abs(missing) > ROUNDING and (state.alpha[y] < limit if missing > 0.0 else state.alpha[y] > 0.0):
            count = gather(data, scratch, 2, state.cells.shape[0] - 1, params.loss, params)
            size, old = squared_norm(scratch, count), state.alpha[y]
            step = climb(state, scratch, count, missing, size, params)
            state.alpha[y] = min(max(old + step, 0.0), limit)
            change = state.alpha[y] - old
            if change != 0.0:
                if log is not None:
                    record(log, i, who, scratch.a, 2, change, state.counts[ALIVE])
                count_update(tally, size)
                learn(state, scratch, count, 2, change, params)
                close(state)
        survive(state)
