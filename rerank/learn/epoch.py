"""One epoch of a learner: present every list, judge it, learn from it, count.

``judge`` is the loss's own, ``gather`` and ``learn`` are the learner's; which ones are meant is settled while the epoch
is compiled. Some learners learn from difference vectors z = φ(y*) − φ(y'), of several rivals in turn (``pair_epoch``);
those with a variable for every candidate have epochs of their own.
"""

from typing import Any

import numpy as np

from rerank.kernels.compile import kernel
from rerank.learn.log import LogBuffers, record
from rerank.learn.losses import costliest, judge
from rerank.learn.pairs import compares_oracle, pick, pick_next
from rerank.learn.predictor import beta, close, look_up, score, settle, survive
from rerank.learn.vectors import difference, look_ahead
from rerank.learn.workspace import SKIP, UPDATE, ListArrays, Scratch, gather, learn, update_pair


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


@kernel
def pair_epoch(
    data: ListArrays, order: np.ndarray, state: Any, sums: Any, scratch: Scratch, log: LogBuffers | None,
    tally: Any, params: Any,
) -> None:  # fmt: skip
    """Pass over ``order``: learn from the differences of y* and its ``params.top`` best rivals in turn.

    Mistakes are judged by scores, or by margins where a learner judges after its update. A list of two needs no scores.
    """
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        look_up(data, order, at, state, sums, False)
        i = order[at]
        first, last, survived = data.lists[i], data.lists[i + 1], state.counts.alive
        scores, gain, oracle = scratch.scores[: last - first], data.gain[first:last], data.oracle[i] - first

        two = last - first == 2 and compares_oracle(data.pairs)
        two, mistake = two and not (params.any_ties and gain[0] == gain[1]), False
        if two:
            star, rival = oracle, 1 - oracle
        else:
            score(data, i, state, sums, beta(state, params.base, params.base_rate), scratch.scores)
            star, rival = pick(scores, gain, oracle, params.any_ties, i, data.pairs)
            if rival >= 0:
                mistake = not scores[star] > scores[rival]
                # The scores themselves are reduced, once the mistake is judged: further rivals are picked by them too.
                rival = costliest(data, i, scratch.scores, scratch.scores, params.any_ties, rival, params.loss)
        tally.lists += 1
        for number in range(params.top):
            if rival < 0:
                break
            cost = data.pairs.tilt * (gain[star] - gain[rival])
            count = difference(data, first + star, first + rival, params.base_rate, state.a.shape[0] - 1, scratch)
            fixed = params.base * (data.base[first + star] - data.base[first + rival])
            lesson = update_pair(state, sums, scratch, count, fixed, cost, data.weight[i], params)
            if number == 0:
                tally.loss += lesson.loss
                tally.mistakes += not lesson.m > 0.0 if two or params.judges_after_update else mistake
            tally.skipped += lesson.done == SKIP
            if lesson.done == UPDATE:
                if log is not None:
                    record(log, i, scratch.who, scratch.a, 2, lesson.rate, survived)
                tally.updates += 1
                close(state)
                survived = 0  # of a predictor that another update of the same list ends
            if two:
                break
            if number + 1 < params.top:
                star, rival = pick_next(scores, gain, oracle, params.any_ties, i, star, rival, data.pairs)
        survive(state)
