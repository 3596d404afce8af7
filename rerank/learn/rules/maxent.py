"""The conditional log-linear model of lists, trained to its optimum: a batch learner.

The probability of candidate y of list i is P_i(y) = e^{score(y)} / Σ e^{score} (for N-best parses Johnson et al. 1999;
as a baseline Charniak & Johnson 2005, section 3, and Gao et al. 2007). O_i being the right candidates of a list,

    L(w) = −Σ_i weight_i · log P_i(O_i) + (l2/2)·‖w − w₀‖² + l1·‖w‖₁

is the loss ``log`` of the online learners, for which ``listnet`` or ``listmle`` may stand, with a penalty; w₀ is 0, or
what an earlier training has found. L is convex where every list has one right candidate.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.learn.base import Learner, State, Weights
from rerank.learn.lbfgs import TOLERANCE, optimum
from rerank.learn.settings import Count, NotNegative
from rerank.learn.workspace import EpochStats


@dataclass(frozen=True, kw_only=True)
class Maxent(Learner):
    """Conditional maximum entropy with a penalty, by L-BFGS: no epochs, no step size, no seed.

    >>> from rerank.learn.learned import learned
    >>> learned(Maxent(l2=1), {"fluent": 1}, {"fluent": -1, "short": 2})
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

    def drawn_to(self, state: State) -> State:
        """``state``, continued from: the penalty draws to its weights (Chelba & Acero 2004, section 3)."""
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
        return optimum(self, self.l2, lists, oracle, state, any_ties, tolerance)
