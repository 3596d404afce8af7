"""What a template is: a frozen set of options, a scope, and a kernel that writes symbols for places."""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.base.errors import RecipeError
from rerank.base.registry import Registry
from rerank.data.symbols import text_hash

# Which words a template contains: none, those with a function tag, all.
WORDS = {"none": 0, "function": 1, "all": 2}


@dataclass(frozen=True)
class Template(ABC):
    """A feature template: its dataclass fields are its options and the recipe's schema.

    All templates of one class and scope run in one kernel call per list; ``fire`` gets their options side by side.
    """

    kind: ClassVar[str]  # the registered name
    content: ClassVar[str] = "trees"  # what it looks at: lists of "trees" or of "texts"
    free: ClassVar[bool] = False  # are its features free of penalties and pruning, and standardised (dense scores)?
    # The kernel fire(forest, places, sink, ids, seeds, options), or for texts fire(view, sink, ids, seeds, options):
    # writes the features of the templates ``ids`` (int64 [V]) with ``seeds`` (uint64 [V]) and ``options``
    # (int64 [V, k]) for all places.
    fire: ClassVar[staticmethod[..., None]]

    @property
    def name(self) -> str:
        """Name with the options that differ from their defaults: ``Rule(ancestors=1)``; hashed into every feature."""
        changed = [
            f"{f.name}={value}" for f in dataclasses.fields(self) if (value := getattr(self, f.name)) != f.default
        ]
        return f"{self.kind}({', '.join(changed)})" if changed else self.kind

    @property
    def seed(self) -> int:
        """64-bit hash of the name: the first symbol of each of the template's features."""
        return text_hash(self.name)

    @property
    @abstractmethod
    def scope(self) -> int:
        """Which places the template looks at: INSIDE, UPWARD, EDGES or TREE."""

    @property
    def depth(self) -> int:
        """How many ancestors it looks at (scope UPWARD)."""
        return 0

    @abstractmethod
    def options(self) -> tuple[int, ...]:
        """The options as integers: one row of what ``fire`` gets."""


def make_template(spec: Any) -> Template:
    """A template from a recipe: ``Rule``, ``"Rule(ancestors=1)"`` or ``{Rule: {ancestors: 1}}``.

    Raises
    ------
    RecipeError: an unknown template or option, or a value that the option does not accept.
    """
    if isinstance(spec, dict) and len(spec) == 1:
        ((name, options),) = spec.items()
    elif isinstance(spec, str):
        name, options = _parse_call(spec)
    else:
        raise RecipeError(
            f"found {spec!r}, expected a template as Name, Name(option=value) or {{Name: {{option: value}}}}"
        )
    if not isinstance(name, str) or not isinstance(options, dict | None):
        raise RecipeError(f"found {spec!r}, expected {{Name: {{option: value}}}}")
    cls = templates.get(name)
    if not (isinstance(cls, type) and issubclass(cls, Template)):
        raise RecipeError(f"{name} is no template; functions on candidates are named under features.user")
    fields = {f.name: f for f in dataclasses.fields(cls)}
    for key, value in (options or {}).items():
        if key not in fields:
            raise RecipeError(f"template {name} has no option {key!r}; it has {', '.join(fields) or 'none'}")
        expected = type(fields[key].default)
        if type(value) is not expected:
            raise RecipeError(f"option {key} of template {name} is {value!r}; expected {expected.__name__}")
    return cls(**(options or {}))


def _parse_call(text: str) -> tuple[str, dict[str, Any]]:
    """``Name(a=1, b=word)`` → (Name, {a: 1, b: "word"})."""
    name, bracket, rest = text.strip().partition("(")
    if not bracket:
        return name, {}
    if not rest.endswith(")"):
        raise RecipeError(f"found {text!r}, expected Name(option=value, ...)")
    options: dict[str, Any] = {}
    for part in filter(None, (p.strip() for p in rest[:-1].split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise RecipeError(f"found {part!r} in {text!r}, expected option=value")
        key, value = key.strip(), value.strip()
        if key in options:
            raise RecipeError(f"option {key} is set twice in {text!r}")
        literal: Any = {"True": True, "true": True, "False": False, "false": False}.get(value, value)
        options[key] = int(value) if re.fullmatch("-?[0-9]+", value) else literal
    return name, options


def check_choice(template: str, option: str, value: Any, allowed: dict[str, int] | range) -> None:
    """Raise a RecipeError unless ``value`` is among ``allowed``."""
    if value not in allowed:
        choices = f"{allowed[0]} to {allowed[-1]}" if isinstance(allowed, range) else f"one of {', '.join(allowed)}"
        raise RecipeError(f"option {option} of template {template} is {value!r}; expected {choices}")


templates: Registry[type[Template]] = Registry("template", Template)
