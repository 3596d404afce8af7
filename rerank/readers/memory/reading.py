"""``rerank.read``: lists from files, with what other files hold for them, from data frames and from dicts.

Data frames may be of any library (pandas, polars, pyarrow and what else narwhals knows): a row is a candidate, and rows
with the same value in a column are those of one list, wherever they stand.
"""

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any, TypedDict, Unpack

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.data.answers import check_rule
from rerank.readers import detection
from rerank.readers.detection import ACCOUNT_LISTS, Account, with_candidates
from rerank.readers.lists import GAIN, Lists
from rerank.readers.memory.nbest import (
    NBest,
    ObjectLists,
    as_list,
    check_nbest,
    files_only,
    iterate,
    nbest_rows,
    nbests,
    row_of,
    with_gains,
)
from rerank.readers.reader import (
    OnBadList,
    Reader,
    ScoreColumns,
    check_choice,
    check_names,
    format_of,
    make_reader,
    readers,
    settings_of,
    with_judgements,
)
from rerank.readers.texts.answers import with_answers
from rerank.readers.texts.forms import as_number
from rerank.readers.texts.json_lines import JsonReader
from rerank.readers.texts.jsonl import EXTRA, JsonlReader, is_table, table
from rerank.readers.texts.roles import parse_roles, with_option, with_roles
from rerank.readers.texts.text_files import lists_of_texts
from rerank.readers.texts.text_list import SCORE
from rerank.readers.trees.charniak import ParseReader
from rerank.readers.trees.treebank import lists_of_trees, treebank_files
from rerank.storage.places import shipped_files
from rerank.storage.streams import PathLike, check_encoding, read_in, read_once


class FrameNames(TypedDict, total=False):
    """The columns of a data frame, by what they hold.

    | key              | the column |
    |------------------|------------|
    | group            | what the rows of a list have in common, such as the prompt; becomes the list's id |
    | text, or tree    | the candidates: texts, or parses in brackets |
    | score            | the base score, the generator's own; without it all base scores are 0 |
    | gain             | how good a candidate is: numbers (float64: whole ones up to 2^53), or true and false |
    | source           | the input, the same in all rows of a list |
    | columns          | several: the numbers to learn from |
    | answer           | what each text comes to, missing where it has none; or the rule that finds it in the text |
    | chosen, rejected | in place of text or tree: a row is a list of what was chosen and of what was rejected |
    """

    group: str
    text: str
    tree: str
    score: str
    gain: str
    source: str
    columns: Sequence[str]
    answer: str
    chosen: str
    rejected: str


class FrameColumns(FrameNames, total=False):
    """``FrameNames``, and the column of what is right, the same in all rows of a list: a text, a list of texts, or a
    gold tree.
    """

    references: str


def check_keys(function: str, names: Mapping[str, Any]) -> None:
    """Refuse keyword arguments that are not those of a data frame, as Python does, with a TypeError."""
    for name in names:
        if name not in FrameColumns.__annotations__:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def is_frame(value: Any) -> bool:
    """Whether it is a data frame, or something like one. No library is imported to tell."""
    kind = type(value)
    return hasattr(kind, "columns") and (hasattr(kind, "__dataframe__") or hasattr(kind, "schema"))


