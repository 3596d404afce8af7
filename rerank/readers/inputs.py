"""The input files of a run: each is opened once, and its digest is taken as it streams."""

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Self

from rerank.base.errors import DataError
from rerank.readers.lists import Lists
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.streams import InputStream, held, open_file
from rerank.storage.remote import RemoteFile

CHUNK = 1 << 20
RATIO = 16  # of texts of n-best lists, which repeat themselves, to their compressed size
MOST_OPEN = 100  # files at a time: a treebank has thousands, and a process may have only this many

Source = Callable[[ScoreColumns | None, bool], Iterator[Lists]]  # lists, given what ``Reader.knowing`` is told
# The lists that a program holds, by split: no file has them.
in_memory: ContextVar[Mapping[str, Source]] = ContextVar("in_memory", default={})  # noqa: B039 - nobody changes it


class HeldStream(InputStream):
    """A file that stays open after ``close``, so that it can be read again from its start.

    One that is not ``lasting`` is closed, and opened again by its name; its contents are held to be the same.
    """

    lasting = True
    whole: str | None = None  # SHA-256 of the decompressed contents, once they have been read to the end
    busy = False  # between ``again`` and ``close``
    _sum: "hashlib._Hash | None" = None  # of what was read since ``again``

    def again(self) -> Self:
        """The stream at the start of its file."""
        if closed := self._raw.closed:
            self._raw = open_file(self.path, InputStream)._raw
        if closed or self._sum is not None:
            self._guard(self._raw.seek, 0)
            self._start()
        self.busy, self._sum = True, hashlib.sha256()
        return self

    def _bytes(self, size: int) -> bytes:
        assert self._sum is not None
        piece = super()._bytes(size)
        self._sum.update(piece)
        if not piece:
            digest = self._sum.hexdigest()
            if self.whole not in (None, digest):
                raise DataError("the file has changed since this run first read it; run it again", path=self.path)
            self.whole = digest
        return piece

    def close(self) -> None:
        """Whoever has read the stream is done with it."""
        self.busy = False
        if not self.lasting:
            super().close()

    def finish(self) -> str:
        """``whole``; what has not been read yet is read now."""
        if self.whole is None:
            if unread := self._sum is None or self._raw.closed:
                self.again()
            while self._bytes(CHUNK):
                pass
            if unread:
                self.close()
        assert self.whole is not None
        return self.whole

    @property
    def size(self) -> int:
        """About how many bytes of compressed text there are; 0 if that is not known."""
        raw = self._raw
        size = 0 if raw.closed else raw.size if isinstance(raw, RemoteFile) else os.fstat(raw.fileno()).st_size
        return size if self.compression != "plain" else size // RATIO


class Inputs:
    """Files that are opened once and stay open until ``close``, or the end of a ``with`` block; if there are more than
    ``MOST_OPEN``, the others are opened whenever they are read.

    Within the block, ``open_stream`` gives a file that was opened here from its start, rather than opening it again;
    while a file is read, another reader of it opens its own.
    """

    def __init__(self) -> None:
        self._streams = dict[str, HeldStream]()

    def open(self, path: str, *, others: Collection[str] = ()) -> HeldStream:
        """The stream of a file, opened if it is not open yet; see ``open_stream``."""
        if path not in self._streams:
            stream = self._streams[path] = open_file(path, HeldStream, others=others)
            if len(self._streams) > MOST_OPEN:
                stream.lasting = False
                stream.close()
        return self._streams[path]

    def digest(self, path: str) -> str:
        """SHA-256 of a file's contents after decompression."""
        return self.open(path).finish()

    def size(self, paths: Iterable[str]) -> int:
        """About how many bytes of compressed text files hold."""
        return sum(self.open(path).size for path in paths if path != "-")

    def close(self) -> None:
        """Close all files."""
        for stream in self._streams.values():
            InputStream.close(stream)
        self._streams.clear()

    def __enter__(self) -> Self:
        self._before = held.set(self._held)
        return self

    def __exit__(self, *_: object) -> None:
        held.reset(self._before)
        self.close()

    def _held(self, path: str) -> InputStream | None:
        stream = self._streams.get(path)
        return None if stream is None or stream.busy else stream.again()
