"""Probabilities of classes: of scores that a logistic loss was minimised for, and of Gaussian weights.

A logistic loss makes scores s log odds: p = 1/(1 + e^{−s}), or a softmax of the classes' scores.

Weights N(μ, Σ) say how sure they are of a row x: its score is N(μ·x, v) with v = xᵀΣx, and above 0 with probability
Φ(μ·x/√v) (Crammer, Dredze & Pereira 2012, section 5). On six sets, with six settings of CW, AROW, SCW and NHERD, its
log-loss was lower than that of the mean of the logistic function (MacKay 1992) in 36 of 36 cases. Of more than two
classes, v is the variance of the difference between the two best, and divides the scores of all: the best stays the
best. Their softmax is of scores/√(πv/8), which has the slope of Φ at 0.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit, ndtr, softmax
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from rerank.contrib.sklearn.parameters import MATRIX
from rerank.learn.rules.gaussian import VARIANCE

LOGISTIC = ("logistic", "log")  # losses
TINY = float(np.finfo(np.float64).tiny)  # in place of no variance: all scores but 0 are certain


class Covariance(NamedTuple):
    """The covariance of Gaussian weights, of as many blocks of W columns as there are rows of ``coef_``."""

    sigma: np.ndarray  # float64 [blocks, W, blocks, W]: a full matrix; else float64 [blocks, W]: its diagonal
    scale: np.ndarray  # float64 [blocks, W]: the largest |x_j| of an update, for normalised variances; else [blocks, 0]

    @staticmethod
    def of(state: Any, blocks: int, *, base: bool) -> "Covariance":
        """That of a state, with or without the coordinate of the base score, its last one; views of it."""
        end = None if base else -1
        if state.matrix.size:
            sigma = state.matrix[:end, :end]
            W = len(sigma) // blocks
            return Covariance(sigma.reshape(blocks, W, blocks, W), np.zeros((blocks, 0)))
        return Covariance(state.cells[:end, VARIANCE].reshape(blocks, -1), state.memory[:end].reshape(blocks, -1))

    def of_margins(self, X: Any, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """float64 [n]: zᵀΣz for z = the row in block ``one`` minus the row in block ``other`` (-1: no such block).

        X: CSR [n, W]; one, other: int64 [n].
        """
        if self.sigma.ndim == 4:
            return self._full(X, one, other)
        parts = np.column_stack([*(self._block(X, c) for c in range(len(self.sigma))), np.zeros(X.shape[0])])
        rows = np.arange(X.shape[0])
        return np.asarray(parts[rows, one] + parts[rows, other])

    def _block(self, X: Any, c: int) -> np.ndarray:
        """float64 [n]: Σ_j Σ_jj x_j²; a normalised variance is that of x_j up to its scale, and 1/x_j² without."""
        variance, size = self.sigma[c][X.indices], np.abs(X.data)
        if self.scale.size:
            scale = self.scale[c][X.indices]
            part = np.where(scale > 0, variance * np.minimum(size, scale) ** 2, size > 0)
        else:
            part = variance * size**2
        return np.asarray(sparse.csr_array((part, X.indices, X.indptr), shape=X.shape).sum(axis=1))

    def _full(self, X: Any, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        variances, blocks = np.zeros(X.shape[0]), self.sigma
        for a, b in {*zip(one.tolist(), other.tolist(), strict=True)}:
            sigma = blocks[a, :, a]
            if b >= 0:
                sigma = sigma + blocks[b, :, b] - blocks[a, :, b] - blocks[b, :, a]
            chosen = np.flatnonzero((one == a) & (other == b))
            part = X[chosen]
            variances[chosen] = np.asarray(part.multiply(part @ sigma).sum(axis=1)).ravel()
        return variances


def probabilities(scores: np.ndarray, covariance: Covariance | None, X: Any, *, bias: bool) -> np.ndarray:
    """float64 [n, k] of the ``scores`` of decision_function for the rows of X; ``covariance``: of Gaussian weights."""
    if covariance is not None:
        matrix = sparse.csr_array(X)
        if bias:
            matrix = sparse.hstack([matrix, np.ones((matrix.shape[0], 1))], format="csr")
        none = np.full(scores.shape[0], -1)
        two = scores.ndim == 1
        one, other = (none + 1, none) if two else np.argsort(-scores, axis=1, kind="stable")[:, :2].T
        variance = np.maximum(covariance.of_margins(matrix, one, other), TINY)
        if two:
            scores = scores / np.sqrt(variance)
            return np.column_stack([ndtr(-scores), ndtr(scores)])
        scores = scores / np.sqrt(np.pi / 8 * variance)[:, np.newaxis]
    if scores.ndim == 1:
        return np.column_stack([expit(-scores), expit(scores)])
    return np.asarray(softmax(scores, axis=1))


class Probabilities:
    """``predict_proba`` of a classifier, where its parameters define probabilities."""

    @available_if(lambda self: self._require_probabilities())  # type: ignore[untyped-decorator]
    def predict_proba(self: Any, X: Any) -> np.ndarray:
        """float64 [n, k]: the probability of every class for the rows of ``X``.

        Of learners with the loss "logistic" or "log", updated always: 1/(1 + e^−s) for two classes, s being the score,
        else the softmax of the scores ("logistic" compares two classes, "log" all). Of Gaussians with
        ``probability=True``: Φ(μ·x/√(xᵀΣx)), else the softmax of such scores. Neither is calibrated on data of its
        own; scikit-learn's ``CalibratedClassifierCV`` does that.
        """
        scores = self.decision_function(X)
        gaussian = getattr(self, "probability", False)
        if gaussian and self._covariance is None:
            raise ValueError("this classifier was fitted with probability=False; fit it again with probability=True")
        X = validate_data(self, X, **MATRIX, reset=False)
        return probabilities(scores, self._covariance if gaussian else None, X, bias=self._bias)

    @available_if(lambda self: self._require_probabilities())  # type: ignore[untyped-decorator]
    def predict_log_proba(self: Any, X: Any) -> np.ndarray:
        """The logarithms of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def _require_probabilities(self: Any) -> bool:
        """Refuse to give probabilities that these parameters do not define (an AttributeError says which would)."""
        loss, always = getattr(self, "loss", None), getattr(self, "update", "always") == "always"
        if self.average == "vote" or getattr(self, "_votes", None) is not None:
            raise AttributeError(
                "votes are no probabilities; average='average' has them where the learner defines some"
            )
        if hasattr(self, "probability"):
            if not self.probability:
                raise AttributeError("probabilities of Gaussian weights need probability=True, before fit")
        elif loss not in LOGISTIC or not always:
            raise AttributeError(
                f"{type(self).__name__} minimises no logistic loss; expected loss='logistic' or 'log' with "
                "update='always' where there are such parameters, or CalibratedClassifierCV around it"
            )
        return True
