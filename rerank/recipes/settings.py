"""The base of all settings: sections without unknown keys, changes of dotted keys, grids."""

import itertools
import math
import os
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import fields
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from rerank.base.encoding import LOGIN
from rerank.base.errors import RecipeError
from rerank.base.ranges import Range, hints_of, requirement
from rerank.base.registry import nearest, texts_in
from rerank.storage.places import HOME

Settings = dict[str, Any]
MAX_DIGITS = 10  # of a cut-off, at most
MAX_POINTS = 10_000  # of a grid, and runs of a recipe
SHIPPED = "{shipped}"  # in a recipe's data.root: the folder of the lists

# Counts that a run's time or memory grows with: what no real use reaches is a slip, and would never end.
Epochs = Annotated[int, Range(1, 100_000)]
Samples = Annotated[int, Range(100, 1_000_000)]
Workers = Annotated[int, Range(1, 1024)]
Share = Annotated[float, Range(above=0, high=1)]
Sections = Annotated[int, Range(1, 100_000)]
FoldCount = Annotated[int, Range(2, 10_000)]
Examples = Annotated[int, Range(0, 10_000)]
Seed = Annotated[int, Range(0, below=1 << 63)]

# What is expected where a value has another form.
FORMS = {
    "model_type": "a mapping of settings",
    "dict_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
    "too_short": "a list of one entry or more",
}


def root_folder(root: str) -> str:
    """The folder that a recipe's ``data.root`` names."""
    return root.replace(SHIPPED, str(HOME / "data"))


class Section(BaseModel):
    """A part of a recipe: no unknown keys, finite numbers, no change once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


S = TypeVar("S", bound=Section)
T = TypeVar("T")


def as_settings(value: Any, name: str | None = None, key: str = "name") -> Any:
    """Settings of a part, which may be its name alone, or ``name@k`` with its setting k; ``name`` is the default part,
    ``key`` where it stands."""
    if isinstance(value, str):
        first, _, last = value.partition("@")
        if key == "name" and last.isdecimal() and len(last) < MAX_DIGITS:
            return {key: first, "k": int(last)}
        return {key: value}
    return {key: name, **value} if isinstance(value, dict) and name is not None else value


def part(name: str | None = None, key: str = "name") -> BeforeValidator:
    """Validates the settings of a part as ``as_settings`` reads them."""
    return BeforeValidator(lambda value: as_settings(value, name, key))


def one_or_many(*kinds: type) -> BeforeValidator:
    """Validates a tuple, which may be given as a single value of one of these ``kinds``."""
    return BeforeValidator(lambda value: [value] if type(value) in kinds else value)


def distinct(values: tuple[T, ...]) -> tuple[T, ...]:
    """``values`` without those that came before."""
    return tuple(dict.fromkeys(values))


def _no_count(seeds: Any) -> Any:
    """``seeds``; a number alone might be a seed, or say how many."""
    if type(seeds) is int and seeds > 1:
        many = ", ".join(map(str, range(1, seeds + 1))) if seeds < 10 else f"1, 2, ..., {seeds}"
        raise ValueError(f"the seeds themselves are expected, [{seeds}] for this one, or [{many}]")
    return [seeds] if type(seeds) is int else seeds


def _no_seed_twice(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("a seed is named twice; equal runs have no spread")
    return seeds


Seeds = Annotated[tuple[Seed, ...], Field(max_length=1000), BeforeValidator(_no_count), AfterValidator(_no_seed_twice)]
Grid = dict[str, Annotated[list[Any], Field(min_length=1), one_or_many(str, bool, int, float, dict)]]  # by dotted key


def literal(path: str) -> str:
    """``path`` as a pattern with nothing to fill in."""
    return path.replace("{", "{{").replace("}", "}}")


def grid_points(grid: dict[str, list[Any]]) -> list[Settings]:
    """Every combination of one value for each key, the last key varying fastest; one empty point without keys."""
    count = math.prod(map(len, grid.values()))
    if count > MAX_POINTS:
        raise RecipeError(f"{count:,} combinations of values; at most {MAX_POINTS:,} are tried", key="grid")
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def validate(model: type[S], settings: Settings, path: str | None = None) -> S:
    """The recipe, or section of one, that ``settings`` describe."""
    for text in filter(LOGIN.search, texts_in(settings)):
        message = f"found a name or password in {text}; remove it, and put it into ~/.netrc"
        raise RecipeError(message, path=path)
    try:
        return model.model_validate(settings)
    except ValidationError as error:
        keys, message = first_fault(model, error)
        key = ".".join(str(part) for part in keys)
        raise RecipeError(message, key=key, path=path) from None


def dataclass_of(kind: type[T], settings: Settings, key: str) -> T:
    """The dataclass whose fields are the settings of the section at ``key``."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name in settings:
        if name not in names:
            raise RecipeError(f"unknown setting; {nearest(name, names)}", key=f"{key}.{name}")
    try:
        return kind(**settings)
    except RecipeError as error:
        raise RecipeError(error.message, key=f"{key}.{error.key}") from None


