"""The lists of programs that translate: fairseq, OpenNMT and CTranslate2, and Sockeye."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from rerank.base.errors import DataError, RecipeError
from rerank.base.ranges import Range
from rerank.readers.lines import LineReader, Record, numbers, score_of, scores_of, word_scores
from rerank.readers.lists import Lists
from rerank.readers.problems import NUL
from rerank.readers.reader import LARGEST_GAP, Order, Problem, Scores, excerpt
from rerank.readers.texts.json_lines import JsonReader, as_bytes, json_line, number_of, show
from rerank.readers.texts.text_list import NUMBERS, OF_WORDS, SCORE, Draft, Entry, TextReader
from rerank.storage.streams import Writable

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
    before: list[Stray] = field(default_factory=list)  # the lines between the list before it and its own first record
    expectation: str = "a record of fairseq, 'H-...'"  # in place of ``stray``

    @property
    def first(self) -> bytes:
        """The first record of the list."""
        return next(chain(self.head, *self.hypotheses), b"S")

    @property
    def start(self) -> int:
        """The index of its first record among those that a list may start with."""
        return _STARTS.find(self.first[:1]) % len(_STARTS)


@dataclass(frozen=True)
class FairseqReader(TextReader):
    """The output of fairseq-generate and fairseq-interactive: records of sources, targets and hypotheses.

    A list as this reads it (\\t is a tab), with one hypothesis::

        S-7\\tes regnet .
        T-7\\tit rains .
        H-7\\t-0.35\\tit rains .
        D-7\\t-0.35\\tIt rains.
        P-7\\t-0.2 -0.5 -0.35

    A list is a run of records with the same number; an ``H`` starts a hypothesis, and the ``D``, ``P``, ``A`` and ``I``
    that follow belong to it. Lists are in the order of fairseq's batches, not of their numbers; T is missing if fairseq
    has no target, D and P in old versions. Other lines are the log. Between two lists, a line that does not look
    like fairseq's log makes a list bad.

    The scores are that of H ("score", the base score: log probability to base 2, divided by a power of the length) and,
    with P, the sum, mean and minimum of the words' scores and their number.

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
        for block in _mark_faults(_blocks(lines)):
            yield Record(str(block.number), block.line, block)

    def draft(self, content: _Block) -> Draft:
        if content.stray is not None:
            line, text = content.stray
            raise Problem("record", f"found {excerpt(text)}; expected {content.expectation}", line)
        head = _fields(content.head)
        if kinds := head.keys() & {b"D", b"P", b"A"}:
            kind = min(kinds).decode()
            raise Problem("record", f"found '{kind}-{content.number}' before any 'H-{content.number}'")
        sides: dict[str, Any] = {"source": head[b"S"].strip()} if b"S" in head else {}
        sides |= {"references": (head[b"T"].strip(),)} if b"T" in head else {}
        has_scores = any(record[:1] == b"P" for records in content.hypotheses for record in records)

        def entry(records: list[bytes], _: int) -> Entry:
            """The entry of a hypothesis. Raises Problem."""
            fields = _fields(records)
            if has_scores and b"P" not in fields:
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


def _mark_faults(blocks: Iterator[_Block]) -> Iterator[_Block]:
    """Yield the blocks; lines between two, and first records that are missing, are faults of one or the other."""
    head, last = list(islice(blocks, 2)), None
    usual = min((block.start for block in head if block.head or block.hypotheses), default=0)
    for block in chain(head, blocks):
        if block.start > usual and block.stray is None:
            block.stray = (block.before or [(block.line, block.first)])[-1]
            block.expectation = f"'{chr(_STARTS[usual])}-{block.number}', with which lists of the file start"
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
    interactive, has_log = False, False
    for line, text in lines:
        record = _RECORD.match(text)
        if record is None:
            interactive = interactive or _PROMPT in text
            log = _LOG.match(text) is not None
            has_log = has_log or (log and bool(text.strip()))
            if not log and len(strays) < LARGEST_GAP:
                strays.append((line, text))
            continue
        kind, number = record[1], int(record[2])
        if block is None:
            block, strays = _Block(number, line), []
        elif number != block.number or (kind in (b"S", b"T") and block.hypotheses):
            yield block
            if interactive and kind == b"S" and strays and b"\t" not in strays[0][1]:  # what S is the record of
                strays = []
            blocks = _lost_lists(strays, {block.number, number})
            yield from blocks
            block, strays = _Block(number, line, before=[] if blocks else strays), []
        elif strays:
            block.stray, strays = block.stray or strays[0], []
        if kind == b"H":
            block.hypotheses.append([])
            block.lines.append(line)
        (block.hypotheses[-1] if block.hypotheses else block.head).append(text)
    if block is not None:
        yield block
        yield from _lost_lists(strays, {block.number})
    elif strays and not has_log:  # nothing of fairseq's
        yield _Block(0, strays[0][0], stray=strays[0])


