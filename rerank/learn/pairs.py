"""Pair sources: which two candidates (y*, y') of a list a learner compares.

* ``oracle``: y* is the oracle, y' the best-scoring candidate that is not (Collins 2002).
* ``hope-fear``: y* = argmax score + tilt·gain, good and within reach, and y' = argmax score − tilt·gain, bad and
  tempting (Chiang 2012, section 3; Cherry & Foster 2012, section 2.4). Where y' is y* there is nothing to learn. Among
  equals, y* is the oracle if that is one of them, and y' likewise is y*.
* ``sampled``: of ``draws`` random pairs, those whose gains differ by more than ``threshold``, the largest difference
  first (Hopkins & May 2011, Fig. 4); y* is the better of the two. Draws depend on seed, epoch and list alone.

Losses of whole lists have no use for a source: ``bayes``, ``listnet``, ``listmle`` and ``lambdarank`` use the gains of
all candidates; ``log`` takes the hope as its oracle where the source is ``hope-fear``, else the oracle itself.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.ranges import Checked, Range
from rerank.learn.base import Learner
from rerank.learn.losses import OF_GAINS
from rerank.learn.settings import NotNegative, Positive
from rerank.learn.workspace import ORACLE, SOURCES, PairRule


@dataclass(frozen=True)
class PairSource(Checked):
    """The source of the pairs of a training.

    Parameters
    ----------
    name: "oracle", "hope-fear" or "sampled".
    tilt: > 0; how much a gain of 1 counts compared with scores: in hope and fear, and in the margin that the loss
        ``cost`` asks for, tilt·(gain(y*) − gain(y')).
    draws: ≥ 1; how many pairs of a list are drawn (``sampled``).
    threshold: ≥ 0; pairs whose gains differ by no more than this are left out (``sampled``).
    """

    name: Literal["oracle", "hope-fear", "sampled"] = "oracle"
    tilt: Positive = 1.0
    draws: Annotated[int, Range(1, 1_000_000)] = 50
    threshold: NotNegative = 0.05

    def rule(self, seed: int, epoch: int, part: int = 0) -> PairRule:
        """The source for kernels, in an epoch over a part of the lists of a training with ``seed``."""
        key = np.random.SeedSequence([seed, epoch, part]).generate_state(1, np.uint64)[0]
        source, tilt, threshold = SOURCES.index(self.name), float(self.tilt), float(self.threshold)
        others = () if source == ORACLE else (0,)
        return PairRule(others, source, tilt, self.draws, threshold, np.uint64(key))


# The sources that a loss of all candidates takes notice of: of hope it is the log loss alone.
_HEEDED = {"log": ("oracle", "hope-fear"), **dict.fromkeys(OF_GAINS, ("oracle",))}


def require_source(learner: Learner, pairs: PairSource) -> None:
    """Refuse a pair source that ``learner`` cannot learn from, or of which its loss takes no notice."""
    if pairs.name not in learner.sources:
        raise RecipeError(
            f"found {pairs.name!r}; expected {' or '.join(learner.sources)} for the learner {learner.name!r}",
            key="name",
        )
    loss = getattr(learner, "loss", "")
    if pairs.name not in _HEEDED.get(loss, SOURCES):
        message = (
            f"found {pairs.name!r}, which changes nothing for the loss {loss}: it looks at all candidates, not at "
        )
        message += f"pairs; expected {' or '.join(_HEEDED[loss])}, or a loss of pairs, as {{loss: logistic}}"
        raise RecipeError(message, key="name")
