"""``rerank.read``: lists from files, with what other files hold for them, from data frames and from dicts."""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Unpack

from rerank.base.errors import DataError, RecipeError
from rerank.readers import several
from rerank.readers.base import NBestList, OnBadList, Reader, SkipCount, SkippedList, check_choice, counted, usable
from rerank.readers.given.errors import check_for_files, each_of
from rerank.readers.given.frames import FrameLists, FrameNames, check_keys, is_frame
from rerank.readers.given.nbest import NBest
from rerank.readers.given.objects import ObjectLists
from rerank.readers.given.tables import is_table, table
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.streams import PathLike, check_encoding, read_in
from rerank.readers.texts.json_lines import JsonReader
from rerank.readers.texts.text_pairs import lists_of_texts
from rerank.readers.trees.pairs import lists_of_trees
from rerank.readers.trees.parses import ParseReader
from rerank.readers.trees.treebank import treebank_files

log = logging.getLogger("rerank")


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

    def __iter__(self) -> Iterator[NBest]:
        count = SkipCount(self.on_bad_list)
        yield from map(NBest.of, usable(self.rows(), counted, count))
        for line in str(count).splitlines()[1:]:
            log.warning("%s", line)

    @property
    def trees(self) -> bool:
        """Whether the lists are lists of trees."""
        return isinstance(several.format_of(self.reader), ParseReader)

    @property
    def files(self) -> list[str]:
        """All files that are read."""
        others = [*(self.references or ()), *([] if self.sources is None else [self.sources])]
        return [*self.reader.paths(self.path), *(treebank_files(*others) if self.trees else others)]

    def rows(self, known: ScoreColumns | None = None, *, normal: bool = False) -> Iterator[NBestList | SkippedList]:
        """The lists with their sources and references, bad ones in their places; known, normal: see ``Reader``.

        Raises
        ------
        DataError: not as many references or sources as lists; unreadable files.
        """
        return read_in(self.encoding, self._rows(known, normal))

    def _rows(self, known: ScoreColumns | None, normal: bool) -> Iterator[NBestList | SkippedList]:
        reader = self.reader.knowing(known, normal=normal)
        if self.trees:
            yield from lists_of_trees(reader, self.path, self.references and treebank_files(*self.references))
            return
        references, sources, form = self.references, self.sources, self.form
        for nbest in lists_of_texts(reader, self.path, references=references, sources=sources, form=form):
            missing = None if isinstance(nbest, SkippedList) else nbest.missing
            yield nbest if missing is None else SkippedList.of(missing, nbest.id, nbest.path, nbest.line)


def read(
    given: Any,
    format: str | Mapping[str, Any] | None = None,
    *,
    references: Any = None,
    sources: PathLike | None = None,
    form: str = "lines",
    encoding: str | None = None,
    on_bad_list: OnBadList = "error",
    **columns: Unpack[FrameNames],
) -> ListFile | FrameLists | ObjectLists:
    """Lists from a file, a data frame or dicts, as a stream of ``NBest`` that begins again whenever it is gone through.

    Parameters
    ----------
    given: a file or URL, or those that the format takes; compressed or not, "-" for standard input. Or a data frame of
        pandas, polars, pyarrow or another library, where a row is a candidate (a lazy one is collected); or a file of
        one, by its ending: .parquet, .arrow or .feather. Or dicts, each what a line of a JSON format holds.
    format: the name of the format ("charniak", "moses", "jsonl", ...) or a mapping of name and options; of dicts,
        by default "jsonl" if the first has ``candidates``, else "preferences".
    references: the files of references or, for lists of trees, of gold trees; not for lists that hold their own. Of a
        data frame, the column of references.
    sources: a file with the input of every list, one per line; not for lists that hold their own.
    form: what is in a file of references: "lines", "tab" or "id".
    encoding: that of the files, if it is not UTF-8, as Python calls it: "latin-1".
    on_bad_list: whether a list that cannot be used is an "error", or is left out ("skip"), and logged; in a data frame
        it is an error.
    columns: of a data frame; its ``group`` and ``text`` (or ``tree``) are needed, or ``chosen`` and ``rejected``, and
        the others are ``score``, ``gain``, ``source`` and, for those to learn from, ``columns``.

    Raises
    ------
    RecipeError: an unknown format or option. DataError, for files while it is gone through: a list that cannot be used,
        not as many references as lists, an unreadable file; a column that is missing, or a value in it.
    """
    check_keys("read", columns)
    check_choice("on_bad_list", on_bad_list, ("error", "skip"))
    if columns or is_frame(given) or (format is None and is_table(given)):
        check_for_files("a data frame", format=format, sources=sources, encoding=encoding)
        right: dict[str, Any] = {} if references is None else {"references": references}
        return FrameLists.of(table(given) if isinstance(given, str | os.PathLike) else given, {**columns, **right})
    if not isinstance(given, str | os.PathLike):
        check_for_files("dicts", references=references, sources=sources, encoding=encoding)
        return _of_objects(given, format, on_bad_list)
    if format is None:
        raise RecipeError(f"found {os.fspath(given)!r}; expected the format of its lists", key="format")
    settings = {"name": format} if isinstance(format, str) else dict(format)
    try:
        encoding = None if encoding is None else check_encoding(encoding)
    except ValueError as error:
        raise RecipeError(str(error), key="encoding") from None
    many = [references] if isinstance(references, str | os.PathLike) else references
    return ListFile(
        os.fspath(given),
        several.make_reader(settings, "format"),
        settings,
        None if many is None else tuple(os.fspath(each) for each in many),
        None if sources is None else os.fspath(sources),
        form,
        on_bad_list,
        encoding,
    )


def _of_objects(given: Any, format: str | Mapping[str, Any] | None, on_bad_list: OnBadList) -> ObjectLists:
    """Dicts as lists."""
    if not isinstance(given, Iterable):
        raise DataError(f"found {type(given).__name__}; expected a path, a data frame, or several dicts")
    if format is None:
        first = next(rest := iter(given), None)
        given = chain([first], rest) if rest is given else given
        format = "jsonl" if isinstance(first, Mapping) and "candidates" in first else "preferences"
    reader = several.make_reader(format, "format")
    if not isinstance(reader, JsonReader):
        name = format if isinstance(format, str) else format.get("name")
        message = f"{name!r} is no format of JSON lines, which dicts could have"
        raise RecipeError(f"{message}; expected jsonl, preferences or parallel", key="format")
    return ObjectLists(given, reader, on_bad_list)


def lists_from(given: Any, columns: Mapping[str, Any]) -> Iterable[NBest]:
    """What ``fit`` and ``evaluate`` take as lists: ``NBest``s, what ``read`` gives, a data frame, or pairs as dicts.

    Raises
    ------
    DataError: see ``read``.
    """
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