def first_fault(model: type[BaseModel], error: ValidationError) -> tuple[list[int | str], str]:
    """The first finding of pydantic in the settings of a section: at which keys and places, and what is wrong there."""
    first = error.errors()[0]
    keys = [part for part in first["loc"] if not str(part).startswith(":")]  # a colon: a union's tag
    section, hint = _setting_at(model, keys)
    if first["type"] == "extra_forbidden":
        return keys, f"unknown setting; {nearest(str(keys[-1]), section.model_fields)}"
    if first["type"] == "missing":
        return keys, "is missing"
    value, message = repr(first["input"]), first["msg"]
    value = value if len(value) <= 200 else f"{value[:200]}..."
    if first["type"] == "value_error":
        message = message.removeprefix("Value error, ")
        return keys, f"found {value}: {message}" if keys else message
    constrained = first["type"].startswith(("string_pattern", "string_too", "too_"))  # beyond the words for its type
    if words := FORMS.get(first["type"]) or ("" if constrained else requirement(hint, first)):
        return keys, f"found {value}; expected {words}"
    return keys, f"found {value}: {message[0].lower()}{message[1:]}"


def _setting_at(model: type[BaseModel], keys: Iterable[int | str]) -> tuple[type[BaseModel], Any]:
    """The section that the setting at ``keys`` is in, and the annotation of that setting or of its entries."""
    section, inner, hint = model, model, None
    for key in keys:
        if key in inner.model_fields:
            section, hint = inner, hints_of(inner)[str(key)]
        else:  # the entries of a list or mapping
            while (parts := [part for part in get_args(hint) if part is not Ellipsis]) and (
                get_origin(hint) not in (list, tuple, dict)
            ):
                hint = parts[0]
            section, hint = inner, parts[-1] if parts else None
        inner = _section_in(hint) or inner
    return section, hint


def _section_in(hint: Any) -> type[BaseModel] | None:
    """The class of settings in a type such as ``dict[str, Settings] | None``."""
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return hint
    return next((section for part in get_args(hint) if (section := _section_in(part)) is not None), None)


def files_in(settings: Any, root: str = "") -> list[str]:
    """The files that texts in nested settings name, ``{root}`` filled in."""
    texts = (text.replace("{root}", root) for text in texts_in(settings))
    return [text for text in texts if os.path.isfile(text)]


def change(settings: Settings, changes: Settings) -> Settings:
    """A copy of ``settings`` in which the dotted keys of ``changes`` have other values, see ``assign_all``."""
    copy = deepcopy(settings)
    assign_all(copy, changes)
    return copy


def assign_all(settings: Settings, changes: Settings) -> list[str]:
    """Set dotted keys, in any order: what a setting is part of, and the name of that part, are set before it.

    So no change undoes another. Returns, in words, which settings a new name has dropped.
    """
    remarks = []
    for key in sorted(changes, key=lambda key: (key.count("."), not key.endswith(".name"))):
        before = assign(settings, key, changes[key])
        if len(before) > 1:
            losses = ", ".join(f"{name}: {value}" for name, value in before.items() if name != "name")
            remarks.append(f"{key} {changes[key]} replaces {before['name']} and its settings ({losses})")
    return remarks


def undone(key: str, changes: Iterable[str]) -> bool:
    """Whether one of the dotted keys of later ``changes`` undoes what was set at ``key``."""
    return any(
        key == change
        or key.startswith(f"{change}.")
        or (change.endswith(".name") and key.startswith(change[: -len("name")]))
        for change in changes
    )


def assign(settings: Settings, key: str, value: Any) -> Settings:
    """Set a dotted key; a change of a part's ``name`` drops the settings of the part it replaces, and returns them."""
    *parents, last = key.split(".")
    node = settings
    for part in parents:
        child = node.setdefault(part, {})
        if child is None:
            child = node[part] = {}
        if isinstance(child, str):  # the name of a part, or of a set of templates, alone
            child = node[part] = as_settings(child, key="set" if part == "features" else "name")
        if not isinstance(child, dict):
            raise RecipeError(f"cannot set {key!r}: {part!r} holds {child!r}, not settings", key=key)
        node = child
    losses: Settings = {}
    if last == "name" and parents and node.get("name") not in (None, value):
        losses = dict(node)
        node.clear()
    node[last] = value
    return losses
