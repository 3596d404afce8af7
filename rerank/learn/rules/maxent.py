"""The conditional log-linear model of lists, trained to its optimum: a batch learner.

The probability of candidate y of list i is P_i(y) = e^{score(y)} / Σ e^{score} (for N-best parses Johnson et al. 1999;
as a baseline Charniak & Johnson 2005, section 3, and Gao et al. 2007). O_i being the right candidates of a list,

    L(w) = −Σ_i weight_i · log P_i(O_i) + (l2/2)·‖w − w₀‖² + l1·‖w‖₁

is the loss ``log`` of the online learners, for which ``listnet`` or ``listmle`` may stand, with a penalty; w₀ is 0, or
what an earlier training has found. L is convex where every list has one right candidate; with more, the search from
w = 0 has done at least as well as pointwise logistic regression wherever it was tried.
"""

import logging
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel_of
from rerank.learn.base import Learner, State, Weights
from rerank.learn.lbfgs import add_loss, minimised, scales
from rerank.learn.predictor import named
from rerank.learn.settings import Count, NotNegative
from rerank.learn.workspace import EpochStats, new_tally, scratch_for, view

log = logging.getLogger("rerank")
TOLERANCE = 1e-8  # of the loss, relative: L-BFGS ends where a step gains less


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
        """Minimise L(w) from where ``state`` is, and leave the optimum there; see ``Learner.epoch``."""
        if self.l2 is None:
            raise RecipeError("found null; expected a number from 0, as no penalty was chosen by folds", key="l2")
        l2, tally, loss = self.l2, new_tally(), self.settings().loss
        add = kernel_of(add_loss, self.loss_type())
        scale, unit = scales(lists, self.base_rate, l2)

        def penalised(u: np.ndarray) -> tuple[float, np.ndarray]:
            """L and its gradient by u = x / unit, where x = w / scale."""
            gradient, tally.loss, tally.mistakes = np.zeros(u.size), 0.0, 0
            x = u * unit
            w = x * scale
            for number, part in enumerate(lists.parts()):
                data = view(part, lists.in_part(number, oracle))
                add(data, loss, any_ties, w, self.base + w[-1], scratch_for(part, True), gradient, tally, new_tally())
            away = x - drawn
            return tally.loss + 0.5 * l2 * float(np.square(away).sum()), unit * (gradient * scale + l2 * away)

        start, drawn = (
            np.divide(w, scale, out=np.zeros(scale.size), where=scale > 0) for w in (state.cells, state.memory)
        )
        how = {"maxiter": self.iterations, "maxfun": 10 * self.iterations, "ftol": tolerance, "gtol": 0.0}
        u, steps = minimised(penalised, start / unit, self.l1 * unit, **how)
        if steps == self.iterations and tolerance == TOLERANCE:  # what is learned in folds need not be the optimum
            log.warning("maxent ends after %d iterations, before its optimum; set iterations, or l2, higher", steps)
        state.cells[:] = u * unit * scale
        counts = named(state).counts
        counts.updates, counts.free = counts.updates + steps, lists.free
        tally.lists = lists.list_count
        return EpochStats(*tally.item())
