"""Formats that are read line by line: what they all share, so that a format is how a file falls into lists."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Literal, NamedTuple

from rerank.base.ranges import Checked
from rerank.readers.base import NBestList, Problem, Reader, SkippedList
from rerank.readers.lines import LineReader
from rerank.readers.streams import InputStream, PathLike, open_stream


class Record(NamedTuple):
    """The part of a file that holds one list."""

    id: str | None  # None: the place of the list in the file, from 0
    line: int  # where it starts
    content: Any  # what the list is made of, or the Problem that leaves nothing to make it of


Place = tuple[str, int]  # a file and a line
Make = Callable[[str, Record], NBestList | SkippedList]  # of an id and a record; may raise Problem


@dataclass(frozen=True)
class ListReader(Checked, Reader):
    """A reader of one file, line by line.

    Parameters
    ----------
    duplicates: "keep" candidates that repeat an earlier one of their list, or "drop" them; both count them.
    """

    duplicates: Literal["keep", "drop"] = "keep"

    def read(self, path: PathLike) -> Iterator[NBestList | SkippedList]:
        with open_stream(path, strict=False) as stream:
            lines = LineReader(stream)
            yield from self.lists(lines, self.records(lines))

    def parse(self, data: bytes) -> Iterator[NBestList | SkippedList]:
        """The lists of a file's contents."""
        lines = LineReader(InputStream(BytesIO(data), ""))
        yield from self.lists(lines, self.records(lines))

    def lists(
        self, lines: LineReader, records: Iterable[Record], seen: dict[str, Place] | None = None
    ) -> Iterator[NBestList | SkippedList]:
        """The lists that records of a file (or of several, ``lines`` being those of the first) describe.

        seen: the places of earlier lists by their ids, where other files have some; these are added to them.
        """
        make, seen = self.maker(lines), {} if seen is None else seen
        for ordinal, record in enumerate(records):
            name = str(ordinal) if record.id is None or self.ids == "ordinal" else record.id
            try:
                if isinstance(record.content, Problem):
                    raise record.content
                found = make(name, record)
            except Problem as problem:
                found = SkippedList.of(problem, name, lines.path, record.line)
            found = self._unlike(found, seen)
            yield found if isinstance(found, SkippedList) else found.repeated(self.duplicates)

    @abstractmethod
    def records(self, lines: LineReader) -> Iterator[Record]:
        """The parts of the file that hold a list each, past everything that is damaged."""

    @abstractmethod
    def maker(self, lines: LineReader) -> Make:
        """The function that makes the lists of one file; it may remember what earlier ones have shown."""

    def _unlike(self, found: NBestList | SkippedList, seen: dict[str, Place]) -> NBestList | SkippedList:
        """``found``, or a bad list if its id is that of an earlier one; ``seen`` are their places."""
        name = found.name if isinstance(found, SkippedList) else found.id
        if name not in seen:
            seen[name] = found.path, found.line
            return found
        path, line = seen[name]
        numbered = "the reader's option ids: ordinal numbers the lists instead"
        advice = numbered if self.offers("ids") else "remove one of them"
        where = f"line {line}" if path == found.path else f"line {line} of {path}"
        message = f"the id is also that of the list at {where}; {advice}"
        return SkippedList(found.id, found.path, found.line, "duplicate id", message, found.size)
