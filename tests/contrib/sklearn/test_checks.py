"""scikit-learn's own checks, and docs/estimators.md, which runs as it stands and says what every parameter means."""

import doctest
import re
from inspect import signature
from typing import Any

import pytest
from classifiers import CLASSIFIERS, FAMILIES
from pages import ROOT, text_of
from sklearn.utils.estimator_checks import parametrize_with_checks

from rerank.contrib.sklearn import (
    AROWClassifier,
    CWClassifier,
    ListRanker,
    PerceptronClassifier,
    SGDClassifier,
    WinnowClassifier,
)
from rerank.contrib.sklearn.base import SHARED

PAGE = ROOT / "docs" / "estimators.md"


def by_design(model: Any) -> dict[str, str]:
    """The checks that the parameters of a classifier rule out, and why."""
    why = "without an intercept, no weights give all rows the same class"
    return {} if model.fit_intercept else {"check_class_weight_classifiers": why}


@parametrize_with_checks([cls() for cls in FAMILIES])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    """Without exceptions for defaults."""
    check(estimator)


@parametrize_with_checks(
    [
        PerceptronClassifier(average="vote"),
        AROWClassifier(average="last", fit_intercept=False, covariance="full"),
        CWClassifier(form="stdev", covariance="exact"),
        WinnowClassifier(margin=False, normalized=True),
        SGDClassifier(loss="log"),
    ],
    expected_failed_checks=by_design,
)
def test_scikit_learn_checks_of_other_parameters(estimator: Any, check: Any) -> None:
    check(estimator)


def test_the_examples_are_true() -> None:
    failed, run = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert run > 20
    assert failed == 0


@pytest.mark.parametrize("cls", CLASSIFIERS, ids=lambda cls: cls.__name__)
def test_every_parameter_is_in_the_table(cls: type) -> None:
    row = re.search(rf"^\| `{cls.__name__}` \|.*$", text_of(PAGE), re.MULTILINE)
    assert row is not None
    own = [parameter for parameter in signature(cls).parameters if parameter not in SHARED]
    assert re.findall(r"`(\w+)`", row[0].rpartition("|")[0].rpartition("|")[2]) == own


@pytest.mark.parametrize("parameter", [*SHARED, *signature(ListRanker).parameters])
def test_every_parameter_has_a_meaning(parameter: str) -> None:
    rows = [row.split(" | ") for row in text_of(PAGE).splitlines() if row.startswith(f"| `{parameter}` |")]
    assert rows
    assert all(len(meaning) > len(" |") for *_, meaning in rows)
