"""The conditional log-linear model of lists, trained to its optimum: a batch learner.

The probability of candidate y of list i is P_i(y) = e^{score(y)} / Σ e^{score} (for N-best parses Johnson et al. 1999;
as a baseline Charniak & Johnson 2005, section 3, and Gao et al. 2007). O_i being the right candidates of a list,

    L(w) = −Σ_i weight_i · log P_i(O_i) + (l2/2)·‖w − w₀‖² + l1·‖w‖₁

is the loss ``log`` of the online learners, for which ``listnet`` or ``listmle`` may stand, with a penalty; w₀ is 0, or
what an earlier training has found. L is convex where every list has one right candidate; with more, the search from
w = 0 has done at least as well as pointwise logistic regression wherever it was tried.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.features.dense import ColumnSpread
from rerank.kernels.compile import kernel, kernel_of
from rerank.learn.base import Learner, State, Weights
from rerank.learn.losses import value_of_list
from rerank.learn.pairs import rivals
from rerank.learn.predictor import named, score_list
from rerank.learn.scoring import single
from rerank.learn.settings import Count, NotNegative
from rerank.learn.workspace import LISTS, LOSS, MISTAKES, EpochStats, ListArrays, stats_of, view

ITERATIONS = 200
MEMORY = 10  # of L-BFGS, in steps
TOLERANCE = 1e-8  # of the loss, relative: L-BFGS ends where a step gains less
LEAST_CURVATURE = 1e-3  # of a column, where nothing is penalised


@dataclass(frozen=True, kw_only=True)
class Maxent(Learner):
    """Conditional maximum entropy with a penalty, by L-BFGS: no epochs, no step size, no seed.

    >>> from rerank.learn.learned import learned
    >>> learned(Maxent(l2=1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.176, 'short': 0.5601}

    Reference: Johnson et al. 1999 (ACL); Charniak & Johnson 2005 (ACL), section 3. Memory: some 250 bytes a
    column, for L-BFGS.

    Penalties are on dense columns too, in units of their deviation within lists. ``base: auto`` makes the base score
    one more of them; with a number it is an offset of that weight, which stays. All lists are passed over some 20 to
    200 times.

    Parameters
    ----------
    loss: log, of the right candidates alone; listnet or listmle, of the gains of all: for a metric of the order.
    l2: ≥ 0, against the sum over lists; null: 1, 10, 100, ... as is best on sections of the training lists held out in
        turn, and the model is a sum of what is about as good there.
    l1: ≥ 0, against the sum over lists; above 0 many weights are exactly 0.
    columns: learn from "all" columns, or from the "dense" ones and the base score; auto: from either or both, as is
        best on the sections held out.
    iterations: ≥ 1; passes over all lists at most.
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
    iterations: Count = ITERATIONS

    def init(self, columns: int, candidates: int = 0) -> State:
        """The weights and, of column D, what is added to ``base``; ``memory`` has those that the penalty draws to."""
        return super().init(columns, candidates)._replace(sums=np.zeros(0), memory=np.zeros(columns + 1))

    def drawn_to(self, state: State) -> State:
        """The point that training continues at, from ``state``: its weights, to which the penalty then draws (Chelba &
        Acero 2004, section 3)."""
        return state._replace(memory=np.array(state.cells))

    def last(self, state: State) -> Weights:
        return Weights(np.array(state.cells[:-1]), float(self.base + state.cells[-1]))

    def average(self, state: State) -> Weights:
        """The optimum, as ``last``: there are no others."""
        return self.last(state)

    def solve(
        self, lists: Corpus, oracle: np.ndarray, state: State, *, any_ties: bool = False, tolerance: float = TOLERANCE
    ) -> EpochStats:
        """Minimise L(w) from where ``state`` is, and leave the optimum there; see ``Learner.epoch``.

        Columns are scaled by their curvature at w = 0, which L-BFGS cannot know before it has moved along all of them.
        """
        if self.l2 is None:
            raise RecipeError("found null; expected a number from 0, as no penalty was chosen by folds", key="l2")
        l2, tally, loss = self.l2, np.zeros(6), self.settings().loss
        add = kernel_of(add_loss, self.loss_type())
        longest, spread = 2, ColumnSpread(lists.free)
        for part in lists.parts():
            longest = max(longest, int(np.diff(part.lists).max(initial=0)))
            spread.add(part)
        space = np.empty(longest), np.empty(longest, np.int64), np.empty(longest)
        scale = np.concatenate([spread.scale(), np.ones(lists.width - lists.free), [self.base_rate]])
        unit = 1.0 / np.sqrt(max(l2, LEAST_CURVATURE) + np.square(scale) * curvatures(lists))

        def penalised(u: np.ndarray) -> tuple[float, np.ndarray]:
            """L and its gradient by u = x / unit, where x = w / scale."""
            gradient, tally[:] = np.zeros(u.size), 0.0
            x = u * unit
            w = x * scale
            for number, part in enumerate(lists.parts()):
                data = view(part, lists.in_part(number, oracle))
                add(data, loss, any_ties, w, self.base + w[-1], *space, gradient, tally)
            away = x - drawn
            return tally[LOSS] + 0.5 * l2 * float(np.square(away).sum()), unit * (gradient * scale + l2 * away)

        start, drawn = (
            np.divide(w, scale, out=np.zeros(scale.size), where=scale > 0) for w in (state.cells, state.memory)
        )
        how = {"maxiter": self.iterations, "maxfun": 10 * self.iterations, "ftol": tolerance, "gtol": 0.0}
        u, steps = minimised(penalised, start / unit, self.l1 * unit, **how)
        state.cells[:] = u * unit * scale
        counts = named(state).counts
        counts.updates, counts.free = counts.updates + steps, lists.free
        tally[LISTS] = lists.list_count
        return stats_of(tally)


def curvatures(lists: Corpus) -> np.ndarray:
    """float64 [D + 1]: the second derivative of L at w = 0 by every column and by that of the base score: the sum over
    lists of its variance within the list."""
    found, sums = np.zeros(lists.width + 1), np.zeros(lists.width + 1)
    for part in lists.parts():
        add_curvature(view(part, np.full(part.list_count, -1)), found, sums)
    return np.maximum(found, 0.0)


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
            found[D] += data.weight[i] * share * (data.base[y] - mean) ** 2
            for p in range(np.uint64(data.rows[y]), np.uint64(data.rows[y + 1])):
                j = data.columns[p]
                if sums[j] != 0.0:
                    found[j] -= data.weight[i] * sums[j] * sums[j]
                    sums[j] = 0.0


def minimised(
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]], start: np.ndarray, l1: np.ndarray, **options: Any
) -> tuple[np.ndarray, int]:
    """The x at which loss(x) + Σ l1·|x| is least, by L-BFGS from ``start``, and the number of steps; ``loss`` gives its
    gradient too, and is called for the result at last.

    With a penalty l1, x is the difference u − v of parts that are nowhere below 0, so that it is smooth (Andrew & Gao
    2007, section 3.2).
    """
    from scipy.optimize import minimize  # half a second, which other learners need not wait for
    from threadpoolctl import threadpool_limits

    n, split = start.size, bool(l1.any())

    def parted(parts: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = loss(parts[:n] - parts[n:])
        return value + float((l1 * (parts[:n] + parts[n:])).sum()), np.concatenate([gradient + l1, l1 - gradient])

    how: dict[str, Any] = {"jac": True, "method": "L-BFGS-B", "options": {"maxcor": MEMORY, **options}}
    with threadpool_limits(1, "blas"):  # sums by several threads differ in the last bit
        if split:
            both = np.concatenate([np.maximum(start, 0.0), np.maximum(-start, 0.0)])
            optimum = minimize(parted, both, bounds=[(0.0, None)] * both.size, **how)
        else:
            optimum = minimize(loss, start, **how)
        x = optimum.x[:n] - optimum.x[n:] if split else optimum.x
        loss(x)
    return x, optimum.nit


@kernel
def add_loss(
    data: ListArrays,
    loss: Any,
    any_ties: bool,
    w: np.ndarray,
    beta: float,
    scores: np.ndarray,
    right: np.ndarray,
    a: np.ndarray,
    gradient: np.ndarray,
    tally: np.ndarray,
) -> None:
    """Add the lists' loss and mistakes to ``tally``, its gradient, β's last, to ``gradient``; others are scratch."""
    for i in range(data.weight.shape[0]):
        first, last = data.lists[i], data.lists[i + 1]
        score_list(data, i, w, 1.0, beta, scores)
        n, gain = last - first, data.gain[first:last]
        star, rival = rivals(scores[:n], gain, data.oracle[i] - first, any_ties)
        if rival < 0:
            continue
        for y in range(n):
            right[y] = y == star or (any_ties and gain[y] == gain[star])
        tally[MISTAKES] += not scores[star] > scores[rival]
        tally[LOSS] += data.weight[i] * value_of_list(scores[:n], gain, right[:n], a[:n], loss)
        for y in range(first, last):
            share = data.weight[i] * a[y - first]
            gradient[-1] += share * data.base[y]
            for p in range(np.uint64(data.rows[y]), np.uint64(data.rows[y + 1])):
                gradient[data.columns[p]] += share * single(data.values[p])
