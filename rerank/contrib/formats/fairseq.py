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
lists, empty lines, lines that look like fairseq's and, in a session of fairseq-interactive, what was typed before an S.
Any other line between two lists is the fault of the second if that has no S where others do; it is a bad list of its
own if it looks like the S of one, and else the fault of the first.

The scores are that of H ("score", the base score: log probability to base 2, divided by a power of the length) and,
with P, the sum, mean and minimum of the words' scores and their number.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, ClassVar, Literal

from rerank.readers.base import LARGEST_GAP, Order, Problem, Scores, excerpt
from rerank.readers.lines import LineReader, Record, score_of, scores_of, word_scores
from rerank.readers.lists import Lists
from rerank.readers.problems import NUL
from rerank.readers.streams import Writable
from rerank.readers.texts.text_list import NUMBERS, OF_WORDS, SCORE, Draft, Entry, TextReader

_RECORD = re.compile(rb"([STHDPAIECWO])-(\d{1,18})(?:_\d+)?(?:\t|$)")
_LOG = re.compile(rb"\s*$|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\| |INFO|WARNING|Namespace\(|Generate |Translated |NOTE:")
_PROMPT = b"Type the input sentence and press return"  # of fairseq-interactive, on a terminal
_STARTS = b"STH "  # the records that a list may start with, and any other
_DAMAGED = re.compile(rb"S?\W?(\d{1,18})\t")  # the record S of a list, or what is left of it

Stray = tuple[int, bytes]  # a line, with its number, that is neither a record nor like the log


