"""Moses-style lists: one candidate per line, its fields separated by ``|||``, as many programs write them.

Three lines this reads::

    0 ||| the house ||| LM0= -3.1 TM0= -0.5 -1.25 WT_the~das= 1 ||| -7.5 ||| 0=0 1=1 ||| 0-0 1-1
    0 ||| a house ||| LM0= -3.9 TM0= -1.5 -1 ||| -8.25 ||| 0=0 1=1 ||| 0-0 1-1
    1 ||| it rains ||| LM0= -2 TM0= -0.75 -2.5 ||| -5 ||| 0-1=0-1 ||| 0-0 1-1

The fields are the id, the text, labelled values, the total and optionally segmentation and word alignment; Travatar's
total precedes the values, cdec's may be missing. Marian puts a word alignment and the scores of words before the
values, or these among them, Joshua the path through a lattice before the text. The first lists decide which variant it
is. Moses' phrase marks in the text, ``the house |0-1|``, are turned into a segmentation.

Labelled values that all candidates have are score columns, ``LM0`` or, if a label has several values, ``TM0_0`` and
``TM0_1``; values without a label are ``0``, ``1``... All others are sparse. The last column, ``score``, is the total,
0 if there is none; scores of words give ``sum``, ``mean``, ``min`` and ``length``. Blank lines are ignored. A line
without an id is a bad candidate of the list before it. A line with an id and an empty text, ``7 |||``, is a list
without candidates.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np

from rerank.base.errors import DataError
from rerank.base.ranges import Checked, Range
from rerank.data.corpus import offsets
from rerank.readers.base import LARGEST_GAP, Order, Problem, Reader, Scores, excerpt
from rerank.readers.lines import LineReader
from rerank.readers.lists import Lists, SparseScores, repeats_of
from rerank.readers.moses.labels import TOTAL, Columns, Values, ask_for, find_columns, find_labels, read_values
from rerank.readers.moses.layout import (
    MARK,
    WORD_SCORES,
    Layout,
    MosesLine,
    as_number,
    fields_of,
    find_layout,
    find_role,
    line_of,
    marker,
    rescored,
    unmark,
)
from rerank.readers.problems import NUL
from rerank.readers.score_columns import check_names
from rerank.readers.streams import InputStream, PathLike, Writable, open_stream
from rerank.readers.texts.text_list import OF_WORDS, Pieces

CHUNK = 1 << 20  # bytes read at a time
FIRST_LISTS, FIRST_BYTES = 20, 1 << 24  # the first block has at least this many lists, unless they are this large
STRAYS = 1 << 16  # lines of a list without an id; more are not a damaged list but another kind of file
LARGEST_LIST = 1 << 30  # bytes of a list
MOST = 1 << 20  # candidates of a list; each takes half a kilobyte of memory
LONGEST_ID = 18  # digits: any 18 fit an int64


class MosesBlock(NamedTuple):
    """Some whole lists of a file."""

    lines: list[MosesLine]
    starts: list[int]  # the lines of list i are starts[i]..starts[i + 1]
    nul: bool  # whether there may be a NUL byte


def read_blocks(stream: InputStream, numbered: bool) -> Iterator[MosesBlock]:
    """The lists of ``stream`` in blocks of whole lists; ``numbered``: their ids are whole numbers.

    The lines of a list are consecutive and have the same id. A line without an id (no number, or no second field)
    belongs to the list before it; at the beginning, to the first. Memory holds a chunk and the longest list.
    """
    reader, wanted = LineReader(stream, chunk=CHUNK), FIRST_LISTS
    lines, starts, held, strays, last = list[MosesLine](), list[int](), 0, 0, None
    while texts := reader.some():
        for number, text in enumerate(texts, reader.number + 1 - len(texts)):
            fields = fields_of(text)
            name = fields[0]
            if not name and len(fields) == 1:
                continue
            whole = int(name) if name.isdigit() and len(name) <= LONGEST_ID else -1
            own: int | bytes = whole if numbered else name
            stray = whole < 0 if numbered else len(fields) < 2
            if not lines or not (stray or last is None or own == last):
                starts.append(len(lines))
                strays = 0
            strays += stray
            last = last if stray else own
            lines.append(MosesLine(number, text, fields, whole))
        held = held + sum(map(len, texts)) if lines else 0
        _check_lists(stream.path, lines, starts, numbered, strays, held)
        if len(starts) > wanted or (len(starts) > 1 and held > FIRST_BYTES):
            cut = starts.pop()
            yield MosesBlock(lines[:cut], [*starts, cut], reader.nul)
            lines, starts, wanted = lines[cut:], [0], 1
            held = sum(len(line.text) for line in lines)
    if lines:
        yield MosesBlock(lines, [*starts, len(lines)], reader.nul)


def _check_lists(path: str, lines: list[MosesLine], starts: list[int], numbered: bool, strays: int, held: int) -> None:
    """Refuse lists with too many candidates, and a last one that grows without end; ``strays``: its lines without an
    id; ``held``: bytes of all lines."""
    for begin, end in pairwise([*starts, len(lines)]):
        if end - begin > MOST:
            message = f"a list of more than {MOST:,} candidates; do its lines have the ids they should?"
            raise DataError(message, path=path, line=lines[begin].number)
    if strays > STRAYS:
        line = next(line for line in lines[starts[-1] :] if (line.id < 0 if numbered else len(line.fields) < 2))
        message = f"found {excerpt(line.text)} and more than {STRAYS:,} such lines; expected candidates, "
        message += "'id ||| text ||| features ||| score'" + ", with whole numbers as ids" * numbered
        raise DataError(message, path=path, line=line.number)
    if held > LARGEST_LIST:
        message = f"a list of more than {LARGEST_LIST >> 30} GiB"
        raise DataError(message, path=path, line=lines[starts[-1]].number)


class Parsed(NamedTuple):
    """A block with its numbers read; n lines."""

    lines: list[MosesLine]
    problems: dict[int, Problem]  # of the bad ones
    scores: np.ndarray  # float64 [n, K + 1]
    filled: np.ndarray  # bool [n, K]: where a value is 0 because it is missing
    fields: dict[str, list[bytes]]  # by role; one value per line
    sparse: SparseScores  # the values that belong to no column


@dataclass(frozen=True)
class Moses(Checked, Reader):
    """Lists of Moses, Marian, Joshua, cdec, Travatar and others.

    >>> (nbest,) = Moses().parse(b"0 ||| the house ||| LM0= -3.5 ||| -7.5\\n")
    >>> nbest.texts, nbest.names, nbest.scores
    ([b'the house'], ('LM0', 'score'), array([[-3.5, -7.5]]))

    Parameters
    ----------
    base: the name of the column that is the base score.
    duplicates: "keep" candidates that repeat an earlier text of their list, or "drop" them; both count them.
    ids: "file": increasing whole numbers; a number that is left out is a list without candidates. "ordinal": ids of any
        kind; lists are numbered from ``first_id``.
    first_id: the number of the first list.
    features: "auto": labelled values that all candidates of the first lists have are columns, and those written
        ``name=value`` that nine in ten have; "dense": all are columns; "sparse": none is.
    columns: the names of the columns, instead of letting the file decide.
    """

    holds: ClassVar[str] = "texts"

    base: str = TOTAL
    duplicates: Literal["keep", "drop"] = "keep"
    ids: Literal["file", "ordinal"] = "file"
    first_id: Annotated[int, Range(0)] = 0
    features: Literal["auto", "dense", "sparse"] = "auto"
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names(self.columns, "columns")
        object.__setattr__(self, "columns", tuple(self.columns))

    @property
    def asked(self) -> tuple[str, ...] | None:
        """The labels that are columns, unless the file decides."""
        if self.columns or self.known is None:
            return self.columns or None
        return tuple(name for name in dict.fromkeys((*self.known.names, self.base)) if name != TOTAL)

    def blocks(self, path: PathLike) -> Iterator[Lists]:
        """Ids that are left out give empty lists."""
        with open_stream(path, strict=False) as stream:
            yield from self._lists(stream)

    def parse(self, data: bytes) -> Iterator[Lists]:
        """The lists of a file's contents."""
        return self._lists(InputStream(BytesIO(data), ""))

    def _lists(self, stream: InputStream) -> Iterator[Lists]:
        file = File(self, stream.path)
        for block in read_blocks(stream, self.ids == "file"):
            yield from file.lists(block)

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """Lines are written as they were read, except for the total.

        The total is replaced, and the first one is kept among the features as ``BaseScore``. A list without candidates
        is left out, as by Moses, unless lists are numbered by their order. Lists of other formats can be written too.
        """
        chosen = range(len(nbest)) if order is None else order
        if not len(nbest) and self.ids == "ordinal":
            out.write(marker(f"list-{nbest.id}"))
        lines = [line_of(nbest, int(i)) for i in chosen]
        if scores is not None:
            lines = [rescored(nbest, line, float(scores[i])) for line, i in zip(lines, chosen, strict=True)]
        out.write(b"".join([line + b"\n" for line in lines]))

    def write_bad(self, out: Writable, bad: Problem, like: Lists | None) -> None:  # noqa: ARG002
        """Writes a line with an id, an empty text, and nothing else."""
        out.write(marker(bad.id if self.ids == "file" else f"list-{bad.id}"))


