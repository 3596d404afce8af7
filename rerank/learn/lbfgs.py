"""L-BFGS over all lists: the least penalised loss, and the scales of columns by which it comes there in few steps."""

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from rerank.data.corpus import ColumnSpread, Corpus
from rerank.kernels.compile import kernel, kernel_of
from rerank.learn.base import State
from rerank.learn.losses import judge
from rerank.learn.predictor import named, score_list
from rerank.learn.scoring import single
from rerank.learn.workspace import EpochStats, ListArrays, Scratch, new_tally, scratch_for, view

log = logging.getLogger("rerank")
TOLERANCE = 1e-8  # of the loss, relative: L-BFGS ends where a step gains less
MEMORY = 10  # of L-BFGS, in steps
LEAST_CURVATURE = 1e-3  # of a column, where nothing is penalised


def optimum(
    learner: Any, l2: float, lists: Corpus, oracle: np.ndarray, state: State, any_ties: bool, tolerance: float
) -> EpochStats:
    """Minimise the loss of ``learner`` with its penalties from where ``state`` is, and leave the optimum there."""
    tally, loss = new_tally(), learner.settings().loss
    add = kernel_of(add_loss, learner.loss_type())
    scale, unit = scales(lists, learner.base_rate, l2)

    def penalised(u: np.ndarray) -> tuple[float, np.ndarray]:
        """L and its gradient by u = x / unit, where x = w / scale."""
        gradient, tally.loss, tally.mistakes = np.zeros(u.size), 0.0, 0
        x = u * unit
        w = x * scale
        for number, part in enumerate(lists.parts()):
            data = view(part, lists.in_part(number, oracle))
            add(data, loss, any_ties, w, learner.base + w[-1], scratch_for(part, True), gradient, tally, new_tally())
        away = x - drawn
        return tally.loss + 0.5 * l2 * float(np.square(away).sum()), unit * (gradient * scale + l2 * away)

    start, drawn = (np.divide(w, scale, out=np.zeros(scale.size), where=scale > 0) for w in (state.cells, state.memory))
    how = {"maxiter": learner.iterations, "maxfun": 10 * learner.iterations, "ftol": tolerance, "gtol": 0.0}
    u, steps = minimised(penalised, start / unit, learner.l1 * unit, **how)
    if steps == learner.iterations and tolerance == TOLERANCE:  # what is learned in folds need not be the optimum
        log.warning("maxent ends after %d iterations, before its optimum; set iterations, or l2, higher", steps)
    state.cells[:] = u * unit * scale
    counts = named(state).counts
    counts.updates, counts.free = counts.updates + steps, lists.free
    tally.lists = lists.list_count
    return EpochStats(*tally.item())


def minimised(
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]], start: np.ndarray, l1: np.ndarray, **options: Any
) -> tuple[np.ndarray, int]:
    """The x at which loss(x) + Σ l1·|x| is least, by L-BFGS from ``start``, and the number of steps; ``loss`` gives its
    gradient too, and is called for the result at last.

    With a penalty l1, x is the difference u − v of parts that are nowhere below 0, so that it is smooth (Andrew & Gao
    2007, section 3.2).
    """
    from scipy.optimize import minimize  # half a second, which other learners need not wait for

    n, how = start.size, {"jac": True, "method": "L-BFGS-B", "options": {"maxcor": MEMORY, **options}}

    def parted(parts: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = loss(parts[:n] - parts[n:])
        return value + float((l1 * (parts[:n] + parts[n:])).sum()), np.concatenate([gradient + l1, l1 - gradient])

    with _libraries().limit(limits=1, user_api="blas"):  # sums by several threads differ in the last bit
        if l1.any():
            both = np.concatenate([np.maximum(start, 0.0), np.maximum(-start, 0.0)])
            found = minimize(parted, both, bounds=[(0.0, None)] * both.size, **how)
            x = found.x[:n] - found.x[n:]
        else:
            found = minimize(loss, start, **how)
            x = found.x
        loss(x)
    return x, found.nit


@cache
def _libraries() -> Any:
    """The libraries that have threads of their own; to look for them takes longer than a small fit."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@kernel
def add_loss(
    data: ListArrays, loss: Any, any_ties: bool, w: np.ndarray, beta: float, scratch: Scratch, gradient: np.ndarray,
    tally: Any, own: Any,
) -> None:  # fmt: skip
    """Add the lists' loss and mistakes to ``tally``, its gradient, β's last, to ``gradient``; own: the tally of one
    list, scratch."""
    for i in range(data.weight.shape[0]):
        score_list(data, i, w, 1.0, beta, scratch.scores)
        own.loss, own.mistakes = 0.0, 0
        n = judge(data, i, scratch, True, any_ties, own, loss)
        tally.mistakes += own.mistakes
        tally.loss += data.weight[i] * own.loss
        for r in range(n):
            y, share = scratch.who[r], data.weight[i] * scratch.a[r]
            gradient[-1] += share * data.base[y]
            for p in range(np.uint64(data.rows[y]), np.uint64(data.rows[y + 1])):
                gradient[data.columns[p]] += share * single(data.values[p])


def scales(lists: Corpus, base_rate: float, l2: float) -> tuple[np.ndarray, np.ndarray]:
    """float64 [D + 1] each: the deviation of dense columns within lists, of which penalties are, 1 for others and
    ``base_rate`` for the base score; and by how much a column's coordinate moves, from its curvature at w = 0, which
    L-BFGS cannot know before it has moved along all of them.

    The second derivative of L at w = 0 by a column is the sum over lists of its variance within the list.
    """
    spread, found, sums = ColumnSpread(lists.free), np.zeros(lists.width + 1), np.zeros(lists.width + 1)
    for part in lists.parts():
        spread.add(part)
        add_curvature(view(part, np.full(part.list_count, -1)), found, sums)
    scale = np.concatenate([spread.scale(), np.ones(lists.width - lists.free), [base_rate]])
    return scale, 1.0 / np.sqrt(max(l2, LEAST_CURVATURE) + np.square(scale) * np.maximum(found, 0.0))


@kernel
def add_curvature(data: ListArrays, found: np.ndarray, sums: np.ndarray) -> None:
    """Add to ``found`` the variance of every column within every list; sums: zeros, scratch."""
    D = found.shape[0] - 1
    for i in range(data.weight.shape[0]):
        first, last = data.lists[i], data.lists[i + 1]
        if last <= first:
            continue
        share = 1.0 / (last - first)
        mean = 0.0
        for y in range(first, last):
            mean += share * data.base[y]
            for p in range(np.uint64(data.rows[y]), np.uint64(data.rows[y + 1])):
                x, j = single(data.values[p]), data.columns[p]
                sums[j] += share * x
                found[j] += data.weight[i] * share * x * x
        for y in range(first, last):
            away = data.base[y] - mean
            found[D] += data.weight[i] * share * (away * away)
            for p in range(np.uint64(data.rows[y]), np.uint64(data.rows[y + 1])):
                j = data.columns[p]
                if sums[j] != 0.0:
                    found[j] -= data.weight[i] * sums[j] * sums[j]
                    sums[j] = 0.0
