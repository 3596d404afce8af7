"""scikit-learn's own checks, without exceptions."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from rerank import estimators
from rerank.estimators import AROWClassifier, CWClassifier, PerceptronClassifier, WinnowClassifier


@parametrize_with_checks([getattr(estimators, name)() for name in estimators.__all__])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@parametrize_with_checks(
    [
        PerceptronClassifier(average="vote"),
        AROWClassifier(average="last", fit_intercept=False, covariance="full"),
        CWClassifier(form="stdev", covariance="exact"),
        WinnowClassifier(margin=False, normalized=True),
    ]
)
def test_scikit_learn_checks_of_other_parameters(estimator: Any, check: Any) -> None:
    check(estimator)
