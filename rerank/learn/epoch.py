"""One epoch of a learner: present every list, judge it, learn from it, count.

``judge`` is the loss's own, ``gather`` and ``learn`` are the learner's; which ones are meant is settled while the epoch
is compiled. Learners that learn from pairs as they are, or have a variable for every candidate, have epochs of their
own: see ``pair_epoch``.
"""

from typing import Any

import numpy as np

from rerank.kernels.compile import kernel
from rerank.learn.average import settle
from rerank.learn.hooks import gather, learn
from rerank.learn.judge import look_ahead
from rerank.learn.log import LogBuffers, record
from rerank.learn.losses import judge
from rerank.learn.predictor import beta, close, look_up, score, survive
from rerank.learn.workspace import ListArrays, Scratch


@kernel
def epoch(
    data: ListArrays, order: np.ndarray, state: Any, sums: Any, scratch: Scratch, log: LogBuffers | None,
    tally: Any, params: Any,
) -> None:  # fmt: skip
    """Pass over ``order``: predict and, on a mistake (or always, on a loss), learn from the subgradient."""
    for at in range(order.shape[0]):
        look_ahead(data, order, at)  # memory that the next lists need
        look_up(data, order, at, state, sums, params.always)

        i = order[at]  # present
        score(data, i, state, sums, beta(state, params.base, params.base_rate), scratch.scores)

        n = judge(data, i, scratch, params.always, params.any_ties, tally, params.loss)

        if n > 0:  # learn
            if log is not None:
                # Before `close`, which sets to 0 how many lists the predictor has survived that this update ends.
                record(log, i, scratch.who, scratch.a, n, data.weight[i], state.counts.alive)
            count = gather(data, scratch, n, state.a.shape[0] - 1, params.loss, params)
            tally.updates += 1
            if sums is not None:  # before a, v and d change: the average needs what the columns have weighed so far
                settle(state, sums, scratch, count)
            learn(state, scratch, count, n, data.weight[i], params)
            close(state)  # after `learn`, in which counts.updates is that of updates before this one

        survive(state)  # count: a list counts for the predictor after it, which may have been made on it
