"""Options of templates: what a class says of them, and what its kernel gets."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import pytest

from rerank.base.errors import RecipeError
from rerank.base.ranges import Range
from rerank.features.extract import families_of
from rerank.features.places import EDGES, INSIDE
from rerank.features.template import Template, make_template, templates


def fire() -> None:
    """Stands for a kernel."""


@dataclass(frozen=True)
class Mine(Template):
    k: Annotated[int, Range(1, 3)] = 1
    side: Literal["left", "right"] = "left"
    open: bool = False
    rate: Annotated[float, Range(above=0)] = 1.0

    fixed: ClassVar[dict[str, int]] = {"deep": True}
    scope = INSIDE
    fire = staticmethod(fire)


def test_a_class_is_its_own_name_and_checks_its_options() -> None:
    assert Mine(k=2, side="right").name == "Mine(k=2, side=right)"
    with pytest.raises(RecipeError, match=r"k: found 4; expected a whole number from 1 to 3"):
        Mine(k=4)
    with pytest.raises(RecipeError, match=r"side: found 'up'; expected one of left, right"):
        Mine(side="up")  # type: ignore[arg-type]


def test_a_class_can_say_its_name_and_compute_its_scope() -> None:
    @dataclass(frozen=True)
    class Other(Template):
        kind: ClassVar[str] = "Label"
        fire = staticmethod(fire)

        @property
        def scope(self) -> int:
            return EDGES

    (call,) = families_of([Other()])
    assert (Other().name, call.scope, call.options.shape) == ("Label", EDGES, (1, 0))


def test_every_template_is_registered_under_its_name() -> None:
    for name, part in templates:
        assert part.kind == name
        assert make_template(name).name == name
