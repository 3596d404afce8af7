"""Files that are read together: lists with files that go with them, such as gold trees, sources, references and scores,
and large files in stretches.

A side file has an entry for every list, or for every candidate. Entries with the ids of lists are found by these, in
any order; ids of lists in an order of their own (fairseq) are the places of the inputs. Others are gone through in step
with the lists: bad lists use up their entries too, and a file with too few or too many is an error.

Any process can read a stretch of whole lists alone: with what the first lists of the file tell of all, and what the
files beside it have for its lists. Who plans takes compressed files apart.
"""

import codecs
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, islice
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from rerank.base.encoding import amount
from rerank.base.errors import DataError
from rerank.readers.detection import ACCOUNT_LISTS
from rerank.readers.lines import LineReader, ListReader, Place, whole_number
from rerank.readers.lists import Lists, one_by_one
from rerank.readers.reader import Problem, Reader, ScoreColumns, line_id, lists_of, only_utf8
from rerank.storage.places import is_url
from rerank.storage.streams import (
    CHANGED_FILE,
    TEXT_RATIO,
    InputStream,
    PathLike,
    encoding,
    must_wait,
    open_file,
    open_stream,
    read_once,
    single_stdin,
    stream_name,
)

Item = TypeVar("Item")
SAMPLE_LISTS = 1000  # lists, the first, whose ids tell whether a file beside them has these
MIN_SPLIT_BYTES = 1 << 26  # bytes of text that are read at once
Source = Callable[[ScoreColumns | None, bool], Iterator[Lists]]  # lists, given what ``Reader.for_columns`` is
Attach = Callable[[Lists, Sequence[Any]], Lists]  # a list with what files beside it have for it


class ById(Generic[Item]):
    """The items of a stream, taken by ids in any order: what is passed on the way is held, and given back later."""

    def __init__(self, items: Iterable[tuple[Any, Item]]) -> None:
        self._items, self._backlog = iter(items), dict[Any, list[Item]]()

    def take(self, name: Any) -> Item | None:
        """The next with an id; None if there is none left."""
        if name in self._backlog:
            first, *more = self._backlog.pop(name)
            self._backlog |= {name: more} if more else {}
            return first
        for other, item in self._items:
            if other == name:
                return item
            self._backlog.setdefault(other, []).append(item)
        return None

    def rest(self) -> Iterator[Item]:
        """The items that nobody has taken."""
        yield from chain(*self._backlog.values())
        yield from (item for _, item in self._items)


class Progress:
    """The place up to which the lists of a file have been read."""

    def __init__(self, reader: Reader, path: PathLike) -> None:
        self.reader, self.path, self.count = reader, stream_name(path), 0
        self.last: Lists | None = None
        self.like: Lists | None = None  # the last that is not bad
        self.bad: Problem | None = None  # of the first that is
        self.nameless = 0  # bad lists whose ids are unknown
        self.late = False  # whether the first list is empty, as are those whose ids are left out

    def add(self, nbest: Lists) -> None:
        """Note the next list."""
        if nbest.problem is None:
            self.like, self.late = nbest, self.late or (self.count == 0 and len(nbest) == 0)
        else:
            self.bad, self.nameless = self.bad or nbest.problem, self.nameless + (nbest.id == line_id(nbest.line))
        self.count, self.last = self.count + 1, nbest

    def missing(self, name: str, message: str) -> Lists:
        """An empty list after the last one, or called ``name``, in place of one that should be there."""
        last_number = None if self.last is None else whole_number(self.last.id)
        number = self.count if last_number is None else last_number + 1
        like = None if self.like is None or self.like.of_trees else self.like
        names, column = (("score",), 0) if like is None else (like.names, like.column)
        line, problem = 1 if self.last is None else self.last.line, Problem("missing", message)
        texts: Any = name or str(number), self.path, line, [], [], np.empty((0, len(names))), column
        return Lists.one(*texts, names=names, missing=problem)

    def check_form(self) -> None:
        """Refuse a file of which no list so far is any good, whose lists are then counted by a wrong format."""
        if self.like is None and self.bad is not None:
            raise self.bad.with_advice()