def _lost_lists(strays: list[Stray], neighbours: set[int]) -> list[_Block]:
    """The lists of which lines between two others seem to be the first; ``neighbours`` are the numbers of those two."""
    numbers = [(int(match[1]), stray) for stray in strays if (match := _DAMAGED.match(stray[1]))]
    return [_Block(number, stray[0], stray=stray) for number, stray in numbers if number not in neighbours]


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


_BARS = b" |||"
_ALIGNMENT = re.compile(rb"(?:\d+-\d+(?:\s+|$))*$")
_NUMERALS = re.compile(rb"[\d\s.,;+e-]*$")  # an alignment, scores of words, or the weights of a soft alignment


@dataclass(frozen=True)
class OpenNmtReader(TextReader):
    """The n-best output of OpenNMT and CTranslate2: n lines for every source, one after the other.

    Three lines of each variant this reads::

        it rains .
        it rains . ||| 0-0 1-1 2-2
        it rains .	-0.35

        -0.350000 ||| it rains .
        -0.350000 ||| it rains . ||| -0.1 -0.05 -0.2 ||| 0-0 1-1 2-2
        -0.350000 |||

    Lines of OpenNMT-py are a text, and with ``-with_score`` a tab and its score; lines of OpenNMT-tf and CTranslate2
    with ``with_scores`` are a score and a text. Behind the text may be the scores of its words, which give the columns
    ``sum``, ``mean``, ``min`` and ``length``, and a word alignment; a soft one is not used. A line without anything is
    not a candidate, but fills a list up to n lines. The ids are the ordinals of the lists, from 0.

    >>> (nbest,) = OpenNmtReader(n=2).parse(b"it rains .\\t-0.25\\nit rained .\\t-0.5\\n")
    >>> nbest.texts, nbest.base
    ([b'it rains .', b'it rained .'], array([-0.25, -0.5 ]))

    Parameters
    ----------
    duplicates: see ``ListReader``.
    n: how many lines there are for every source: the ``n_best`` of the translation.
    """

    form: ClassVar[str] = "opennmt"
    bounded: ClassVar[bool] = True
    trial: ClassVar[Mapping[str, Any]] = {"n": 1}

    n: Annotated[int, Range(1)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n is None:
            raise RecipeError("the reader opennmt needs to know how many lines a source has; set its n", key="n")

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """New scores replace the old ones; texts without scores are written as by OpenNMT-tf."""
        assert not nbest.of_trees, "lists of OpenNMT"
        indices = range(len(nbest)) if order is None else order
        rows: list[bytes] = [nbest.raw.candidates[i] for i in indices]
        if scores is not None:
            rows = [_rescore(row, float(scores[i])) for row, i in zip(rows, indices, strict=True)]
        out.write(b"\n".join([*rows, *[b""] * ((self.n or 0) - len(rows))]) + b"\n")

    def write_bad(self, out: Writable, bad: Problem, like: Lists | None) -> None:  # noqa: ARG002
        """Writes n empty lines."""
        out.write(b"\n" * (self.n or 0))

    def records(self, lines: LineReader) -> Iterator[Record]:
        rest, n = iter(lines), self.n or 1
        while rows := list(islice(rest, n)):
            if len(rows) < n:
                message = f"found {lines.number:,} lines; expected {n} for every source, n in the reader's options. Is "
                message += "that n? If it is, a list has lost or gained lines, and those after it are not what they say"
                raise DataError(message, path=lines.path, line=lines.number)
            yield Record(None, rows[0][0], [(number, row) for number, row in rows if row.strip()])

    def draft(self, content: list[tuple[int, bytes]]) -> Draft:
        rows = [row for _, row in content]
        return Draft.of(rows, _candidate, lines=[number for number, _ in content])


class _Parts(NamedTuple):
    """A line taken apart: ``score`` is None if there is none, ``first`` tells whether it comes before the text."""

    score: bytes | None
    first: bool
    text: bytes
    others: list[bytes]  # the fields after the text


def _parts(row: bytes) -> _Parts:
    """The parts of a line, not checked yet."""
    body, tab, after = row.rpartition(b"\t")
    fields = (body if tab else row).split(_BARS)
    first = len(fields) > 1 and not tab and (numbers(fields[0]) is not None or not _NUMERALS.match(fields[1]))
    score = fields.pop(0) if first else after if tab else None
    text, *others = fields
    return _Parts(score, first, text.removeprefix(b" ") if first else text, list(map(bytes.strip, others)))


def _candidate(row: bytes, _: int) -> Entry:
    """The entry on a line. Raises Problem."""
    if b"\0" in row:
        raise Problem("nul", NUL)
    parts, by_column, alignment = _parts(row), dict[str, float](), None
    if b"\t" in parts.text:
        raise Problem("text", f"found {excerpt(row)}; expected one tab, between a text and its score")
    if parts.score is not None:
        by_column[SCORE] = score_of(parts.score)
    if not parts.text.strip() and parts.others[:1] == [b""]:
        by_column |= zip(OF_WORDS, word_scores([]), strict=True)
    for part in parts.others:
        if _ALIGNMENT.match(part):
            alignment = part
        elif (values := numbers(part) or []) != []:
            by_column |= zip(OF_WORDS, word_scores(values), strict=True)
        elif not _NUMERALS.match(part):
            message = f"found {excerpt(part)} after the text; expected the scores of its words, or a word alignment"
            raise Problem("alignment", message)
    return Entry(parts.text, by_column, alignment=alignment)


def _rescore(row: bytes, score: float) -> bytes:
    """A line with another score."""
    parts, new = _parts(row), repr(score).encode()
    if parts.score is None:
        return new + _BARS + b" " + row
    return new + row[len(parts.score) :] if parts.first else row[: len(row) - len(parts.score)] + new


_FACTORS = "translations_factors"


class _Row(NamedTuple):
    """One translation; ``nested``: whether its scores are a list in the file."""

    text: Any
    values: list[Any]
    nested: bool
    factors: Any


@dataclass(frozen=True)
class SockeyeReader(JsonReader):
    """The JSON lines of sockeye's translator (``--output-type json``), with or without n-best lists.

    Three lines this reads::

        {"score": 0.3, "scores": [[0.3], [0.9]], "sentence_id": 1, "translation": "a b", "translations": ["a b", "a c"]}
        {"score": 1.5, "scores": [1.5, 2.5], "sentence_id": 2, "translation": "d", "translations": ["d", "e"]}
        {"score": 0.7, "sentence_id": 3, "translation": "f"}

    ``translations`` and ``scores`` are missing if there is only one translation. A translation has one score or a list
    of them, the first of which is its own; the others are scores of target factors. Sockeye's scores are negative log
    probabilities, so the base score is their negative. An empty translation with an infinite score, sockeye's answer to
    an empty or unusable input, is a list without candidates.

    >>> (nbest,) = SockeyeReader().parse(b'{"translations": ["a b", "a c"], "scores": [0.25, 0.5]}')
    >>> nbest.texts, nbest.base
    ([b'a b', b'a c'], array([-0.25, -0.5 ]))

    Parameters
    ----------
    duplicates, ids: see ``JsonReader``.
    scores: "cost" if lower is better, as sockeye writes them, or "score" (or "logprob") if higher is better.
    """

    form: ClassVar[str] = "sockeye"
    json: ClassVar[str] = "costs"

    scores: Literal["cost", "score", "logprob"] = "cost"

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """New scores replace the old ones, negated for ``scores: cost``."""
        assert not nbest.of_trees, "lists of sockeye's JSON lines"
        indices = list(range(len(nbest)) if order is None else order)
        if scores is None and indices == list(range(len(nbest))) and not nbest.bad:
            out.write(json_line(nbest.raw.head, nbest))
            return
        sign = -1.0 if self.scores == "cost" else 1.0
        rows: list[_Row] = [nbest.raw.candidates[i] for i in indices]
        if scores is not None:
            new = [sign * float(scores[i]) + 0.0 for i in indices]
            rows = [row._replace(values=[one, *row.values[1:]]) for one, row in zip(new, rows, strict=True)]
        item = dict(nbest.raw.head)
        if rows:
            item |= {"translation": rows[0].text, "score": rows[0].values[0], **rows[0].factors}
        if "translations" in item or len(rows) > 1:
            nested = any(row.nested for row in rows)
            item["translations"] = [row.text for row in rows]
            item["scores"] = [row.values if nested else row.values[0] for row in rows]
        if _FACTORS in item:
            item[_FACTORS] = [row.factors for row in rows]
        out.write(json_line(item, nbest))

    @property
    def nothing(self) -> dict[str, Any]:
        """The answer of sockeye to an input that it cannot use."""
        return {"translation": "", "score": float("inf")}

    @property
    def id_key(self) -> str:
        return "sentence_id"

    def draft(self, content: dict[str, Any]) -> Draft:
        """Most of a list's translations tell how many scores they have."""
        rows = _rows(content)
        width = Counter(len(row.values) for row in rows).most_common(1)[0][0] if rows else 1
        names = "score", *(f"factor{k}" for k in range(1, width))
        return Draft.of(rows, partial(self._candidate, names), head=content, names=names)

    def _candidate(self, names: tuple[str, ...], row: _Row, k: int) -> Entry:
        """Translation ``k``. Raises Problem."""
        if not row.values:
            raise Problem("score", f"translation {k} has no score")
        if len(row.values) != len(names):
            message = f"translation {k} has {len(row.values)} scores; most of the list have {len(names)}"
            raise Problem("columns", message)
        if not isinstance(row.factors, dict):
            raise Problem("columns", f"found {show(row.factors)} under {_FACTORS!r}; expected objects")
        text = as_bytes(row.text, f"translation {k}")
        what = f"the score of translation {k}"
        numbers = [number_of(value, what) for value in row.values]
        scores = [0.0 - number for number in numbers] if self.scores == "cost" else numbers
        return Entry(text, dict(zip(names, scores, strict=True)))


def _rows(item: dict[str, Any]) -> list[_Row]:
    """The translations of an object, not checked yet. Raises Problem."""
    if "translations" not in item:
        for key in ("translation", "score"):
            if key not in item:
                message = f"the object has no {key!r}, which sockeye writes with --output-type json"
                raise Problem("text" if key == "translation" else "score", message)
        score = item["score"]
        if item["translation"] == "" and isinstance(score, float) and score - score != 0.0:
            return []
        return [_Row(item["translation"], [score], False, {})]
    texts, scores = item["translations"], item.get("scores")
    factors = item.get(_FACTORS)
    if not isinstance(texts, list):
        raise Problem("text", f"found {show(texts)} under 'translations'; expected a list of texts")
    for key, values in (("scores", scores), (_FACTORS, [{}] * len(texts) if factors is None else factors)):
        if not isinstance(values, list) or len(values) != len(texts):
            value = f"{len(values)} entries" if isinstance(values, list) else show(values)
            raise Problem("columns", f"found {value} under {key!r}; expected one for each of {len(texts)} translations")
    rows = []
    for k, (text, score) in enumerate(zip(texts, scores or [], strict=True)):
        nested = isinstance(score, list)
        rows.append(_Row(text, score if nested else [score], nested, factors[k] if factors is not None else {}))
    return rows
