"""The score columns that a model was trained with."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from rerank.base.errors import RecipeError

_KEYS = "scores", "base_score", "score_sources"  # what a table says about its columns
MINMAX = "minmax_"  # how columns begin whose numbers lie from 0 to 1 in every list


@dataclass(frozen=True)
class ScoreColumns:
    """Columns by name, and where they come from.

    names: in the order of the first training list; base: the name of the base score's column, None if unknown; sources:
    the columns that each source provides; a source is a format, the file of joined scores or a system.
    """

    names: tuple[str, ...]
    base: str | None = None
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @staticmethod
    def of_table(about: Mapping[str, Any]) -> "ScoreColumns | None":
        """The columns that ``as_dict`` has stored in what a table says about itself; None if there are none."""
        names, base, sources = (about.get(key) for key in _KEYS)
        if not names or base is None:
            return None
        return ScoreColumns(tuple(names), base, {source: tuple(columns) for source, columns in (sources or {}).items()})

    def as_dict(self) -> dict[str, Any]:
        """A table of them."""
        sources = {source: list(names) for source, names in self.sources.items()}
        return dict(zip(_KEYS, (list(self.names), self.base, sources), strict=True))

    def of_source(self, source: str) -> "ScoreColumns | None":
        """The columns that a source provides, None if the source is unknown."""
        return ScoreColumns(self.sources[source]) if source in self.sources else None

    def without(self, names: Collection[str]) -> "ScoreColumns":
        """The columns except for those with these names."""

        def left(columns: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(name for name in columns if name not in names)

        sources = {source: left(columns) for source, columns in self.sources.items()}
        return ScoreColumns(left(self.names), None if self.base in names else self.base, sources)


def check_names(found: object, key: str) -> None:
    """Refuse an option ``key`` that is not a list of names, each of them once."""
    names = found if isinstance(found, list | tuple) else (None,)
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise RecipeError(f"found {found!r}; expected a list of names, each of them once", key=key)
