"""What every registry asks of parts that are named by import path; the examples in docstrings of parts."""

import dataclasses
import doctest
import inspect
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from rerank.base.errors import RecipeError
from rerank.base.registry import Registry
from rerank.features.extract import fired
from rerank.features.template import templates
from rerank.learn.base import Learner, learners
from rerank.metrics.metric import metrics
from rerank.readers.base import readers

every_registry = pytest.mark.parametrize(
    "registry", [learners, templates, readers, metrics], ids=lambda registry: registry.kind
)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of a user's."""
    module = ModuleType("parts_of_mine")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def open_members(base: type) -> list[str]:
    """What a contract leaves open: abstract members, and class variables without a value but for the name, which is
    taken from where a part is named."""
    hints = [(name, hint) for each in base.__mro__ for name, hint in inspect.get_annotations(each).items()]
    return [
        *getattr(base, "__abstractmethods__", ()),
        *(name for name, hint in hints if "ClassVar" in str(hint) and not hasattr(base, name) and name != "name"),
    ]


@pytest.mark.parametrize("registry", [templates, readers, metrics], ids=lambda registry: registry.kind)
def test_every_member_that_is_missing_is_named(registry: Registry[Any], own: Any) -> None:
    base = registry.contract
    assert base is not None
    members = open_members(base)
    assert members
    for missing in (*members, None):
        rest = {name: property(lambda part: part) for name in members if name != missing}
        own.Mine = dataclass(frozen=True)(type("Mine", (base,), {**rest, "__module__": own.__name__}))
        if missing is None:
            assert registry.get("parts_of_mine:Mine") is own.Mine
            continue
        with pytest.raises(
            RecipeError, match=rf"^{registry.kind} 'parts_of_mine:Mine' does not define {missing}; see rerank"
        ):
            registry.get("parts_of_mine:Mine")


@every_registry
def test_what_is_something_else_is_refused(registry: Registry[Any], own: Any) -> None:
    own.Mine, own.function, own.number = type("Mine", (), {}), len, 3
    for name in ("Mine", "function", "number"):
        with pytest.raises(RecipeError, match=rf"^{registry.kind} 'parts_of_mine:{name}' is not a class derived from"):
            registry.get(f"parts_of_mine:{name}")


@every_registry
def test_registered_parts_fulfil_the_contract(registry: Registry[Any]) -> None:
    assert registry.contract is not None
    for name, part in registry:
        assert issubclass(part, registry.contract), name
        assert not inspect.isabstract(part), name


@pytest.mark.parametrize(
    ("cls", "option"),
    [
        pytest.param(cls, field.name, id=f"{name} {field.name}")
        for name, cls in [*metrics, *readers]
        for field in dataclasses.fields(cls)
        if isinstance(field.default, bool | int | float) or str(field.type).startswith("Literal")
    ],
)
def test_every_metric_and_reader_refuses_values_of_another_kind(cls: type[Any], option: str) -> None:
    with pytest.raises(RecipeError, match=f"{option}: found \\['x'\\]; expected "):
        cls(**{option: ["x"]})


PARTS = {
    f"{registry.kind} {name}": part for registry in (learners, metrics, readers, templates) for name, part in registry
}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", PARTS)
def test_the_example_in_a_docstring_prints_what_it_shows(name: str) -> None:
    part: Any = PARTS[name]
    names = {"fired": fired} | vars(sys.modules[part.__module__])
    example = doctest.DocTestParser().get_doctest(part.__doc__ or "", dict(names), name, None, None)
    assert example.examples or not name.startswith("metric"), "no example"
    result = doctest.DocTestRunner(optionflags=FLAGS).run(example)
    assert result.failed == 0


@pytest.mark.parametrize(("name", "learner"), list(learners))
def test_learners_have_an_example_a_reference_and_their_memory(name: str, learner: type[Learner]) -> None:
    first = (learner.__doc__ or "").split("\n\n")[1]
    assert (">>> LambdaMart(" if name == "lambdamart" else ">>> learned(") in first, name  # trees need lists
    assert "Reference: " in (learner.__doc__ or "")
    assert "Memory: " in (learner.__doc__ or "")
