"""docs/estimators.md runs as it stands, and says what every parameter means."""

import doctest
import re
from inspect import signature
from pathlib import Path

import pytest
from pages import text_of

from rerank import estimators
from rerank.contrib.sklearn.base import SHARED

PAGE = Path(__file__).parents[2] / "docs" / "estimators.md"


def test_the_examples_are_true() -> None:
    failed, run = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert run > 20
    assert failed == 0


@pytest.mark.parametrize("name", [name for name in estimators.__all__ if name.endswith("Classifier")])
def test_every_parameter_is_in_the_table(name: str) -> None:
    row = re.search(rf"^\| `{name}` \|.*$", text_of(PAGE), re.MULTILINE)
    assert row is not None
    own = [parameter for parameter in signature(getattr(estimators, name)).parameters if parameter not in SHARED]
    assert re.findall(r"`(\w+)`", row[0].rpartition("|")[0].rpartition("|")[2]) == own


@pytest.mark.parametrize("parameter", [*SHARED, *signature(estimators.ListRanker).parameters])
def test_every_parameter_has_a_meaning(parameter: str) -> None:
    rows = [row.split(" | ") for row in text_of(PAGE).splitlines() if row.startswith(f"| `{parameter}` |")]
    assert rows
    assert all(len(meaning) > len(" |") for *_, meaning in rows)
