"""Files that are read line by line: their lines, and what all such formats share, so that a format is how a file falls
into lists.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from rerank.base.errors import DataError
from rerank.base.ranges import Checked
from rerank.readers.lists import Lists
from rerank.readers.reader import Problem, Reader, excerpt
from rerank.storage.streams import InputStream, PathLike, open_stream

Place = tuple[str, int]  # a file and a line
Part = tuple[bytes, int, int, int]  # a stretch, the numbers of lines and lists before it, and of its lists
CHUNK = 1 << 20  # bytes read at a time
MAX_LINE = 1 << 24  # bytes of one line or one tree; more than that is not a sentence but a wrong file


class LineReader:
    """Lines of ``stream`` without their ends (LF or CRLF); the last one needs none.

    ``number`` is the 1-based number of the line taken last, 0 before the first. ``nul`` says whether a NUL byte
    has been found so far, so that nobody needs to look for one in every line. ``traits`` is what the first lists tell
    of all, by name, and ``records`` how many precede the first line, where the stream is a stretch of a file.
    """

    def __init__(self, stream: InputStream, *, chunk: int = 0) -> None:
        self.path = stream.path
        self.number = self.records = 0
        self.traits = dict[str, Any]()
        self.nul = False
        self.objects: Iterable[Any] | None = None  # those of a program, in place of lines
        self._stream, self._chunk = stream, chunk or CHUNK
        self._lines: list[bytes] = []
        self._at = 0
        self._carry: list[bytes] = []
        self._at_end = False

    def peek(self, count: int, most: int = 0) -> list[bytes]:
        """The next ``count`` lines without taking them, fewer only at the end of the stream; up to ``most``, where more
        have been read already."""
        while len(self._lines) - self._at < count and self._fill():
            pass
        return self._lines[self._at : self._at + max(count, most)]

    def take(self, count: int) -> None:
        """Advance past ``count`` lines that ``ahead`` has shown."""
        self._at += count
        self.number += count

    def chunks(self) -> Iterator[tuple[int, list[bytes]]]:
        """All remaining lines, as many at a time as have been read, with the number of the first of these."""
        while self.peek(1):
            first, lines = self.number + 1, self._lines[self._at :]
            self.take(len(lines))
            yield first, lines

    def skip_blank(self) -> bool:
        """Advance past empty lines; returns whether anything follows."""
        while line := self.peek(1):
            if line[0] and not line[0].isspace():
                return True
            self.take(1)
        return False

    @property
    def has_line(self) -> bool:
        """Whether the next line has been read."""
        return self._at < len(self._lines)

    def first_byte(self) -> bytes:
        """The first byte that follows and is no white space, without taking it; b"" at the end."""
        while True:
            text = b"\n".join([*self._lines[self._at :], *self._carry]).lstrip()
            if text or not self._fill():
                return text[:1]

    @property
    def one_per_line(self) -> bool:
        """Whether values of JSON are on lines of their own, as the next two tell as far as they are needed."""
        start, two = self.first_byte(), self._lines[self._at : self._at + 2]
        if start == b"{" and not self.peek(1)[0].rstrip().endswith(b"}"):
            return self.peek(2)[-1].startswith(b"{")
        arrays = len(two) == 2 and all(line.startswith(b"[") and line.rstrip().endswith(b"]") for line in two)
        return start != b"[" or arrays

    def rest(self) -> bytes:
        """All that follows, in memory at once, with lines of any length."""
        pieces = [line + b"\n" for line in self._lines[self._at :]] + self._carry
        while data := self._stream.read(self._chunk):
            pieces.append(data)
        self._lines, self._at, self._carry, self._at_end = [], 0, [], True
        return b"".join(pieces)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """(number, line) of all remaining lines."""
        while self._at < len(self._lines) or self.peek(1):
            self.take(1)
            yield self.number, self._lines[self._at - 1]

    def _fill(self) -> bool:
        """Read a chunk and cut it into lines; False at the end of the stream."""
        if self._at_end:
            return False
        data = self._stream.read(self._chunk)
        self._at_end = not data
        self.nul = self.nul or b"\0" in data
        if data and b"\n" not in data:
            self._carry.append(data)
            if sum(map(len, self._carry)) > MAX_LINE:
                number = self.number + len(self._lines) - self._at + 1
                message = f"a line of more than {MAX_LINE >> 20} MiB; expected a text file with one tree, sentence "
                raise DataError(f"{message}or candidate per line", path=self.path, line=number)
            return True
        text = b"".join([*self._carry, data])
        lines = text.split(b"\n")
        last = lines.pop()
        self._carry = [last] if last and data else []
        if last and not data:
            lines.append(last)
        if b"\r" in text:
            lines = [line.removesuffix(b"\r") for line in lines]
        self._lines = self._lines[self._at :] + lines
        self._at = 0
        return True


class Record(NamedTuple):
    """The part of a file that holds one list."""

    id: str | None  # None: the place of the list in the file, from 0
    line: int  # where it starts
    content: Any  # what the list is made of, or the Problem that leaves nothing to make it of


@dataclass(frozen=True)
class ListReader(Checked, Reader):
    """A reader of one file, line by line.

    Parameters
    ----------
    duplicates: "keep" candidates that repeat an earlier one of their list, or "drop" them; both count them.
    """

    duplicates: Literal["keep", "drop"] = "keep"
    apart: ClassVar[str] = "remove one of them"  # what to do where two lists have one id

    def blocks(self, path: PathLike) -> Iterator[Lists]:
        with open_stream(path, strict=False) as stream:
            lines = LineReader(stream)
            yield from self.lists(lines, self.records(lines))

    def can_split(self, traits: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Whether the stretches of a file can be read alone, given what the first lists tell of all."""
        return False

    def stretches(self, stream: InputStream, lists: int, size: int) -> Iterator[Part]:
        """A file in stretches of about as many lists and bytes at most; here each line is a list."""
        line, ordinal, rest, piece = 0, 0, b"", b"-"
        while piece and len(rest) <= MAX_LINE + size:  # nobody reads further
            piece = stream.read(size)
            *whole, rest = (rest + piece).split(b"\n")
            for first in range(0, len(whole), lists):
                some = whole[first : first + lists]
                count = sum(map(bool, map(bytes.strip, some)))
                yield b"\n".join([*some, b""]), line, ordinal, count
                line, ordinal = line + len(some), ordinal + count
        if rest:
            yield rest, line, ordinal, int(bool(rest.strip()))

    def lists(
        self, lines: LineReader, records: Iterable[Record], id_places: dict[str, Place] | None = None
    ) -> Iterator[Lists]:
        """The lists that records of a file (or of several, ``lines`` being those of the first) describe.

        id_places: the places of earlier lists by their ids, where other files have some; these are added to them.
        """
        id_places = {} if id_places is None else id_places
        for block in self.build_lists(lines, records):
            repeats = len({*block.ids}) < block.list_count or not id_places.keys().isdisjoint(block.ids)
            if block.list_count > 1 and not repeats and self.duplicates == "keep":
                id_places |= {name: (block.path, line) for name, line in zip(block.ids, block.starts, strict=True)}
                yield block
                continue
            for nbest in block.each():
                name = nbest.id if nbest.problem is None else nbest.problem.name
                if name in id_places:
                    path, line = id_places[name]
                    where = f"at line {line}" if path == nbest.path else f"at line {line} of {path}"
                    ids_advice = "the reader's option ids: ordinal numbers the lists instead"
                    advice = ids_advice if self.offers("ids") else self.apart
                    message = f"the id is also that of {f'the list {where}' if line else 'an earlier list'}; {advice}"
                    nbest = nbest.leave_out(Problem("duplicate id", message), nbest.size)
                else:
                    id_places[name] = nbest.path, nbest.line
                yield nbest if nbest.problem is not None else nbest.count_repeats(self.duplicates)

    def with_ids(self, lines: LineReader, records: Iterable[Record]) -> Iterator[tuple[str, Record] | Problem]:
        """The records with their ids, or the problems of those that are bad."""
        for ordinal, record in enumerate(records, start=lines.records):
            name = str(ordinal) if record.id is None or self.ids == "ordinal" else record.id
            bad = isinstance(record.content, Problem)
            yield record.content.at(name, lines.path, record.line) if bad else (name, record)

    @abstractmethod
    def records(self, lines: LineReader) -> Iterator[Record]:
        """The parts of the file that hold a list each, past everything that is damaged."""

    @abstractmethod
    def build_lists(self, lines: LineReader, records: Iterable[Record]) -> Iterator[Lists]:
        """The lists that records describe, those that cannot be used alone, others several at a time or alone."""


