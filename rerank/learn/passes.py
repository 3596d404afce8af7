"""The three ways to pass over lists, and the two to repeat what was learned; ``hooks`` has what each learner fills in.

* ``gradient_pass``: a loss is judged, and its subgradient causes one update.
* ``pair_pass``: the oracle and its top rivals are learned from in turn.
* ``dual_pass``: a dual variable of the rival goes up or down.

Look-ahead, scores, mistakes, losses, averages, statistics, the log and votes are the same for all learners.
"""

from typing import Any

import numpy as np

from rerank.kernels.by_type import by_type
from rerank.kernels.compile import kernel
from rerank.learn.average import settle
from rerank.learn.hooks import SKIP, UPDATE, climb, gather, learn, update_pair
from rerank.learn.judge import (
    difference,
    find_update,
    is_pair,
    look_ahead,
    pair_of,
    squared_norm,
    squared_radius,
)
from rerank.learn.log import LogBuffers, record
from rerank.learn.losses import COST, HINGE, rivals
from rerank.learn.pairs_kernel import next_pair, pick_pair
from rerank.learn.predictor import (
    ALIVE,
    FREE,
    FREE_SCALE,
    SCALE,
    SLOPE,
    TAU,
    beta,
    close,
    look_up,
    score,
    slope_of,
    survive,
)
from rerank.learn.replay import Updates, VoteRoom, load
from rerank.learn.scoring import a_of
from rerank.learn.workspace import LISTS, LOSS, MISTAKES, RADIUS, SKIPPED, UPDATED, ListArrays, Scratch

NO_LIMIT = 1e150  # of a dual variable
ROUNDING = 1e-12  # margins so near to 1 are 1


@kernel
def gradient_pass(
    data: ListArrays, order: np.ndarray, state: Any, sums: Any, scratch: Scratch, log: LogBuffers, tally: np.ndarray,
    params: Any,
) -> None:  # fmt: skip
    """Pass over ``order``: predict and, on a mistake (or always, on a loss), learn from the subgradient."""
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        look_up(data, order, at, state.cells)
        if params.always:
            look_up_sums(data, order, at, state, sums)
        i = order[at]
        score(data, i, state, beta(state, params.base, params.base_rate), scratch.scores)
        n = find_update(data, i, scratch, params.loss, params.always, params.any_ties, tally)
        if n > 0:
            record(log, i, scratch.who, scratch.a, n, data.weight[i], state.counts[ALIVE])
            count = gather(data, scratch, n, state.cells.shape[0] - 1, params)
            count_update(tally, squared_radius(scratch, count, params.loss))
            if sums is not None:
                settle(state, sums, scratch, count)
            learn(state, scratch, count, n, data.weight[i], params)
            close(state)
        survive(state)


@by_type
def look_up_sums(data: ListArrays, order: np.ndarray, at: int, state: Any, sums: Any) -> None:
    """Prefetch the sums of the next list's columns, for learners that learn from every list."""
    if sums is None:
        look_up(data, order, at, state.sums)
    else:
        look_up(data, order, at, sums.cells)


@kernel
def pair_pass(
    data: ListArrays, order: np.ndarray, state: Any, sums: Any, scratch: Scratch, log: LogBuffers, tally: np.ndarray,
    params: Any,
) -> None:  # fmt: skip
    """Pass over ``order``: learn from the differences of y* and its ``params.top`` best rivals in turn.

    Mistakes are judged by scores, as in ``find_update``, or by margins where a learner judges after its update. A list
    of two needs no scores.
    """
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        i = order[at]
        look_up(data, order, at, state.cells)
        two, mistake = is_pair(data, i, params.any_ties), False
        if two:
            star, rival = pair_of(data, i)
        else:
            score(data, i, state, beta(state, params.base, params.base_rate), scratch.scores)
            star, rival = pick_pair(data, i, scratch.scores, params.any_ties)
            if rival >= 0:
                first = data.lists[i]
                mistake = not scratch.scores[star - first] > scratch.scores[rival - first]
                if params.loss == COST and len(data.pairs.others) == 0:
                    rival = costliest(data, i, scratch.scores, params.any_ties)
        tally[LISTS] += 1
        for number in range(params.top):
            if rival < 0:
                break
            asked = 1.0
            if params.loss == COST:
                asked = data.pairs.tilt * (data.gain[star] - data.gain[rival])
            survived = state.counts[ALIVE]
            count = difference(data, star, rival, params.base_rate, state.cells.shape[0] - 1, scratch)
            fixed = params.base * (data.base[star] - data.base[rival])
            lesson = update_pair(state, sums, scratch, count, fixed, asked, data.weight[i], params)
            if number == 0:
                tally[LOSS] += lesson.loss
                tally[MISTAKES] += not lesson.m > 0.0 if two or params.judges_after_update else mistake
            tally[SKIPPED] += lesson.done == SKIP
            if lesson.done == UPDATE:
                record(log, i, scratch.who, scratch.a, 2, lesson.rate, survived)
                count_update(tally, lesson.norm)
                close(state)
            if two:
                break
            if number + 1 < params.top:
                star, rival = next_pair(data, i, scratch.scores, params.any_ties, star, rival)
        survive(state)


