"""Runs of TREC: what a search engine returned, one document per line, and beside it who judged what as relevant.

Three lines of a run, and of the judgements (qrels) that go with it::

    301 Q0 FT934-5418 1 12.5 bm25          301 0 FT934-5418 2
    301 Q0 FR940202-2 2 11.25 bm25         301 0 LA043090-0036 1
    302 Q0 LA103089-3 1 9.75 bm25          302 0 LA103089-3 0

The fields of a run are query, Q0, document, rank, score and the name of the run; those of judgements query, an
iteration that nobody uses, document and grade (https://trec.nist.gov/data/qrels_eng/, and the README of trec_eval). The
order of a query's documents is that of their scores, whatever their ranks. A document's text is its name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar, Self

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import DataError, RecipeError
from rerank.readers.base import NBestList, Order, Problem, Scores, SkippedList, excerpt, readers
from rerank.readers.lines import LineReader, Make, Record, score_of
from rerank.readers.problems import NUL
from rerank.readers.streams import PathLike, Writable, open_stream
from rerank.readers.texts.text_list import SCORE, Draft, Entry, TextList, TextReader, each

GAIN = "gain"
FIELDS = "QUERY Q0 DOCUMENT RANK SCORE NAME"
Grades = dict[bytes, dict[bytes, float]]  # by query and document
Scored = dict[bytes, float]  # documents of a query
# The lines of a query, its grades, and what other runs found.
Judged = tuple[Sequence[tuple[int, bytes, list[bytes]]], Scored | None, Sequence[Scored]]
NEAR = 60  # the constant of reciprocal ranks (Cormack et al. 2009)


@readers.add("trec")
@dataclass(frozen=True)
class TrecReader(TextReader):
    """Runs of TREC. Relevant documents that a run lacks count in the metrics of an order.

    >>> (nbest,) = TrecReader().parse(b"301 Q0 FT934-5418 1 12.5 bm25\\n")
    >>> nbest.id, nbest.texts, nbest.base
    ('301', [b'FT934-5418'], array([12.5]))

    Parameters
    ----------
    duplicates: see ``ListReader``.
    qrels: the file of judgements, of these queries and others; grades become the column ``gain``, which is 0 for a
        document that nobody has judged. null: there are none.
    others: further runs of these queries. A list then has what any of them found; the columns ``rrf_1``, ``minmax_1``,
        ``rrf_2``, ... are 1/(60 + rank) and the score from 0 to 1 in each run, 0 where a run lacks the document; the
        base score is the sum of the reciprocal ranks (RRF: Cormack et al. 2009).
    """

    form: ClassVar[str] = "trec"

    qrels: str | None = None
    others: tuple[str, ...] = ()

    def paths(self, path: PathLike) -> list[str]:
        return [*super().paths(path), *([] if self.qrels is None else [self.qrels]), *self.others]

    def of_others(self) -> Self:
        if self.others:
            message = "the model was trained on several runs; name those of these queries: {name: trec, others: [...]}"
            raise RecipeError(message, key="--reader")
        return replace(self, qrels=None)

    def records(self, lines: LineReader) -> Iterator[Record]:
        grades = None if self.qrels is None else read_qrels(self.qrels)
        others = [read_run(path) for path in self.others]
        rows = ((number, row, row.split()) for number, row in lines if row.strip())

        def record(query: bytes, line: int, every: list[tuple[int, bytes, list[bytes]]]) -> Record:
            known = None if grades is None else grades.get(query, {})
            return Record(decoded(query), line, (every, known, [run.pop(query, {}) for run in others]))

        for query, found in groupby(rows, lambda row: row[2][0]):
            every = list(found)
            yield record(query, every[0][0], every)
        for query in dict.fromkeys(query for run in others for query in run):
            yield record(query, lines.number, [])

    def maker(self, lines: LineReader) -> Make:
        make = super().maker(lines)

        def judged(name: str, record: Record) -> NBestList | SkippedList:
            nbest = make(name, record)
            if not isinstance(nbest, TextList):
                return nbest
            there, grades = set(nbest.texts), record.content[1] or {}
            missing = (grade for document, grade in grades.items() if document not in there and grade > 0)
            return nbest.changed(unlisted=tuple(missing))

        return judged

    def draft(self, content: Judged, names: tuple[str, ...] | None) -> Draft:  # noqa: ARG002
        rows, grades, others = content
        entries = each(rows, lambda row, _: _document(*row[1:], grades))
        if self.others:
            bad: list[Entry | Problem] = [one for one in entries if isinstance(one, Problem)]
            own = {} if bad else {fields[2]: score_of(fields[4]) for _, _, fields in rows}
            if len(own) < len(rows) and not bad:
                raise Problem("fields", "a document is there twice; expected each once in a run that is fused")
            found = [*bad, *_fused([own, *others], grades)]
            return Draft(found, found, None)
        return Draft(entries, [row for _, row, _ in rows], None, [number for number, *_ in rows])

    def write(self, out: Writable, nbest: NBestList, order: Order = None, scores: Scores = None) -> None:
        """Ranks and scores are written anew."""
        write_run(out, nbest, order, scores)

    def write_bad(self, out: Writable, bad: SkippedList, like: NBestList | None) -> None:
        """Writes nothing: a run has no queries without documents."""


def write_run(
    out: Writable, nbest: NBestList, order: Order = None, scores: Scores = None, name: str = "rerank"
) -> None:
    """Write any list as a part of a run of TREC, its candidates by their texts, or by their numbers, from 1, where
    these are none or have white space."""
    values = nbest.base if scores is None else scores
    for rank, y in enumerate(range(len(nbest)) if order is None else order, start=1):
        words = nbest.texts[y].split()
        document = words[0] if len(words) == 1 else b"%d" % (y + 1)
        score = repr(float(values[y])).encode()
        out.write(b"%s Q0 %s %d %s %s\n" % (encoded(nbest.id), document, rank, score, name.encode()))


def read_run(path: PathLike) -> dict[bytes, Scored]:
    """The scores of documents by query; a DataError for a line that is none."""
    found = dict[bytes, Scored]()
    with open_stream(path, strict=False) as stream:
        for number, line in LineReader(stream):
            if line.strip():
                fields = line.split()
                try:
                    _document(line, fields, None)
                except Problem as problem:
                    raise DataError(problem.message, path=stream.path, line=number) from None
                of_query = found.setdefault(fields[0], {})
                if fields[2] in of_query:
                    raise DataError(f"{excerpt(fields[2])} is there twice", path=stream.path, line=number)
                of_query[fields[2]] = score_of(fields[4])
    return found


def _fused(runs: Sequence[Scored], grades: Scored | None) -> Iterator[Entry]:
    """The documents that any of several runs found."""
    numbers: dict[bytes, dict[str, float]] = {document: {SCORE: 0.0} for run in runs for document in run}
    for k, run in enumerate(runs, start=1):
        low, high = min(run.values(), default=0.0), max(run.values(), default=0.0)
        places = {document: place for place, document in enumerate(sorted(run, key=lambda name: -run[name]), start=1)}
        for document, columns in numbers.items():
            near = 1.0 / (NEAR + places[document]) if document in run else 0.0
            high_up = 0.0 if document not in run else (run[document] - low) / (high - low) if high > low else 1.0
            columns |= {SCORE: columns[SCORE] + near, f"rrf_{k}": near, f"minmax_{k}": high_up}
    for document, columns in numbers.items():
        yield Entry(document, columns if grades is None else columns | {GAIN: grades.get(document, 0.0)})


def read_qrels(path: PathLike) -> Grades:
    """The grades of documents by query; a DataError for a line that is none."""
    grades: Grades = {}
    with open_stream(path, strict=False) as stream:
        for number, line in LineReader(stream):
            fields = line.split()
            if not fields:
                continue
            try:
                query, _, document, grade = fields
                of_query = grades.setdefault(query, {})
                if document in of_query:
                    raise DataError(f"{excerpt(document)} is judged twice", path=stream.path, line=number)
                of_query[document] = score_of(grade)
            except (ValueError, Problem):
                message = f"found {excerpt(line)}; expected QUERY 0 DOCUMENT GRADE"
                raise DataError(message, path=stream.path, line=number) from None
    return grades


def _document(row: bytes, fields: list[bytes], grades: dict[bytes, float] | None) -> Entry:
    """What a line says, with the grade of its document where there are judgements. Raises Problem."""
    if b"\0" in row:
        raise Problem("nul", NUL)
    if len(fields) != 6:
        raise Problem("fields", f"found {excerpt(row)}; expected {FIELDS}")
    gain = {} if grades is None else {GAIN: grades.get(fields[2], 0.0)}
    return Entry(fields[2], {SCORE: score_of(fields[4]), **gain})
