"""Large files in stretches, and lists that no file has.

Any process can read a stretch of whole lists alone: with what the first lists of the file tell of all, and what the
files beside it have for its lists. Who plans takes compressed files apart.
"""

import codecs
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, islice
from typing import Any, NamedTuple

from rerank.base.errors import DataError
from rerank.readers.detection import ACCOUNT_LISTS
from rerank.readers.lines import LineReader, ListReader, Place
from rerank.readers.lists import Lists, one_by_one
from rerank.readers.reader import Reader, ScoreColumns, add_advice, only_utf8
from rerank.readers.sides import SAMPLE_LISTS, Side
from rerank.storage.places import is_url
from rerank.storage.streams import CHANGED_FILE, TEXT_RATIO, InputStream, encoding, open_file, open_stream, read_once

MIN_SPLIT_BYTES = 1 << 26  # bytes of text that are read at once

Source = Callable[[ScoreColumns | None, bool], Iterator[Lists]]  # lists, given what ``Reader.for_columns`` is
Attach = Callable[[Lists, Sequence[Any]], Lists]  # a list with what files beside it have for it


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
            with open_file(path) as stream:
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
        lists = chain.from_iterable(map(only_utf8, parts)) if self.line else add_advice(file.reader, parts, blocks=True)
        if self.entries:
            rows = zip(*self.entries, strict=True)
            lists = (file.attach(nbest, row) for nbest, row in zip(one_by_one(lists), rows, strict=True))
        for some in lists:
            yield some.replace(ids=[f"{file.prefix}{name}" for name in some.ids]) if file.prefix else some
