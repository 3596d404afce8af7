"""The three ways to pass over lists, and the two to repeat what was learned; ``steps`` has what each learner fills in.

* ``gradient_pass``: a loss is judged, and its subgradient causes one step.
* ``pair_pass``: the oracle and its top rivals are learned from in turn.
* ``dual_pass``: a dual variable of the rival goes up or down.

Look-ahead, mistakes, losses, statistics and the log are the same for all learners of a kind.
"""

from typing import Any

import numpy as np

from rerank.kernels.compile import kernel
from rerank.learn.judge import duel, duellists, judge, look_ahead, squared_norm, squared_radius
from rerank.learn.log import LogRoom, record
from rerank.learn.losses import COST, HINGE, rivals
from rerank.learn.pairs_kernel import confront, confront_next
from rerank.learn.steps import (
    ALIVE,
    SKIP,
    UPDATE,
    cast,
    climb,
    count_update,
    emit,
    gather,
    inclusive,
    learn_pair,
    look_up_weights,
    outlive,
    rate_of,
    score,
    settle,
    step,
)
from rerank.learn.voting.votes import Updates, VoteRoom, load
from rerank.learn.workspace import LISTS, LOSS, MISTAKES, SKIPPED, ListArrays, Scratch

NO_LIMIT = 1e150  # of a dual variable
ROUNDING = 1e-12  # margins so near to 1 are 1


@kernel
def gradient_pass(
    data: ListArrays, order: np.ndarray, state: Any, lazy: Any, t: Scratch, log: LogRoom, tally: np.ndarray, q: Any
) -> None:
    """Pass over ``order``: predict and, on a mistake (or always, on a loss), learn from the subgradient."""
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        look_up_weights(data, order, at, state, lazy, q)
        i = order[at]
        score(data, i, state, q, t.scores)
        n = judge(data, i, t, q.loss, q.always, q.any_ties, tally)
        if n > 0:
            rate = rate_of(state, data.weight[i], q)
            record(log, i, t.who, t.a, n, rate, state.counts[ALIVE])
            count, g_base = gather(data, t, n, q)
            count_update(tally, squared_radius(t, count, g_base, q.loss))
            settle(state, lazy, t, count, data.free, q)
            step(state, t, count, n, rate, g_base, data.free, q)
        outlive(state, q)


@kernel
def pair_pass(
    data: ListArrays, order: np.ndarray, state: Any, lazy: Any, t: Scratch, log: LogRoom, tally: np.ndarray, q: Any
) -> None:
    """Pass over ``order``: learn from the differences of y* and its ``q.top`` best rivals in turn.

    Mistakes are judged by scores, as in ``judge``, or (see ``inclusive``) by margins. A list of two needs no scores.
    """
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        i = order[at]
        look_up_weights(data, order, at, state, lazy, q)
        two, mistake = duel(data, i, q.any_ties), False
        if two:
            star, rival = duellists(data, i)
        else:
            score(data, i, state, q, t.scores)
            star, rival = confront(data, i, t.scores, q.any_ties)
            if rival >= 0:
                first = data.lists[i]
                mistake = not t.scores[star - first] > t.scores[rival - first]
                if q.loss == COST and len(data.pairs.others) == 0:
                    rival = costliest(data, i, t.scores, q.any_ties)
        tally[LISTS] += 1
        for number in range(q.top):
            if rival < 0:
                break
            survived = state.counts[ALIVE]
            fixed = q.base * (data.base[star] - data.base[rival])
            lesson = learn_pair(data, i, star, rival, fixed, state, lazy, t, q)
            if number == 0:
                tally[LOSS] += lesson.loss
                tally[MISTAKES] += not lesson.m > 0.0 if two or inclusive(q) else mistake
            tally[SKIPPED] += lesson.done == SKIP
            if lesson.done == UPDATE:
                record(log, i, t.who, t.a, 2, lesson.rate, survived)
                count_update(tally, lesson.norm)
            if two:
                break
            if number + 1 < q.top:
                star, rival = confront_next(data, i, t.scores, q.any_ties, star, rival)
        outlive(state, q)


