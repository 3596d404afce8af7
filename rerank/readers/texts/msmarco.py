"""Passages of MS MARCO: what a first engine found for each query, and triples to learn from.

Three lines of a file of found passages (``top1000.dev``), and one of triples, with tabs in place of bars here::

    188714 | 1000052 | foods and supplements to lower blood sugar | Watch portion sizes: even healthy foods ...
    1082792 | 1000084 | what does the golgi apparatus do | Start your free trial today. ...
    188714 | 1000084 | foods and supplements to lower blood sugar | What does the Golgi apparatus do ...

    what fruit is native to australia | Passiflora herbertiana is a rare passion fruit ... | The kola nut is ...

The fields of the first are the ids of query and passage, the texts of both and, where there is one, a score. Lines of a
query need not stand together, so the file is grouped in memory. A triple is a query, a passage that is relevant, and
one that is not; its passages are in the order of their texts, so that their places do not tell which is relevant.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from rerank.base.encoding import decoded
from rerank.readers.base import NBestList, Order, Problem, Scores, SkippedList, excerpt
from rerank.readers.lines import LineReader, Make, Record, score_of
from rerank.readers.problems import NUL
from rerank.readers.streams import PathLike, Writable
from rerank.readers.texts.text_list import SCORE, Draft, Entry, TextList, TextReader
from rerank.readers.texts.trec import GAIN, Scored, read_qrels, unlisted

Lines = list[tuple[int, bytes]]  # of a query, with their numbers
TRIPLES = "; triples need the reader's option triples: true, and runs are read by trec"


@dataclass(frozen=True)
class MsMarcoReader(TextReader):
    """Passages of MS MARCO, whose query is the source. Without scores they keep the order of the file.

    >>> (nbest,) = MsMarcoReader(triples=True).parse(b"2+2?\\tFour.\\tBlue.\\n")
    >>> nbest.source, nbest.texts, nbest.names, nbest.scores[:, 1]
    (b'2+2?', [b'Blue.', b'Four.'], ('score', 'gain'), array([0., 1.]))

    Parameters
    ----------
    duplicates: see ``ListReader``.
    qrels: the file of judgements of what was found; grades become the column ``gain``, which is 0 for a passage that
        nobody has judged, and relevant passages that were not found count in the metrics of an order. null: there are
        none. Triples need none.
    triples: the file holds triples, not what was found.
    """

    form: ClassVar[str] = "msmarco"
    general: ClassVar[bool] = True

    qrels: str | None = None
    triples: bool = False

    def paths(self, path: PathLike) -> list[str]:
        return [*super().paths(path), *([] if self.qrels is None else [self.qrels])]

    def of_others(self) -> Self:
        return replace(self, qrels=None)

    def records(self, lines: LineReader) -> Iterator[Record]:
        if self.triples:
            yield from (Record(None, number, ([(number, line)], None)) for number, line in lines if line.strip())
            return
        grades = {} if self.qrels is None else read_qrels(self.qrels)
        found: dict[bytes, Lines] = {}
        for number, line in lines:
            if line.strip():
                found.setdefault(line.split(b"\t", 1)[0].strip(), []).append((number, line))
        for query, rows in found.items():
            known = None if self.qrels is None else grades.get(query, {})
            yield Record(decoded(query), rows[0][0], (rows, known))

    def maker(self, lines: LineReader) -> Make:
        make = super().maker(lines)

        def judged(name: str, record: Record) -> NBestList | SkippedList:
            nbest = make(name, record)
            if self.triples or not isinstance(nbest, TextList):
                return nbest
            rows, grades = record.content
            ids = (line.split(b"\t")[1].strip() for _, line in rows if b"\t" in line)
            return nbest.changed(unlisted=unlisted(grades, ids))

        return judged

    def draft(self, content: tuple[Lines, Scored | None], names: tuple[str, ...] | None) -> Draft:  # noqa: ARG002
        rows, grades = content
        if self.triples:
            return _triple(rows[0][1])
        entries: list[Entry | Problem] = []
        queries = set[bytes]()
        for _, line in rows:
            fields = line.split(b"\t")
            try:
                _check(line, fields, (4, 5), "QUERY_ID, PASSAGE_ID, QUERY, PASSAGE and perhaps a SCORE", TRIPLES)
                numbers = {SCORE: score_of(fields[4])} if len(fields) == 5 else {}
            except Problem as problem:
                entries.append(problem)
                continue
            queries.add(fields[2].strip())
            gain = {} if grades is None else {GAIN: grades.get(fields[1].strip(), 0.0)}
            entries.append(Entry(fields[3].strip(), numbers | gain))
        if len(queries) > 1:
            raise Problem("fields", f"found {len(queries)} texts of one query; expected the same on all of its lines")
        places, pieces = [number for number, _ in rows], [line for _, line in rows]
        return Draft(entries, pieces, None, places, source=next(iter(queries), None))

    def write(self, out: Writable, nbest: NBestList, order: Order = None, scores: Scores = None) -> None:
        """Lines in their new order, with the new scores; a triple with the passage first that is first."""
        places = range(len(nbest)) if order is None else order
        if nbest.raw.head is not None:
            out.write(b"\t".join([nbest.raw.head, *(nbest.raw.candidates[y] for y in places)]) + b"\n")
            return
        for y in places:
            line = nbest.raw.candidates[y]
            if scores is not None:
                line = b"\t".join([*line.split(b"\t")[:4], repr(float(scores[y])).encode()])
            out.write(line + b"\n")

    def write_bad(self, out: Writable, bad: SkippedList, like: NBestList | None) -> None:
        """Writes nothing: a file has no queries without passages."""


def _triple(line: bytes) -> Draft:
    """A list of two. Raises Problem."""
    fields = line.split(b"\t")
    _check(line, fields, (3,), "QUERY, PASSAGE and PASSAGE")
    if all(field.strip().isdigit() for field in fields):
        raise Problem("fields", f"found {excerpt(line)}; expected texts; runs are read by trec")
    query, *passages = (field.strip() for field in fields)
    found = sorted(zip(passages, (1.0, 0.0), strict=True))
    entries: list[Entry | Problem] = [Entry(text, {GAIN: gain}) for text, gain in found]
    return Draft(entries, [text for text, _ in found], query, source=query)


def _check(line: bytes, fields: list[bytes], counts: tuple[int, ...], names: str, of_three: str = "") -> None:
    """Raises Problem if a line does not have the fields ``names``; ``of_three``: what to do where it has three."""
    if b"\0" in line:
        raise Problem("nul", NUL)
    if len(fields) not in counts:
        advice = of_three if len(fields) == 3 else ""
        raise Problem("fields", f"found {excerpt(line)}; expected {names}, separated by tabs{advice}")
