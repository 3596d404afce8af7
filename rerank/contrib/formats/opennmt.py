"""The n-best output of OpenNMT and CTranslate2: n lines for every source, one after the other.

Three lines of each variant this reads::

    it rains .
    it rains . ||| 0-0 1-1 2-2
    it rains .	-0.35

    -0.350000 ||| it rains .
    -0.350000 ||| it rains . ||| -0.1 -0.05 -0.2 ||| 0-0 1-1 2-2
    -0.350000 |||

Lines of OpenNMT-py are a text, and with ``-with_score`` a tab and its score; lines of OpenNMT-tf and CTranslate2 with
``with_scores`` are a score and a text. Behind the text may be the scores of its words, which give the columns ``sum``,
``mean``, ``min`` and ``length``, and a word alignment; a soft one is not used. A line without anything is not a
candidate, but fills a list up to n lines. The ids are the ordinals of the lists, from 0.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, ClassVar, NamedTuple

from rerank.base.errors import DataError, RecipeError
from rerank.base.ranges import Range
from rerank.readers.base import Order, Problem, Scores, excerpt
from rerank.readers.lines import LineReader, Record, numbers, score_of, word_scores
from rerank.readers.lists import Lists
from rerank.readers.problems import NUL
from rerank.readers.streams import Writable
from rerank.readers.texts.text_list import OF_WORDS, SCORE, Draft, Entry, TextReader

_BARS = b" |||"
_ALIGNMENT = re.compile(rb"(?:\d+-\d+(?:\s+|$))*$")
_NUMERALS = re.compile(rb"[\d\s.,;+e-]*$")  # an alignment, scores of words, or the weights of a soft alignment


@dataclass(frozen=True)
class OpenNmtReader(TextReader):
    """Lists of OpenNMT.

    >>> (nbest,) = OpenNmtReader(n=2).parse(b"it rains .\\t-0.25\\nit rained .\\t-0.5\\n")
    >>> nbest.texts, nbest.base
    ([b'it rains .', b'it rained .'], array([-0.25, -0.5 ]))

    Parameters
    ----------
    duplicates: see ``ListReader``.
    n: how many lines there are for every source: the ``n_best`` of the translation.
    """

    form: ClassVar[str] = "opennmt"
    trial: ClassVar[Mapping[str, Any]] = {"n": 1}

    n: Annotated[int, Range(1)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n is None:
            raise RecipeError("the reader opennmt needs to know how many lines a source has; set its n", key="n")

    @property
    def bounded(self) -> bool:
        return True

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """New scores replace the old ones; texts without scores are written as by OpenNMT-tf."""
        assert not nbest.of_trees, "lists of OpenNMT"
        chosen = range(len(nbest)) if order is None else order
        rows: list[bytes] = [nbest.raw.candidates[i] for i in chosen]
        if scores is not None:
            rows = [_rescored(row, float(scores[i])) for row, i in zip(rows, chosen, strict=True)]
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
    if parts.score is not None:
        by_column[SCORE] = score_of(parts.score)
    if not parts.text.strip() and parts.others[:1] == [b""]:
        by_column |= zip(OF_WORDS, word_scores([]), strict=True)
    for field in parts.others:
        if _ALIGNMENT.match(field):
            alignment = field
        elif (values := numbers(field) or []) != []:
            by_column |= zip(OF_WORDS, word_scores(values), strict=True)
        elif not _NUMERALS.match(field):
            message = f"found {excerpt(field)} after the text; expected the scores of its words, or a word alignment"
            raise Problem("alignment", message)
    return Entry(parts.text, by_column, alignment=alignment)


def _rescored(row: bytes, score: float) -> bytes:
    """A line with another score."""
    parts, new = _parts(row), repr(score).encode()
    if parts.score is None:
        return new + _BARS + b" " + row
    return new + row[len(parts.score) :] if parts.first else row[: len(row) - len(parts.score)] + new
