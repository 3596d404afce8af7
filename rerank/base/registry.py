"""Registries: a name in a recipe → the class that implements it.

The line that registers a part is the only place where its name appears. Users' own parts are found by import path
(``package.module:Name``) or by an entry point in the group ``rerank.<kind>``.
"""

import dataclasses
import difflib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rerank.base.errors import RecipeError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Registry(Generic[T]):
    """A table of named parts of one kind.

    contract: the class that all of them derive from, if there is one; a part that lacks something the contract leaves
    open (an abstract member, or a class variable without a value) is refused when it is registered or named.
    modules: those that register the parts of this program. They are imported when a part is asked for, and of those
    that have the part's name in theirs, only these.

    >>> learners: Registry[type] = Registry("learner")
    >>> @learners.add("perceptron")
    ... class Perceptron: ...
    >>> learners.get("perceptron") is Perceptron
    True
    """

    def __init__(self, kind: str, contract: type | None = None, modules: Iterable[str] = ()) -> None:
        self.kind, self.contract, self.modules = kind, contract, tuple(modules)
        self._parts: dict[str, T] = {}

    def add(self, name: str):  # type: ignore[no-untyped-def]
        """Decorator that registers its target under ``name``; a name can be taken only once."""

        def register(part: T) -> T:
            """Register ``part`` under the name and return it unchanged."""
            if name in self._parts:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._name(part, name)
            if broken := self._broken(part):
                raise ValueError(f"{self.kind} {name!r} {broken}")
            self._parts[name] = part
            return part

        return register

    def get(self, name: str) -> T:
        """The part called ``name``, the object at ``module:attribute``, or an entry point of that name.

        Raises
        ------
        RecipeError: nothing has that name (the message lists the nearest names), or it does not fulfil the contract.
        """
        if name in self:
            return self._parts[name]
        from importlib.metadata import EntryPoint, entry_points

        if ":" in name:
            return self._load(EntryPoint(name=name, value=name, group=""))
        for point in entry_points(group=f"rerank.{self.kind}s"):  # reads a file of every package that is installed
            if point.name == name:
                return self._load(point)
        raise RecipeError(f"unknown {self.kind} {name!r}; {nearest(name, self._parts)}")

    def _load(self, point: "EntryPoint") -> T:
        try:
            part: T = point.load()
        except Exception as error:  # the module is the user's: it can raise anything
            raise RecipeError(f"cannot import {self.kind} {point.value!r}: {type(error).__name__}: {error}") from error
        self._name(part, point.attr if ":" in point.name else point.name)
        if broken := self._broken(part):
            raise RecipeError(f"{self.kind} {point.value!r} {broken}")
        return part

    def _name(self, part: Any, name: str) -> None:
        """Give a part without a name this one, where the contract asks for a name."""
        named = self.contract is not None and "name" in inspect.get_annotations(self.contract)
        if named and isinstance(part, type) and not hasattr(part, "name"):
            part.name = name  # type: ignore[attr-defined]

    def _broken(self, part: Any) -> str:
        """The way in which a part breaks the contract, worded to follow its name; empty if it does not."""
        base = self.contract
        if base is None:
            return ""
        if not (isinstance(part, type) and issubclass(part, base)):
            return f"is not a class derived from {base.__module__}.{base.__name__}"
        missing = sorted(getattr(part, "__abstractmethods__", ()))
        for base_class in base.__mro__:
            hints = inspect.get_annotations(base_class)
            missing += [name for name, hint in hints.items() if "ClassVar" in str(hint) and not hasattr(part, name)]
        if missing:
            return f"does not define {', '.join(missing)}; see {base.__module__}.{base.__name__}"
        return "" if dataclasses.is_dataclass(part) else "is not a dataclass; its settings are the fields of one"

    def names(self) -> list[str]:
        """Registered names, sorted."""
        return [name for name, _ in self]

    def __iter__(self) -> Iterator[tuple[str, T]]:
        self._import(self.modules)
        return iter(sorted(self._parts.items(), key=lambda item: item[0]))

    def __contains__(self, name: str) -> bool:
        if name not in self._parts:
            self._import(module for module in self.modules if name.replace("-", "_") in module.split("."))
        if name not in self._parts and ":" not in name:
            self._import(self.modules)
        return name in self._parts

    def _import(self, modules: Iterable[str]) -> None:
        for module in modules:  # those that are there already cost nothing
            import_module(module)


def nearest(name: str, known: Iterable[str]) -> str:
    """The message after an unknown name: the nearest known ones, or all of them."""
    near = difflib.get_close_matches(name, list(known), n=3)
    return f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(sorted(known)) or 'none'}"


def build(registry: Registry[type[T]], spec: Mapping[str, Any], key: str) -> T:
    """An instance of the dataclass that ``spec["name"]`` names; the other entries are its parameters.

    Raises
    ------
    RecipeError: unknown name or parameter, or a value that the class refuses; ``key`` is where the spec is found.
    """
    if not isinstance(spec.get("name"), str):
        raise RecipeError(f"no {registry.kind} is named; known: {', '.join(registry.names())}", key=f"{key}.name")
    try:
        cls = registry.get(spec["name"])
    except RecipeError as error:
        raise RecipeError(error.message, key=f"{key}.name") from None
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise RecipeError(f"{spec['name']!r} is not a {registry.kind}; expected a dataclass", key=f"{key}.name")
    parameters = {name: value for name, value in spec.items() if name != "name"}
    fields: dict[str, dataclasses.Field[Any]] = {f.name: f for f in dataclasses.fields(cls) if f.init}
    for name in parameters:
        if name not in fields:
            raise RecipeError(
                f"{registry.kind} {spec['name']} has no setting {name!r}; {nearest(name, fields)}", key=key
            )
    try:
        return cls(**parameters)
    except RecipeError as error:
        raise RecipeError(error.message, key=".".join(part for part in (key, error.key) if part)) from None
    except (TypeError, ValueError) as error:
        raise RecipeError(f"{registry.kind} {spec['name']} does not accept its settings: {error}", key=key) from None


def texts_in(settings: Any) -> Iterator[str]:
    """All texts in nested settings, keys too."""
    if isinstance(settings, str):
        yield settings
    elif isinstance(settings, dict):
        for key, value in settings.items():
            yield from texts_in(key)
            yield from texts_in(value)
    elif isinstance(settings, list | tuple):
        for value in settings:
            yield from texts_in(value)
