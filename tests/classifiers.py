"""The classifiers that tests try: all, or one for each kind of state that a learner has; others differ in the rule."""

from typing import Any

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
from rerank.contrib.sklearn.base import OnlineClassifier

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
