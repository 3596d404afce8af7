"""Parameters that are checked against the annotations of their class."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import pytest

from rerank.base.errors import RecipeError
from rerank.base.ranges import Checked, Range

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Part(Checked):
    kind: ClassVar[str] = "part"
    rate: Annotated[float, Range(above=0)] = 1.0
    share: Annotated[float, Range(0, below=1)] = 0.5
    top: Annotated[int, Range(1)] = 1
    n: Annotated[int, Range(1, 8)] = 2
    draws: Annotated[int, Range(high=1_000_000)] = 1
    update: Literal["always", "mistakes"] = "always"
    theta: Annotated[float, Range(0.05)] | None = None
    weight: Annotated[float, Range(0)] | Literal["auto"] = "auto"
    normalized: bool = False
    label: str = ""
    plain: float = 0.0
    other: Any = None


@pytest.mark.parametrize(
    "fitting",
    [
        {},
        {"rate": 5e-324, "share": 0, "top": 2**31 - 1, "n": 8, "draws": -(2**31) + 1, "update": "mistakes"},
        {"rate": 1, "theta": 0.05, "weight": 0, "normalized": True, "label": "x", "plain": -1.7e308, "other": object()},
    ],
)
def test_values_that_fit(fitting: dict[str, Any]) -> None:
    part = Part(**fitting)
    assert {name: getattr(part, name) for name in fitting} == fitting


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("rate", 0.0, "a finite number above 0"),
        ("rate", math.nan, "a finite number above 0"),
        ("rate", 10**400, "a finite number above 0"),
        ("rate", "1", "a finite number above 0"),
        ("share", 1, "a finite number from 0 and below 1"),
        ("top", 1.0, "a whole number from 1"),
        ("top", 2**31, "a whole number from 1, at most 2,147,483,647"),
        ("n", 9, "a whole number from 1 to 8"),
        ("draws", 1_000_001, "a whole number at most 1,000,000"),
        ("update", "never", "one of always, mistakes"),
        ("theta", 0.04, "a finite number from 0.05 or null"),
        ("weight", "car", "a finite number from 0 or auto"),
        ("normalized", 1, "true or false"),
        ("label", 1, "a string"),
        ("plain", math.inf, "a finite number"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, value: Any, expected: str) -> None:
    with pytest.raises(RecipeError) as caught:
        Part(**{name: value})
    assert str(caught.value) == f"{name}: found {value!r}; expected {expected}"


def test_parts_of_parts_are_checked_and_compare_what_they_will() -> None:
    @dataclass(frozen=True)
    class Pair(Part):
        most: Annotated[int, Range(0)] = 9

        def __post_init__(self) -> None:
            super().__post_init__()
            if self.most < self.n:
                raise RecipeError(f"found {self.most}; expected at least n, {self.n}", key="most")

    assert Pair(n=8, most=8).most == 8
    with pytest.raises(RecipeError, match="most: found 7; expected at least n, 8"):
        Pair(n=8, most=7)
    with pytest.raises(RecipeError, match="n: found 'x'; expected a whole number"):
        Pair(n="x")  # type: ignore[arg-type]


def test_annotations_that_only_type_checkers_can_read_are_named() -> None:
    @dataclass(frozen=True)
    class Loose(Checked):
        path: "Path"

    with pytest.raises(RecipeError, match=r"annotations of .*\.Loose cannot be read: name 'Path' is not defined"):
        Loose(path="")  # type: ignore[arg-type]