class File:
    """The findings about a file so far."""

    def __init__(self, reader: Moses, path: str) -> None:
        self.reader, self.path = reader, path
        self.layout: Layout | None = None
        self.columns = Columns()
        self.names: tuple[str, ...] = ()
        self.words: list[int] = []  # which of ``OF_WORDS`` are columns
        self.base = 0
        self.roles: dict[int, str] = {}
        self.next = reader.first_id

    def lists(self, block: MosesBlock) -> Iterator[Lists]:
        """The lists of a block, and empty ones for ids that are left out; those with bad lines, or with marks of
        phrases, apart."""
        self.layout = self.layout or find_layout(block.lines[: block.starts[: FIRST_LISTS + 1][-1]])
        parsed = self._parse(block, self.layout or Layout(4, 2, 3))
        ids, starts, first, failure = list[str](), list[int](), [0], None
        for begin, end in pairwise(block.starts):
            line = block.lines[begin].number
            try:
                left_out = self._gap(block.lines[begin:end]) if self.reader.ids == "file" else 0
            except DataError as error:  # the lists before may hold an earlier one
                failure = error
                break
            ids += map(str, range(self.next, self.next + left_out + 1))
            starts += [line] * (left_out + 1)
            first += [begin] * left_out + [end]
            self.next += left_out + 1
        whole = self._whole(parsed, ids, starts, first)
        marked = {y for y, text in enumerate(whole.texts) if b"|" in text and MARK.search(text)}
        apart = marked | parsed.problems.keys()
        if self.reader.duplicates == "drop":
            apart |= {first[i] for i, count in enumerate(whole.side("duplicates")) if count}
        done = 0
        for i in sorted({bisect_right(first, y) - 1 for y in apart if y < first[-1]}):
            if done < i:
                yield whole.part(done, i)
            yield self._mended(whole.part(i, i + 1), parsed, first[i])
            done = i + 1
        if done < len(ids):
            yield whole.part(done, len(ids))
        if failure is not None:
            raise failure

    def _whole(self, parsed: Parsed, ids: list[str], starts: list[int], first: list[int]) -> Lists:
        """The lists as their lines have them."""
        texts, lines, spans = parsed.fields["text"], parsed.lines, list(pairwise(first))
        filled: np.ndarray = np.asarray(parsed.filled.any(axis=1))
        sides: dict[str, Sequence[Any]] = {
            "raw": [Pieces(self.layout, [line.text for line in lines[a:b]]) if a < b else None for a, b in spans],
            "duplicates": [repeats_of(texts[a:b]) for a, b in spans],
            "absent": [self._absent(parsed.filled[a:b]) if filled[a:b].any() else {} for a, b in spans],
        }
        return Lists(
            ids, self.path, starts, texts, [line.number for line in lines], parsed.scores, np.array(first), self.base,
            form="moses", names=self.names or (TOTAL,), others=self.columns.others, sides=sides,
            sparse=parsed.sparse.part(0, len(lines)), segmentation=parsed.fields.get("segmentation"),
            alignment=parsed.fields.get("alignment"), ended=self.layout is not None and self.layout.ended,
        )  # fmt: skip

    def _absent(self, filled: np.ndarray) -> dict[str, int]:
        """The number of values that are 0 because they are missing (``filled`` bool [N, K]), by column."""
        counts = zip(self.columns.names, filled.sum(axis=0).tolist(), strict=True)
        return {name: count for name, count in counts if count}

    def _mended(self, nbest: Lists, parsed: Parsed, begin: int) -> Lists:
        """A list whose first line is ``begin``, without its bad lines, and marks of phrases as a segmentation."""
        bad = {y: problem for y in range(len(nbest)) if (problem := parsed.problems.get(begin + y)) is not None}
        fields = parsed.lines[begin].fields
        if bad and len(nbest) == 1 and len(fields) == 2 and not fields[1]:
            return nbest.some([], absent={})
        if (nbest := nbest.without(bad)).problem is not None:
            return nbest
        texts, marks = unmark(nbest.texts)
        derived = marks if nbest.segmentation is None else nbest.segmentation
        return nbest.changed(texts=texts, segmentation=derived).repeated(self.reader.duplicates)

    def _parse(self, block: MosesBlock, layout: Layout) -> Parsed:
        lines, n = block.lines, len(block.lines)
        problems = self._misfits(lines, layout)
        right = [y not in problems for y in range(n)]
        fields = self._fields(lines, right, layout)
        values = read_values(_column(lines, right, layout.features), problems)
        words = np.empty((n, 0))
        if layout.words >= 0 and layout.words == layout.features:
            own = np.array([key.label == WORD_SCORES for key in values.keys], np.bool_)[values.which]
            words, values = sums_of_words(values.some(own), n), values.some(~own)
            for y in np.flatnonzero(right & (words[:, -1] == 0)).tolist():
                message = f"found no {WORD_SCORES.decode()}= in {excerpt(lines[y].text, 200)}; expected it"
                problems.setdefault(y, Problem("columns", f"{message}, as in the file's first lists"))
        elif layout.words >= 0:
            words = sums_of_words(read_values(_column(lines, right, layout.words), problems), n)
        totals = _totals(lines, right, layout.score, problems)
        usable = np.array([y not in problems for y in range(n)])
        shown = values.some(usable[values.rows])
        if self.names:
            self.columns = self.columns.completed(shown)
        elif usable.any():
            self._name_columns(block.starts, shown, usable, OF_WORDS[: words.shape[1]])
        finite = np.isfinite(totals) & np.isfinite(words).all(axis=1)
        finite[values.rows[~np.isfinite(values.values)]] = False
        places = {key: k for k, key in enumerate(self.columns.keys)}
        owners = np.array([places.get(key, -1) for key in values.keys], np.int64)[values.which]
        width, scores = len(self.columns.names), np.full((n, max(1, len(self.names))), np.nan)
        filled = self._fill(scores[:, :width], values, owners, finite & usable, lines, problems)
        scores[:, width:-1] = words[:, self.words]
        scores[:, -1] = totals
        for y in np.flatnonzero(~finite).tolist():
            message = f"found NaN or an infinite value in {excerpt(lines[y].text, 200)}"
            problems.setdefault(y, Problem("infinite score", message))
        if block.nul:
            problems |= {y: Problem("nul", NUL) for y, line in enumerate(lines) if b"\0" in line.text}
        return Parsed(lines, problems, scores, filled, fields, _sparse(values.some(owners < 0), n))

    def _misfits(self, lines: list[MosesLine], layout: Layout) -> dict[int, Problem]:
        """The problems of lines that do not have the layout, or the id, which they should."""
        problems = dict[int, Problem]()
        for y, line in enumerate(lines):
            if len(line.fields) != layout.fields:
                form = "id ||| text ||| features ||| score" if self.layout is None else "as in the file's first lists"
                found = f"found {len(line.fields)} fields in {excerpt(line.text)}"
                problems[y] = Problem("fields", f"{found}; expected {layout.fields}, {form}")
            elif line.id < 0 and self.reader.ids == "file":
                message = f"found the id {excerpt(line.fields[0])}; expected a whole number"
                problems[y] = Problem("id", f"{message} (ids of any kind take the reader's option ids: ordinal)")
        return problems

    def _name_columns(self, starts: list[int], shown: Values, usable: np.ndarray, of_words: tuple[str, ...]) -> None:
        """Decide what the columns are from the first lists or, if these are damaged, up to the first that is not."""
        lists = max(FIRST_LISTS, bisect_right(starts, int(np.argmax(usable))))
        end, reader = starts[: lists + 1][-1], self.reader
        labels = find_labels(shown.some(shown.rows < end), int(np.count_nonzero(usable[:end])))
        given = of_words if reader.features != "sparse" else ()
        if (asked := reader.asked) is not None:
            given = tuple(name for name in given if name in asked or not reader.columns)
            self.columns = ask_for(tuple(name for name in asked if name not in given), labels).completed(shown)
            if reader.columns or reader.features != "auto":
                self.columns = self.columns._replace(others=())
        else:
            self.columns = find_columns(labels, reader.features)
        self.names = (*self.columns.names, *given, TOTAL)
        self.words = [OF_WORDS.index(name) for name in given]
        if reader.base not in self.names:
            message = f"no column {reader.base!r} for the base score; the columns are {', '.join(self.names)}"
            raise DataError(f"{message}; set the reader's option base to one of them", path=self.path)
        self.base = self.names.index(reader.base)

    def _fill(
        self, scores: np.ndarray, values: Values, owners: np.ndarray, readable: np.ndarray, lines: list[MosesLine],
        problems: dict[int, Problem],
    ) -> np.ndarray:  # fmt: skip
        """Put values into their columns, of which a line should have one each, and 0 where they may be missing; returns
        where that is so."""

        def misplaced(y: int, column: int, found: str) -> None:
            why = "is a column in the file's first lists" if self.reader.asked is None else "column is asked for"
            message = f"found {found} value of {self.columns.names[column]!r} in {excerpt(lines[y].text)}; expected "
            message += f"one, as that {why} (the reader's option columns can name those that are meant)"
            problems.setdefault(y, Problem("columns", message))

        rows, columns = values.rows[owners >= 0], owners[owners >= 0]
        scores[rows, columns] = values.values[owners >= 0]
        cells = rows * scores.shape[1] + columns
        if np.count_nonzero(np.bincount(cells)) < cells.size:
            again = np.ones(cells.size, np.bool_)
            again[np.unique(cells, return_index=True)[1]] = False
            for y, column in zip(rows[again].tolist()[::-1], columns[again].tolist()[::-1], strict=True):
                misplaced(y, column, "more than one")
        holes, optional = np.isnan(scores) & readable[:, None], np.array(self.columns.optional, np.bool_)
        for y in np.flatnonzero((holes & ~optional).any(axis=1)).tolist():
            misplaced(y, int(np.argmax(holes[y] & ~optional)), "no")
        scores[holes] = 0.0
        return np.asarray(holes & optional)

    def _fields(self, lines: list[MosesLine], right: list[bool], layout: Layout) -> dict[str, list[bytes]]:
        """Texts and derivations; empty ones for lines that do not have the layout."""
        columns = {"text": _column(lines, right, layout.text)}
        for place in layout.extra:
            column = _column(lines, right, place)
            role = self.roles.get(place) or find_role(column)
            if role:
                self.roles[place] = role
            columns.setdefault(role or layout.role(place), column)
        return columns

    def _gap(self, lines: list[MosesLine]) -> int:
        """The number of ids that are left out before the list of these lines."""
        number, line = next((line.id for line in lines if line.id >= 0), -1), lines[0].number
        if number < 0:  # no line has an id: the list is bad, and takes the next place
            return 0
        advice = "set the reader's option first_id, or number the lists with ids: ordinal"
        if number < self.next:
            message = f"found the id {number}; expected {self.next} or more, as ids must rise: sort the lists, {advice}"
            raise DataError(message, path=self.path, line=line, list_id=str(number))
        if number - self.next > LARGEST_GAP:
            message = f"found the id {number}; expected {self.next}, or at most {LARGEST_GAP:,} more: {advice}"
            raise DataError(message, path=self.path, line=line, list_id=str(number))
        return number - self.next


