"""Readers of lists, as recipes describe them, and what happens to lists that cannot be used.

docs/formats.md has a table of what a file can hold, with what becomes of it and the reason that is counted.

A bad list is an error or, with ``on_bad_list="skip"``, is counted by reason, and reading continues at the next list.
A bad candidate is an error too, or is left out of its list and counted, together with the scores joined to it.
What the table calls an error is one under both policies. A skipped list uses up its gold tree (its source, its
references), so these stay aligned; if damage has merged two lists into one, the counts differ at the end and that is
an error. Where lists are written, a list without candidates takes the place of a bad one: see ``Reader.write_bad``.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np

from rerank.base.encoding import encoded, excerpt
from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import Registry, build
from rerank.data.trees import TRACE
from rerank.readers.detection import advice_on, holds_judgements
from rerank.readers.lists import Candidate, Lists, one_by_one
from rerank.readers.problems import OnBadList, Problem, SkipCount, check_choice, filter_usable, line_id
from rerank.storage.documents import read_yaml
from rerank.storage.streams import PathLike, Writable, foreign, split_paths, start_alone

__all__ = [
    "LARGEST_GAP", "TRACE", "Candidate", "Lists", "OnBadList", "Order", "Problem", "Reader", "Scores",
    "SkipCount", "check_choice", "excerpt", "filter_usable", "line_id", "lists_of", "readers",
]  # fmt: skip

_COLUMN_KEYS = "scores", "base_score", "score_sources"  # what a table says about its columns
MINMAX = "minmax_"  # how columns begin whose numbers lie from 0 to 1 in every list
FORMS = "openai", "parallel", "preferences"  # of JSON, of which one may think as formats

Order = Sequence[int] | None  # the places of candidates, best first; None: all, in their own order
Scores = np.ndarray | None  # float64 [N]: new scores of a list's candidates; None: they keep their own


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
        names, base, sources = (about.get(key) for key in _COLUMN_KEYS)
        if not names or base is None:
            return None
        return ScoreColumns(tuple(names), base, {source: tuple(columns) for source, columns in (sources or {}).items()})

    def as_dict(self) -> dict[str, Any]:
        """A table of them."""
        sources = {source: list(names) for source, names in self.sources.items()}
        return dict(zip(_COLUMN_KEYS, (list(self.names), self.base, sources), strict=True))

    def of_source(self, source: str) -> "ScoreColumns | None":
        """The columns that a source provides, None if the source is unknown."""
        return ScoreColumns(self.sources[source]) if source in self.sources else None

    def without(self, names: Collection[str]) -> "ScoreColumns":
        """The columns except for those with these names."""
        every = [self.names, *self.sources.values()]
        rest, *of_sources = (tuple(name for name in columns if name not in names) for columns in every)
        sources = dict(zip(self.sources, of_sources, strict=True))
        return ScoreColumns(rest, None if self.base in names else self.base, sources)


def check_names(value: object, key: str) -> None:
    """Refuse an option ``key`` that is not a list of names, each of them once."""
    names = value if isinstance(value, list | tuple) else (None,)
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise RecipeError(f"found {value!r}; expected a list of names, each of them once", key=key)


class Reader(ABC):
    """A format of N-best lists. A reader is a frozen dataclass; its fields are the options a recipe can set.

    ``model_columns`` are the score columns that its lists should have, if that is known before a file is read;
    ``normal`` tells whether words are compared in normal form (see ``trees``). The properties hold for most formats; a
    format where they do not, or where they are options, defines its own.
    """

    @property
    def within(self) -> "tuple[Reader, ...]":
        """The readers that this one reads through."""
        return ()

    @property
    def every(self) -> "Iterator[Reader]":
        """This reader, and all that it reads through."""
        yield self
        for reader in self.within:
            yield from reader.every

    @property
    def files(self) -> int | None:
        """The number of files that a path names, separated by commas; None: any number."""
        return self.within[0].files if self.within else 1

    def paths(self, path: PathLike) -> list[str]:
        """The files that a path names, all of which are read."""
        if self.within:
            return self.within[0].paths(path)
        return [os.fspath(path)] if self.files == 1 else split_paths(path)

    def of_others(self) -> Self:
        """The reader for lists of others than a model's training lists, of which nobody knows what is right.

        Raises
        ------
        RecipeError: it reads further files, which belong to the training lists.
        """
        return self

    @property
    def first_id(self) -> int:
        """The number of the first list."""
        return min((reader.first_id for reader in self.within), default=0)

    @property
    def ids(self) -> str:
        """Whether the lists have the ids of the "file" or are numbered: "ordinal"."""
        return "file"

    @property
    def order(self) -> str:
        """The order of lists: by "id", that of the inputs, or one of the "file"."""
        return "file" if any(reader.order == "file" for reader in self.within) else "id"

    def offers(self, option: str) -> bool:
        """Whether this reader, or one that it reads through, has an option."""
        return any(option in getattr(reader, "__dataclass_fields__", ()) for reader in self.every)

    # Options without a default, with which a file of unknown format is tried. A reader that needs some may read any
    # file, so it counts only where it finds base scores.
    trial: ClassVar[Mapping[str, Any]] = {}
    holds: ClassVar[str] = ""  # what its lists hold: "trees" or "texts"; others are not told apart
    use: ClassVar[str] = ""  # "speech": its texts are transcripts; "search": names of documents; others say nothing
    file_options: ClassVar[tuple[str, ...]] = ()  # options that say what further files of a path hold
    json: ClassVar[str] = (
        ""  # the JSON of this format: "numbers" by names, by names, or translations with their "costs"
    )
    bounded: ClassVar[bool] = False  # whether its lists have no more than a certain number of candidates each
    general: ClassVar[bool] = False  # whether it reads files of other formats too, whose readers are then the advice

    model_columns: ClassVar[ScoreColumns | None] = None  # for the class; ``for_columns`` gives a reader its own
    normal: ClassVar[bool] = False
    live: ClassVar[bool] = False  # whether a model answers lists as they come, which says what they hold

    def for_columns(self, columns: ScoreColumns | None, *, normal: bool = False, live: bool = False) -> Self:
        """The reader with the score columns to look for (its own options take precedence), how to compare, and
        whether a model is ``live``."""
        reader = copy(self)
        vars(reader).update(model_columns=columns, normal=normal, live=live)
        return reader

    @abstractmethod
    def blocks(self, path: PathLike) -> Iterator[Lists]:
        """The lists of ``path`` ("-": standard input) in order, as many at a time as are read at once, bad ones in
        their places; a DataError where the stream itself cannot be read.
        """

    def read(self, path: PathLike) -> Iterator[Lists]:
        """``blocks``, list by list."""
        return one_by_one(self.blocks(path))

    def parse(self, data: bytes) -> list[Lists]:
        """The lists of a file's contents, one by one."""
        token = start_alone.set(data)
        try:
            return list(self.read(""))
        finally:
            start_alone.reset(token)

    @abstractmethod
    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """Write the candidates of ``nbest`` that ``order`` names in this format. New ``scores``, which are indexed like
        the list and not like ``order``, precede the old ones.
        """

    def write_bad(self, out: Writable, bad: Problem, like: Lists | None) -> None:
        """Write a list without candidates in place of a bad one, so that those after it keep their places.

        like: a good list of the same file, which shows the variant of the format; None if there is none.
        """
        if self.within:
            self.within[0].write_bad(out, bad, like)
            return
        form = like.form if like is not None else ""
        self.write(out, Lists.one(bad.name, bad.path or "", bad.line or 0, [], [], np.zeros((0, 1)), form=form))


