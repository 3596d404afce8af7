"""The input files of a run, whose digests are taken as they stream, and lists that no file has."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Self

from rerank.base.errors import DataError
from rerank.readers.lists import Lists
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.streams import InputStream, at_end, open_file, opened_pipe, pipes, read_once

CHUNK = 1 << 20
RATIO = 16  # of texts of n-best lists, which repeat themselves, to their compressed size

Source = Callable[[ScoreColumns | None, bool], Iterator[Lists]]  # lists, given what ``Reader.knowing`` is told
# The lists that a program holds, by split: no file has them.
in_memory: ContextVar[Mapping[str, Source]] = ContextVar("in_memory", default={})  # noqa: B039 - nobody changes it


class Inputs:
    """The input files of a run. Within a ``with`` block the digest of every file that is read to its end is taken as it
    streams; a file that is read again must be the same. A pipe is opened once: nothing is there a second time.

    lists: those of splits that no file has; start: the model, one in memory too, that training continues from.
    """

    def __init__(self, lists: Mapping[str, Source] | None = None, start: Any = None) -> None:
        self.lists, self.start = lists, start
        self._digests, self._pipes = dict[str, str](), dict[str, InputStream | None]()

    def open(self, path: str, *, others: Collection[str] = ()) -> None:
        """Refuse a file that cannot be opened; see ``open_file``."""
        if path not in self._pipes:
            stream = open_file(path, others=others)
            if read_once(path):
                self._pipes[path] = stream
            else:
                stream.close()

    def digest(self, path: str) -> str:
        """SHA-256 of a file's contents after decompression."""
        if path not in self._digests:
            self.open(path)
            with opened_pipe(path) or open_file(path) as stream:
                stream.at_end = self._compare
                while stream.read(CHUNK):
                    pass
        return self._digests[path]

    def size(self, paths: Iterable[str]) -> int:
        """About how many bytes of compressed text files hold; 0 where that is not known."""
        total = 0
        for path in paths:
            if not read_once(path):
                with open_file(path) as stream:
                    total += stream.size if stream.compression != "plain" else stream.size // RATIO
        return total

    def _compare(self, path: str, digest: str) -> None:
        if self._digests.setdefault(path, digest) != digest:
            raise DataError("the file has changed since this run first read it; run it again", path=path)

    def __enter__(self) -> Self:
        self._before = at_end.set(self._compare), pipes.set(self._pipes)
        self._lists = in_memory.set(in_memory.get() if self.lists is None else self.lists)
        return self

    def __exit__(self, *_: object) -> None:
        at_end.reset(self._before[0])
        pipes.reset(self._before[1])
        in_memory.reset(self._lists)
        for stream in filter(None, self._pipes.values()):
            stream.close()
        self._pipes.clear()
