"""Runs of TREC: what a search engine returned, one document per line, and beside it who judged what as relevant.

Three lines of a run, and of the judgements (qrels) that go with it::

    301 Q0 FT934-5418 1 12.5 bm25          301 0 FT934-5418 2
    301 Q0 FR940202-2 2 11.25 bm25         301 0 LA043090-0036 1
    302 Q0 LA103089-3 1 9.75 bm25          302 0 LA103089-3 0

The fields of a run are query, Q0, document, rank, score and the name of the run; those of judgements query, an
iteration that nobody uses, document and grade (https://trec.nist.gov/data/qrels_eng/, and the README of trec_eval). The
order of a query's documents is that of their scores, whatever their ranks. A document's text is its name. Lines of
query, document, rank from 1 and perhaps score are a run too, as those of MS MARCO and ColBERT are.

In place of either a JSON object ``{query: {document: score or grade}}`` is read, as ranx and pytrec_eval take it, and
judgements as BEIR has them: below the header ``query-id corpus-id score`` these three columns, separated by tabs.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import DataError, RecipeError
from rerank.readers.lines import LineReader, Record, as_number, score_of
from rerank.readers.lists import Lists
from rerank.readers.problems import NUL, UNJUDGED
from rerank.readers.reader import MINMAX, Order, Problem, Scores, excerpt
from rerank.readers.texts.json_lines import number_of, parse_object
from rerank.readers.texts.text_list import SCORE, Draft, Entry, TextReader
from rerank.storage.documents import as_json
from rerank.storage.streams import PathLike, Writable, open_stream

GAIN = "gain"
FIELDS = "QUERY Q0 DOCUMENT RANK SCORE NAME"
BEIR = b"query-id", b"corpus-id", b"score"  # the header of its judgements
JUDGEMENT = f"QUERY 0 DOCUMENT GRADE, or QUERY DOCUMENT GRADE below BEIR's header, {b' '.join(BEIR).decode()}"
Grades = dict[bytes, dict[bytes, float]]  # by query and document
Documents = dict[bytes, float]  # scores or grades of the documents of a query
RANK_CONSTANT = 60  # the constant of reciprocal ranks (Cormack et al. 2009)


class RunLine(NamedTuple):
    """One line of a run, or the problem with it; without a document where a line is blank or a query found none."""

    number: int
    line: bytes
    query: bytes
    document: bytes
    score: float
    problem: Problem | None = None


QueryContent = tuple[Sequence[RunLine], Documents | None, Sequence[Documents]]  # of a query: lines, grades, other runs


@dataclass(frozen=True)
class TrecReader(TextReader):
    """Runs of TREC. Relevant documents that a run lacks count in the metrics of an order. Where there are judgements,
    queries that nobody has judged are left out and counted. A document that a query has twice makes a bad list. The
    lines of a query stand together.

    >>> (nbest,) = TrecReader().parse(b"301 Q0 FT934-5418 1 12.5 bm25\\n")
    >>> nbest.id, nbest.texts, nbest.base
    ('301', [b'FT934-5418'], array([12.5]))

    Parameters
    ----------
    duplicates: "drop" keeps the first of a document's lines in place of a bad list, where there are no others.
    qrels: the file of judgements, of these queries and others; grades become the column ``gain``, which is 0 for a
        document that nobody has judged. null: there are none.
    others: further runs of these queries. A list then has what any of them found; the columns ``rrf_1``, ``minmax_1``,
        ``rrf_2``, ... are 1/(60 + rank) and the score from 0 to 1 in each run, both 0 where a run lacks the document;
        the base score is the sum of the reciprocal ranks (RRF: Cormack et al. 2009).
    """

    form: ClassVar[str] = "trec"
    json: ClassVar[str] = "numbers"
    use: ClassVar[str] = "search"
    apart: ClassVar[str] = "the lines of a query stand together: sort the file by its first column (sort -sk1,1 FILE)"

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

        def record(query: bytes, line: int, rows: list[RunLine]) -> Record:
            query_grades, runs = None if grades is None else grades.get(query), [run.pop(query, {}) for run in others]
            message = f"{self.qrels} has no judgement of the query, which is left out of figures and of training"
            bad = grades is not None and query_grades is None
            return Record(decoded(query), line, Problem(UNJUDGED, message) if bad else (rows, query_grades, runs))

        for query, lines_of_query in groupby(_rows(lines), lambda row: row.query):
            rows = list(lines_of_query)
            yield record(query, rows[0].number, [row for row in rows if row.document or row.problem is not None])
        for query in dict.fromkeys(query for run in others for query in run):
            yield record(query, lines.number, [])

    def draft(self, content: QueryContent) -> Draft:
        rows, grades, others = content
        scores = dict[bytes, float]()
        for row in (row for row in rows if row.problem is None):
            if row.document in scores and (others or self.duplicates == "keep"):
                message = f"the document {excerpt(row.document)} is there twice; expected it once"
                advice = "" if others else " (the reader's option duplicates: drop keeps the first)"
                raise Problem("document", message + advice, row.number)
            scores[row.document] = row.score
        if others:
            about: dict[str, Any] = {}
            bad: list[Entry | Problem] = [row.problem for row in rows if row.problem is not None]
            entries = [*bad, *_fuse([scores, *others], grades)]
        else:
            about = {"pieces": [row.line for row in rows], "lines": [row.number for row in rows]}
            entries = [
                row.problem or Entry(row.document, {SCORE: row.score} | _gain(row.document, grades)) for row in rows
            ]
        # Relevant documents that have no entry count in metrics of an order.
        texts = {one.text for one in entries if isinstance(one, Entry)}
        missing = (grade for name, grade in (grades or {}).items() if name not in texts and grade > 0)
        return Draft.of(entries, **about, sides={"missing_grades": tuple(missing)})

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """Ranks and scores are written anew. Of other lists candidates are called by their texts, or by their numbers,
        from 1, where these are none or have white space."""
        values = nbest.base if scores is None else scores
        for rank, y in enumerate(range(len(nbest)) if order is None else order, start=1):
            words = nbest.texts[y].split()
            document = words[0] if len(words) == 1 else b"%d" % (y + 1)
            score = repr(float(values[y])).encode()
            out.write(b"%s Q0 %s %d %s rerank\n" % (encoded(nbest.id), document, rank, score))

    def write_bad(self, out: Writable, bad: Problem, like: Lists | None) -> None:
        """Writes nothing: a run has no queries without documents."""


def read_run(path: PathLike) -> dict[bytes, Documents]:
    """The scores of documents by query; a DataError for a line that is none."""
    with open_stream(path, strict=False) as stream:
        return _by_query(_rows(LineReader(stream)), stream.path, "there")


def _by_query(rows: Iterable[RunLine], path: str, what: str) -> dict[bytes, Documents]:
    """The scores of documents by query; a DataError for a line with a problem, or for a document that is twice
    ``what``."""
    queries = dict[bytes, Documents]()
    for row in rows:
        if not row.document and row.problem is None:
            continue
        of_query = queries.setdefault(row.query, {})
        twice = f"{excerpt(row.document)} is {what} twice" if row.document in of_query else ""
        if row.problem is not None or twice:
            message = twice if row.problem is None else row.problem.message
            raise DataError(message, path=path, line=row.number)
        of_query[row.document] = row.score
    return queries


def _fuse(runs: Sequence[Documents], grades: Documents | None) -> Iterator[Entry]:
    """The documents that any of several runs found."""
    numbers: dict[bytes, dict[str, float]] = {document: {SCORE: 0.0} for run in runs for document in run}
    for k, run in enumerate(runs, start=1):
        scores = np.array([*run.values()] or [0.0])
        low, high = float(scores.min()), float(scores.max())
        ranks = {document: rank for rank, document in enumerate(sorted(run, key=lambda name: -run[name]), start=1)}
        for document, columns in numbers.items():
            reciprocal = 1.0 / (RANK_CONSTANT + ranks[document]) if document in run else 0.0
            share = 0.0 if document not in run else (run[document] - low) / (high - low) if high > low else 1.0
            columns |= {SCORE: columns[SCORE] + reciprocal, f"rrf_{k}": reciprocal, f"{MINMAX}{k}": share}
    for document, columns in numbers.items():
        yield Entry(document, columns | _gain(document, grades))


def _gain(document: bytes, grades: Documents | None) -> dict[str, float]:
    """The grade of a document, where there are judgements."""
    return {} if grades is None else {GAIN: grades.get(document, 0.0)}


def read_qrels(path: PathLike) -> Grades:
    """The grades of documents by query; a DataError for a line that is none."""
    with open_stream(path, strict=False) as stream:
        lines = LineReader(stream)
        if lines.first_byte() == b"{":
            return _by_query(_members(lines, "grade"), stream.path, "judged")
        beir = [tuple(line.split()) for line in lines.peek(1)] == [BEIR]
        lines.take(beir)
        return _by_query((_judgement(*row, beir) for row in lines if row[1].strip()), stream.path, "judged")


def _rows(lines: LineReader) -> Iterator[RunLine]:
    """The lines of a run in either form; queries with a problem are the words they begin with."""
    if lines.first_byte() == b"{":
        yield from _members(lines, "score")
        return
    query, rank = b"", 0
    for number, line in lines:
        fields = line.split()
        if not fields:
            continue
        query, rank = fields[0], rank + 1 if fields[0] == query else 1
        if len(fields) in (3, 4) and fields[2] == b"%d" % rank:
            fields = [query, b"Q0", fields[1], fields[2], fields[3] if len(fields) == 4 else b"-%d" % rank, b""]
        document, problem, score = fields[min(2, len(fields) - 1)], None, 0.0
        try:
            if b"\0" in line:
                raise Problem("nul", NUL)
            if len(fields) != 6 or as_number(fields[3]) is None:
                raise Problem("fields", f"found {excerpt(line)}; expected {FIELDS}")
            score = score_of(fields[4])
        except Problem as error:
            problem = error
        yield RunLine(number, line, fields[0], document, score, problem)


def _judgement(number: int, line: bytes, beir: bool) -> RunLine:
    """The judgement on a line."""
    fields = line.split(b"\t" if beir else None)
    with suppress(ValueError, Problem):
        query, document, grade = fields if beir else (fields[0], *fields[2:])
        if query and document:
            return RunLine(number, line, query, document, score_of(grade))
    problem = Problem("fields", f"found {excerpt(line)}; expected {JUDGEMENT}")
    return RunLine(number, line, b"", b"", 0.0, problem)


def _members(lines: LineReader, what: str) -> Iterator[RunLine]:
    """The documents of every query in a JSON object."""
    try:
        queries = parse_object(lines.rest())
    except Problem as error:
        message = f"{error.message} (of queries, as {{QUERY: {{DOCUMENT: {what}}}}})"
        raise DataError(message, path=lines.path, line=1) from None
    for name, documents in queries.items():
        query, text = encoded(name), encoded(as_json(documents, allow_nan=True))
        if not isinstance(documents, dict):
            fault = Problem("json", f"found {excerpt(text)}; expected {{DOCUMENT: {what}}}")
            yield RunLine(1, text, query, b"", 0.0, fault)
        elif not documents:
            yield RunLine(1, text, query, b"", 0.0)
        for document, value in documents.items() if isinstance(documents, dict) else ():
            problem, score = cast(Problem | None, None), 0.0
            try:
                if not document:
                    raise Problem("text", f"found a document without a name; expected {{DOCUMENT: {what}}}")
                score = number_of(value, f"the {what} of {document!r}")
            except Problem as error:
                problem = error
            yield RunLine(1, text, query, encoded(document), score, problem)
