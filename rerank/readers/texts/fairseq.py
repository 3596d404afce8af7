"""The output of fairseq-generate and fairseq-interactive: records of sources, targets and hypotheses.

A list as this reads it (\\t is a tab), with one hypothesis::

    S-7\\tes regnet .
    T-7\\tit rains .
    H-7\\t-0.35\\tit rains .
    D-7\\t-0.35\\tIt rains.
    P-7\\t-0.2 -0.5 -0.35

A list is a run of records with the same number; an ``H`` starts a hypothesis, and the ``D``, ``P``, ``A`` and ``I``
that follow belong to it. Lists are in the order of fairseq's batches, not of their numbers; T is missing if fairseq has
no target, D and P in old versions. Other lines are the log: anything before the first and after the last list; between
lists, empty lines and those that look like fairseq's.

The scores are that of H ("score", the base score: log probability to base 2, divided by a power of the length) and,
with P, the sum, mean and minimum of the words' scores and their number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from rerank.base.errors import DataError
from rerank.readers.base import BadList, NBestList, Reader, check_choice, excerpt, readers
from rerank.readers.lines import LineReader
from rerank.readers.streams import PathLike, Writable, open_stream
from rerank.readers.texts.pieces import ListError, Pieces, each, first_places, left_out
from rerank.readers.texts.text_list import TextList
from rerank.readers.trees.parses import numbers

LARGEST_GAP = 1_000_000  # lists missing in a row; more are not a gap but another kind of number

_RECORD = re.compile(rb"([STHDPAIECWO])-(\d{1,18})(?:_\d+)?(?:\t|$)")
_LOG = re.compile(rb"\s*$|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\| |INFO|WARNING|Namespace\(|Generate |Translated |NOTE:")
_COLUMNS: tuple[tuple[str, ...], ...] = ("score",), ("score", "sum", "mean", "min", "length")  # without and with P


@dataclass
class _Block:
    """The records of one list: those before the first hypothesis, and those of every hypothesis."""

    number: int
    line: int
    head: list[bytes] = field(default_factory=list)
    hypotheses: list[list[bytes]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    stray: tuple[int, bytes] | None = None

    def add(self, kind: bytes, text: bytes, line: int) -> None:
        if kind == b"H":
            self.hypotheses.append([])
            self.lines.append(line)
        (self.hypotheses[-1] if self.hypotheses else self.head).append(text)


class _Hypothesis(NamedTuple):
    """One candidate."""

    text: bytes
    scores: list[float]
    alignment: bytes | None


@readers.add("fairseq")
@dataclass(frozen=True)
class FairseqReader(Reader):
    """Lists of fairseq-generate.

    Parameters
    ----------
    text: "H", the hypotheses as they were generated, or "D", detokenised.
    order: "file", or "id" for lists by increasing number from 0, with empty lists for missing ones; that keeps all
        lists of the file in memory.
    duplicates: "keep" candidates that repeat the text of an earlier one, or "drop" them; both count them.
    """

    text: Literal["H", "D"] = "H"
    order: Literal["file", "id"] = "file"
    duplicates: Literal["keep", "drop"] = "keep"

    def __post_init__(self) -> None:
        check_choice("text", self.text, ("H", "D"))
        check_choice("order", self.order, ("file", "id"))
        check_choice("duplicates", self.duplicates, ("keep", "drop"))

    def read(self, path: PathLike) -> Iterator[NBestList | BadList]:
        """See ``Reader.read``."""
        with open_stream(path) as stream:
            lines = LineReader(stream)
            lists = self._lists(lines)
            yield from lists if self.order == "file" else _by_number(lists, lines.path)

    def write(
        self, out: Writable, nbest: NBestList, order: Sequence[int] | None = None, scores: np.ndarray | None = None
    ) -> None:
        """See ``Reader.write``; new scores replace the old ones in H and D, everything else stays as it is."""
        assert isinstance(nbest, TextList), "lists of fairseq's records"
        found = list(nbest.raw.head)
        for i in range(len(nbest)) if order is None else order:
            for record in nbest.raw.candidates[i]:
                if scores is None or record[:1] not in (b"H", b"D"):
                    found.append(record)
                else:
                    name, _, *text = record.split(b"\t", 2)
                    found.append(b"\t".join([name, repr(float(scores[i])).encode(), *text]))
        out.write(b"".join(record + b"\n" for record in found))

    def write_bad(self, out: Writable, bad: BadList, like: NBestList | None) -> None:  # noqa: ARG002
        """See ``Reader.write_bad``; writes an empty source and no hypothesis."""
        out.write(f"S-{bad.id}\t\n".encode())

    def _lists(self, lines: LineReader) -> Iterator[TextList | BadList]:
        """The lists in the order of the file."""
        seen: dict[int, int] = {}
        names = self.known.names if self.known is not None and self.known.names in _COLUMNS else None
        for block in _blocks(lines):
            try:
                if block.number in seen:
                    where = f"line {seen[block.number]}"
                    raise ListError("duplicate id", f"the number is also that of the list at {where}; remove one")
                seen[block.number] = block.line
                found = self._build(block, lines.path, names)
                names = found.names if isinstance(found, TextList) and len(found) else names
                yield found
            except ListError as fault:
                where_line = block.line if fault.line is None else fault.line
                yield BadList(str(block.number), lines.path, where_line, fault.reason, fault.message)

    def _build(self, block: _Block, path: str, names: tuple[str, ...] | None) -> TextList | BadList:
        """The list of a block; ``names`` are the columns of earlier lists. Raises ListError."""
        if block.stray is not None:
            line, text = block.stray
            raise ListError("record", f"found {excerpt(text)}; expected a record of fairseq, 'H-...'", line)
        head = _fields(block.head, block.line)
        if misplaced := head.keys() & {b"D", b"P", b"A"}:
            kind = min(misplaced).decode()
            raise ListError("record", f"found '{kind}-{block.number}' before any 'H-{block.number}'")
        found, faults = each(block.hypotheses, lambda records, k: _hypothesis(records, self.text, block.lines[k - 1]))
        if names is None:
            names = _COLUMNS[any(len(one.scores) > 1 for one in found.values())]
        for k, one in found.items():
            if len(one.scores) != len(names):
                there = "no scores of words, 'P-...'," if len(one.scores) == 1 else "scores of words, 'P-...',"
                faults[k] = ListError("columns", f"the candidate has {there} unlike the file's first list")
        bad = left_out(faults, str(block.number), path, block.lines)
        if bad and len(bad) == len(block.lines):
            return BadList.of(bad)
        places = [k for k in found if k not in faults]
        kept = first_places([found[k].text for k in places])
        repeated = len(places) - len(kept)
        if repeated and self.duplicates == "drop":
            places = [places[k] for k in kept]
        good = [found[k] for k in places]
        alignments = [one.alignment for one in good]
        return TextList(
            id=str(block.number), path=path, line=block.line, texts=[one.text for one in good],
            lines=[block.lines[k] for k in places],
            scores=np.array([one.scores for one in good], np.float64).reshape(len(good), len(names)),
            duplicates=repeated, form="fairseq", bad=tuple(bad), names=names,
            alignment=[(one or b"").strip() for one in alignments] if any(alignments) else None,
            source=head[b"S"].strip() if b"S" in head else None,
            references=(head[b"T"].strip(),) if b"T" in head else (),
            raw=Pieces(block.head, [block.hypotheses[k] for k in places]),
        )  # fmt: skip


def _blocks(lines: LineReader) -> Iterator[_Block]:
    """The records of one list after the other; a stray line counts only if records follow it."""
    block: _Block | None = None
    stray: tuple[int, bytes] | None = None
    for line, text in lines:
        record = _RECORD.match(text)
        if record is None:
            if block is not None and stray is None and not _LOG.match(text):
                stray = line, text
            continue
        kind, number = record[1], int(record[2])
        if block is not None:
            block.stray = block.stray or stray
        if block is None or number != block.number or (kind in (b"S", b"T") and block.hypotheses):
            if block is not None:
                yield block
            block = _Block(number, line)
        stray = None
        block.add(kind, text, line)
    if block is not None:
        yield block


def _by_number(lists: Iterator[TextList | BadList], path: str) -> Iterator[TextList | BadList]:
    """All lists by increasing number from 0, bad ones too; missing ones become lists without candidates."""
    found = sorted(lists, key=lambda one: int(one.id))
    names = next((one.names for one in found if isinstance(one, TextList) and len(one)), ("score",))
    following = 0
    for one in found:
        number = int(one.id)
        if number - following > LARGEST_GAP:
            message = f"no lists from {following} to {number - 1}; expected numbers without such a gap"
            raise DataError(message, path=path, line=one.line, list_id=one.id)
        for missing in range(following, number):
            yield TextList(
                str(missing), path, one.line, [], [], np.empty((0, len(names))), form="fairseq", names=names,
                raw=Pieces([], []),
            )  # fmt: skip
        following = number + 1
        yield one


def _fields(records: list[bytes], line: int) -> dict[bytes, bytes]:
    """What follows the first tab of the records, by the letter of their kind. Raises ListError."""
    found: dict[bytes, bytes] = {}
    for record in records:
        kind = record[:1]
        if kind in found and kind in b"STDPA":
            raise ListError("record", f"two records {kind.decode()!r} where one is expected: {excerpt(record)}", line)
        if kind in b"HDPA" and b"\t" not in record:
            raise ListError("record", f"found {excerpt(record)}; expected a tab behind the number", line)
        if b"\0" in record:
            raise ListError("nul", "a NUL byte; the file is damaged or not a text file", line)
        found[kind] = record.partition(b"\t")[2]
    return found


def _hypothesis(records: list[bytes], kind: str, line: int) -> _Hypothesis:
    """What the records of a hypothesis say. Raises ListError."""
    fields = _fields(records, line)
    return _Hypothesis(_text(fields, kind, line), _scores(fields, line), fields.get(b"A"))


def _text(fields: dict[bytes, bytes], kind: str, line: int) -> bytes:
    """The text of a hypothesis."""
    if kind.encode() not in fields:
        raise ListError("record", f"a candidate without {kind!r}; set the reader's option text: H", line)
    _, tab, text = fields[kind.encode()].partition(b"\t")
    if not tab:
        raise ListError("record", f"no text behind the score of {kind!r}; expected a tab and the text", line)
    return text.strip()


def _scores(fields: dict[bytes, bytes], line: int) -> list[float]:
    """The score of a hypothesis and, with P, statistics of the scores of its words."""
    total = fields[b"H"].partition(b"\t")[0]
    values = numbers(total)
    if values is None or len(values) != 1:
        raise ListError("score", f"found {excerpt(total)}; expected the candidate's score", line)
    if b"P" in fields:
        words = numbers(fields[b"P"]) if fields[b"P"].strip() else []
        if words is None:
            raise ListError("score", f"found {excerpt(fields[b'P'])}; expected the scores of words", line)
        count = len(words)
        values += [sum(words), sum(words) / count, min(words), float(count)] if count else [0.0, 0.0, 0.0, 0.0]
    if not all(map(math.isfinite, values)):
        raise ListError("infinite score", "NaN or an infinite score of the candidate or its words", line)
    return values
