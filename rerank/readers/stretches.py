"""Large files in stretches of whole lists, each of which any process can read alone: with what the first lists of the
file tell of all, and what the files beside it have for its lists. Who plans takes compressed files apart.
"""

import codecs
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, islice, starmap
from typing import Any, NamedTuple

from rerank.base.errors import DataError
from rerank.readers.account import MOST
from rerank.readers.base import Reader, legible, looked_into
from rerank.readers.inputs import RATIO
from rerank.readers.lines import LONGEST, LineReader, ListReader, Place
from rerank.readers.lists import Lists, one_by_one
from rerank.readers.moses import File, Moses, fields_of
from rerank.readers.sides import LOOK, Side
from rerank.readers.streams import START, InputStream, encoding, open_file, open_stream, read_once
from rerank.storage.remote import is_url

SMALL = 1 << 26  # bytes of text that are read at once
SCORED = 4  # bytes of lines for one of their texts
CHANGED = "the file has changed since this run first read it; run it again"

Attach = Callable[[Lists, Sequence[Any]], Lists]  # what files beside it have for a list to the list


class Part(NamedTuple):
    """The bytes of a stretch, the numbers of the lines and the lists before it, and the number of its lists."""

    data: bytes
    line: int
    ordinal: int
    size: int


@dataclass(frozen=True)
class SplitFile:
    """A file in stretches. told: what its first lists tell of all; packed: whether it is compressed; prefix: precedes
    the ids of its lists. Nobody who reads a stretch gets the ``first`` lists with candidates, and the ``sides``."""

    reader: Any
    path: str
    told: Any
    packed: bool
    prefix: str
    attach: Attach
    first: Sequence[Lists] = ()
    sides: Sequence[Side] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reader, self.path, self.told, self.packed, self.prefix, self.attach)

    @staticmethod
    def of(reader: Reader, path: str, prefix: str, sides: Sequence[Side], attach: Attach) -> "SplitFile | None":
        """The file ``path`` if it is large, its stretches can be read, and entries of ``sides`` go with its lists by
        their places. An error is left to who reads it all."""
        kind: type[SplitFile] = MosesFile if isinstance(reader, Moses) else LineFile
        if not isinstance(reader, ListReader | Moses) or encoding.get() is not None or is_url(path):
            return None
        if any(map(read_once, [path, *(name for side in sides for name in side.paths)])):
            return None
        try:
            with open_file(path) as stream:
                packed = stream.compression != "plain"
                if stream.size * (RATIO if packed else 1) < SMALL or not reader.cut(stream.read(START)):
                    return None
            with open_file(path) as stream:
                told, found = kind.begun(reader, stream)
                ahead, filled = list[Lists](), 0
                for nbest in one_by_one(chain.from_iterable(map(legible, found))):
                    ahead.append(nbest.without_raw())
                    filled += len(nbest) > 0
                    if filled == MOST:
                        break
            for side in sides:
                side.settle(reader, lambda: [nbest.id for nbest in ahead[:LOOK]])
            if not kind.suffices(reader, told) or any(side.by_id is not None for side in sides):
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
        return kind(reader, path, told, packed, prefix, attach, [one for one in first if len(one)], sides)

    @staticmethod
    @abstractmethod
    def begun(reader: Any, stream: InputStream) -> tuple[Any, Iterator[Lists]]:
        """What the first lists tell, some of which have to be read for it, and the lists."""

    @staticmethod
    @abstractmethod
    def suffices(reader: Any, told: Any) -> bool:
        """Whether stretches can be read given this."""

    @abstractmethod
    def parts(self, stream: InputStream, lists: int, size: int) -> Iterator[Part]:
        """The stretches, of about as many lists and bytes at most."""

    @abstractmethod
    def read(self, part: Part, seen: dict[str, Place]) -> Iterator[Lists]:
        """The lists of a stretch; ``seen``: see ``ListReader.lists``."""

    def stretches(self, lists: int, size: int, every: Iterator[Lists]) -> Iterator["Stretch | Lists"]:
        """The stretches of the file. Where a file beside it has fewer entries than there are lists, or more, the lists
        from there on, of ``every``, follow instead."""
        at = done = 0
        if not self.packed:
            with open(self.path, "rb") as file:
                at = 3 * file.read(3).startswith(codecs.BOM_UTF8)
        with open_stream(self.path, strict=False) as stream:
            for part in self.parts(stream, lists, size):
                entries = [side.take(part.size) for side in self.sides]
                if any(len(few) < part.size for few in entries):
                    break
                held = part if self.packed else part._replace(data=b"")
                yield Stretch(self, at, len(part.data), zlib.crc32(part.data), held, entries)
                at, done = at + len(part.data), done + part.size
            else:
                if not any(side.take() for side in self.sides):
                    return
        yield from islice(one_by_one(every), done, None)