@dataclass
class _Block:
    """The records of one list: those before the first hypothesis, and those of every hypothesis."""

    number: int
    line: int
    head: list[bytes] = field(default_factory=list)
    hypotheses: list[list[bytes]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    stray: Stray | None = None  # a line among its records that is none
    before: list[Stray] = field(default_factory=list)  # those between the list before it and its own first record
    expected: str = "a record of fairseq, 'H-...'"  # in place of ``stray``

    @property
    def first(self) -> bytes:
        """Its first record."""
        return next(chain(self.head, *self.hypotheses), b"S")

    @property
    def start(self) -> int:
        """The place of its first record among those that a list may start with."""
        return _STARTS.find(self.first[:1]) % len(_STARTS)


@dataclass(frozen=True)
class FairseqReader(TextReader):
    """Lists of fairseq-generate.

    >>> (nbest,) = FairseqReader().parse(b"S-0\\tes regnet\\nH-0\\t-0.5\\tit rains\\nP-0\\t-0.5 -0.5 -0.5\\n")
    >>> nbest.source, nbest.texts, nbest.base
    (b'es regnet', [b'it rains'], array([-0.5]))

    Parameters
    ----------
    text: "H", the hypotheses as they were generated, or "D", detokenised.
    duplicates: "keep" candidates that repeat an earlier one of their list, or "drop" them; both count them.
    """

    form: ClassVar[str] = "fairseq"
    usual: ClassVar[tuple[str, ...]] = (*NUMBERS, *OF_WORDS)

    text: Literal["H", "D"] = "H"
    order: ClassVar[str] = "file"

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """New scores replace the old ones in H and D, everything else stays as it is."""
        assert not nbest.of_trees, "lists of fairseq's records"
        records = list(nbest.raw.head)
        for i in range(len(nbest)) if order is None else order:
            for record in nbest.raw.candidates[i]:
                if scores is None or record[:1] not in (b"H", b"D"):
                    records.append(record)
                else:
                    name, _, *text = record.split(b"\t", 2)
                    records.append(b"\t".join([name, repr(float(scores[i])).encode(), *text]))
        out.write(b"".join(record + b"\n" for record in records))

    def write_bad(self, out: Writable, bad: Problem, like: Lists | None) -> None:  # noqa: ARG002
        """Writes an empty source and no hypothesis."""
        out.write(f"S-{bad.id}\t\n".encode())

    def records(self, lines: LineReader) -> Iterator[Record]:
        for block in _told_apart(_blocks(lines)):
            yield Record(str(block.number), block.line, block)

    def draft(self, content: _Block) -> Draft:
        if content.stray is not None:
            line, text = content.stray
            raise Problem("record", f"found {excerpt(text)}; expected {content.expected}", line)
        head = _fields(content.head)
        if misplaced := head.keys() & {b"D", b"P", b"A"}:
            kind = min(misplaced).decode()
            raise Problem("record", f"found '{kind}-{content.number}' before any 'H-{content.number}'")
        sides: dict[str, Any] = {"source": head[b"S"].strip()} if b"S" in head else {}
        sides |= {"references": (head[b"T"].strip(),)} if b"T" in head else {}
        worded = any(record[:1] == b"P" for records in content.hypotheses for record in records)

        def entry(records: list[bytes], _: int) -> Entry:
            """That of a hypothesis. Raises Problem."""
            fields = _fields(records)
            if worded and b"P" not in fields:
                missing = f"no record 'P-{content.number}', the scores of its words"
                raise Problem(
                    "columns", f"{missing}, unlike others of the file; fairseq writes one for each hypothesis"
                )
            return self._entry(fields)

        return Draft.of(content.hypotheses, entry, head=content.head, lines=content.lines, sides=sides)

    def _entry(self, fields: dict[bytes, bytes]) -> Entry:
        """The entry in the fields of a hypothesis. Raises Problem."""
        kind = self.text.encode()
        if kind not in fields:
            raise Problem("record", f"a candidate without {self.text!r}; set the reader's option text: H")
        _score, tab, text = fields[kind].partition(b"\t")
        if not tab:
            raise Problem("record", f"no text after the score of {self.text!r}; expected a tab and the text")
        numbers = {SCORE: score_of(fields[b"H"].partition(b"\t")[0])}
        if b"P" in fields:
            scores = scores_of(fields[b"P"], "the scores of words") if fields[b"P"].strip() else []
            numbers |= zip(OF_WORDS, word_scores(scores), strict=True)
        alignment = fields.get(b"A")
        return Entry(text, numbers, alignment=alignment.strip() if alignment else None)


def _told_apart(blocks: Iterator[_Block]) -> Iterator[_Block]:
    """The blocks, with lines between two of them, and first records that are missing, as faults of one or the other."""
    ahead, last = list(islice(blocks, 2)), None
    usual = min((block.start for block in ahead if block.head or block.hypotheses), default=0)
    for block in chain(ahead, blocks):
        if block.start > usual and block.stray is None:
            block.stray = (block.before or [(block.line, block.first)])[-1]
            block.expected = f"'{chr(_STARTS[usual])}-{block.number}', with which lists of the file start"
        elif last is not None and block.before:
            last.stray = last.stray or block.before[0]
        if last is not None:
            yield last
        last = block
    if last is not None:
        yield last


def _blocks(lines: LineReader) -> Iterator[_Block]:
    """The records of one list after the other; a stray line counts only if records follow it."""
    block: _Block | None = None
    strays = list[Stray]()
    typed, logged = False, False
    for line, text in lines:
        record = _RECORD.match(text)
        if record is None:
            typed = typed or _PROMPT in text
            log = _LOG.match(text) is not None
            logged = logged or (log and bool(text.strip()))
            if not log and len(strays) < LARGEST_GAP:
                strays.append((line, text))
            continue
        kind, number = record[1], int(record[2])
        if block is None:
            block, strays = _Block(number, line), []
        elif number != block.number or (kind in (b"S", b"T") and block.hypotheses):
            yield block
            if typed and kind == b"S" and strays and b"\t" not in strays[0][1]:  # what S is the record of
                strays = []
            lost = _lost(strays, {block.number, number})
            yield from lost
            block, strays = _Block(number, line, before=[] if lost else strays), []
        elif strays:
            block.stray, strays = block.stray or strays[0], []
        if kind == b"H":
            block.hypotheses.append([])
            block.lines.append(line)
        (block.hypotheses[-1] if block.hypotheses else block.head).append(text)
    if block is not None:
        yield block
        yield from _lost(strays, {block.number})
    elif strays and not logged:  # nothing of fairseq's
        yield _Block(0, strays[0][0], stray=strays[0])


def _lost(strays: list[Stray], near: set[int]) -> list[_Block]:
    """The lists of which lines between two others seem to be the first; ``near`` are the numbers of those two."""
    damaged = [(int(seen[1]), stray) for stray in strays if (seen := _DAMAGED.match(stray[1]))]
    return [_Block(number, stray[0], stray=stray) for number, stray in damaged if number not in near]


def _fields(records: list[bytes]) -> dict[bytes, bytes]:
    """The text behind the first tab of the records, by the letter of their kind. Raises Problem."""
    fields: dict[bytes, bytes] = {}
    for record in records:
        kind = record[:1]
        if kind in fields and kind in b"STDPA":
            raise Problem("record", f"duplicate {kind.decode()!r} record: {excerpt(record)}")
        if kind in b"HDPA" and b"\t" not in record:
            raise Problem("record", f"found {excerpt(record)}; expected a tab after the number")
        if b"\0" in record:
            raise Problem("nul", NUL)
        fields[kind] = record.partition(b"\t")[2]
    return fields
