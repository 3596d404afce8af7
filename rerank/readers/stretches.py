"""Files with a list on each line in stretches of bytes, each of which any process can read alone: with what the first
lists of the file tell of all.
"""

import codecs
import logging
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, islice
from typing import Any, NamedTuple

from rerank.base.errors import DataError
from rerank.readers.account import MOST, filled
from rerank.readers.base import Reader, legible, looked_into
from rerank.readers.lines import LONGEST, LineReader, ListReader, Place
from rerank.readers.lists import Lists
from rerank.readers.streams import START, InputStream, encoding, open_file, open_stream, read_once
from rerank.storage.remote import is_url

log = logging.getLogger("rerank")
SMALL = 1 << 24  # bytes of a file that is read at once
CHANGED = "the file has changed since this run first read it; run it again"


@dataclass(frozen=True)
class LineFile:
    """A file with a list on each line. told: see ``LineReader``; prefix: precedes the ids of its lists. first: the
    first lists with candidates, which no other process gets."""

    reader: ListReader
    path: str
    told: dict[str, Any]
    prefix: str
    first: Sequence[Lists] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return LineFile, (self.reader, self.path, self.told, self.prefix)

    @staticmethod
    def of(reader: Reader, path: str, prefix: str = "") -> "LineFile | None":
        """The file ``path`` if it is large, and stretches of it can be read; a word where its compression forbids it.

        An error is left to who reads it all.
        """
        if not isinstance(reader, ListReader) or encoding.get() is not None or is_url(path) or read_once(path):
            return None
        try:
            with open_file(path) as stream:
                if stream.size < SMALL or not reader.cut(stream.read(START)):
                    return None
                if stream.compression != "plain":
                    log.info("%s: %s cannot be read in stretches, so one process reads it", path, stream.compression)
                    return None
            with open_file(path) as stream:
                lines = LineReader(stream)
                read = chain.from_iterable(map(legible, reader.lists(lines, reader.records(lines))))
                first = [lists.without_raw() for lists in islice(filled(read), MOST)]
        except DataError:
            return None
        return LineFile(reader, path, lines.told, prefix, first) if reader.parts(lines.told) else None

    def stretches(self, lists: int, size: int) -> Iterator["Stretch"]:
        """The file in stretches of as many lists and bytes at most, or of one list."""
        with open(self.path, "rb") as file:
            at = 3 * file.read(3).startswith(codecs.BOM_UTF8)
        line, ordinal, rest, piece = 0, 0, b"", b"-"
        with open_stream(self.path, strict=False) as stream:
            while piece and len(rest) <= LONGEST + size:  # nobody reads further
                piece = stream.read(size)
                *whole, rest = (rest + piece).split(b"\n")
                for first in range(0, len(whole), lists):
                    some = whole[first : first + lists]
                    data = b"\n".join([*some, b""])
                    yield Stretch(self, at, len(data), line, ordinal, zlib.crc32(data))
                    at, line, ordinal = (
                        at + len(data),
                        line + len(some),
                        ordinal + sum(map(bool, map(bytes.strip, some))),
                    )
        if rest:
            yield Stretch(self, at, len(rest), line, ordinal, zlib.crc32(rest))


class Stretch(NamedTuple):
    """``size`` bytes of a file, from byte ``at``, behind so many lines and lists; ``sum``: their CRC."""

    file: LineFile
    at: int
    size: int
    line: int
    ordinal: int
    sum: int

    @property
    def first(self) -> Sequence[Lists]:
        """The first lists of the file that it begins."""
        return () if self.line else self.file.first

    def lists(self, seen: dict[str, Place]) -> Iterator[Lists]:
        """Its lists; ``seen``: see ``ListReader.lists``."""
        with open(self.file.path, "rb") as file:
            file.seek(self.at)
            data = file.read(self.size)
        if zlib.crc32(data) != self.sum:
            raise DataError(CHANGED, path=self.file.path)
        reader, lines = self.file.reader, LineReader(InputStream(BytesIO(data), self.file.path))
        lines.number, lines.records, lines.told = self.line, self.ordinal, dict(self.file.told)
        found = reader.lists(lines, reader.records(lines), seen if lines.told["named"] else {})
        checked = chain.from_iterable(map(legible, found)) if self.line else looked_into(reader, found, blocks=True)
        for lists in checked:
            yield lists.changed(ids=[f"{self.file.prefix}{name}" for name in lists.ids]) if self.file.prefix else lists