@kernel
def count_update(tally: np.ndarray, squared_radius: float) -> None:
    """Count an update and the length of its difference vector."""
    tally[UPDATED] += 1
    tally[RADIUS] = max(tally[RADIUS], squared_radius)


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
    data: ListArrays, order: np.ndarray, state: Any, sums: Any, scratch: Scratch, log: LogBuffers, tally: np.ndarray,
    params: Any,
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
        score(data, i, state, beta(state, params.base, params.base_rate), scratch.scores)
        missing = shortfall(data, i, scratch, params.any_ties, tally)
        limit = min(params.C, NO_LIMIT) * data.weight[i]
        if missing != 0.0 and moves(state.alpha[scratch.who[1]], missing, limit):
            count = gather(data, scratch, 2, state.cells.shape[0] - 1, params)
            size = squared_norm(scratch, count)
            change = ascend(state.alpha, scratch.who[1], climb(state, scratch, count, missing, size, params), limit)
            if change != 0.0:
                record(log, i, scratch.who, scratch.a, 2, change, state.counts[ALIVE])
                count_update(tally, size)
                learn(state, scratch, count, 2, change, params)
                close(state)
        survive(state)


@kernel
def shortfall(data: ListArrays, i: int, scratch: Scratch, any_ties: bool, tally: np.ndarray) -> float:
    """1 − m of list i, which is counted; 0 without a rival, or for rounding alone. −z is left in ``scratch``."""
    scratch.who[1] = -1
    find_update(data, i, scratch, HINGE, True, any_ties, tally)
    if scratch.who[1] < 0:
        return 0.0
    first = data.lists[i]
    missing = 1.0 - (scratch.scores[scratch.who[0] - first] - scratch.scores[scratch.who[1] - first])
    return missing if abs(missing) > ROUNDING else 0.0


@kernel
def moves(alpha: float, missing: float, limit: float) -> bool:
    """Whether α can still go where it is to go."""
    return alpha < min(limit, NO_LIMIT) if missing > 0.0 else alpha > 0.0


@kernel
def ascend(alpha: np.ndarray, y: int, step: float, limit: float) -> float:
    """α_y ← α_y + step within [0, limit]; returns the change."""
    old = alpha[y]
    alpha[y] = min(max(old + step, 0.0), min(limit, NO_LIMIT))
    return float(alpha[y] - old)


@kernel
def repeat_updates(
    data: ListArrays, log: Updates, state: Any, sums: Any, scratch: Scratch, room: VoteRoom, params: Any
) -> None:
    """Repeat the logged updates from subgradients, and write down what each of them left."""
    write_numbers(room, 0, state, beta(state, params.base, params.base_rate))
    for k in range(log.lists.shape[0]):
        n = load(log, k, scratch)
        count = gather(data, scratch, n, state.cells.shape[0] - 1, params)
        learn(state, scratch, count, n, log.rate[k], params)
        close(state)
        write_columns(room, k, scratch, count, state)
        write_numbers(room, k + 1, state, beta(state, params.base, params.base_rate))


@kernel
def repeat_pairs(
    data: ListArrays, log: Updates, state: Any, sums: Any, scratch: Scratch, room: VoteRoom, params: Any
) -> None:
    """Learn from the logged pairs again, and write down what each of them left."""
    write_numbers(room, 0, state, beta(state, params.base, params.base_rate))
    for k in range(log.lists.shape[0]):
        load(log, k, scratch)
        star, rival, weight = scratch.who[0], scratch.who[1], data.weight[log.lists[k]]
        count = difference(data, star, rival, params.base_rate, state.cells.shape[0] - 1, scratch)
        update_pair(state, sums, scratch, count, log.rate[k], 1.0, weight, params)
        close(state)
        if sums is None:
            write_columns(room, k, scratch, count, state)
        else:
            write_correlated(room, k, sums, state)
        write_numbers(room, k + 1, state, beta(state, params.base, params.base_rate))


@by_type
def write_numbers(room: VoteRoom, k: int, state: Any, weight: float) -> None:
    """The numbers of predictor k, which is the current one, for ``Votes``."""
    threshold = state.numbers[TAU] if state.v.shape[0] > 0 else state.numbers[TAU] * state.numbers[SLOPE]
    room.beta[k], room.scale[k], room.threshold[k] = weight, state.numbers[SCALE], threshold


@by_type
def write_columns(room: VoteRoom, k: int, scratch: Scratch, count: int, state: Any) -> None:
    """The remains of update k in its columns and, where free ones have a scale of their own, in all of these."""
    at, apart = room.first[k], state.numbers[SCALE] != state.numbers[FREE_SCALE]
    for r in range(count):
        j = scratch.column[r]
        if j < room.width and not (apart and j < state.counts[FREE]):
            at = write_column(room, at, j, 1.0, state)
    if apart:
        for free in range(state.counts[FREE]):
            j = np.uint32(free)
            at = write_column(room, at, j, state.numbers[FREE_SCALE] / state.numbers[SCALE], state)
    room.first[k + 1] = at


@by_type
def write_correlated(room: VoteRoom, k: int, moved: np.ndarray, state: Any) -> None:
    """The remains of update k in all columns that an update so far was correlated with: ``moved`` is not 0."""
    at = room.first[k]
    for j in range(room.width):
        if moved[j] != 0.0:
            at = write_column(room, at, np.uint32(j), 1.0, state)
    room.first[k + 1] = at


@by_type
def write_column(room: VoteRoom, at: int, j: Any, factor: float, state: Any) -> int:
    """Write column j as the entry ``at``; returns the place of the next."""
    room.columns[at] = j
    room.value[at] = a_of(state.cells, j) * factor
    if room.slope.shape[0] > 0:
        slope = slope_of(state, j)
        room.slope[at] = np.sign(room.value[at]) * (slope if state.v.shape[0] > 0 or slope == 0.0 else 1.0)
    return int(at + 1)