@dataclass(frozen=True)
class FrameLists:
    """The lists of a data frame, which begin again whenever they are gone through.

    frame: a ``narwhals.DataFrame``; names: its columns, see ``FrameNames``; model_columns: the score columns by
    the names that a model has for them; answer: the rule for answers, where no column holds them.
    """

    frame: Any
    names: Mapping[str, Any]
    model_columns: ScoreColumns | None = None
    answer: str | None = None

    @staticmethod
    def of(
        source: Any, names: Mapping[str, Any], model_columns: ScoreColumns | None = None, *, complete: bool = True
    ) -> "FrameLists":
        """A data frame of any library as lists; one that is lazy is collected.

        complete: whether ``names`` say all; if not, the base score may have the name that a model has for it.
        """
        try:
            import narwhals
        except ImportError:
            raise DataError(f"data frames need narwhals: {EXTRA}") from None
        try:
            frame = narwhals.from_native(source)
            frame = frame.collect() if isinstance(frame, narwhals.LazyFrame) else frame
            present = list(frame.columns)
        except TypeError:
            message = f"found {type(source).__name__}; expected a data frame, as of pandas, polars or pyarrow"
            raise DataError(message) from None
        except narwhals.exceptions.NarwhalsError as error:
            raise DataError(f"a data frame that cannot be used: {error}") from None
        names = dict(names)
        base = model_columns.base if model_columns and not complete and "score" not in names else None
        if base and (base != SCORE or base in present):
            names["score"] = base
        if "columns" in names:
            columns = names["columns"]
            names["columns"] = columns if isinstance(columns, str) else list(iterate(columns, "names", "columns"))
            check_names(names["columns"], "columns")
        rule = None if names.get("answer") in present else names.pop("answer", None)
        _check(names, present, named=model_columns is not None)
        return FrameLists(frame, names, model_columns, check_rule(rule))

    @property
    def pairs(self) -> ObjectLists | None:
        """The lists, where a row is what was chosen and what was rejected; else None."""
        if "chosen" not in self.names:
            return None
        keys = {"prompt": "source", "chosen": "chosen", "rejected": "rejected"}
        columns = {key: self._column(self.names[name]) for key, name in keys.items() if name in self.names}
        if "group" in self.names:
            columns["id"] = list(map(str, self._groups()))
        rows = zip(*columns.values(), strict=True)
        return ObjectLists([dict(zip(columns, row, strict=True)) for row in rows], JsonlReader())

    def __iter__(self) -> Iterator[NBest]:
        """The lists one by one."""
        if (pairs := self.pairs) is not None:
            yield from pairs
            return
        kind, numbers = "tree" if "tree" in self.names else "text", self.names.get("columns", ())
        columns = self.model_columns or ScoreColumns((SCORE, *numbers), SCORE)
        of_key = {key: self._column(name, numeric=key in (SCORE, GAIN)) for key, name in self.names.items()
                  if key != "columns"}  # fmt: skip
        of_key["columns"] = [
            dict(zip(numbers, row, strict=True))
            for row in zip(*(self._column(name, numeric=True) for name in numbers), strict=True)
        ] or [{}] * len(self.frame)
        keys = [key for key in (kind, SCORE, "columns", "answer") if key in of_key]
        every = [dict(zip(keys, row, strict=True)) for row in zip(*(of_key[key] for key in keys), strict=True)]
        for name, rows in self.rows_by_list.items():
            sides = dict[str, Any]()  # what all rows of a list have
            for key in (key for key in ("source", "references") if key in of_key):
                values = (of_key[key][row] for row in rows)
                first, *others = (list(value) if isinstance(value, np.ndarray) else value for value in values)
                if unlike := [value for value in others if value != first]:
                    message = f"found {first!r} and {unlike[0]!r} in the column {self.names[key]!r}; expected one {key}"
                    raise DataError(message, list_id=name)
                sides[key] = first
            right = sides.get("references")
            gains = [of_key[GAIN][row] for row in rows] if GAIN in of_key else None
            lists = as_list([every[row] for row in rows], columns, name=name, texts=kind == "text")
            candidates = with_answers(lists, self.answer).candidates
            yield NBest(name, candidates, sides.get("source"), () if right is None else right, gains)

    @cached_property
    def rows_by_list(self) -> dict[str, list[int]]:
        """The rows of every list, in their order, by its name."""
        rows = dict[str, list[int]]()
        for row, group in enumerate(self._groups()):
            rows.setdefault(str(group), []).append(row)
        return rows

    def unused(self) -> list[str]:
        """The columns of numbers that hold nothing of the lists."""
        used = {*self.names.get("columns", ()), *(name for key, name in self.names.items() if key != "columns")}
        return [name for name, kind in self.frame.schema.items() if kind.is_numeric() and name not in used]

    def with_columns(self, columns: Mapping[str, np.ndarray]) -> Any:
        """The data frame in its own library with further columns, whose names it must not have yet."""
        import narwhals

        series = []
        for name, values in columns.items():
            if name in self.frame.columns:
                raise DataError(f"the data frame has a column {name!r} already; choose other names, as into=('a', 'b')")
            series.append(narwhals.new_series(name, values, backend=self.frame.implementation))
        return self.frame.with_columns(*series).to_native()

    def _groups(self) -> list[Any]:
        """The group of every row; all of one type, so that no two lists have one name."""
        groups = self._column(self.names["group"])
        for row, group in enumerate(groups):
            kind, first = type(group), type(groups[0])
            if group is None or group != group or kind is not first or kind.__hash__ is None:
                message = f"found {group!r}, {kind.__name__}; expected a name or a number, as str or int in all rows"
                raise DataError(f"row {row} (from 0) of the column {self.names['group']!r}: {message}")
        return groups

    def _column(self, name: str, *, numeric: bool = False) -> list[Any]:
        """The values of a column, None where one is missing; numeric: numbers, which may be written as texts."""
        series = self.frame[name]
        try:
            values, missing = series.to_list(), np.asarray(series.is_null().to_numpy(), bool).tolist()
        except UnicodeDecodeError as error:
            raise DataError(f"the column {name!r} holds {error.object[:40]!r}, which is not UTF-8") from None
        values = [None if gone else value for value, gone in zip(values, missing, strict=True)]
        return list(map(as_number, values)) if numeric and not series.dtype.is_numeric() else values