class Side:
    """A side file.

    Parameters
    ----------
    paths: its name, or the names of several files that are read as one.
    entries: its entries in order, each with its line.
    what: what an entry is, in the singular and in the plural.
    of: what has an entry each: "list" or "candidate".
    """

    def __init__(
        self, paths: Sequence[PathLike], entries: Iterable[tuple[int, Any]], what: tuple[str, str], of: str = "list"
    ) -> None:
        self.paths, self.path, self.of = paths, ", ".join(map(stream_name, paths)), of
        self.one, self.many = what
        self.count, self.line = 0, 0  # of the entries taken so far, and of the last of them
        self.by_id: dict[str, tuple[int, Any]] | None = None  # those not taken so far, where ids tell whose they are
        self.entries = iter(entries)

    def pair_up(self, reader: Reader, ids: Callable[[], Sequence[str]]) -> None:  # noqa: ARG002
        """Decide how lists and entries go together; ids: of the first lists, which are then read ahead."""
        if reader.order == "file" and self.of == "list":
            self.by_id = {str(k): entry for k, entry in enumerate(self.entries, start=reader.first_id)}

    def take(self, number: int = 1) -> list[Any]:
        """The next entries; fewer only at the end."""
        entries = list(islice(self.entries, number))
        if entries:
            self.count, self.line = self.count + len(entries), entries[-1][0]
        return [entry for _, entry in entries]

    def take_for(self, nbest: Lists, lists: Progress) -> Any:
        """The entry of the last list read, None if none has its id; or, in a list, those of its candidates."""
        if self.by_id is not None:
            self.line, entry = self.by_id.pop(nbest.id, (self.line, None))
            return entry
        number = 1 if self.of == "list" else nbest.size
        if number is None:
            assert nbest.problem is not None
            message = f"{nbest.problem.message}; nothing tells which {self.many} of {self.path} belong to the next "
            raise DataError(f"{message}list: fix the list", path=nbest.path, line=nbest.line, list_id=nbest.id)
        before, entries = self.count, self.take(number)
        if len(entries) == number:
            return entries[0] if self.of == "list" else entries
        lists.check_form()
        message = f"{self.count:,} {self.many} for at least {amount(before + number, self.of)} of {lists.path} "
        message += f"(list {nbest.id} at line {nbest.line}); {self._rule}"
        if lists.late and self.count == lists.count - 1 and lists.reader.offers("first_id"):
            message += "; the lists' ids seem to start at 1: set data.reader.first_id: 1"
        raise DataError(message, path=self.path, line=self.line or None)

    def finish(self, lists: Progress) -> None:
        """Refuse an entry that is left over, unless ids tell whose it is."""
        before = self.count
        if self.by_id is None and self.take():
            lists.check_form()
            message = f"at least {self.count:,} {self.many} for {amount(before, self.of)} of {lists.path}; {self._rule}"
            raise DataError(message, path=self.path, line=self.line)

    @property
    def _rule(self) -> str:
        return f"every {self.of} needs one {self.one}, in the same order"


def in_step(
    reader: Reader, path: PathLike, sides: Sequence[Side], *, missing: bool = False
) -> Iterator[tuple[Lists, tuple[Any, ...]]]:
    """Every list of ``path``, usable or not, with its entries in side files.

    missing: whether entries that no list has get empty lists; those left over at the end are an error otherwise.
    """
    single_stdin(path, *[name for side in sides for name in side.paths])
    lists, stream, head = Progress(reader, path), one_by_one(lists_of(reader, path)), list[Lists]()

    def ids() -> list[str]:
        while not (head and must_wait(path)) and len(head) < SAMPLE_LISTS and (nbest := next(stream, None)) is not None:
            head.append(nbest)
        return [nbest.id for nbest in head]

    for side in sides:
        side.pair_up(reader, ids)
    for nbest in chain(head, stream):
        lists.add(nbest)
        entries = tuple(side.take_for(nbest, lists) for side in sides)
        lacking = next((side for side, entry in zip(sides, entries, strict=True) if entry is None), None)
        if lacking is not None and nbest.problem is None:
            message = f"{lacking.path} has no {lacking.one} with the id of the list"
            problem = Problem("no source" if lacking.one == "source" else "no reference", message)
            nbest = nbest.leave_out(problem)
        yield nbest, entries
    in_order = all(side.by_id is None for side in sides)
    for side in () if missing and in_order else sides:
        side.finish(lists)
    if not missing or not sides:
        return
    last, advice = sides[-1], "A decoder that found nothing for an input writes no list. Are the files of one split?"
    by_id = last.by_id or {}  # but for bad lists whose own are unknown
    both = [name for name in by_id if all(side.by_id is None or name in side.by_id for side in sides)]
    for name in both[lists.nameless :]:
        message = f"no list has the id {name!r} (line {by_id[name][0]:,} of {last.path}), of {len(both):,}. {advice}"
        yield lists.missing(name, message), tuple(None if one.by_id is None else one.by_id[name][1] for one in sides)
    ends = "no lists" if lists.last is None else f"{amount(lists.count, 'list')}, the last of them {lists.last.id}"
    while in_order and all(rest := [side.take() for side in sides]):
        more = f"for more {' and '.join(side.many for side in sides)} ({', '.join(side.path for side in sides)})"
        empty = lists.missing("", f"{ends}, {more}; found none for line {last.line:,}. {advice}")
        lists.add(empty)
        yield empty, tuple(entry[0] for entry in rest)
    longest = max(sides, key=lambda side: side.count)
    for side in sides if in_order else ():
        if side.count < longest.count:
            message = f"{side.count:,} {side.many}, but {longest.path} has {longest.many} for more lists; "
            raise DataError(f"{message}each needs one for every list", path=side.path)


