"""Lists of texts together with their sources and references."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rerank.base.errors import DataError
from rerank.readers.base import BadList, NBestList, Reader, SkipCount
from rerank.readers.streams import PathLike, single_stdin, stream_name
from rerank.readers.texts.references import read_lines, read_references
from rerank.readers.texts.text_list import TextList

REFERENCES_KEY, SOURCES_KEY = "data.references", "data.sources"  # the settings that name the files


class TextPair(NamedTuple):
    """A list with its source and references."""

    nbest: TextList
    source: bytes  # empty if there is none
    references: tuple[bytes, ...]  # empty if there are none


class RawTextPair(NamedTuple):
    """A list, or a bad one, with what the other files hold in its place."""

    nbest: TextList | BadList
    source: bytes | None  # None if it is unknown
    references: tuple[bytes, ...]
    missing: BadList | None = None  # why an empty list takes the place of one that should be there


def read_text_pairs(
    reader: Reader,
    nbest_path: PathLike,
    *,
    references: Sequence[PathLike] | None = None,
    sources: PathLike | None = None,
    form: str = "lines",
    count: SkipCount | None = None,
    needs_references: bool = True,
    needs_source: bool = False,
) -> Iterator[TextPair]:
    """Every usable list with its source and references, paired by order.

    Parameters
    ----------
    reader: the reader of the lists, which must be lists of texts.
    references, form: files and their form, see ``read_references``; by default those that the lists hold.
    sources: a file with one source per line; by default those that the lists hold.
    count: the policy for bad lists ("error" by default) and the counts. A bad list uses up its source and its
        references. Lists that are missing at the end are errors, or empty lists that are counted as "missing".
    needs_references, needs_source: whether a list without any is bad ("no reference", "no source").

    Raises
    ------
    DataError: a bad list under the policy "error"; not as many lists as sources or references; a reader of
        trees; unreadable files.
    RecipeError: see ``read_references``.
    """
    count = count if count is not None else SkipCount()
    for raw in read_raw_text_pairs(reader, nbest_path, references=references, sources=sources, form=form):
        nbest = settle(raw, complete(raw, needs_references=needs_references, needs_source=needs_source), count)
        if nbest is not None:
            yield TextPair(nbest, raw.source or b"", raw.references)


def complete(raw: RawTextPair, *, needs_references: bool = True, needs_source: bool = False) -> TextList | BadList:
    """The list, or a bad one if it lacks what is needed; see ``read_text_pairs``."""
    nbest = raw.nbest
    if isinstance(nbest, BadList) or raw.missing is not None:
        return nbest
    if needs_references and not raw.references:
        message = f"no references: name their files with {REFERENCES_KEY}, or use a format that holds them (jsonl)"
        return BadList(nbest.id, nbest.path, nbest.line, "no reference", message)
    if needs_source and raw.source is None:
        message = f"no source: name the file with {SOURCES_KEY}, or use a format that holds it (jsonl)"
        return BadList(nbest.id, nbest.path, nbest.line, "no source", message)
    return nbest


def settle(raw: RawTextPair, nbest: TextList | BadList, count: SkipCount) -> TextList | None:
    """Count a list as good, bad or missing; returns it, or None if it cannot be used.

    Raises
    ------
    DataError: it is bad or missing, or has bad candidates, and the policy is "error".
    """
    if raw.missing is not None:
        count.bad(raw.missing)
    if isinstance(nbest, BadList):
        count.bad(nbest)
        return None
    if raw.missing is None:
        count.good(nbest)
    return nbest


def read_raw_text_pairs(
    reader: Reader,
    nbest_path: PathLike,
    *,
    references: Sequence[PathLike] | None = None,
    sources: PathLike | None = None,
    form: str = "lines",
) -> Iterator[RawTextPair]:
    """Every list, usable or not, with its source and references; the parameters are those of ``read_text_pairs``.

    Raises
    ------
    DataError: not as many lists as sources or references; a reader of trees; unreadable files.
    RecipeError: see ``read_references``.
    """
    sides: list[_Side] = []
    source_side = reference_side = None
    if sources is not None:
        source_side = _Side("sources", stream_name(sources), ((line,) for line in read_lines(sources)))
        sides.append(source_side)
    if references is not None:
        first_id = getattr(reader, "first_id", 0)
        rows = read_references(references, form, first_id)
        reference_side = _Side("references", ", ".join(map(stream_name, references)), rows)
        sides.append(reference_side)
    single_stdin(*[path for path in (nbest_path, sources, *(references or ())) if path is not None])
    lists = _Lists(stream_name(nbest_path))
    for nbest in reader.read(nbest_path):
        texts = nbest if isinstance(nbest, BadList) else text_list(nbest)
        lists.add(texts)
        if sides and getattr(reader, "order", None) == "file":
            lists.check_order()
        for side in sides:
            side.advance(lists)
        source = source_side.texts[0] if source_side else getattr(texts, "source", None)
        refs = reference_side.texts if reference_side else getattr(texts, "references", ())
        yield RawTextPair(texts, source, refs)
    yield from _rest(lists, source_side, reference_side)


class _Lists:
    """The lists read so far."""

    def __init__(self, path: str) -> None:
        self.path, self.count = path, 0
        self.last: TextList | BadList | None = None
        self.names: tuple[str, ...] = ("score",)
        self.column = 0
        self.late = False  # whether the first one is empty, as are lists whose ids are left out

    def add(self, nbest: TextList | BadList) -> None:
        """Note the next list."""
        self.late = self.late or (self.count == 0 and isinstance(nbest, TextList) and len(nbest) == 0)
        self.count, self.last = self.count + 1, nbest
        if isinstance(nbest, TextList):
            self.names, self.column = nbest.names, nbest.column

    def check_order(self) -> None:
        """Refuse a list whose id is out of order, as lists are paired with files by their place.

        Raises
        ------
        DataError: the lists are in another order than the inputs.
        """
        if self.last is not None and self.last.id != str(self.count - 1):
            message = f"the list is number {self.count} of the file, but its id says {self.last.id}: lists come in the "
            message += "order in which they were made, and sources or references in that of the inputs; "
            message += "set data.reader.order: id"
            raise DataError(message, path=self.path, line=self.last.line, list_id=self.last.id)

    def missing(self, message: str) -> tuple[TextList, BadList]:
        """An empty list after the last one, and the bad list that says why it is there."""
        line = self.last.line if self.last else 1
        number = int(self.last.id) + 1 if self.last and self.last.id.isdigit() else self.count
        empty = TextList(
            str(number), self.path, line, [], [], np.empty((0, len(self.names))), self.column, names=self.names
        )
        return empty, BadList(str(number), self.path, line, "missing", message)


class _Side:
    """Sources or references: one tuple of texts per list."""

    def __init__(self, what: str, path: str, rows: Iterator[tuple[bytes, ...]]) -> None:
        self.what, self.path, self.count = what, path, 0
        self.texts: tuple[bytes, ...] = ()
        self._rows = rows

    def step(self) -> bool:
        """Advance to the next list's texts; returns whether there are any."""
        found = next(self._rows, None)
        if found is None:
            return False
        self.texts, self.count = found, self.count + 1
        return True

    def advance(self, lists: _Lists) -> None:
        """Advance to the texts of the last list.

        Raises
        ------
        DataError: there are none.
        """
        if self.step():
            return
        last = lists.last
        where = f"list {last.id} at line {last.line}" if last else ""
        message = f"{self.count:,} {self.what} for at least {lists.count:,} lists of {lists.path} ({where}); "
        message += f"every list needs one line of {self.what}, in the same order"
        if lists.late and self.count == lists.count - 1:
            message += "; the lists' ids seem to start at 1: set data.reader.first_id: 1"
        raise DataError(message, path=self.path)


