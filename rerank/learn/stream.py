"""Learning from batches of lists as they come, at a cost that depends on their nonzeros and not on the columns.

An epoch begins its lazy sums over all columns, and at its end brings every column up to date. Between batches they stay
open, and are closed after so many visits that the columns cost next to nothing per visit.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from rerank.data.corpus import Corpus
from rerank.learn.apart import State, columns_of, pairs_of
from rerank.learn.base import Learner
from rerank.learn.log import UpdateLog
from rerank.learn.trainer import copy_state
from rerank.learn.workspace import Scratch, scratch, view

SHARE = 8  # sums over D columns stay open for D/SHARE visits


@dataclass
class Stream:
    """A learner's state between batches, and what of it is still lazy.

    learner: that of the last batch; state: changed by every batch; lazy: what ``Learner.begin`` made, with room for
    ``left`` more visits; space: scratch space of the last batch.
    """

    learner: Learner
    state: State
    lazy: Any = None
    left: int = 0
    space: Scratch | None = None

    def learn(
        self, learner: Learner, corpus: Corpus, oracle: np.ndarray, order: np.ndarray, log: UpdateLog | None = None
    ) -> None:
        """Visit the lists ``order`` (int64) of a batch, as ``Learner.epoch`` does, and leave sums open.

        learner: may have other parameters than before, as far as its state remains the same.
        """
        self.adopt(learner, corpus.candidate_count)
        if order.size > self.left:
            self.open(corpus, max(order.size, corpus.width // SHARE))
        q = learner.settings(self.state)
        self.space = scratch(corpus, q.loss, self.space)
        learner.visit(corpus, view(corpus, oracle), order, self.state, self.lazy, self.space, q, log)
        self.left -= order.size

    def open(self, corpus: Corpus, visits: int) -> None:
        """Begin sums over the columns of ``corpus`` for so many visits, as an epoch does; others are closed."""
        self.close()
        self.lazy = self.learner.begin(corpus, np.broadcast_to(np.int64(0), visits), self.state)
        self.left = visits

    def adopt(self, learner: Learner, candidates: int) -> None:
        """Go on with ``learner`` and a batch of so many candidates; what was summed by other rules is closed."""
        if learner != self.learner:
            self.close()
        self.learner, self.state = learner, learner.adopt(self.state, candidates)

    def close(self) -> None:
        """Leave nothing lazy, as at the end of an epoch."""
        if self.lazy is not None:
            self.learner.finish(self.state, self.lazy)
        self.lazy, self.left = None, 0

    def closed(self) -> State:
        """What ``close`` would leave in the state, which stays as it is."""
        if self.lazy is None or type(self.learner).finish is Learner.finish:
            return self.state
        state = copy_state(self.state)
        self.learner.finish(state, deepcopy(self.lazy))
        return state

    def finite(self, corpus: Corpus) -> bool:
        """Are all numbers finite that a batch may have changed?

        If not, the weights need a look, of which there are as many as columns.
        """
        few = frozenset() if pairs_of(self.state) else columns_of(self.state)
        open_sums = columns_of(self.lazy) if isinstance(self.lazy, tuple) else frozenset()
        arrays = [(name in few, array) for name, array in self.state._asdict().items()]
        arrays += [(True, getattr(self.lazy, name)) for name in open_sums]
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