@dataclass(frozen=True)
class SplitFile:
    """A file in stretches. traits: what its first lists tell of all; packed: whether it is compressed; prefix: precedes
    the ids of its lists. Nobody who reads a stretch gets the ``first`` lists with candidates, and the ``sides``."""

    reader: ListReader
    path: str
    traits: Mapping[str, Any]
    packed: bool
    prefix: str
    attach: Attach
    first: Sequence[Lists] = ()
    sides: Sequence[Side] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reader, self.path, self.traits, self.packed, self.prefix, self.attach)

    @staticmethod
    def of(
        reader: Reader, path: str, prefix: str, sides: Sequence[Side], attach: Attach, *, again: bool = False
    ) -> "SplitFile | None":
        """The file ``path`` if it is large, its stretches can be read, and entries of ``sides`` go with its lists by
        their places. An error is left to who reads it all. ``again``: nobody needs its first lists."""
        if not isinstance(reader, ListReader) or encoding.get() is not None or is_url(path):
            return None
        if any(map(read_once, [path, *(name for side in sides for name in side.paths)])):
            return None
        ahead, count = list[Lists](), 0
        try:
            with open_file(path) as stream:
                packed = stream.compression != "plain"
                if stream.size * (TEXT_RATIO if packed else 1) < MIN_SPLIT_BYTES:
                    return None
                lines = LineReader(stream)
                lists = one_by_one(chain.from_iterable(map(only_utf8, reader.lists(lines, reader.records(lines)))))
                for nbest in lists:
                    ahead.append(nbest.without_raw())
                    count += len(nbest) > 0
                    if count == ACCOUNT_LISTS or (again and reader.can_split(lines.traits)):
                        break

                def ids() -> list[str]:
                    ahead.extend(islice(lists, max(0, SAMPLE_LISTS - len(ahead))))
                    return [nbest.id for nbest in ahead[:SAMPLE_LISTS]]

                for side in sides:
                    side.pair_up(reader, ids)
            if not reader.can_split(lines.traits) or any(side.by_id is not None for side in sides):
                return None
        except DataError:
            return None
        entries = [list(islice(side.entries, len(ahead))) for side in sides]
        for side, few in zip(sides, entries, strict=True):
            side.entries = chain(few, side.entries)
            if len(few) < len(ahead):
                return None
        rows = zip(*([entry for _, entry in few] for few in entries), strict=True)
        first = list(map(attach, ahead, rows)) if sides else ahead
        return SplitFile(reader, path, lines.traits, packed, prefix, attach, [one for one in first if len(one)], sides)

    def stretches(self, lists: int, size: int, every: Iterator[Lists]) -> Iterator["Stretch | Lists"]:
        """The stretches of the file. Where a file beside it has fewer entries than there are lists, or more, the lists
        from there on, of ``every``, follow instead."""
        at = lists_read = 0
        if not self.packed:
            with open(self.path, "rb") as file:
                at = 3 * file.read(3).startswith(codecs.BOM_UTF8)
        with open_stream(self.path, strict=False) as stream:
            for data, line, ordinal, count in self.reader.stretches(stream, lists, size):
                entries = [side.take(count) for side in self.sides]
                if any(len(few) < count for few in entries):
                    break
                content = data if self.packed else None
                yield Stretch(self, at, len(data), zlib.crc32(data), line, ordinal, count, content, entries)
                at, lists_read = at + len(data), lists_read + count
            else:
                if not any(side.take() for side in self.sides):
                    return
        yield from islice(one_by_one(every), lists_read, None)


class Stretch(NamedTuple):
    """``size`` bytes of a file, from byte ``at``, behind so many lines and lists, with their CRC; list_count: how many
    lists they hold; data: the bytes, if the file is compressed. entries: of every file beside it, one for each list."""

    file: SplitFile
    at: int
    size: int
    sum: int
    line: int
    ordinal: int
    list_count: int
    data: bytes | None
    entries: Sequence[Sequence[Any]]

    @property
    def first(self) -> Sequence[Lists]:
        """The first lists of the file that it begins."""
        return () if self.line else self.file.first

    def lists(self, id_places: dict[str, Place]) -> Iterator[Lists]:
        """Its lists; ``id_places``: see ``ListReader.lists``."""
        file, data = self.file, self.data
        if data is None:
            with open(file.path, "rb") as source:
                source.seek(self.at)
                data = source.read(self.size)
            if zlib.crc32(data) != self.sum:
                raise DataError(CHANGED_FILE, path=file.path)
        lines = LineReader(InputStream(BytesIO(data), file.path))
        lines.number, lines.records, lines.traits = self.line, self.ordinal, dict(file.traits)
        own_places = id_places if lines.traits.get("named") else {}
        parts = file.reader.lists(lines, file.reader.records(lines), own_places)
        lists = chain.from_iterable(map(only_utf8, parts)) if self.line else lists_of(file.reader, file.path, parts)
        if self.entries:
            rows = zip(*self.entries, strict=True)
            lists = (file.attach(nbest, row) for nbest, row in zip(one_by_one(lists), rows, strict=True))
        for some in lists:
            yield some.replace(ids=[f"{file.prefix}{name}" for name in some.ids]) if file.prefix else some
