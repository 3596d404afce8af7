"""What the code says about the settings of a part or section: values, default, meaning."""

import dataclasses
import inspect
import re
import types
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel

from rerank.base.ranges import describe, hints_of

FAR = 2**31  # a bound that nobody meets
BOUND = re.compile(r"^[>≥] \d+; |^\w > 0; ")  # what the annotations say too
LITERAL = re.compile(r"(?<!`)``(?!`)")


class Setting(NamedTuple):
    """A line of a table."""

    key: str
    values: str
    default: str
    meaning: str


def markdown(text: str) -> str:
    """A docstring, or a piece of one, as Markdown: literals, and blocks of lines as they are in a file."""
    text = re.sub(r"::\n\n((?:    .*\n|\n)+)", lambda block: f":\n\n```\n{_dedented(block[1])}```\n\n", text + "\n")
    return LITERAL.sub("`", text).strip()


def _dedented(block: str) -> str:
    return inspect.cleandoc("\n" + block).rstrip() + "\n"


def cell(text: str) -> str:
    """Text for a cell of a table."""
    return LITERAL.sub("`", " ".join(text.split())).replace("|", "\\|")


def meanings(part: type, known: dict[str, type] | None = None) -> dict[str, str]:
    """What the docstrings of a class, and of those that it derives from, say after the name of a field and a colon.

    known: classes by name, to which "see NAME" may refer.
    """
    found: dict[str, str] = {}
    names = sorted(_names(part), key=len, reverse=True)
    entry = re.compile(rf"(?:^|(?<=[.;?)]) +|\n\s*)((?:{'|'.join(names)})(?:, (?:{'|'.join(names)}))*): ")
    for base in reversed(part.__mro__):
        own: dict[str, list[str]] = {}
        for paragraph in _said(base).split("\n\n") if names else []:
            if paragraph.startswith(">>>"):
                continue
            pieces = entry.split(paragraph)
            for listed, text in zip(pieces[1::2], pieces[2::2], strict=True):
                for name in listed.split(", "):
                    own.setdefault(name, []).append(BOUND.sub("", " ".join(text.split())).rstrip(" ;."))
        for name, texts in own.items():
            if elsewhere := re.fullmatch(r"see `*(\w+)`*", texts[0]):
                other = (known or {}).get(elsewhere[1])
                texts = [meanings(other, known)[name]] if other and name not in found else []
            found.update({name: "; ".join(texts)} if texts else {})
    return found


def _said(part: type) -> str:
    """The docstring of a class itself, if somebody has written one."""
    text = vars(part).get("__doc__") or ""
    return "" if text.startswith(f"{part.__name__}(") else inspect.cleandoc(text)


def _names(part: type) -> list[str]:
    if issubclass(part, BaseModel):
        return list(part.model_fields)
    return [field.name for field in dataclasses.fields(part)]


def options(part: type, known: dict[str, type]) -> Iterator[Setting]:
    """The fields of a registered part, a dataclass, in the order of its own ones first."""
    said, hints = meanings(part, known), hints_of(part)
    order = list(said)
    for field in sorted(
        dataclasses.fields(part), key=lambda field: order.index(field.name) if field.name in said else -1
    ):
        default = field.default_factory() if callable(field.default_factory) else field.default
        yield Setting(field.name, _choices(hints[field.name]), shown(default), said.get(field.name, ""))


def _choices(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated and get_origin(parts[0]) in (Union, types.UnionType, tuple, list):
        return _choices(parts[0])
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_choices, parts)))
    if origin in (tuple, list) or "Sequence" in str(origin):
        return "list"
    words = describe(hint)
    if words.startswith("one of "):
        return ", ".join(f"`{word}`" for word in words.removeprefix("one of ").split(", "))
    return _brief(words.removeprefix("a finite ").removeprefix("a ")) or "settings"


def _brief(words: str) -> str:
    """A range of whole numbers without these words."""
    words = re.sub(r" to 2\.14748e\+09\b", "", words)
    return re.sub(r"^whole number from ([\d,]+)$", r"\1 or more", words).removeprefix("whole number from ")


