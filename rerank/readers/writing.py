"""Lists written one after the other, with lists without candidates in place of bad ones."""

from collections.abc import Sequence

import numpy as np

from rerank.readers.base import NBestList, Reader, SkippedList
from rerank.readers.streams import Writable


class ListWriter:
    """Writes lists in the format of ``reader``. Bad ones take the form of the first that is not bad: those before it
    wait for it."""

    def __init__(self, out: Writable, reader: Reader) -> None:
        self._out, self._reader = out, reader
        self._like: NBestList | None = None
        self._waiting: list[SkippedList] = []

    def good(self, nbest: NBestList, order: Sequence[int] | None = None, scores: np.ndarray | None = None) -> None:
        """Write a list; the parameters are those of ``Reader.write``."""
        self._like = nbest if self._like is None else self._like
        self.finish()
        self._reader.write(self._out, nbest, order, scores)

    def bad(self, bad: SkippedList) -> None:
        """Write a list without candidates in place of a bad one."""
        self._waiting.append(bad)
        if self._like is not None:
            self.finish()

    def finish(self) -> None:
        """Write the bad lists that are waiting."""
        for bad in self._waiting:
            self._reader.write_bad(self._out, bad, self._like)
        self._waiting.clear()