LARGEST_GAP = 10_000  # lists left out in a row; whole numbers that are farther apart are no numbers of inputs
readers: Registry[type[Reader]] = Registry("reader", Reader)


def lists_of(reader: Reader, path: PathLike, items: Iterable[Lists] | None = None) -> Iterator[Lists]:
    """``reader.blocks`` (or ``items``, which are these) where a file that starts with a list that is bad, or an error,
    is looked into: the message says what the file seems to be.
    """
    items = reader.blocks(path) if items is None else items
    lists, has_advice = chain.from_iterable(map(only_utf8, items)), False
    try:
        for nbest in lists:
            if not has_advice and (problem := nbest.problem) is not None:
                has_advice, problem.advice = True, advice_on(reader, readers, nbest.path)
            yield nbest
            if len(nbest):
                break
    except DataError as error:
        if not has_advice and error.path and (other := advice_on(reader, readers, error.path)):
            message = f"{error.message}; {other}"
            raise DataError(message, path=error.path, line=error.line, list_id=error.list_id) from None
        raise
    yield from lists


def only_utf8(lists: Lists) -> Iterator[Lists]:
    """The lists without the candidates that are not UTF-8; a list of which anything else is not is bad."""
    sources = [source or b"" for source in lists.side("source")]
    beside = b"\n".join([*map(encoded, lists.ids), *sources, *chain(*lists.side("references"))])
    message, texts = _utf8_fault(beside), _utf8_fault(b"\n".join(lists.texts))
    if message is None is texts:
        yield lists
    elif lists.list_count > 1:
        yield from chain.from_iterable(map(only_utf8, lists.each()))
    elif message is not None:
        yield lists.leave_out(Problem("encoding", message), lists.size)
    else:
        messages = enumerate(map(_utf8_fault, lists.texts))
        yield lists.without({i: Problem("encoding", message) for i, message in messages if message is not None})