def _rest(lists: _Lists, sources: _Side | None, references: _Side | None) -> Iterator[RawTextPair]:
    """The sources and references after those of the last list."""
    sides = [side for side in (sources, references) if side is not None]
    found = lists.count
    while sides:
        more = [side.step() for side in sides]
        if not all(more):
            for side, other in zip(sides, reversed(sides), strict=True):
                if side.count < other.count:
                    message = f"{side.count:,} {side.what}, but {other.path} has {other.what} for more; "
                    raise DataError(f"{message}both need one line a list", path=side.path)
            return
        what = f"{found:,} lists, the last of them {lists.last.id}" if lists.last else "no lists"
        message = f"{what}, for more {' and '.join(side.what for side in sides)} ({', '.join(s.path for s in sides)}); "
        message += f"found none for line {sides[0].count:,}. "
        message += "Are the files of one split? A decoder that found nothing for the last inputs writes no lists"
        empty, bad = lists.missing(message)
        lists.add(empty)
        yield RawTextPair(empty, sources.texts[0] if sources else None, references.texts if references else (), bad)


def text_list(nbest: NBestList) -> TextList:
    """``nbest`` as a list of texts.

    Raises
    ------
    DataError: it is a list of trees.
    """
    if isinstance(nbest, TextList):
        return nbest
    message = "the reader gives lists of trees; texts need one of the readers moses, fairseq, sockeye, jsonl"
    raise DataError(message, path=nbest.path, line=nbest.line, list_id=nbest.id)
