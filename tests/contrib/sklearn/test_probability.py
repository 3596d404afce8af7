"""Probabilities of classifiers with Gaussian weights: beside the formula, row by row."""

import math
import pickle
import re
from typing import Any

import numpy as np
import pytest
from classifiers import problem
from scipy import sparse

from rerank.contrib.sklearn import (
    AROWClassifier,
    CWClassifier,
    NHERDClassifier,
    PerceptronClassifier,
    SCWClassifier,
)

GAUSSIANS = {
    "cw": CWClassifier(probability=True),
    "cw, last": CWClassifier(probability=True, average="last"),
    "arow": AROWClassifier(probability=True, fit_intercept=False),
    "arow, full": AROWClassifier(probability=True, covariance="full"),
    "scw": SCWClassifier(probability=True, fit_intercept=False),
    "nherd": NHERDClassifier(probability=True),
}


def likely(model: Any, x: np.ndarray) -> list[float]:
    """Φ(∓s/√v) with v = xᵀΣx."""
    state, row = model._trained[-1], np.append(x, 1.0) if model.fit_intercept else x
    W = row.size
    if state.matrix.size:
        sigma = np.asarray(state.matrix)[:W, :W]
    else:
        sigma = np.diag(state.cells[:W, 1])
    score = model.decision_function(x[np.newaxis])[0]
    s = score / math.sqrt(row @ sigma @ row) if score else 0.0
    return [math.erfc(sign * s / math.sqrt(2)) / 2 for sign in (1, -1)]


@pytest.mark.parametrize("name", GAUSSIANS)
def test_gaussian_weights(name: str) -> None:
    X, y = problem(2)
    model = GAUSSIANS[name].set_params(random_state=0, epochs=2).fit(X, y)
    rows = np.concatenate([X, 3 * X[:5], np.zeros((1, 6))])  # beyond what was seen, and nothing at all
    expected = [likely(model, x) for x in rows]
    found = model.predict_proba(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(sparse.csr_array(rows)), expected, rtol=1e-9)
    np.testing.assert_array_equal(found.argmax(axis=1), model.predict(rows))
    np.testing.assert_allclose(pickle.loads(pickle.dumps(model)).predict_proba(rows), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PerceptronClassifier(), "has no attribute 'predict_proba'"),
        (AROWClassifier(), "^AROWClassifier has .* with probability=True and no votes; .*CalibratedClassifierCV"),
        (AROWClassifier(probability=True, average="vote"), "with probability=True and no votes"),
        (AROWClassifier(probability=True).fit(*problem(3)), "has probabilities of two classes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_where_there_are_none(model: Any, message: str) -> None:
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as raised:
        model.predict_proba(np.zeros((1, 6)))
    assert re.search(message, str(raised.value.__cause__ or raised.value))