def shown(value: Any) -> str:
    """A default as it is written in YAML."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "`{" + ", ".join(f"{key}: {_bare(each)}" for key, each in value.items()) + "}`" if value else "none"
    if isinstance(value, (list, tuple)):
        return "`[" + ", ".join(map(_bare, value)) + "]`" if value else "none"
    if isinstance(value, float):
        return f"{value:g}"
    return f"`{value}`" if isinstance(value, str) and value else str(value)


def _bare(value: Any) -> str:
    """An entry of a list or mapping."""
    return value or '""' if isinstance(value, str) else shown(value).strip("`")


def settings(recipes: dict[str, tuple[type[BaseModel], dict[str, Any]]], names: list[str]) -> Iterator[Setting]:
    """The dotted keys of recipes' top-level ``names``; recipes by the words that tell their defaults apart, each with
    its class and what it holds if only a name is given."""
    found: dict[str, dict[str, Setting]] = {}
    for label, (model, resolved) in recipes.items():
        for name in names:
            if name in model.model_fields:
                for setting in _of(model, name, resolved, name):
                    found.setdefault(setting.key, {})[label] = setting
    for key, by_label in found.items():
        first = next(iter(by_label.values()))
        defaults = dict.fromkeys(setting.default for setting in by_label.values())
        said = [f"{label}: {each.default}" for label, each in by_label.items() if each.default != first.default]
        whose = f"{', '.join(by_label)}: " if len(by_label) < len(recipes) and len(recipes) > 1 else ""
        default = "; ".join(dict.fromkeys([first.default, *said])) if len(defaults) > 1 else first.default
        yield Setting(key, first.values, default, whose + max((each.meaning for each in by_label.values()), key=len))


def _of(model: type[BaseModel], name: str, resolved: Any, prefix: str) -> Iterator[Setting]:
    info = model.model_fields[name]
    inner = _section(info.annotation)
    value = resolved.get(name) if isinstance(resolved, dict) else None
    meaning = meanings(model).get(name, "")
    if inner is None:
        missing = info.is_required() and value is None
        schema = model.model_json_schema(mode="validation")
        yield Setting(prefix, _words(schema["properties"][name]), "required" if missing else shown(value), meaning)
        return
    plain = None if info.is_required() else info.get_default(call_default_factory=True)
    if value is None and isinstance(plain, BaseModel):  # left out where recipes are stored
        value = plain.model_dump()
    if not isinstance(value, dict):
        kind = "settings or null" if value is None else "list of settings"
        yield Setting(prefix, kind, shown(value), meaning or cell((inner.__doc__ or "").split("\n\n")[0]))
    held = value if isinstance(value, dict) else _defaults(inner)
    for each in inner.model_fields:
        yield from _of(inner, each, held, f"{prefix}.{each}")


def _defaults(model: type[BaseModel]) -> dict[str, Any]:
    """The defaults of a section that a recipe leaves out."""
    filled = {name: info for name, info in model.model_fields.items() if not info.is_required()}
    plain = {name: info.get_default(call_default_factory=True) for name, info in filled.items()}
    return {name: value.model_dump() if isinstance(value, BaseModel) else value for name, value in plain.items()}


def _section(annotation: Any) -> type[BaseModel] | None:
    """The class of settings in an annotation; mappings from names that the user gives do not count."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) is dict:
        return None
    return next((found for part in get_args(annotation) if (found := _section(part)) is not None), None)


def _words(schema: dict[str, Any]) -> str:
    """What a JSON schema allows, in words."""
    if kinds := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(map(_words, kinds)))
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "settings")
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    bounds = {"from": low, "above": above, "to": high, "below": below}
    limits = "".join(f" {word} {bound:,g}" for word, bound in bounds.items() if bound is not None and bound < FAR)
    if kind == "array":
        items = _words(schema.get("items") or {"type": "value"})
        return f"list ({items})"
    names = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "`true`, `false`",
        "object": "settings",
    }
    return _brief(names.get(kind, str(kind)) + (limits if kind in ("integer", "number") else ""))
