"""LETOR, or SVMrank: one document of a query per line, its grade, the query and its features as id:value.

    2 qid:10032 1:0.056537 2:0.000000 3:0.666667 # docid = GX029-35-5894638
    0 qid:10032 1:0.279152 3:0 #docid = GX030-77-6315042 inc = 0.0119
    0 qid:10035 1:0.25 46:0.076923

Qin et al. (2010), https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/; Joachims
(2002), https://www.cs.cornell.edu/people/tj/svm_light/svm_rank.html. Where no line has a qid, a file FILE.query beside
has the number of documents of every query, one per line, as LightGBM reads it.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.base.encoding import DECIMAL
from rerank.base.errors import DataError, RecipeError
from rerank.data.svmlight import Rows, parse_rows
from rerank.readers.lines import LineReader, Record, score_of
from rerank.readers.lists import Lists
from rerank.readers.problems import NUL
from rerank.readers.reader import Order, Problem, Scores, excerpt, line_id
from rerank.readers.texts.text_list import SCORE, Draft, Entry, TextReader
from rerank.storage.streams import PathLike, Writable, open_stream, stream_name

GAIN = "gain"
FORM = "GRADE qid:QUERY ID:VALUE ..."
MAX_FEATURES = 20_000  # features, each of which is a number of every candidate
MAX_FEATURE_ID = 99_999_999  # as in SVMrank
_HEAD = re.compile(rb"\s*(\S+)(?:\s+qid:(\S+))?(.*)", re.DOTALL)  # of a line: grade, query, features
_GRADE = re.compile(DECIMAL)
_SIZE = re.compile(rb"\d{1,18}")
_NUMBER = re.compile(rb"-?\d{1,18}")
_SCORE = re.compile(rb" score = (\S+)\s*$")  # what ``write`` adds to comments, the base score of lists read again
_DOCUMENT = re.compile(rb"doc(?:id|no)?\s*[=:]\s*(\S+)")


class DocumentLine(NamedTuple):
    """A line of a list; of its features their indices among those of the file, or the fault in them."""

    number: int
    line: bytes
    grade: bytes
    features: slice | str


@dataclass(frozen=True)
class LetorReader(TextReader):
    """Lists of documents with grades, the column ``gain``, and features, columns by their numbers. A document's text is
    its name: what a comment says behind ``docid =``, or all of it. A feature that a line leaves out is 0.

    >>> (nbest,) = LetorReader().parse(b"2 qid:1 1:.5 2:3 # docid = a\\n0 qid:1 2:1 # docid = b\\n")
    >>> nbest.texts, nbest.names, nbest.scores[1]
    ([b'a', b'b'], ('score', '1', '2', 'gain'), array([0., 0., 1., 0.]))

    Parameters
    ----------
    duplicates: see ``ListReader``.
    first: the number of the feature that is the base score; null: there is none, and lists are in no order.
    """

    form: ClassVar[str] = "letor"
    use: ClassVar[str] = "search"

    first: str | None = None

    @property
    def base(self) -> str:
        return SCORE if self.first is None else self.first

    def records(self, lines: LineReader) -> Iterator[Record]:
        texts = enumerate(lines.rest().split(b"\n"), start=1)
        heads = [(k, line, head) for k, line in texts if (head := _HEAD.match(line.partition(b"#")[0]))]
        # Queries may have any names, and grades are looked at later: what is parsed are the features.
        bare = [(b"0 qid:0" if _GRADE.fullmatch(head[1]) else b":") + head[3].rstrip() for _, _, head in heads]
        features, faults = parse_rows(bare, MAX_FEATURE_ID)
        columns = self._columns(np.unique(features.ids).astype(np.int64).tolist(), lines.path)
        queries = [head[2] for _, _, head in heads]
        names = [
            query and (str(int(query)) if _NUMBER.fullmatch(query) else query.decode("utf-8", "replace"))
            for query in queries
        ]
        if not any(names) and (sizes := _query_sizes(lines.path, len(names))) is not None:
            names = [str(k) for k, size in enumerate(sizes) for _ in range(size)]
        spans = [slice(*span) for span in pairwise(features.first.tolist())]
        rows = [
            DocumentLine(number, line.rstrip(b"\r"), head[1], faults.get(k, spans[k]))
            for k, (number, line, head) in enumerate(heads)
        ]
        for query, pairs in groupby(zip(names, rows, strict=True), lambda pair: pair[0]):
            group = [row for _, row in pairs]
            if query is None:
                problem = Problem("id", f"found {excerpt(group[0].line)}; expected {FORM}")
                yield Record(line_id(group[0].number), group[0].number, problem)
            else:
                yield Record(query, group[0].number, (group, columns, features))

    def draft(self, content: Any) -> Draft:
        rows, columns, features = content
        unscored = self.first is None and not any(_SCORE.search(row.line) for row in rows)
        pieces, numbers = [row.line for row in rows], [row.number for row in rows]
        draft = Draft.of(
            rows, lambda row, _: _entry(row, columns, features), pieces=pieces, lines=numbers, names=columns.names,
            unscored=unscored, others=columns.others,
        )  # fmt: skip
        draft.sides["absent"] = [dict.fromkeys(columns.absent, len(rows) - len(draft.bad))]
        return draft

    def _columns(self, ids: Sequence[int], path: str) -> "FeatureColumns":
        """The columns of a file that uses the features ``ids``: the base score, the features and the gain."""
        if len(ids) > MAX_FEATURES:
            message = f"found {len(ids):,} features; expected at most {MAX_FEATURES:,}, as all are columns"
            raise DataError(f"{message}: take task: classification", path=path)
        names = {j: str(j) for j in ids}
        model_names = tuple(names.values()) if self.model_columns is None else self.model_columns.names
        if ids and self.first is not None and self.first not in {*names.values(), *model_names}:
            raise RecipeError(f"found {self.first!r}; expected the number of a feature of {path}", key="first")
        order = tuple(dict.fromkeys([self.base, *(name for name in model_names if name != GAIN), GAIN]))
        indices = {name: k for k, name in enumerate(order) if name not in (SCORE, GAIN)}
        others = tuple(name for name in names.values() if name not in order)
        absent = tuple(name for name in indices if name not in names.values())
        return FeatureColumns(order, {j: indices[name] for j, name in names.items() if name in indices}, others, absent)

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """The lines in their new order; new scores go to the end of comments."""
        for y in range(len(nbest)) if order is None else order:
            line = nbest.raw.candidates[y]
            if scores is not None:
                mark = b" score = " if b"#" in line else b" # docid = %d score = " % (y + 1)
                line = _SCORE.sub(b"", line) + mark + repr(float(scores[y])).encode()
            out.write(line + b"\n")

    def write_bad(self, out: Writable, bad: Problem, like: Lists | None) -> None:
        """Writes nothing: there are no queries without documents."""


class FeatureColumns(NamedTuple):
    """The columns of a file: their names, their indices by the numbers of features, the features that are none, and the
    columns of a model that no line has."""

    names: tuple[str, ...]
    indices: dict[int, int]
    others: tuple[str, ...]
    absent: tuple[str, ...]


def _entry(row: DocumentLine, columns: FeatureColumns, rows: Rows) -> Entry:
    """The entry on a line. Raises Problem."""
    if b"\0" in row.line:
        raise Problem("nul", NUL)
    numbers, comment = [0.0] * len(columns.names), row.line.partition(b"#")[2]
    try:
        numbers[columns.names.index(GAIN)] = score_of(row.grade)
    except Problem as problem:
        message = f"found {excerpt(row.grade)} as the grade; expected {FORM}"
        raise Problem(problem.reason, message) from None
    if isinstance(row.features, str):
        raise Problem("fields", row.features)
    features, values = rows.ids[row.features].tolist(), rows.values[row.features].tolist()
    for feature, value in zip(features, values, strict=True):
        if (index := columns.indices.get(feature)) is not None:
            numbers[index] = value
    if (score := _SCORE.search(comment)) is not None:
        comment = comment[: score.start()]
        if columns.names[0] == SCORE:
            numbers[0] = score_of(score[1])
    identifier = _DOCUMENT.search(comment)
    document = identifier[1] if identifier else comment.strip() or b"%d" % row.number
    return Entry(document, dict(zip(columns.names, numbers, strict=True)))


def _query_sizes(path: PathLike, documents: int) -> list[int] | None:
    """The sizes of lists in FILE.query, for a file where no line has a qid; None if there is none."""
    query_file = f"{os.fspath(path)}.query"
    if not os.path.isfile(query_file):
        return None
    with open_stream(query_file) as stream:
        lines = [line.strip() for _, line in LineReader(stream) if line.strip()]
    if not all(map(_SIZE.fullmatch, lines)) or sum(map(int, lines)) != documents:
        message = f"expected the number of documents of every query, which are {documents:,} in {stream_name(path)}"
        raise DataError(message, path=query_file)
    return list(map(int, lines))