def whole_number(text: str) -> int | None:
    """The number that at most 18 digits denote, which an array can hold; None for all else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def as_number(text: bytes) -> float | None:
    """The number that ``text`` denotes, or None."""
    try:
        return float(text) if b"_" not in text else None  # Python reads 1_000 as a number
    except ValueError:
        return None


def numbers(text: bytes) -> list[float] | None:
    """The white-space separated numbers of ``text``; None if there are none, or there is something else."""
    values = [as_number(word) for word in text.split()]
    return [value for value in values if value is not None] if values and None not in values else None


def scores_of(
    text: bytes, what: str, line: int | None = None, path: str | None = None, count: int | None = None
) -> list[float]:
    """The numbers of ``text``, ``count`` of them if that is said, which are those of a candidate; line, path: see
    ``Problem``."""
    scores = numbers(text)
    if scores is None or count not in (None, len(scores)):
        raise Problem("score", f"found {excerpt(text)}; expected {what}", line, path=path)
    if not all(map(math.isfinite, scores)):
        raise Problem("infinite score", f"found {excerpt(text)}; expected finite scores", line, path=path)
    return scores


def score_of(text: bytes, line: int | None = None, path: str | None = None) -> float:
    """The one number of ``text``, the score of a candidate; line, path: see ``Problem``."""
    return scores_of(text, "the candidate's score", line, path, 1)[0]


def word_scores(scores: Sequence[float]) -> list[float]:
    """The sum of the scores of a candidate's words, their mean, the least of them, and their number."""
    total, count = sum(scores), len(scores)
    if not math.isfinite(total):
        raise Problem("infinite score", "the scores of the candidate's words have no finite sum")
    return [total, total / count, min(scores), float(count)] if count else [0.0, 0.0, 0.0, 0.0]
