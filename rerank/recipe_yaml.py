"""YAML as recipes are written in it: read strictly, written so that reading gives the same."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import yaml

from rerank.errors import RecipeError

MOST_VALUES = 100_000  # of a recipe, aliases written out


class _Loader(yaml.SafeLoader):
    """YAML in which 1e-3 is a number, as everywhere else, and a key that stands twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """See ``yaml.SafeLoader``."""
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in seen:
                    raise yaml.MarkedYAMLError(problem=f"{key.value!r} is set twice", problem_mark=key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Writes what ``_Loader`` reads: a text that looks like such a number is quoted, rare line ends are escaped."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """See ``yaml.SafeDumper``; quoted otherwise, these line ends would be read as plain ones."""
        style = '"' if any(end in data for end in "\x85\u2028\u2029") else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)


_Dumper.add_representer(str, _Dumper.represent_str)

for _class in (_Loader, _Dumper):
    _class.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
    )


def read_yaml(text: str) -> Any:
    """The content of ``text``; a ValueError says what is wrong with it."""
    try:
        found = yaml.load(text, _Loader)
        if _size(found, {}) > MOST_VALUES:
            raise ValueError(f"aliases (*name) make more than {MOST_VALUES:,} values of it")
    except RecursionError:
        raise ValueError("nested too deep, or an alias stands within what it means") from None
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    return found


def yaml_value(text: str, what: str) -> Any:
    """The value that ``text`` holds as YAML; a RecipeError calls it ``what``."""
    try:
        return read_yaml(text)
    except ValueError as error:
        raise RecipeError(f"the value of {what} is not valid YAML: {error}") from None


def as_yaml(settings: dict[str, Any]) -> str:
    """``settings`` as YAML, in their order."""
    return yaml.dump(settings, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def _size(value: Any, known: dict[int, int]) -> int:
    """The number of values in ``value``, what aliases mean counted wherever they stand; ``known`` by identity."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(part, known) for part in inner)
    return known[id(value)]