class LineFile(SplitFile):
    """A file with a list on each line."""

    @staticmethod
    def begun(reader: ListReader, stream: InputStream) -> tuple[Any, Iterator[Lists]]:
        lines = LineReader(stream)
        return lines.told, reader.lists(lines, reader.records(lines))

    @staticmethod
    def suffices(reader: ListReader, told: Any) -> bool:
        return reader.parts(told)

    def parts(self, stream: InputStream, lists: int, size: int) -> Iterator[Part]:
        line, ordinal, rest, piece = 0, 0, b"", b"-"
        while piece and len(rest) <= LONGEST + size:  # nobody reads further
            piece = stream.read(size)
            *whole, rest = (rest + piece).split(b"\n")
            for first in range(0, len(whole), lists):
                some = whole[first : first + lists]
                count = sum(map(bool, map(bytes.strip, some)))
                yield Part(b"\n".join([*some, b""]), line, ordinal, count)
                line, ordinal = line + len(some), ordinal + count
        if rest:
            yield Part(rest, line, ordinal, int(bool(rest.strip())))

    def read(self, part: Part, seen: dict[str, Place]) -> Iterator[Lists]:
        lines = LineReader(InputStream(BytesIO(part.data), self.path))
        lines.number, lines.records, lines.told = part.line, part.ordinal, dict(self.told)
        found: Iterator[Lists] = self.reader.lists(
            lines, self.reader.records(lines), seen if self.told["named"] else {}
        )
        return found


class MosesFile(SplitFile):
    """A file in Moses' format, whose ids are the numbers of lists. told: what the first of the reader's own stretches
    shows."""

    @staticmethod
    def begun(reader: Moses, stream: InputStream) -> tuple[Any, Iterator[Lists]]:
        file, parts = File(reader, stream.path), reader.stretches(stream)
        first = list(file.lists(*next(parts, (b"", 1))))
        return copy(file), chain(first, chain.from_iterable(starmap(file.lists, parts)))

    @staticmethod
    def suffices(reader: Moses, told: File) -> bool:
        whole = told.layout is not None and bool(told.names) and told.roles.keys() >= {*told.layout.extra}
        return whole and None not in told.columns.keys and reader.ids == "file"

    def parts(self, stream: InputStream, lists: int, size: int) -> Iterator[Part]:
        ordinal = before = self.reader.first_id
        held, first = list[bytes](), 0
        for data, line in self.reader.stretches(stream):
            first = first if held else line - 1
            held.append(data)
            names = (self.reader.name_of(fields_of(text)) for text in reversed(data.split(b"\n")))
            ordinal = max(ordinal, next((name for name in names if name is not None), -1) + 1)
            if ordinal - before >= lists or sum(map(len, held)) >= SCORED * size:
                yield Part(b"".join(held), first, before, ordinal - before)
                held, before = [], ordinal
        if held:
            yield Part(b"".join(held), first, before, ordinal - before)

    def read(self, part: Part, seen: dict[str, Place]) -> Iterator[Lists]:  # noqa: ARG002
        file = copy(self.told)
        file.next = part.ordinal
        found: Iterator[Lists] = file.lists(part.data, part.line + 1)
        return found


class Stretch(NamedTuple):
    """``size`` bytes of a file, from byte ``at``, with their CRC; the ``part`` holds them where they are compressed.
    entries: of every file beside it, one for each list."""

    file: SplitFile
    at: int
    size: int
    sum: int
    part: Part
    entries: Sequence[Sequence[Any]]

    @property
    def first(self) -> Sequence[Lists]:
        """The first lists of the file that it begins."""
        return () if self.part.line else self.file.first

    def lists(self, seen: dict[str, Place]) -> Iterator[Lists]:
        """Its lists; ``seen``: see ``ListReader.lists``."""
        file, part = self.file, self.part
        if not file.packed:
            with open(file.path, "rb") as source:
                source.seek(self.at)
                part = part._replace(data=source.read(self.size))
            if zlib.crc32(part.data) != self.sum:
                raise DataError(CHANGED, path=file.path)
        found = file.read(part, seen)
        checked = (
            chain.from_iterable(map(legible, found)) if part.line else looked_into(file.reader, found, blocks=True)
        )
        if self.entries:
            rows = zip(*self.entries, strict=True)
            checked = (file.attach(nbest, row) for nbest, row in zip(one_by_one(checked), rows, strict=True))
        for lists in checked:
            yield lists.changed(ids=[f"{file.prefix}{name}" for name in lists.ids]) if file.prefix else lists
