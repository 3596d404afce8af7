"""Probabilities of two classes under Gaussian weights.

Weights N(μ, Σ) say how sure they are of a row x: its score is N(μ·x, v) with v = xᵀΣx, and above 0 with probability
Φ(μ·x/√v), the Pr[M ≥ 0] of confidence-weighted learning (Crammer, Dredze & Pereira 2012, section 5). Σ is the last,
whatever the predictor.
"""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtr
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from rerank.contrib.sklearn.parameters import MATRIX
from rerank.learn.base import State
from rerank.learn.rules.gaussian import VARIANCE

TINY = float(np.finfo(np.float64).tiny)  # in place of no variance: all scores but 0 are certain


def variances(X: Any, state: State) -> np.ndarray:
    """float64 [n]: xᵀΣx of rows (CSR [n, W]), for the first W coordinates of a Gaussian learner's state."""
    if state.matrix.size:
        return np.asarray(X.multiply(X @ state.matrix[: X.shape[1], : X.shape[1]]).sum(axis=1)).ravel()
    variance, size = state.cells[X.indices, VARIANCE], np.abs(X.data)
    if state.memory.size:  # normalised: a variance is that of x_j up to the largest seen, and 1/x_j² without one
        largest = state.memory[X.indices]
        part = np.where(largest > 0, variance * np.minimum(size, largest) ** 2, size > 0)
    else:
        part = variance * size**2
    return np.asarray(sparse.csr_array((part, X.indices, X.indptr), shape=X.shape).sum(axis=1))


class Probabilities:
    """``predict_proba`` of a classifier, where its weights are Gaussian and it has two classes."""

    @available_if(lambda self: self._require_probabilities())  # type: ignore[untyped-decorator]
    def predict_proba(self: Any, X: Any) -> np.ndarray:
        """float64 [n, 2]: the probability of both classes for the rows of ``X``, Φ(μ·x/√(xᵀΣx)) of the second one."""
        scores = self.decision_function(X)
        rows = sparse.csr_array(validate_data(self, X, **MATRIX, reset=False))
        _, layout, _, state = self._trained
        if layout.bias:
            rows = sparse.hstack([rows, np.ones((rows.shape[0], 1))], format="csr")
        scores = scores / np.sqrt(np.maximum(variances(rows, state), TINY))
        return np.column_stack([ndtr(-scores), ndtr(scores)])

    def _require_probabilities(self: Any) -> bool:
        """Raise an AttributeError that says what has probabilities, where this classifier has none."""
        name = type(self).__name__
        instead = f"scikit-learn's CalibratedClassifierCV({name}(...)) learns probabilities from scores"
        if not hasattr(self, "probability"):
            raise AttributeError(f"{name} has no probabilities; {instead}")
        if not self.probability or self.average == "vote" or len(getattr(self, "classes_", "ab")) != 2:
            raise AttributeError(f"{name} has those of two classes, with probability=True and no votes; {instead}")
        return True
