"""L-BFGS over all lists: the least penalised loss, and the scales of columns by which it comes there in few steps."""

import logging
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from rerank.data.corpus import ColumnSpread, Corpus
from rerank.kernels.compile import kernel, kernel_of
from rerank.learn.base import State
from rerank.learn.losses import value_of_list
from rerank.learn.predictor import named, score_list
from rerank.learn.scoring import scores, single
from rerank.learn.workspace import EpochStats, ListArrays, view

log = logging.getLogger("rerank")
TOLERANCE = 1e-8  # of the loss, relative: L-BFGS ends where a step gains less
MEMORY = 10  # of L-BFGS, in steps
LEAST_CURVATURE = 1e-3  # of a column, where nothing is penalised


def optimum(
    learner: Any, l2: float, lists: Corpus, oracle: np.ndarray, state: State, any_ties: bool, tolerance: float
) -> EpochStats:
    """Minimise the loss of ``learner`` with its penalties from where ``state`` is, and leave the optimum there."""
    add, loss, value = kernel_of(add_loss, learner.loss_type()), learner.settings().loss, 0.0
    scale, unit = scales(lists, learner.base_rate, l2)
    lessons = [lessons_of(part, lists.in_part(number, oracle), any_ties) for number, part in enumerate(lists.parts())]
    longest = np.diff(lists.lists).max(initial=0)

    def penalised(u: np.ndarray) -> tuple[float, np.ndarray]:
        """L and its gradient by u = x / unit, where x = w / scale."""
        nonlocal value
        gradient, value = np.zeros(u.size), 0.0
        x = u * unit
        w = x * scale
        for part, (taught, right) in zip(lists.parts(), lessons, strict=True):
            data, scratch = view(part, np.full(part.list_count, -1)), np.empty((2, longest))
            value += add(data, taught, right, loss, w, learner.base + w[-1], *scratch, gradient)
        away = x - drawn
        return value + 0.5 * l2 * float(np.square(away).sum()), unit * (gradient * scale + l2 * away)

    start, drawn = (np.divide(w, scale, out=np.zeros(scale.size), where=scale > 0) for w in (state.cells, state.memory))
    how = {"maxiter": learner.iterations, "maxfun": 10 * learner.iterations, "ftol": tolerance, "gtol": 0.0}
    u, steps = minimised(penalised, start / unit, learner.l1 * unit, **how)
    if steps == learner.iterations and tolerance == TOLERANCE:  # what is learned in folds need not be the optimum
        log.warning("maxent ends after %d iterations, before its optimum; set iterations, or l2, higher", steps)
    state.cells[:] = u * unit * scale
    counts = named(state).counts
    counts.updates, counts.free = counts.updates + steps, lists.free
    parts = zip(lists.parts(), lessons, strict=True)
    mistakes = sum(mistakes_in(part, scores(part, learner.last(state)), *those) for part, those in parts)
    return EpochStats(lists.list_count, mistakes, 0, value, 0)


def lessons_of(part: Corpus, oracle: np.ndarray, any_ties: bool) -> tuple[np.ndarray, np.ndarray]:
    """int64 [T], the lists that teach something, as another candidate than the right ones can be chosen; and int64 [N],
    1 for the right ones: the ``oracle``, or with ``any_ties`` all that have its gain."""
    best = np.repeat(oracle, np.diff(part.lists))
    right = part.gain == part.gain[best] if any_ties else np.arange(best.size) == best
    wrong = np.diff(np.append(0, np.cumsum(~right))[part.lists])
    return np.flatnonzero(wrong), right.astype(np.int64)


def mistakes_in(part: Corpus, score: np.ndarray, taught: np.ndarray, right: np.ndarray) -> int:
    """How many of the lists ``taught`` have no right candidate that scores strictly highest."""
    ends = np.stack([part.lists[taught], part.lists[taught + 1]], axis=1).ravel()
    sides = (np.append(np.where(right == side, score, -np.inf), 0.0) for side in (1, 0))
    star, rival = (np.maximum.reduceat(side, ends)[::2] for side in sides)
    return int(np.count_nonzero(rival >= star))


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
    data: ListArrays, taught: np.ndarray, right: np.ndarray, loss: Any, w: np.ndarray, beta: float, scores: np.ndarray,
    a: np.ndarray, gradient: np.ndarray,
) -> float:  # fmt: skip
    """Return the loss of the lists ``taught``, and add its gradient, β's last; scores, a: scratch of a list."""
    total = 0.0
    for i in taught:
        first, last = data.lists[i], data.lists[i + 1]
        n = last - first
        score_list(data, i, w, 1.0, beta, scores)
        total += data.weight[i] * value_of_list(scores[:n], data.gain[first:last], right[first:last], a[:n], loss)
        for y in range(first, last):
            share = data.weight[i] * a[y - first]
            gradient[-1] += share * data.base[y]
            for p in range(np.uint64(data.rows[y]), np.uint64(data.rows[y + 1])):
                gradient[data.columns[p]] += share * single(data.values[p])
    return total


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
