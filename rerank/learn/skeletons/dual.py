"""Regularised Winnow and its additive kin: dual ascent, a variable per pair (Zhang, section 2; Vapnik 1998, chapter
12).

For every list the oracle y* is to be ahead of its rival y' by a margin of 1, or to pay C times what is missing. With
z = φ(y*) − φ(y') and m = score(y*) − score(y'), both at the time of the visit, the dual variable α of the pair goes up
where m < 1 and down where m > 1, within [0, C·weight]:

    lm-uwin, lm-nwin:  α ← clip(α + η·(1 − m)),        θ ← θ + Δα·z   (see ``multiplicative``)
    lm-perc:           α ← clip(α + (1 − m)/‖z‖²),     w ← w + Δα·z

so θ (or w) is Σ α·z. On lists of two, these are ascents on the duals that Zhang gives:

    lm-uwin:  Σ α − Σ_j μ·(e^{θ_j} + e^{−θ_j}),   lm-nwin:  Σ α − W·ln Σ_j μ·(e^{θ_j} + e^{−θ_j}),
    lm-perc:  Σ α − ‖w‖²/2.

In longer lists, each dual variable belongs to a candidate, and moves on the visits on which that candidate is the
rival. Even if any of several oracles may play y*, it belongs to the rival, whichever oracle that was compared with.
Pair sources whose y* changes from visit to visit are refused: α·z would not be a term of a dual.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.data.corpus import Corpus
from rerank.learn.base import Learner, State
from rerank.learn.passes import dual_pass
from rerank.learn.settings import Positive


@dataclass(frozen=True, kw_only=True)
class DualVariables(Learner):
    """A learner with a dual variable per candidate, ``alpha`` (float64 [N]), in its state.

    Parameters
    ----------
    C: > 0; limit on a dual variable, times the weight of its list; None for none, where all margins can be 1.
    """

    passes: ClassVar[Any] = dual_pass
    sources: ClassVar[tuple[str, ...]] = ("oracle",)
    mixes: ClassVar[tuple[str, ...]] = ()  # dual variables belong to the lists of a section

    C: Positive | None = 1.0

    def adopt(self, state: State, candidates: int) -> State:
        """See ``Learner.adopt``: the weights stay, the dual variables of other candidates are 0."""
        return state._replace(alpha=np.zeros(candidates))

    def share(self, state: State, first: int, last: int) -> State:
        """See ``Learner.share``: the dual variables are those of the candidates."""
        return state._replace(alpha=state.alpha[first:last])

    def begin(self, corpus: Corpus, order: np.ndarray, state: State) -> None:  # noqa: ARG002
        """See ``Learner.begin``; refuses a state made for another corpus, before a kernel writes beyond its end.

        Raises
        ------
        ValueError: says what to call.
        """
        if state.alpha.size != corpus.candidate_count:
            raise ValueError(
                f"the state has {state.alpha.size} dual variables for {corpus.candidate_count} candidates; "
                "call init(columns, candidates), or adopt(state, candidates) to continue with another corpus"
            )
