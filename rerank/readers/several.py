"""Readers as recipes describe them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rerank.base.errors import RecipeError
from rerank.base.registry import build
from rerank.readers.base import Lists, Order, Problem, Reader, Scores, check_choice, readers
from rerank.readers.streams import PathLike, Writable
from rerank.storage.documents import read_yaml

FORMS = "openai", "parallel", "preferences"  # of JSON, of which one may think as formats


@dataclass(frozen=True)
class CostReader(Reader):
    """Lists of the reader ``inner`` with their base scores negated, so that higher is better; written with their own
    sign.
    """

    inner: Reader

    @property
    def within(self) -> tuple[Reader, ...]:
        return (self.inner,)

    def blocks(self, path: PathLike) -> Iterator[Lists]:
        return map(_negated, self.inner.knowing(self.known, normal=self.normal).blocks(path))

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """New scores are written as costs too."""
        self.inner.write(out, _negated(nbest), order, None if scores is None else 0.0 - scores)

    def write_bad(self, out: Writable, bad: Problem, like: Lists | None) -> None:
        self.inner.write_bad(out, bad, like)


def _negated(nbest: Lists) -> Lists:
    """A list with its base scores negated; 0 stays 0."""
    scores = nbest.scores.copy()
    scores[:, nbest.column] = 0.0 - scores[:, nbest.column]
    return nbest.changed(scores=scores)


def make_reader(spec: Any, key: str = "data.reader") -> Reader:
    """The reader described by a name, or by a mapping of a name and options (or its YAML).

    All readers have the option ``scores``: "score" (higher is better) or "cost". A reader may define its own.
    """
    if isinstance(spec, Reader):
        return spec
    settings = settings_of(spec, key)
    if (name := settings.get("name")) in FORMS:
        raise RecipeError(f"found {name!r}, a form of JSON; expected jsonl, which reads it", key=f"{key}.name")
    sign = settings.pop("scores", None)
    reader = build(readers, settings, key)
    if sign is None:
        return reader
    if hasattr(reader, "scores"):
        return build(readers, settings | {"scores": sign}, key)
    check_choice(f"{key}.scores", sign, ("score", "cost"))
    return CostReader(reader) if sign == "cost" else reader


def settings_of(spec: Any, key: str) -> dict[str, Any]:
    """A reader's name and options, of its name, a mapping of both, or its YAML."""
    if isinstance(spec, str) and spec.lstrip().startswith("{"):
        try:
            spec = read_yaml(spec)
        except ValueError as error:
            raise RecipeError(f"found {spec!r}, which is not valid YAML: {error}", key=key) from None
    if not isinstance(spec, str | Mapping):
        raise RecipeError(f"found {spec!r}; expected a reader, as {{name: moses}}", key=key)
    return {"name": spec} if isinstance(spec, str) else dict(spec)


def _within(spec: Any) -> Iterator[dict[str, Any]]:
    """The settings of the reader that ``spec`` describes and of all that it reads through; none of them is made."""
    settings = settings_of(spec, "data.reader")
    yield settings
    inner = settings.get("of", ())
    for setting in inner if isinstance(inner, list | tuple) else [inner]:
        yield from _within(setting)


def reader_names(spec: Any) -> Iterator[str]:
    """The names of the reader that ``spec`` describes and of all that it reads through."""
    return (str(settings.get("name", "")) for settings in _within(spec))


def says_scores(spec: Any) -> bool:
    """Whether the description of a reader, or of one that it reads through, says that scores are scores, or costs."""
    return any("scores" in settings for settings in _within(spec))


def learns_from(name: str, spec: Any) -> bool:
    """Whether the description of a reader, or of one that it reads through, names a column to learn from."""
    for settings in _within(spec):
        dense, roles = settings.get("dense"), settings.get("roles")
        asked = settings.get("base") == name or (isinstance(dense, list | tuple) and name in dense)
        if asked or (isinstance(roles, Mapping) and roles.get(name) in ("column", "base")):
            return True
    return False


def drops_duplicates(reader: Reader) -> bool:
    """Whether a reader, or one that it reads through, drops duplicates."""
    return getattr(reader, "duplicates", "keep") == "drop" or any(map(drops_duplicates, reader.within))


def format_of(reader: Reader) -> Reader:
    """The reader that knows the format: ``reader``, or the first that it reads through."""
    return format_of(reader.within[0]) if reader.within else reader
