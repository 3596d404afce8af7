"""Options of templates: what a class says of them, and what its kernel gets."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import pytest

from rerank.base.errors import RecipeError
from rerank.base.ranges import Range
from rerank.features.extract import families_of
from rerank.features.parse.edges import Edges, Neighbours, WordEdges
from rerank.features.places import EDGES, INSIDE
from rerank.features.template import Template, make_template, option_records, templates


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


def test_kernels_get_numbers_by_name() -> None:
    records = option_records([Mine(), Mine(k=3, side="right", open=True, rate=2)])
    assert [records.dtype[name] for name in ("k", "side", "open", "rate", "deep")] == [
        np.int64,
        np.int64,
        np.int64,
        np.float64,
        np.int64,
    ]
    assert records.tolist() == [(1, 0, 0, 1.0, 1), (3, 1, 1, 2.0, 1)]
    assert (records[1].k, records[1].rate) == (3, 2.0)


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


def test_templates_of_one_kernel_run_together_if_they_give_it_the_same_options() -> None:
    together = [Edges(lp=1), WordEdges(rs=2, binned=True), Neighbours(l=2)]
    (call,) = families_of(together)
    assert call.options.dtype.names == ("binned", "lp", "ls", "rp", "rs", "words")
    assert call.options.tolist() == [(0, 1, 0, 0, 0, 0), (1, 0, 0, 0, 2, 1), (1, 2, 0, 0, 1, 0)]

    @dataclass(frozen=True)
    class Fewer(Template):
        binned: bool = True
        scope = EDGES
        fire = Edges.fire

    assert [call.options.shape for call in families_of([*together, Fewer()])] == [(3,), (1,)]


def test_every_template_is_registered_under_its_name() -> None:
    for name, part in templates:
        assert part.kind == name
        assert make_template(name).name == name
