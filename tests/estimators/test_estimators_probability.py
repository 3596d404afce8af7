"""Probabilities of the classifiers: beside the formulas, row by row."""

import math
import pickle
import re
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from rerank.contrib.sklearn import (
    AROWClassifier,
    CWClassifier,
    FTRLClassifier,
    NHERDClassifier,
    PerceptronClassifier,
    RDAClassifier,
    SCWClassifier,
    SecondOrderPerceptronClassifier,
    SGDClassifier,
)
from rerank.contrib.sklearn.probability import Covariance, probabilities

two_and_more = pytest.mark.parametrize("k", [2, 3])
GAUSSIANS = {
    "cw": CWClassifier(probability=True),
    "cw, normalised": CWClassifier(probability=True, normalize=True, average="last"),
    "arow": AROWClassifier(probability=True, fit_intercept=False),
    "arow, full": AROWClassifier(probability=True, covariance="full"),
    "scw, normalised": SCWClassifier(probability=True, normalize=True, fit_intercept=False),
    "nherd": NHERDClassifier(probability=True),
}


def problem(k: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(k)
    X = np.round(4 * random.standard_normal((40, 6)) * (random.random((40, 6)) < 0.6)) / 4
    return X, np.argmax(X[:, :k] + 0.3 * random.standard_normal((40, k)), axis=1)


def covariance(model: Any, z: np.ndarray) -> np.ndarray:
    """Σ for a difference vector z. Normalised: of values divided by the largest so far, z among them."""
    state = model._stream.state
    if state.matrix.size:
        return np.asarray(state.matrix)
    variance = state.cells[:, 1].copy()
    for j, x in enumerate(np.abs(z)) if state.memory.size else []:
        if x > state.memory[j]:
            variance[j] = 1 / x**2 if state.memory[j] == 0 else variance[j] * (state.memory[j] / x) ** 2
    return np.diag(variance)


def likely(model: Any, x: np.ndarray) -> np.ndarray:
    """Φ(s/√v), or the softmax of scores / √(π/8·v), v being the variance of the difference between the two best."""
    row = np.append(x, 1.0) if model.fit_intercept else x
    scores, W = np.atleast_1d(model.decision_function(x[np.newaxis])[0]), row.size
    z = np.zeros(scores.size * W + (not model._apart))  # a base score that is no intercept has a coordinate too
    one, *others = [0] if scores.size == 1 else np.argsort(-scores, kind="stable")[:2]
    z[one * W : (one + 1) * W] = row
    for other in others:
        z[other * W : (other + 1) * W] = -row
    scores = scores / math.sqrt(z @ covariance(model, z) @ z) if scores.any() else scores
    if scores.size == 1:
        return np.array([math.erfc(sign * scores[0] / math.sqrt(2)) / 2 for sign in (1, -1)])
    shares = np.exp(scores * math.sqrt(8 / math.pi))
    return np.asarray(shares / shares.sum())


@two_and_more
@pytest.mark.parametrize("name", GAUSSIANS)
def test_gaussian_weights(name: str, k: int) -> None:
    X, y = problem(k)
    model = GAUSSIANS[name].set_params(random_state=0, epochs=2).fit(X, y)
    rows = np.concatenate([X, 3 * X[:5], np.zeros((1, 6))])  # beyond what was seen, and nothing at all
    expected = np.array([likely(model, x) for x in rows])
    found = model.predict_proba(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(sparse.csr_array(rows)), expected, rtol=1e-9)
    np.testing.assert_array_equal(found.argmax(axis=1), model.predict(rows))
    np.testing.assert_allclose(pickle.loads(pickle.dumps(model)).predict_proba(rows), expected, rtol=1e-9)


def test_a_score_without_variance_is_certain() -> None:
    """v = 0: a row of features that no weight varies for, and a row of nothing."""
    covariance = Covariance(np.zeros((1, 1)), np.zeros((1, 0)))
    found = probabilities(np.array([0.5, -0.5, 0.0]), covariance, sparse.csr_array([[1.0], [1.0], [0.0]]), bias=False)
    np.testing.assert_array_equal(found, [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])


@pytest.mark.parametrize(("loss", "k"), [("logistic", 2), ("log", 2), ("log", 3), ("logistic", 3)])
@pytest.mark.parametrize("cls", [SGDClassifier, RDAClassifier, FTRLClassifier])
def test_scores_of_a_logistic_loss_are_log_odds(cls: Any, loss: str, k: int) -> None:
    X, y = problem(k)
    model = cls(loss=loss, random_state=0).fit(X, y)
    scores = model.decision_function(X)
    scores = np.column_stack([np.zeros(y.size), scores]) if k == 2 else scores
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(expected), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PerceptronClassifier(), "PerceptronClassifier minimises no logistic loss.*CalibratedClassifierCV"),
        (SecondOrderPerceptronClassifier(), "minimises no logistic loss"),
        (SGDClassifier(), "SGDClassifier minimises no logistic loss; expected loss='logistic' or 'log'"),
        (SGDClassifier(loss="logistic", update="mistakes"), "update='always'"),
        (SGDClassifier(loss="logistic", average="vote"), "votes are no probabilities"),
        (AROWClassifier(), "need probability=True, before fit"),
        (AROWClassifier(probability=True, average="vote"), "votes are no probabilities"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_where_there_are_none(model: Any, message: str) -> None:
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_log_proba")
    with pytest.raises(AttributeError) as raised:
        model.predict_proba(np.zeros((1, 6)))
    assert re.search(message, str(raised.value.__cause__))


def test_probabilities_are_asked_for_before_the_fit() -> None:
    X, y = problem(2)
    with pytest.raises(ValueError, match="fitted with probability=False; fit it again with probability=True"):
        AROWClassifier().fit(X, y).set_params(probability=True).predict_proba(X)