@kernel
def costliest(data: ListArrays, i: int, scores: np.ndarray, any_ties: bool) -> int:
    """The rival of list i with the highest score − tilt·gain; these are left in ``scores`` for further rivals."""
    first, last = data.lists[i], data.lists[i + 1]
    for y in range(first, last):
        scores[y - first] -= data.pairs.tilt * data.gain[y]
    _, rival = rivals(first, last, scores, data.gain, data.oracle[i], any_ties, 0.0)
    return rival


@kernel
def dual_pass(
    data: ListArrays, order: np.ndarray, state: Any, lazy: Any, t: Scratch, log: LogRoom, tally: np.ndarray, q: Any
) -> None:
    """Pass over ``order``: α of the rival ← clip(α + climb(1 − m)), and the weights follow by Δα·z."""
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        look_up_weights(data, order, at, state, lazy, q)
        i = order[at]
        score(data, i, state, q, t.scores)
        missing, limit = shortfall(data, i, t, q.any_ties, tally), min(q.C, NO_LIMIT) * data.weight[i]
        if missing != 0.0 and moves(state.alpha[t.who[1]], missing, limit):
            count, g_base = gather(data, t, 2, q)
            size = squared_norm(t, count) + g_base * g_base
            change = ascend(state.alpha, t.who[1], climb(missing, size, q), limit)
            if change != 0.0:
                record(log, i, t.who, t.a, 2, change, state.counts[ALIVE])
                count_update(tally, size)
                step(state, t, count, 2, change, g_base, data.free, q)
        outlive(state, q)


@kernel
def shortfall(data: ListArrays, i: int, t: Scratch, any_ties: bool, tally: np.ndarray) -> float:
    """1 − m of list i; 0 without a rival, or where only rounding differs. Counts the list, its mistake and its hinge
    loss.

    y* and y' are left in ``t.who``, the coefficients of −z in ``t.a``.
    """
    t.who[1] = -1
    judge(data, i, t, HINGE, True, any_ties, tally)
    if t.who[1] < 0:
        return 0.0
    missing = 1.0 - (t.scores[t.who[0] - data.lists[i]] - t.scores[t.who[1] - data.lists[i]])
    return missing if abs(missing) > ROUNDING else 0.0


@kernel
def moves(alpha: float, missing: float, limit: float) -> bool:
    """Can α still go where it is to go?"""
    return alpha < min(limit, NO_LIMIT) if missing > 0.0 else alpha > 0.0


@kernel
def ascend(alpha: np.ndarray, y: int, step: float, limit: float) -> float:
    """α_y ← α_y + step within [0, limit]; returns the change."""
    old = alpha[y]
    alpha[y] = min(max(old + step, 0.0), min(limit, NO_LIMIT))
    return float(alpha[y] - old)


@kernel
def repeat_steps(
    data: ListArrays, log: Updates, state: Any, lazy: Any, t: Scratch, room: VoteRoom, q: Any
) -> None:  # fmt: skip
    """Repeat the logged steps, and write down what each of them left."""
    cast(room, 0, state, q)
    for k in range(log.lists.shape[0]):
        n = load(log, k, t)
        count, g_base = gather(data, t, n, q)
        step(state, t, count, n, log.rate[k], g_base, data.free, q)
        emit(room, k, t, count, state, lazy, data.free, q)
        cast(room, k + 1, state, q)


@kernel
def repeat_pairs(
    data: ListArrays, log: Updates, state: Any, lazy: Any, t: Scratch, room: VoteRoom, q: Any
) -> None:  # fmt: skip
    """Learn from the logged pairs again, and write down what each of them left."""
    cast(room, 0, state, q)
    for k in range(log.lists.shape[0]):
        load(log, k, t)
        count = learn_pair(data, log.lists[k], t.who[0], t.who[1], log.rate[k], state, lazy, t, q).columns
        emit(room, k, t, count, state, lazy, data.free, q)
        cast(room, k + 1, state, q)
