"""``rerank.read``: lists from files, with what other files hold for them, from data frames and from dicts."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Unpack

import numpy as np

from rerank.base.encoding import encoded
from rerank.base.errors import DataError, RecipeError
from rerank.data.answers import check_rule
from rerank.readers import base, detection
from rerank.readers.base import OnBadList, Reader, ScoreColumns, check_choice, readers
from rerank.readers.detection import MOST, Account, filled
from rerank.readers.given.frames import FrameLists, FrameNames, check_keys, is_frame
from rerank.readers.given.nbest import (
    GAIN,
    TWO_GAINS,
    NBest,
    ObjectLists,
    each_of,
    files_only,
    is_tree,
    list_given,
    nbests,
    row_of,
    used,
)
from rerank.readers.lists import Lists
from rerank.readers.texts.json_lines import JsonReader
from rerank.readers.texts.jsonl import is_table, table
from rerank.readers.texts.roles import roles_given, with_option, with_roles
from rerank.readers.texts.text_files import lists_of_texts
from rerank.readers.texts.text_list import SCORE
from rerank.readers.trees.charniak import ParseReader
from rerank.readers.trees.treebank import SentenceText, lists_of_trees, treebank_files
from rerank.storage.places import shipped_files
from rerank.storage.streams import PathLike, check_encoding, read_in, read_once


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
        yield from nbests(used(self.blocks(), self.on_bad_list), self.answer)

    def first_items(self) -> list[Lists]:
        """The first usable lists, as many as an account looks at; none of what can be read only once."""
        if any(map(read_once, self.files)):
            return []
        return list(islice(filled(self.blocks()), MOST))

    @property
    def account(self) -> Account | None:
        """What the lists are taken for; None where none has candidates, or they can be read only once."""
        return Account.of(self.path, self.first_items(), str(self.settings["name"]))

    @property
    def trees(self) -> bool:
        """Whether the lists are lists of trees."""
        return isinstance(base.format_of(self.reader), ParseReader)

    @property
    def files(self) -> list[str]:
        """All files that are read."""
        others = [*(self.references or ()), *([] if self.sources is None else [self.sources])]
        return [*self.reader.paths(self.path), *(treebank_files(*others) if self.trees else others)]

    def blocks(self, known: ScoreColumns | None = None, normal: bool = False) -> Iterator[Lists]:
        """The lists with their sources and references, bad ones in their places, in blocks where the format gives some
        and no other file holds anything for them; known, normal: see ``Reader``."""
        return read_in(self.encoding, self._blocks(self.reader.knowing(known, normal=normal)))

    def _blocks(self, reader: Reader) -> Iterator[Lists]:
        if self.trees:
            yield from lists_of_trees(reader, self.path, self.references and treebank_files(*self.references))
            return
        files: dict[str, Any] = {"references": self.references, "sources": self.sources, "form": self.form}
        for nbest in lists_of_texts(reader, self.path, **files):
            yield nbest if nbest.missing is None else nbest.left_out(nbest.missing)


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
    named = {key: value for key, value in columns.items() if key != "answer"}
    if named and isinstance(given, str | os.PathLike) and not is_table(given):
        roles = {**_roles_of_rows(named, os.fspath(given)), **roles_given(roles or {})}
    elif named or is_frame(given):
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
        format = detection.named_like(path) or detection.format_of(path, readers)
    many = [references] if isinstance(references, str | os.PathLike) else references or ()
    settings, right_files = base.judged_by(_reader(format, answer, roles)[0], [*map(os.fspath, many)])
    reader = base.make_reader(settings, "format")
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
        known = ", ".join(key for key in files if not key.endswith(".gold"))
        raise DataError(f"no shipped lists of this name; expected one of {known}", path=of_split)
    lists = read(files[of_split], references=files.get(f"{of_split}.gold"))
    assert isinstance(lists, ListFile)
    return lists


def _roles_of_rows(columns: Mapping[str, Any], path: str) -> dict[str, str]:
    """The roles that names of columns are in a file of rows, such as CSV."""
    known = {"group": "group", "text": "text", "score": "base", "gain": "gain", "source": "source"}
    if other := next((key for key in columns if key not in (*known, "columns")), None):
        raise DataError(f"{other} names a column of a data frame; of a file, name the roles of keys: roles=", path=path)
    roles = {str(columns[key]): role for key, role in known.items() if columns.get(key) is not None}
    return roles | dict.fromkeys(map(str, columns.get("columns") or ()), "column")


def _reader(
    format: str | Mapping[str, Any] | None, answer: str | None, roles: str | Mapping[str, str] | None
) -> tuple[dict[str, Any], Reader]:
    """The settings of a reader, by default those of all JSON, which looks for right answers itself; and the reader."""
    settings = with_roles(base.settings_of("jsonl" if format is None else format, "format"), roles)
    if answer is not None:
        settings = with_option(settings, "answer", answer)
    return settings, base.make_reader(settings, "format")


def lists_from(given: Any, columns: Mapping[str, Any]) -> Iterable[NBest]:
    """Lists as ``fit`` and ``evaluate`` take them: ``NBest``s, what ``read`` gives, a data frame, or pairs as dicts."""
    if columns or is_frame(given) or isinstance(given, str | os.PathLike):
        if isinstance(given, str | os.PathLike) and not is_table(given):
            raise DataError("expected lists; rerank.read(path, format) gives those of a file", path=os.fspath(given))
        return read(given, **columns)
    if isinstance(given, ListFile | FrameLists | ObjectLists):
        return given
    rest = each_of(given, "lists: NBests in a list, what rerank.read gives, a data frame, or dicts", "lists")
    first = next(rest, None)
    every = given if rest is not given else chain([] if first is None else [first], rest)
    return read(every) if isinstance(first, Mapping) else every


def blocks_given(
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
    for nbest in map(_nbest, lists):
        try:
            rows = _rows(nbest, texts, columns)
            if columns is None and nbest.rows is None and len(nbest):
                shown = rows.named()
                columns = ScoreColumns(shown.names, shown.names[shown.column])
            yield _with_gains(rows, nbest) if gains else rows
        except DataError as error:
            raise DataError(error.message, list_id=nbest.id) from None


def first_list(lists: Iterable[NBest]) -> tuple[NBest, Iterable[NBest]]:
    """The first list that has candidates, which there must be, and all lists, which can be gone through again."""
    again = isinstance(lists, FrameLists) or (isinstance(lists, ListFile) and "-" not in lists.files)
    again = again or (isinstance(lists, ObjectLists) and not isinstance(lists.objects, Iterator))
    every = lists if again else list(map(_nbest, lists))
    if (first := next((nbest for nbest in every if len(nbest)), None)) is None:
        raise DataError("no list with candidates", path=lists.path if isinstance(lists, ListFile) else None)
    return first, every


def _nbest(given: Any) -> NBest:
    if not isinstance(given, NBest):
        raise DataError(f"found a list of the type {type(given).__name__}; expected rerank.NBest")
    return given


def holds_trees(nbest: NBest) -> bool:
    """Whether the candidates of a list are trees, by its gold tree or its first candidate."""
    if nbest.rows is not None:
        return nbest.rows.of_trees
    if not len(nbest) or nbest.gains:
        return False
    return str(row_of(nbest.candidates[0], 1)["text"]).lstrip().startswith("(")


def _rows(nbest: NBest, texts: bool, columns: ScoreColumns | None) -> Lists:
    rows = nbest.rows
    if rows is None:
        rows = list_given(nbest.candidates, columns, texts=texts, name=nbest.id, gains=nbest.gains)
        if unknown := set(rows.others) - {GAIN}:
            message = f"a candidate has the column {min(unknown)!r}, which the very first candidate lacks"
            raise DataError(f"{message}; numbers that few candidates have are 'features'")
    elif rows.of_trees == texts:
        message = "found a list of trees; expected lists of texts" if texts else "found a list of texts, not trees"
        raise DataError(message)
    if not rows.of_trees:
        source = None if nbest.source is None else encoded(nbest.source).strip()
        return rows.changed(source=source, references=tuple(_text(reference) for reference in nbest.references))
    if len(nbest.references) > 1:
        raise DataError(f"found {len(nbest.references)} gold trees as references; expected one")
    if rows.gold is None and nbest.references:
        return rows.changed(gold=SentenceText(_text(nbest.references[0]), 0, ""))
    return rows


def _with_gains(rows: Lists, nbest: NBest) -> Lists:
    """The list with its gains as the column "gain"."""
    if nbest.gains is None:
        return rows
    gains = np.array(nbest.gains, np.float64)
    if gains.size != len(rows):
        raise DataError(f"found {gains.size} gains for {len(rows)} candidates; expected one for each")
    if GAIN in rows.names:
        if not np.array_equal(rows.scores[:, rows.names.index(GAIN)], gains):
            raise DataError(TWO_GAINS)
        return rows
    named = rows.named()
    sources = {source: (*names, GAIN) for source, names in named.by_source.items()}
    return named.changed(names=(*named.names, GAIN), scores=np.column_stack([named.scores, gains]), sources=sources)


def _text(reference: Any) -> bytes:
    if not isinstance(reference, str) and not is_tree(reference):
        raise DataError(f"found {reference!r} as a reference; expected a text or a tree")
    return encoded(str(reference)).strip()
