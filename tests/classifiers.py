"""The classifiers that tests try: all, or one for each kind of state that a learner has; others differ in the rule."""

from typing import Any

import numpy as np
import pytest

from rerank.contrib import sklearn as estimators
from rerank.contrib.sklearn import (
    AROWClassifier,
    FTRLClassifier,
    PassiveAggressiveClassifier,
    PerceptronClassifier,
    RDAClassifier,
    TruncatedGradientClassifier,
    WinnowClassifier,
)
from rerank.contrib.sklearn.classifiers import OnlineClassifier

CLASSIFIERS = [cls for name in estimators.__all__ if issubclass(cls := getattr(estimators, name), OnlineClassifier)]
FAMILIES = (
    PerceptronClassifier, RDAClassifier, TruncatedGradientClassifier, FTRLClassifier, PassiveAggressiveClassifier,
    AROWClassifier, WinnowClassifier,
)  # fmt: skip
every = pytest.mark.parametrize("cls", CLASSIFIERS, ids=lambda cls: cls.__name__)
every_family = pytest.mark.parametrize("cls", FAMILIES, ids=lambda cls: cls.__name__)


def weights(model: Any) -> tuple[bytes, bytes]:
    """The bits of a fitted classifier's weights."""
    return model.coef_.tobytes(), model.intercept_.tobytes()


def problem(k: int, n: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """k classes with some noise; values are small multiples of 1/4, half of them 0, and some rows are equal."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (n, 6)) / 4.0 * (rng.random((n, 6)) < 0.5)
    X[n // 2 : n // 2 + 4] = X[:4]
    y = np.argmax(X[:, :k] + 0.3 * rng.standard_normal((n, k)), axis=1)
    y[n // 2 : n // 2 + 4] = y[:4]
    return X, y