def _column(lines: list[MosesLine], right: list[bool], field: int) -> list[bytes]:
    """A field of every line; b"" for those that are not right, or where there is no such field."""
    if field < 0:
        return [b""] * len(lines)
    return [line.fields[field] if known else b"" for line, known in zip(lines, right, strict=True)]


def sums_of_words(words: Values, n: int) -> np.ndarray:
    """float64 [n, 4]: the columns ``OF_WORDS`` of n lines."""
    sizes, sums = np.bincount(words.rows, minlength=n), np.zeros((n, len(OF_WORDS)))
    sums[:, 0] = np.bincount(words.rows, words.values, n)
    sums[:, 1] = sums[:, 0] / np.maximum(sizes, 1)
    if words.values.size:
        sums[sizes > 0, 2] = np.minimum.reduceat(words.values, offsets(sizes)[:-1][sizes > 0])
    sums[:, 3] = sizes
    return sums


def _totals(lines: list[MosesLine], right: list[bool], field: int, problems: dict[int, Problem]) -> np.ndarray:
    """float64 [n]: the totals; 0 where there is none."""
    totals = np.zeros(len(lines))
    for y, text in enumerate(_column(lines, right, field)) if field >= 0 else ():
        value = as_number(text)
        if value is not None:
            totals[y] = value
        elif right[y]:
            shown = excerpt(text) if text else "an empty field"
            problems.setdefault(y, Problem("score", f"found {shown}; expected the candidate's score"))
    return totals


def _sparse(values: Values, n: int) -> SparseScores:
    """Values that belong to no column."""
    names = [key.name for key in values.keys]
    first = offsets(np.bincount(values.rows, minlength=n))
    return SparseScores(first, [names[k] for k in values.which.tolist()], values.values)
