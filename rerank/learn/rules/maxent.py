"""The conditional log-linear model of lists, trained to its optimum by L-BFGS: a batch learner.

The probability of candidate y of list i is P_i(y) = e^{score(y)} / Σ e^{score} (for N-best parses Johnson et al. 1999;
as a baseline Charniak & Johnson 2005, section 3, and Gao et al. 2007). O_i being the right candidates of a list,

    L(w) = −Σ_i weight_i · log P_i(O_i) + (l2/2)·‖w − w₀‖² + l1·‖w‖₁

is the loss ``log`` of the online learners, for which ``listnet`` or ``listmle`` may stand, with a penalty; w₀ is 0, or
what an earlier training has found. L is convex where every list has one right candidate. Columns are scaled so that it
is found in few steps.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.ranges import Count, NotNegative
from rerank.data.corpus import ColumnSpread, Corpus
from rerank.kernels.compile import kernel, kernel_of
from rerank.learn.learner import Learner, State, Weights
from rerank.learn.losses import value_of_list
from rerank.learn.predictor import predictor_view, score_list
from rerank.learn.scoring import scores, single
from rerank.learn.workspace import EpochStats, ListArrays, view

log = logging.getLogger("rerank")
TOLERANCE = 1e-8  # of the loss, relative: L-BFGS ends where a step gains less
MEMORY = 10  # of L-BFGS, in steps
MIN_CURVATURE = 1e-3  # of a column, where nothing is penalised


@dataclass(frozen=True, kw_only=True)
class Maxent(Learner):
    """Conditional maximum entropy with a penalty, by L-BFGS: no epochs, no step size, no seed.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(Maxent(l2=1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.176, 'short': 0.5601}

    Reference: Johnson et al. 1999 (ACL); Charniak & Johnson 2005 (ACL), section 3. Memory: 250 bytes a column.

    Penalties are on dense columns too, in units of their deviation within lists. ``base: auto`` makes the base score
    one more of them; with a number it is an offset of that weight, which stays.

    Parameters
    ----------
    loss: log, of the right candidates alone; listnet or listmle, of the gains of all: for a metric of the order.
    l2: ≥ 0, against the sum over lists; null: 1, 10, 100, ... as is best on sections of the training lists held out in
        turn, and the model is a sum of what is about as good there.
    l1: ≥ 0, against the sum over lists; above 0 many weights are exactly 0.
    columns: learn from "all" columns, or from the "dense" ones and the base score; auto: from either or both, as is
        best on the sections held out.
    iterations: ≥ 1; passes over all lists at most. A warning says where they end before the optimum.
    base, base_rate: see Learner; the penalty is on the weight of b(y)·base_rate.
    """

    name: ClassVar[str] = "maxent"
    batch: ClassVar[bool] = True
    passes: ClassVar[Any] = None
    replays: ClassVar[Any] = None
    sources: ClassVar[tuple[str, ...]] = ("oracle",)
    loss: Literal["log", "listnet", "listmle"] = "log"
    l2: NotNegative | None = None
    l1: NotNegative = 0.0
    columns: Literal["auto", "dense", "all"] = "auto"
    iterations: Count = 200

    def init(self, columns: int, candidates: int = 0) -> State:
        """The weights and, of column D, what is added to ``base``; ``memory`` has those that the penalty draws to."""
        return super().init(columns, candidates)._replace(sums=np.zeros(0), memory=np.zeros(columns + 1))

    def anchor(self, state: State) -> State:
        """Return ``state`` with a penalty that draws to its weights (Chelba & Acero 2004, section 3)."""
        return state._replace(memory=np.array(state.cells))

    def last(self, state: State) -> Weights:
        return Weights(np.array(state.cells[:-1]), float(self.base + state.cells[-1]))

    average = last  # the optimum: there are no others

    def solve(
        self, lists: Corpus, oracle: np.ndarray, state: State, *, any_ties: bool = False, tolerance: float = TOLERANCE
    ) -> EpochStats:
        """Minimise L(w) from where ``state`` is, and leave the optimum there; see ``Learner.epoch``."""
        if self.l2 is None:
            raise RecipeError("found null; expected a number from 0, as no penalty was chosen by folds", key="l2")
        add, loss, l2, value = kernel_of(add_loss, self.loss_type()), self.settings().loss, self.l2, 0.0
        scale, unit = scales(lists, self.base_rate, l2)
        targets = [targets_of(part, lists.in_part(k, oracle), any_ties) for k, part in enumerate(lists.parts())]
        longest = np.diff(lists.lists).max(initial=0)

        def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
            """L and its gradient by u = x / unit, where x = w / scale."""
            nonlocal value
            gradient, value = np.zeros(u.size), 0.0
            x = u * unit
            w = x * scale
            for part, (indices, right) in zip(lists.parts(), targets, strict=True):
                data, scratch = view(part, np.full(part.list_count, -1)), np.empty((2, longest))
                value += add(data, indices, right, loss, w, self.base + w[-1], *scratch, gradient)
            distance = x - anchor
            return value + 0.5 * l2 * float(np.square(distance).sum()), unit * (gradient * scale + l2 * distance)

        start, anchor = (
            np.divide(w, scale, out=np.zeros(scale.size), where=scale > 0) for w in (state.cells, state.memory)
        )
        options = {"maxiter": self.iterations, "maxfun": 10 * self.iterations, "ftol": tolerance, "gtol": 0.0}
        u, steps = minimise(objective, start / unit, self.l1 * unit, **options)
        if steps == self.iterations and tolerance == TOLERANCE:  # what is learned in folds need not be the optimum
            log.warning("maxent ends after %d iterations, before its optimum; set iterations, or l2, higher", steps)
        state.cells[:] = u * unit * scale
        counts = predictor_view(state).counts
        counts.updates, counts.free = counts.updates + steps, lists.free
        parts = zip(lists.parts(), targets, strict=True)
        mistakes = sum(mistakes_in(part, scores(part, self.last(state)), *of_part) for part, of_part in parts)
        return EpochStats(lists.list_count, mistakes, 0, value, 0)


def targets_of(part: Corpus, oracle: np.ndarray, any_ties: bool) -> tuple[np.ndarray, np.ndarray]:
    """int64 [T], the lists that teach something, as another candidate than the right ones can be chosen; and int64 [N],
    1 for the right ones: the ``oracle``, or with ``any_ties`` all that have its gain."""
    best = np.repeat(oracle, np.diff(part.lists))
    right = part.gain == part.gain[best] if any_ties else np.arange(best.size) == best
    wrong = np.diff(np.append(0, np.cumsum(~right))[part.lists])
    return np.flatnonzero(wrong), right.astype(np.int64)


def mistakes_in(part: Corpus, score: np.ndarray, indices: np.ndarray, right: np.ndarray) -> int:
    """Count the lists ``indices`` (int64 [T]) without a right candidate that scores strictly highest."""
    ends = np.stack([part.lists[indices], part.lists[indices + 1]], axis=1).ravel()
    sides = (np.append(np.where(right == side, score, -np.inf), 0.0) for side in (1, 0))
    star, rival = (np.maximum.reduceat(side, ends)[::2] for side in sides)
    return int(np.count_nonzero(rival >= star))


def minimise(
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]], start: np.ndarray, l1: np.ndarray, **options: Any
) -> tuple[np.ndarray, int]:
    """Return the x at which loss(x) + Σ l1·|x| is least, by L-BFGS from ``start``, and the number of steps; ``loss``
    gives its gradient too, and is called for the result at last.

    With a penalty l1, x is the difference u − v of parts that are nowhere below 0, so that it is smooth (Andrew & Gao
    2007, section 3.2).
    """
    from scipy.optimize import minimize  # half a second, which other learners need not wait for

    n, arguments = start.size, {"jac": True, "method": "L-BFGS-B", "options": {"maxcor": MEMORY, **options}}

    def split_loss(parts: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = loss(parts[:n] - parts[n:])
        return value + float((l1 * (parts[:n] + parts[n:])).sum()), np.concatenate([gradient + l1, l1 - gradient])

    with _libraries().limit(limits=1, user_api="blas"):  # sums by several threads differ in the last bit
        if l1.any():
            halves = np.concatenate([np.maximum(start, 0.0), np.maximum(-start, 0.0)])
            optimum = minimize(split_loss, halves, bounds=[(0.0, None)] * halves.size, **arguments)
            x = optimum.x[:n] - optimum.x[n:]
        else:
            optimum = minimize(loss, start, **arguments)
            x = optimum.x
        loss(x)
    return x, optimum.nit


@cache
def _libraries() -> Any:
    """The libraries that have threads of their own; to look for them takes longer than a small fit."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@kernel
def add_loss(
    data: ListArrays, indices: np.ndarray, right: np.ndarray, loss: Any, w: np.ndarray, beta: float, scores: np.ndarray,
    a: np.ndarray, gradient: np.ndarray,
) -> float:  # fmt: skip
    """Return the loss of the lists ``indices``, and add its gradient, β's last; scores, a: scratch of a list."""
    total = 0.0
    for i in indices:
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
    spread, curvature, sums = ColumnSpread(lists.free), np.zeros(lists.width + 1), np.zeros(lists.width + 1)
    for part in lists.parts():
        spread.add(part)
        add_curvature(view(part, np.full(part.list_count, -1)), curvature, sums)
    scale = np.concatenate([spread.scale(), np.ones(lists.width - lists.free), [base_rate]])
    return scale, 1.0 / np.sqrt(max(l2, MIN_CURVATURE) + np.square(scale) * np.maximum(curvature, 0.0))


@kernel
def add_curvature(data: ListArrays, curvature: np.ndarray, sums: np.ndarray) -> None:
    """Add to ``curvature`` the variance of every column within every list; sums: zeros, scratch."""
    D = curvature.shape[0] - 1
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
                curvature[j] += data.weight[i] * share * x * x
        for y in range(first, last):
            distance = data.base[y] - mean
            curvature[D] += data.weight[i] * share * (distance * distance)
            for p in range(np.uint64(data.rows[y]), np.uint64(data.rows[y + 1])):
                j = data.columns[p]
                if sums[j] != 0.0:
                    curvature[j] -= data.weight[i] * sums[j] * sums[j]
                    sums[j] = 0.0
