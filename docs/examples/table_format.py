"""Tables of candidates: id, score, language model score and text, with tabs between them; an id alone: no candidate."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from rerank.readers.lines import LineReader, Record, scores_of
from rerank.readers.reader import Lists, Order, Problem, Scores, excerpt
from rerank.readers.texts.text_list import Draft, Entry, TextReader
from rerank.storage.streams import Writable


@dataclass(frozen=True)
class TableReader(TextReader):
    """Lists in tables; the options are ``TextReader``'s."""

    form: ClassVar[str] = "table"

    def records(self, lines: LineReader) -> Iterator[Record]:
        for name, rows in groupby(lines, key=lambda line: line[1].partition(b"\t")[0]):
            content = list(rows)  # line numbers and lines
            yield Record(name.decode("utf-8", "surrogateescape") or None, content[0][0], content)

    def draft(self, content: list[tuple[int, bytes]]) -> Draft:
        numbers, rows = [number for number, _ in content], [row for _, row in content]
        if rows[0].startswith(b"\t"):
            raise Problem("id", f"found {excerpt(rows[0])}; expected the id of a list before the first tab")
        rows = [] if rows == [rows[0].partition(b"\t")[0]] else rows
        return Draft.of(rows, _candidate, lines=numbers[: len(rows)])

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        for i in range(len(nbest)) if order is None else order:
            name, score, rest = nbest.raw.candidates[i].split(b"\t", 2)
            out.write(b"\t".join([name, score if scores is None else repr(float(scores[i])).encode(), rest]) + b"\n")
        if not len(nbest):
            out.write(nbest.id.encode("utf-8", "surrogateescape") + b"\n")


def _candidate(row: bytes, _: int) -> Entry:
    fields = row.split(b"\t")
    if len(fields) != 4:
        raise Problem("fields", f"found {len(fields)} fields in {excerpt(row)}; expected id, score, lm and text")
    numbers = [scores_of(field, "a score") for field in fields[1:3]]
    if any(len(found) != 1 for found in numbers):
        raise Problem("score", f"found {excerpt(row)}; expected one number in each of its columns score and lm")
    (score,), (lm,) = numbers
    return Entry(fields[3].strip(), {"score": score, "lm": lm})
