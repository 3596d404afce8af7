"""YAML for recipes: read strictly, and written so that reading it gives the same settings."""

import re
from collections.abc import Hashable
from typing import Any

import yaml

from rerank.base.errors import RecipeError

MOST_VALUES = 100_000  # in a recipe, with aliases expanded
DEEPEST = 100  # collections within one another
TAGS = {
    f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "timestamp", "seq", "map", "merge")
}


class _Loader(yaml.SafeLoader):
    """YAML in which 1e-3 is a number, as everywhere else, and a repeated key is an error.

    Size, depth and tags are checked while the text is composed: a few lines of aliases can expand to gigabytes, and
    merge keys (<<) and some tags (!!pairs) do expand them when values are constructed.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._values = 0
        self._sizes: dict[int, int] = {}  # number of values in a node, with aliases expanded, by its identity

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event, before = self.peek_event(), self._values  # type: ignore[no-untyped-call]
        alias = isinstance(event, yaml.AliasEvent)
        self._depth += 1
        if self._depth > DEEPEST:
            raise yaml.MarkedYAMLError(problem=f"nested too deep, more than {DEEPEST}", problem_mark=event.start_mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if alias and id(node) not in self._sizes:
            raise yaml.MarkedYAMLError(
                problem=f"the alias *{event.anchor} is used within its own value", problem_mark=event.start_mark
            )
        key = index is None and parent is not None
        self._values += self._sizes[id(node)] if alias else not key
        if self._values > MOST_VALUES:
            problem = f"more than {MOST_VALUES:,} values, counting those of an alias (*name) wherever it is used"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        if node is not None and not alias:
            self._sizes[id(node)] = self._values - before
            if node.tag not in TAGS:
                shown = node.tag.replace("tag:yaml.org,2002:", "!!")
                raise yaml.MarkedYAMLError(
                    problem=f"found the tag {shown}; recipes may not have tags", problem_mark=event.start_mark
                )
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
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
        """See ``yaml.SafeDumper``; in other quotes, these line ends would be read as ordinary ones."""
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
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def yaml_value(text: str, what: str) -> Any:
    """The value that ``text`` holds as YAML; a RecipeError calls it ``what``."""
    try:
        return read_yaml(text)
    except ValueError as error:
        raise RecipeError(f"the value of {what} is not valid YAML: {error}") from None


def as_yaml(settings: dict[str, Any]) -> str:
    """``settings`` as YAML, in their order."""
    return yaml.dump(settings, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
