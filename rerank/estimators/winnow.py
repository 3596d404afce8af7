"""Classifiers with multiplicative updates: the Winnow family."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rerank.estimators.base import OnlineClassifier
from rerank.estimators.visits import Visits
from rerank.learn.base import Learner
from rerank.learn.rules.lm_nwin import LMNWin
from rerank.learn.rules.lm_uwin import LMUWin
from rerank.learn.rules.nwin import NWin
from rerank.learn.rules.uwin import UWin


@dataclass(eq=False, repr=False)
class WinnowClassifier(OnlineClassifier):
    """Regularised Winnow (Zhang 2001), balanced: weights may have both signs.

    Parameters
    ----------
    eta: > 0; size of the steps.
    mu: > 0; every weight's prior.
    normalized: the parts of all weights keep their sum, 2·mu for every column.
    margin: update until the margin is 1, with one dual variable per example, instead of on mistakes.
    C: > 0; limit on the dual variables where ``margin`` is set; None for no limit.
    epochs, shuffle, average, fit_intercept, random_state: see OnlineClassifier.
    """

    eta: float = LMUWin.eta
    mu: float = LMUWin.mu
    normalized: bool = False
    margin: bool = True
    C: float | None = LMUWin.C

    def _learner(self) -> Learner:
        """See ``OnlineClassifier._learner``."""
        self._require_switches("normalized", "margin")
        parameters = {"eta": self.eta, "mu": self.mu}
        if self.margin:
            return self._make(LMNWin if self.normalized else LMUWin, parameters | {"C": self.C})
        return self._make(NWin if self.normalized else UWin, parameters)

    def _list_weights(self, visits: Visits) -> np.ndarray:
        """See ``OnlineClassifier._list_weights``: a dual variable stands for all equal rows, and so does its limit."""
        return visits.weight if self.margin else super()._list_weights(visits)