def _check(names: Mapping[str, Any], present: Sequence[str], *, named: bool) -> None:
    """Refuse names of columns that are not there, and those that leave open what the candidates are.

    named: whether a model has named the columns to learn from.
    """
    single = {key: name for key, name in names.items() if key != "columns"}
    pairs = {"chosen", "rejected"} & single.keys()
    required = ("chosen", "rejected") if pairs else ("group", *(() if {"text", "tree"} & single.keys() else ("text",)))
    columns = ", ".join(map(repr, present)) or "none"
    if missing := " and ".join(f"{key}=" for key in required if key not in single):
        raise DataError(f"a data frame needs {missing}, the names of columns; it has {columns}")
    if pairs and (clash := {"text", "tree", "score", "gain", "columns", "references"} & names.keys()):
        raise DataError(f"found {min(clash)}= beside chosen= and rejected=; a row is a candidate, or a pair")
    if {"text", "tree"} <= names.keys():
        raise DataError("found text= and tree=; expected one of them")
    for name in (*single.values(), *names.get("columns", ())):
        if name not in present:
            near = difflib.get_close_matches(str(name), map(str, present), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {columns}"
            raise DataError(f"the data frame has no column {name!r}; {hint}")
    for name in names.get("columns", ()):
        if key := next((key for key in (SCORE, GAIN) if name in {single.get(key), None if named else key}), ""):
            message = f"the column {name!r} is, or is called like, the {key}: leave it out of columns, or rename it"
            raise DataError(message)


@dataclass(frozen=True)
class ListFile:
    """The lists of a file; going through it reads it, one list at a time, from the start."""

    path: str
    reader: Reader
    settings: Mapping[str, Any]  # of the reader, as a recipe has them
    references: tuple[str, ...] | None
    sources: str | None
    form: str
    on_bad_list: OnBadList
    encoding: str | None = None
    answer: str | None = None  # the rule for answers

    def __iter__(self) -> Iterator[NBest]:
        yield from nbests(self.blocks(), self.on_bad_list, self.answer)

    def first_items(self) -> list[Lists]:
        """The first usable lists, as many as an account looks at; none of what can be read only once."""
        if any(map(read_once, self.files)):
            return []
        return list(islice(with_candidates(self.blocks()), ACCOUNT_LISTS))

    @property
    def account(self) -> Account | None:
        """The account of the lists; None where none has candidates, or they can be read only once."""
        return Account.of(self.path, self.first_items(), str(self.settings["name"]))

    @property
    def trees(self) -> bool:
        """Whether the lists are lists of trees."""
        return isinstance(format_of(self.reader), ParseReader)

    @property
    def files(self) -> list[str]:
        """All files that are read."""
        others = [*(self.references or ()), *([] if self.sources is None else [self.sources])]
        return [*self.reader.paths(self.path), *(treebank_files(*others) if self.trees else others)]

    def blocks(self, columns: ScoreColumns | None = None, normal: bool = False) -> Iterator[Lists]:
        """The lists with their sources and references, bad ones in their places, in blocks where the format gives some
        and no other file holds anything for them; columns, normal: see ``Reader``."""
        reader = self.reader.for_columns(columns, normal=normal)
        if self.trees:
            gold = self.references and treebank_files(*self.references)
            return read_in(self.encoding, lists_of_trees(reader, self.path, gold))
        files: dict[str, Any] = {"references": self.references, "sources": self.sources, "form": self.form}
        lists = lists_of_texts(reader, self.path, **files)
        every = (nbest if nbest.missing is None else nbest.leave_out(nbest.missing) for nbest in lists)
        return read_in(self.encoding, every)


def read(
    given: Any,
    format: str | Mapping[str, Any] | None = None,
    *,
    references: Any = None,
    sources: PathLike | None = None,
    form: str = "auto",
    encoding: str | None = None,
    on_bad_list: OnBadList = "error",
    roles: str | Mapping[str, str] | None = None,
    **columns: Unpack[FrameNames],
) -> ListFile | FrameLists | ObjectLists:
    """Lists from a file, a data frame or dicts, as a stream of ``NBest`` that begins again whenever it is gone through.

    Parameters
    ----------
    given: a file or URL, or what the format takes; compressed or not, "-" for standard input. Or a data frame of
        pandas, polars, pyarrow or another library, where a row is a candidate (a lazy one is collected); or a file of
        one, by its ending: .parquet, .arrow or .feather. Or dicts, each what a line of a JSON format holds.
    format: the name of the format ("charniak", "moses", "jsonl", ...) or a mapping of name and options; by default
        the one that the file is recognised as, "jsonl" for all forms of JSON.
    references: the files of references or, for lists of trees, of gold trees; not for lists that hold their own. Of a
        data frame, the column of references.
    sources: a file with the input of every list, one per line; not for lists that hold their own.
    form: what is in a file of references: "lines", "tab" or "id", or "auto" to find out; see ``data.form`` of a recipe.
    encoding: the files' encoding, if it is not UTF-8, as Python calls it: "latin-1".
    on_bad_list: whether a list that cannot be used is an "error", or is left out ("skip"), and logged; in a data frame
        it is an error.
    roles: what keys of JSON are, where their names and kinds do not tell: ``{"samples": "candidates", "passed":
        "gain"}`` or "samples=candidates,passed=gain".
    columns: of a data frame, or of a file of rows, such as CSV; in a frame ``group`` and ``text`` (or ``tree``) are
        needed, or ``chosen`` and ``rejected``, and the others are ``score``, ``gain``, ``source``, ``answer`` and, for
        those to learn from, ``columns``. Of what is no data frame, ``answer`` is the rule that finds the answer in a
        text, as ``data.answer`` of a recipe.

    Raises
    ------
    RecipeError: an unknown format or option. DataError, for files while it is gone through: a list that cannot be used,
        not as many references as lists, an unreadable file; a column that is missing, or a value in it.
    """
    check_keys("read", columns)
    check_choice("on_bad_list", on_bad_list, ("error", "skip"))
    names = {key: value for key, value in columns.items() if key != "answer"}
    if names and isinstance(given, str | os.PathLike) and not is_table(given):
        roles = {**_roles_of_rows(names, os.fspath(given)), **parse_roles(roles or {})}
    elif names or is_frame(given):
        files_only("a data frame", format=format, sources=sources, encoding=encoding)
        right: dict[str, Any] = {} if references is None else {"references": references}
        return FrameLists.of(table(given) if isinstance(given, str | os.PathLike) else given, {**columns, **right})
    answer = check_rule(columns.get("answer"))
    if not isinstance(given, str | os.PathLike):
        files_only("dicts", references=references, sources=sources, encoding=encoding)
        if not isinstance(given, Iterable):
            raise DataError(f"found {type(given).__name__}; expected a path, a data frame, or several dicts")
        settings, reader = _reader(format, answer, roles)
        if not isinstance(reader, JsonReader):
            message = f"{settings.get('name')!r} is no format of JSON lines, which dicts could have"
            raise RecipeError(f"{message}; expected jsonl", key="format")
        return ObjectLists(given, reader, on_bad_list, answer)
    path = os.fspath(given)
    if format is None:
        format = detection.reader_by_name(path) or detection.format_of(path, readers)
    many = [references] if isinstance(references, str | os.PathLike) else references or ()
    settings, right_files = with_judgements(_reader(format, answer, roles)[0], [*map(os.fspath, many)])
    reader = make_reader(settings, "format")
    try:
        encoding = None if encoding is None else check_encoding(encoding)
    except ValueError as error:
        raise RecipeError(str(error), key="encoding") from None
    source_file = None if sources is None else os.fspath(sources)
    more = source_file, form, on_bad_list, encoding, answer
    lists = ListFile(os.fspath(given), reader, settings, tuple(right_files) or None, *more)
    if (alone := columns.get("columns")) is not None:
        every = {name for nbest in lists.first_items() for name in nbest.names} - {SCORE, GAIN, *alone}
        settings, reader = _reader(settings, answer, dict.fromkeys(sorted(every), "unused"))
    return replace(lists, reader=reader, settings=settings)


def example(name: str, split: str = "train") -> ListFile:
    """Lists that come with the program, as ``read`` gives them.

    Parameters
    ----------
    name: ``llm`` (samples of language models), ``asr`` (transcripts, made up) or ``quickstart`` (parses, made up).
    split: ``train``, ``dev`` or ``test``.

    Raises
    ------
    DataError: there are no such lists.
    """
    files, of_split = shipped_files(), f"{name}/{split}"
    if of_split not in files:
        names = ", ".join(key for key in files if not key.endswith(".gold"))
        raise DataError(f"no shipped lists of this name; expected one of {names}", path=of_split)
    lists = read(files[of_split], references=files.get(f"{of_split}.gold"))
    assert isinstance(lists, ListFile)
    return lists


def _roles_of_rows(columns: Mapping[str, Any], path: str) -> dict[str, str]:
    """The roles that names of columns are in a file of rows, such as CSV."""
    role_names = {"group": "group", "text": "text", "score": "base", "gain": "gain", "source": "source"}
    if other := next((key for key in columns if key not in (*role_names, "columns")), None):
        raise DataError(f"{other} names a column of a data frame; of a file, name the roles of keys: roles=", path=path)
    roles = {str(columns[key]): role for key, role in role_names.items() if columns.get(key) is not None}
    return roles | dict.fromkeys(map(str, columns.get("columns") or ()), "column")


def _reader(
    format: str | Mapping[str, Any] | None, answer: str | None, roles: str | Mapping[str, str] | None
) -> tuple[dict[str, Any], Reader]:
    """The settings of a reader, by default those of all JSON, which looks for right answers itself; and the reader."""
    settings = with_roles(settings_of("jsonl" if format is None else format, "format"), roles)
    if answer is not None:
        settings = with_option(settings, "answer", answer)
    return settings, make_reader(settings, "format")


def lists_from(source: Any, columns: Mapping[str, Any]) -> Iterable[NBest]:
    """Lists as ``fit`` and ``evaluate`` take them: ``NBest``s, what ``read`` gives, a data frame, or pairs as dicts."""
    if columns or is_frame(source) or isinstance(source, str | os.PathLike):
        if isinstance(source, str | os.PathLike) and not is_table(source):
            raise DataError("expected lists; rerank.read(path, format) gives those of a file", path=os.fspath(source))
        return read(source, **columns)
    if isinstance(source, ListFile | FrameLists | ObjectLists):
        return source
    rest = iterate(source, "lists: NBests in a list, what rerank.read gives, a data frame, or dicts", "lists")
    first = next(rest, None)
    every = source if rest is not source else chain([] if first is None else [first], rest)
    return read(every) if isinstance(first, Mapping) else every


def memory_blocks(
    lists: Iterable[Any], *, texts: bool, gains: bool, columns: ScoreColumns | None = None
) -> Iterator[Lists]:
    """Lists as readers give them, with sources and references and, if asked for, with gains as the column "gain"; in
    blocks where there are some, and those that were read with the bad ones in their places.

    columns: those that the lists must have; by default those of the first list's first candidate.
    """
    lists = (lists.pairs or lists) if isinstance(lists, FrameLists) else lists
    if isinstance(lists, ListFile) or (isinstance(lists, ObjectLists) and texts and lists.answer is None):
        yield from lists.blocks()
        return
    for nbest in map(check_nbest, lists):
        try:
            rows = nbest_rows(nbest, texts, columns)
            if columns is None and nbest.rows is None and len(nbest):
                table = rows.with_names()
                columns = ScoreColumns(table.names, table.names[table.column])
            yield with_gains(rows, nbest) if gains else rows
        except DataError as error:
            raise DataError(error.message, list_id=nbest.id) from None


def first_list(lists: Iterable[NBest]) -> tuple[NBest, Iterable[NBest]]:
    """The first list that has candidates, which there must be, and all lists, which can be gone through again."""
    again = isinstance(lists, FrameLists) or (isinstance(lists, ListFile) and "-" not in lists.files)
    again = again or (isinstance(lists, ObjectLists) and not isinstance(lists.objects, Iterator))
    every = lists if again else list(map(check_nbest, lists))
    if (first := next((nbest for nbest in every if len(nbest)), None)) is None:
        raise DataError("no list with candidates", path=lists.path if isinstance(lists, ListFile) else None)
    return first, every


def holds_trees(nbest: NBest) -> bool:
    """Whether the candidates of a list are trees, by its gold tree or its first candidate."""
    if nbest.rows is not None:
        return nbest.rows.of_trees
    if not len(nbest) or nbest.gains:
        return False
    return str(row_of(nbest.candidates[0], 1)["text"]).lstrip().startswith("(")
