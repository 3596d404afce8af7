"""docs/estimators.md runs as it stands, and names every classifier and parameter."""

from __future__ import annotations

import doctest
import re
from inspect import signature
from pathlib import Path

import pytest

from rerank import estimators
from rerank.estimators.base import SHARED

PAGE = Path(__file__).parents[2] / "docs" / "estimators.md"


def test_the_examples_are_true() -> None:
    failed, run = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert run > 20
    assert failed == 0


@pytest.mark.parametrize("name", [name for name in estimators.__all__ if name != "ListRanker"])
def test_every_parameter_is_in_the_table(name: str) -> None:
    row = re.search(rf"^\| `{name}` \|.*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert row is not None
    own = [parameter for parameter in signature(getattr(estimators, name)).parameters if parameter not in SHARED]
    assert re.findall(r"`(\w+)`", row[0].rpartition("|")[0].rpartition("|")[2]) == own


@pytest.mark.parametrize("parameter", SHARED)
def test_shared_parameters_are_in_the_table(parameter: str) -> None:
    default = getattr(estimators.PerceptronClassifier(), parameter)
    shown = f'"{default}"' if isinstance(default, str) else default
    assert f"| `{parameter}` | {shown} |" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("parameter", signature(estimators.ListRanker).parameters)
def test_the_rankers_parameters_are_named(parameter: str) -> None:
    assert f"`{parameter}" in PAGE.read_text(encoding="utf-8").partition("## Rank lists")[2].partition("\n## ")[0]
