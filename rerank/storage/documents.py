"""JSON and YAML, read strictly: no NaN, no repeated key, no endless nesting; written so that reading gives the same."""

import json
import math
import re
import stat
from collections.abc import Hashable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from rerank.base.errors import RecipeError, RunError


def as_json(value: Any, *, allow_nan: bool = False, **layout: Any) -> str:
    """``value`` as JSON; parameters as in ``json.dumps``. ``allow_nan`` is for values of the user's own files."""
    try:
        return json.dumps(value, allow_nan=allow_nan, **layout)
    except ValueError:
        for key, number in () if allow_nan else _infinite(value, ""):
            raise RunError(f"{key or 'the result'} is {number}, which no JSON file can hold") from None
        raise


def _infinite(value: Any, key: str) -> Iterator[tuple[str, float]]:
    """The numbers in ``value`` that are not finite, each with its dotted path."""
    if isinstance(value, float) and not math.isfinite(value):
        yield key, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for name, part in inner:
        yield from _infinite(part, f"{key}.{name}" if key else str(name))


def check_plain(path: Path) -> None:
    """Refuse what is not a regular file: devices and pipes may never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{path.name}: it is not a regular file")


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    check_plain(path)
    try:
        return parse_object(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None


def parse_object(text: bytes) -> dict[str, Any]:
    """The object that ``text`` holds."""
    try:
        value = json.loads(text.decode("utf-8"), parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("nested too deep") from None
    except ValueError as error:
        raise ValueError(f"not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"found {type(value).__name__}; expected an object")
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant:.40} is not a number")


def _finite(text: str) -> float:
    return value if math.isfinite(value := float(text)) else _refuse(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} appears twice")
    return value


MAX_VALUES = 100_000  # in a recipe, with aliases expanded
MAX_DEPTH = 100  # collections within one another
OTHER_BASES = re.compile(r"[-+]?0[0-7_]+$|.*:")  # of numbers that look like decimal ones, times or ratios
TAGS = {
    f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "timestamp", "seq", "map", "merge")
}


class _Loader(yaml.SafeLoader):
    """YAML in which 1e-3 is a number, as everywhere else, and a repeated key is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in keys:
                    raise yaml.MarkedYAMLError(problem=f"{key.value!r} is set twice", problem_mark=key.start_mark)
                keys.add(key.value)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Writes what ``_Loader`` reads: a text that looks like such a number is quoted, rare line ends are escaped."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """In other quotes, these line ends would be read as ordinary ones."""
        style = '"' if any(end in data for end in "\x85\u2028\u2029") else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)


_Dumper.add_representer(str, _Dumper.represent_str)

for _class in (_Loader, _Dumper):
    _class.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
    )


def read_yaml(text: str) -> Any:
    """The content of ``text``; if it is not valid, a ValueError says what is wrong."""
    try:
        loader = _Loader(text)  # refuses control characters
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, [], count(1))  # before values are made: a few lines of aliases can expand to gigabytes
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError(f"nested too deep, more than {MAX_DEPTH}") from None


def _check(node: yaml.Node, around: list[yaml.Node], values: Iterator[int]) -> None:
    """Check a node within those ``around`` it, and what is in it; ``values`` counts, with aliases expanded."""
    problem = ""
    if next(values) > MAX_VALUES:
        problem = f"more than {MAX_VALUES:,} values, counting those of an alias (*name) wherever it is used"
    elif node in around:
        problem = "an alias is used within its own value"
    elif len(around) == MAX_DEPTH:
        problem = f"nested too deep, more than {MAX_DEPTH}"
    elif node.tag not in TAGS:
        problem = f"found the tag {node.tag.replace('tag:yaml.org,2002:', '!!')}; recipes may not have tags"
    elif isinstance(node, yaml.ScalarNode) and any("\ud800" <= letter <= "\udfff" for letter in node.value):
        problem = f"found {node.value!r}, with half a surrogate pair, which is no character"
    elif node.tag.endswith((":int", ":float")) and OTHER_BASES.match(node.value):
        problem = f"found {node.value}, in YAML a number of base 8 or 60; write a decimal number, or a text in quotes"
    if problem:
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    if isinstance(node, yaml.CollectionNode):
        for part in [part for _, part in node.value] if isinstance(node, yaml.MappingNode) else node.value:
            _check(part, [*around, node], values)


def yaml_options(options: Iterable[str], form: str) -> dict[str, Any]:
    """The values, as YAML, of options of a ``form`` such as ``--set key.path=value``, by their keys."""
    flag, values = form.partition(" ")[0], {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or not key:
            raise RecipeError(f"found {flag} {option!r}, expected {form}")
        try:
            values[key.strip()] = read_yaml(value)
        except ValueError as error:
            raise RecipeError(f"the value of {flag} {option!r} is not valid YAML: {error}", key=key) from None
    return values


def as_yaml(settings: dict[str, Any]) -> str:
    """``settings`` as YAML, in their order."""
    return yaml.dump(settings, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
