"""Learning from batches of lists as they come, at a cost that depends on their nonzeros and not on the columns.

An epoch begins its lazy sums over all columns, and at its end brings every column up to date. Between batches they stay
open, and are closed after this many visits that the columns cost next to nothing per visit.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from rerank.data.corpus import Corpus
from rerank.learn.base import Learner
from rerank.learn.log import UpdateLog
from rerank.learn.predictor import BY_COLUMN, State, copy_state
from rerank.learn.workspace import Scratch, scratch_for, view

SHARE = 8  # sums over D columns stay open for D/SHARE visits


@dataclass
class Stream:
    """A learner's state between batches, and what of it is still lazy.

    learner: that of the last batch; state: changed by every batch; sums: what ``Learner.begin`` made, with room for
    ``left`` more visits; space: scratch space of the last batch.
    """

    learner: Learner
    state: State
    sums: Any = None
    left: int = 0
    space: Scratch | None = None

    def learn(
        self, learner: Learner, corpus: Corpus, oracle: np.ndarray, order: np.ndarray, log: UpdateLog | None = None
    ) -> None:
        """Visit the lists ``order`` (int64) of a batch, as ``Learner.epoch`` does, and leave sums open.

        learner: may have other parameters than before, as far as its state remains the same.
        """
        self.go_on(learner, corpus.candidate_count)
        if order.size > self.left:
            self.open(corpus, max(order.size, corpus.width // SHARE))
        params = learner.settings()
        self.space = scratch_for(corpus, params.loss, self.space)
        learner.visit(corpus, view(corpus, oracle), order, self.state, self.sums, self.space, params, log)
        self.left -= order.size

    def open(self, corpus: Corpus, visits: int) -> None:
        """Begin sums over the columns of ``corpus`` for this many visits, as an epoch does; others are closed."""
        self.close()
        self.sums = self.learner.begin(corpus, visits, self.state)
        self.left = visits

    def go_on(self, learner: Learner, candidates: int) -> None:
        """Go on with ``learner`` and a batch of this many candidates; what was summed by other rules is closed."""
        if learner != self.learner:
            self.close()
        self.learner, self.state = learner, learner.for_corpus(self.state, candidates)

    def close(self) -> None:
        """Leave nothing lazy, as at the end of an epoch."""
        if self.sums is not None:
            self.learner.finish(self.state, self.sums)
        self.sums, self.left = None, 0

    def closed(self) -> State:
        """The arrays that ``close`` would leave in the state, which stays as it is."""
        if self.sums is None or not self.learner.shrinks:
            return self.state
        state = copy_state(self.state)
        self.learner.finish(state, deepcopy(self.sums))
        return state

    def finite(self, corpus: Corpus) -> bool:
        """Whether all numbers are finite that a batch may have changed.

        If not, the weights need a look, of which there are as many as columns.
        """
        few = () if self.state.matrix.size else BY_COLUMN
        arrays = [(name in few, array) for name, array in self.state._asdict().items()]
        arrays += [(True, self.sums.cells)] if self.learner.shrinks and self.sums is not None else []
        with np.errstate(all="ignore"):  # a sum may be infinite where the numbers are not
            for by_column, array in arrays:
                touched = by_column and array.size
                total = (
                    array.take(corpus.columns, axis=0).sum() + array[corpus.width :].sum() if touched else array.sum()
                )
                if not np.isfinite(total):
                    return False
        return True

    def __getstate__(self) -> dict[str, Any]:
        """Pickles hold no scratch space."""
        return vars(self) | {"space": None}
