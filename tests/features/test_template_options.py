"""Options of templates: what a class says of them, and what its kernel gets."""

from dataclasses import dataclass
from typing import ClassVar

from rerank.features.extract import families_of
from rerank.features.forest import EDGES
from rerank.features.template import Template, make_template, templates


def fire() -> None:
    """Stands for a kernel."""


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