def _utf8_fault(text: bytes) -> str | None:
    """The message about a text if it is not UTF-8. Half a surrogate pair, which JSON can hold, is."""
    try:
        text.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        return foreign(error)
    return None


def count_usable(lists: Lists, count: SkipCount) -> Lists | None:
    """The list, or lists, if they can be used; ``count`` knows of them either way, and of one that is missing."""
    if lists.problem is not None:
        count.bad(lists.problem)
        return None
    if lists.missing is None:
        count.good(lists)
    else:
        count.bad(lists.fault(lists.missing))
    return lists


class ListWriter:
    """Writes lists in the format of ``reader``. Bad ones take the form of the first that is not bad: those before it
    wait for it."""

    def __init__(self, out: Writable, reader: Reader) -> None:
        self._out, self._reader = out, reader
        self._like: Lists | None = None
        self._waiting: list[Problem] = []

    def good(self, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """Write a list; the parameters are those of ``Reader.write``."""
        self.copy(b"", nbest)
        self._reader.write(self._out, nbest, order, scores)

    def copy(self, data: bytes, like: Lists) -> None:
        """Write lists that are in this format already; like: the first good one of those since the beginning."""
        self._like = like if self._like is None else self._like
        self.finish()
        self._out.write(data)

    def bad(self, bad: Problem) -> None:
        """Write a list without candidates in place of a bad one."""
        self._waiting.append(bad)
        if self._like is not None:
            self.finish()

    def finish(self) -> None:
        """Write the bad lists that are waiting."""
        for bad in self._waiting:
            self._reader.write_bad(self._out, bad, self._like)
        self._waiting.clear()


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
        return map(_negate, self.inner.for_columns(self.model_columns, normal=self.normal, live=self.live).blocks(path))

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """New scores are written as costs too."""
        self.inner.write(out, _negate(nbest), order, None if scores is None else 0.0 - scores)


def _negate(nbest: Lists) -> Lists:
    """A list with its base scores negated; 0 stays 0."""
    scores = nbest.scores.copy()
    scores[:, nbest.column] = 0.0 - scores[:, nbest.column]
    return nbest.replace(scores=scores)


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


def with_judgements(settings: dict[str, Any], references: Sequence[str]) -> tuple[dict[str, Any], Sequence[str]]:
    """A reader's settings and files of references. Where its lists are judged in a file of judgements, such a file is
    one of its options, unless it names another, and no file of references. Raises DataError: there are several."""
    takes_qrels = references and settings.get("qrels") is None and make_reader(settings).offers("qrels")
    if not takes_qrels or not holds_judgements(references[0]):
        return settings, references
    if others := set(references) - {references[0]}:
        message = f"found {len(others) + 1} files of what is right; expected one of judgements (qrels), for all lists"
        raise DataError(message, path=references[0])
    return {**settings, "qrels": references[0]}, ()


def settings_within(spec: Any) -> Iterator[dict[str, Any]]:
    """The settings of the reader that ``spec`` describes and of all that it reads through; none of them is made."""
    settings = settings_of(spec, "data.reader")
    yield settings
    inner = settings.get("of", ())
    for setting in inner if isinstance(inner, list | tuple) else [inner]:
        yield from settings_within(setting)


def learns_from(name: str, spec: Any) -> bool:
    """Whether the description of a reader, or of one that it reads through, names a column to learn from."""
    for settings in settings_within(spec):
        dense, roles = settings.get("dense"), settings.get("roles")
        is_column = settings.get("base") == name or (isinstance(dense, list | tuple) and name in dense)
        if is_column or (isinstance(roles, Mapping) and roles.get(name) in ("column", "base")):
            return True
    return False


def format_of(reader: Reader) -> Reader:
    """The reader that knows the format: ``reader``, or the first that it reads through."""
    return next(one for one in reader.every if not one.within)
