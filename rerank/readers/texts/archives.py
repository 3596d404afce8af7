"""Text archives as Kaldi writes them: a key at the start of every line, and what belongs to it."""

from collections.abc import Iterator
from typing import NamedTuple

from rerank.base.encoding import decoded
from rerank.base.errors import DataError
from rerank.readers.base import Problem, excerpt
from rerank.readers.lines import LineReader
from rerank.readers.numerals import scores_of
from rerank.readers.problems import NUL


class Keyed(NamedTuple):
    """A line of an archive; ``path`` and ``number`` say where it is."""

    path: str
    number: int
    key: bytes
    value: bytes  # stripped

    @property
    def name(self) -> str:
        """The key as text."""
        return decoded(self.key)


class Archive:
    """The lines of an archive in order, without blank ones, the next of which can be looked at."""

    def __init__(self, lines: LineReader) -> None:
        self.lines = lines
        self._rest = self._read()
        self.head = next(self._rest, None)

    def _read(self) -> Iterator[Keyed]:
        for number, line in self.lines:
            key, *value = line.split(None, 1)[:2] or [b""]
            if key:
                yield Keyed(self.lines.path, number, key, value[0].strip() if value else b"")

    def __iter__(self) -> Iterator[Keyed]:
        """All lines that are left."""
        while self.head is not None:
            yield self.take()

    def take(self) -> Keyed:
        """Take the next line, which ``head`` has shown."""
        line = self.head
        assert line is not None, "a line that has been looked at"
        self.head = next(self._rest, None)
        return line

    def beside(self, line: Keyed) -> Keyed:
        """Take the line of the same key as one of another archive.

        Raises
        ------
        DataError: the next line has another key, or there is none.
        """
        if self.head is None or self.head.key != line.key:
            found = "the file ends" if self.head is None else f"found the key {excerpt(self.head.key)}"
            message = f"{found} where {line.path}, line {line.number}, has {excerpt(line.key)}; both files need the "
            number = self.lines.number if self.head is None else self.head.number
            raise DataError(f"{message}same keys in the same order", path=self.lines.path, line=number or None)
        return self.take()

    def finish(self, like: str) -> None:
        """Refuse lines that are left over beside the archive ``like``.

        Raises
        ------
        DataError: there is one; says where.
        """
        if self.head is not None:
            message = f"found the key {excerpt(self.head.key)}, which {like} does not have in this place; "
            message += "both files need the same keys in the same order"
            raise DataError(message, path=self.lines.path, line=self.head.number)


def text_of(line: Keyed) -> bytes:
    """The text on a line. Raises Problem."""
    if b"\0" in line.key + line.value:
        raise Problem("nul", NUL, line.number, path=line.path)
    return line.value


def score_of(line: Keyed, text: bytes) -> float:
    """The number in ``text``, which is on a line. Raises Problem."""
    values = scores_of(text, "the candidate's score", line.number, line.path)
    if len(values) != 1:
        raise Problem("score", f"found {excerpt(text)}; expected the candidate's score", line.number, path=line.path)
    return values[0]
