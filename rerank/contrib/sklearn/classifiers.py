"""The classifiers: one class for every family of learners, with the parameters of its learner.

The Gaussian ones have probabilities. Weights N(μ, Σ) say how sure they are of a row x: its score is N(μ·x, v) with
v = xᵀΣx, and above 0 with probability Φ(μ·x/√v), the Pr[M ≥ 0] of confidence-weighted learning (Crammer, Dredze &
Pereira 2012, section 5). Σ is the last, whatever the predictor.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtr
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from rerank.contrib.sklearn.base import OnlineClassifier, Predictor
from rerank.contrib.sklearn.matrix import MATRIX
from rerank.learn.base import Learner, State, learners
from rerank.learn.rules.gaussian import VARIANCE

TINY = float(np.finfo(np.float64).tiny)  # in place of no variance: all scores but 0 are certain


def variances(X: Any, state: State) -> np.ndarray:
    """float64 [n]: xᵀΣx of rows (CSR [n, W]), for the first W coordinates of a Gaussian learner's state."""
    if state.matrix.size:
        return np.asarray(X.multiply(X @ state.matrix[: X.shape[1], : X.shape[1]]).sum(axis=1)).ravel()
    part = state.cells[X.indices, VARIANCE] * X.data**2
    return np.asarray(sparse.csr_array((part, X.indices, X.indptr), shape=X.shape).sum(axis=1))


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class GaussianClassifier(OnlineClassifier):
    """Base of the classifiers with Gaussian weights N(μ, Σ), which predict with μ.

    Parameters
    ----------
    probability: give probabilities of two classes: predict_proba, Φ(μ·x/√(xᵀΣx)), which does not rise with the score
        alone.
    """

    base_like_feature = True

    probability: bool = False

    def _require_probabilities(self) -> bool:
        if not self.probability or self.average == "vote" or len(getattr(self, "classes_", "ab")) != 2:
            raise AttributeError(
                f"{type(self).__name__} has probabilities of two classes, with probability=True and no votes; "
                "scikit-learn's CalibratedClassifierCV learns others from scores"
            )
        return True

    @available_if(_require_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """float64 [n, 2]: the probability of both classes for the rows of ``X``, Φ(μ·x/√(xᵀΣx)) of the second one."""
        scores = self.decision_function(X)
        rows = sparse.csr_array(validate_data(self, X, **MATRIX, reset=False))
        _, layout, _, state = self._trained
        if layout.bias:
            rows = sparse.hstack([rows, np.ones((rows.shape[0], 1))], format="csr")
        scores = scores / np.sqrt(np.maximum(variances(rows, state), TINY))
        return np.column_stack([ndtr(-scores), ndtr(scores)])


class PerceptronClassifier(OnlineClassifier, learner=learners.get("perceptron")):
    """The perceptron (Rosenblatt 1958; averaged and voted: Freund & Schapire 1999): a mistake adds the example."""

    base_like_feature = True


class PassiveAggressiveClassifier(OnlineClassifier, learner=learners.get("pa")):
    """Passive-aggressive: the smallest step that gives the example a margin of 1 (Crammer et al. 2006)."""

    base_like_feature = True


class SGDClassifier(OnlineClassifier, learner=learners.get("sgd")):
    """Stochastic gradient descent."""

    base_like_feature = True
    average: Predictor = "last"


class TruncatedGradientClassifier(OnlineClassifier, learner=learners.get("tg")):
    """Gradient descent whose weights are shrunk towards 0 now and then (Langford et al. 2009)."""

    average: Predictor = "last"


class RDAClassifier(OnlineClassifier, learner=learners.get("rda")):
    """Regularised dual averaging (Xiao 2010); with ``update="mistakes"`` its voted form (Xu et al. 2013)."""


class ARDAClassifier(OnlineClassifier, learner=learners.get("arda")):
    """Dual averaging with a step size for every weight, whatever the units of the features (Duchi et al. 2011)."""


class FTRLClassifier(OnlineClassifier, learner=learners.get("ftrl")):
    """Follow the proximally regularised leader: a rate of its own for every weight (McMahan et al. 2013)."""


class SecondOrderPerceptronClassifier(OnlineClassifier, learner=learners.get("sop")):
    """The second-order perceptron (Cesa-Bianchi et al. 2005)."""

    base_like_feature = True


class CWClassifier(GaussianClassifier, learner=learners.get("cw")):
    """Confidence-weighted learning (Crammer et al. 2008): an update makes the example right with a probability."""

    average: Predictor = "last"


class AROWClassifier(GaussianClassifier, learner=learners.get("arow")):
    """Adaptive regularisation of weights (Crammer et al. 2009): confidence-weighted learning that tolerates noise."""


class SCWClassifier(GaussianClassifier, learner=learners.get("scw")):
    """Soft confidence-weighted learning (Wang et al. 2012)."""


class NHERDClassifier(GaussianClassifier, learner=learners.get("nherd")):
    """Normal herd: a Gaussian over weights that moves and shrinks with every margin below 1 (Crammer & Lee 2010)."""

    C = 0.01  # the learner's own default is for lists with base scores


class WinnowClassifier(OnlineClassifier, learner=learners.get("lm-uwin")):
    """Regularised Winnow (Zhang 2001), balanced: weights may have both signs.

    Parameters
    ----------
    normalized: the parts of all weights keep their sum, 2·mu for every column.
    margin: update until the margin is 1, with one dual variable per example, instead of on mistakes.
    """

    average: Predictor = "last"
    normalized: bool = False
    margin: bool = True

    def _rule(self) -> type[Learner]:
        name = "nwin" if self.normalized else "uwin"
        return learners.get(f"lm-{name}" if self.margin else name)
