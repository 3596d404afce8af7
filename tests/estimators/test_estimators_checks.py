"""scikit-learn's own checks: without exceptions for defaults, and with those that other parameters bring by design."""

from typing import Any

from classifiers import FAMILIES
from sklearn.utils.estimator_checks import parametrize_with_checks

from rerank.contrib.sklearn import AROWClassifier, CWClassifier, PerceptronClassifier, SGDClassifier, WinnowClassifier


def by_design(model: Any) -> dict[str, str]:
    """The checks that the parameters of a classifier rule out, and why."""
    found = {}
    if getattr(model, "probability", False):
        found["check_decision_proba_consistency"] = "a Gaussian's probability depends on how sure it is of a row too"
    if not model.fit_intercept:
        found["check_class_weight_classifiers"] = "without an intercept, no weights give all rows the same class"
    return found


@parametrize_with_checks([cls() for cls in FAMILIES])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@parametrize_with_checks(
    [
        PerceptronClassifier(average="vote"),
        AROWClassifier(average="last", fit_intercept=False, covariance="full"),
        CWClassifier(form="stdev", covariance="exact"),
        WinnowClassifier(margin=False, normalized=True),
        SGDClassifier(loss="log", keep_state=True),
        AROWClassifier(probability=True),
    ],
    expected_failed_checks=by_design,
)
def test_scikit_learn_checks_of_other_parameters(estimator: Any, check: Any) -> None:
    check(estimator)
