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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from rerank.base.encoding import encoded
from rerank.base.errors import DataError
from rerank.base.ranges import Range
from rerank.data.corpus import offsets
from rerank.readers.base import LARGEST_GAP, Order, Problem, Scores, check_names, excerpt
from rerank.readers.lines import LineReader, ListReader, Part, Place, Record, as_number
from rerank.readers.lists import Lists, SparseScores, repeats_of
from rerank.readers.moses_lines import (
    ALIGNMENT,
    MARK,
    SEGMENTATION,
    TOTAL,
    WORD_SCORES,
    Columns,
    Layout,
    MosesLine,
    Values,
    composed,
    fields_of,
    find_columns,
    layout_of,
    read_values,
    rescored,
    unmark,
)
from rerank.readers.problems import NUL
from rerank.readers.texts.text_list import OF_WORDS, Pieces
from rerank.storage.streams import InputStream, Writable

FIRST_LISTS, FIRST_BYTES = 20, 1 << 24  # the first stretch has at least so many lists, unless they are this large
MOST_LINES, MOST_BYTES = 1 << 20, 1 << 28  # of a list; a line takes half a kilobyte of memory
SCORED = 4  # bytes of lines for one of their texts
LAYOUT_LINES, ROLE_VALUES = 1000, 100  # looked at to decide on the layout, and on the roles of further fields
MOST_FIELDS = 8  # of a line that may decide on the layout


@dataclass(frozen=True)
class Moses(ListReader):
    """Lists of Moses, Marian, Joshua, cdec, Travatar and others.

    >>> (nbest,) = Moses().parse(b"0 ||| the house ||| LM0= -3.5 ||| -7.5\\n")
    >>> nbest.texts, nbest.names, nbest.scores
    ([b'the house'], ('LM0', 'score'), array([[-3.5, -7.5]]))

    Parameters
    ----------
    base: the name of the column that is the base score.
    duplicates: "keep" candidates that repeat an earlier one of their list, or "drop" them; both count them.
    ids: "file": increasing whole numbers; a number that is left out is a list without candidates. "ordinal": ids of any
        kind; lists are numbered from ``first_id``.
    first_id: the number of the first list.
    columns: the names of the columns; by default labelled values that all candidates of the first lists have, and those
        written ``name=value`` that nine in ten have.
    """

    holds: ClassVar[str] = "texts"

    base: str = TOTAL
    ids: Literal["file", "ordinal"] = "file"
    first_id: Annotated[int, Range(0)] = 0
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

    def cut(self, data: bytes) -> int:
        """The length of the longest beginning of ``data`` that is whole lists whatever follows."""
        end, begin, last = data.rfind(b"\n") + 1, 0, None
        while end:
            start = data.rfind(b"\n", 0, end - 1) + 1
            name = self.name_of(fields_of(data[start:end]))
            if name is not None and last not in (None, name):
                return begin
            last, begin = (last, begin) if name is None else (name, start)
            end = start
        return 0

    def name_of(self, fields: Sequence[bytes]) -> int | bytes | None:
        """What tells lists apart: the id of a line, None if it has none and belongs to the list before it."""
        if self.ids == "file":
            return int(fields[0]) if fields[0].isdigit() and len(fields[0]) <= 18 else None  # any 18 fit an int64
        return fields[0] if len(fields) > 1 else None

    def parts(self, told: Mapping[str, Any]) -> bool:
        return "file" in told and self.ids == "file"

    def stretches(self, stream: InputStream, lists: int, size: int) -> Iterator[Part]:
        """Texts are a small part of their lines."""
        data, line, ordinal, piece = b"", 0, 0, b"-"
        while piece and len(data) <= MOST_BYTES + size:  # nobody reads further
            piece = stream.read(size)
            data += piece
            cut = self.cut(data) if piece else len(data)
            names = map(self.name_of, map(fields_of, reversed(data[:cut].split(b"\n"))))
            count = max(0, next((int(name) for name in names if name is not None), -1) + 1 - self.first_id - ordinal)
            if cut and (not piece or count >= lists or cut >= SCORED * size):
                yield data[:cut], line, ordinal, count
                data, line, ordinal = data[cut:], line + data.count(b"\n", 0, cut), ordinal + count

    def records(self, lines: LineReader) -> Iterator[Record]:
        """Whole lists, as many as have been read at once, but enough to tell the columns: their lines, and which of
        these begin one. Memory holds a chunk and the longest list."""
        held, begins, size, last, enough = list[MosesLine](), [0], 0, None, self.parts(lines.told)
        for first, some in lines.chunks():
            for number, text in enumerate(some, first):
                fields = fields_of(text)
                if fields == (b"",):
                    continue
                name = self.name_of(fields)
                if last is not None and name not in (None, last):
                    begins.append(len(held))
                last = last if name is None else name
                held.append(MosesLine(number, text, fields, name))
            size, cut = size + sum(map(len, some)), begins[-1]
            enough = enough or size > FIRST_BYTES or len(begins) > FIRST_LISTS
            if cut and enough:
                yield Record(None, held[0].number, (held[:cut], begins))
                held, begins = held[cut:], [0]
                size = sum(len(one.text) for one in held)
            if len(held) - begins[-1] > MOST_LINES or size > MOST_BYTES:
                message = f"a list of more than {MOST_LINES:,} lines or {MOST_BYTES >> 20} MiB; do they have the ids "
                message += "they should? Expected 'id ||| text ||| features ||| score'"
                raise DataError(message, path=lines.path, line=held[begins[-1]].number)
        if held:
            yield Record(None, held[0].number, (held, [*begins, len(held)]))

    def made(self, lines: LineReader, records: Iterable[Record]) -> Iterator[Lists]:
        """Ids that are left out give empty lists."""
        file = copy(lines.told["file"]) if self.parts(lines.told) else File(self, lines.path)
        file.next = self.first_id + lines.records
        for k, record in enumerate(records):
            for lists in file.lists(*record.content, nul=lines.nul):
                if k == 0 and file.settled:
                    lines.told.setdefault("file", copy(file))
                yield lists

    def lists(
        self, lines: LineReader, records: Iterable[Record], seen: dict[str, Place] | None = None  # noqa: ARG002
    ) -> Iterator[Lists]:  # fmt: skip
        """Ids that rise tell lists apart."""
        return self.made(lines, records)

    def write(self, out: Writable, nbest: Lists, order: Order = None, scores: Scores = None) -> None:
        """Lines are written as they were read, except for the total.

        The total is replaced, and the first one is kept among the features as ``BaseScore``. A list without candidates
        is left out, as by Moses, unless lists are numbered by their order. Lists of other formats can be written too.
        """
        if not len(nbest) and self.ids == "ordinal":
            out.write(encoded(f"list-{nbest.id} |||\n"))
        known = nbest.raw.head if isinstance(nbest.raw, Pieces) and isinstance(nbest.raw.head, Layout) else None
        for i in range(len(nbest)) if order is None else order:
            line = composed(nbest, i) if known is None else bytes(nbest.raw.candidates[i])
            out.write((line if scores is None else rescored(known, line, float(scores[i]))) + b"\n")

    def write_bad(self, out: Writable, bad: Problem, like: Lists | None) -> None:  # noqa: ARG002
        """Writes a line with an id, an empty text, and nothing else."""
        out.write(encoded(f"{bad.id} |||\n" if self.ids == "file" else f"list-{bad.id} |||\n"))


class File:
    """The findings about a file so far."""

    def __init__(self, reader: Moses, path: str) -> None:
        self.reader, self.path = reader, path
        self.layout: Layout | None = None
        self.columns = Columns()
        self.names: tuple[str, ...] = ()
        self.words: list[int] = []  # which of ``OF_WORDS`` are columns
        self.roles: dict[int, str] = {}
        self.next = reader.first_id  # the number of the next list

    @property
    def settled(self) -> bool:
        """Whether nothing that lists may hold changes the findings."""
        known = self.layout is not None and self.roles.keys() >= {*self.layout.extra}
        return known and bool(self.names) and None not in self.columns.keys

    def lists(self, lines: list[MosesLine], begins: list[int], *, nul: bool) -> Iterator[Lists]:
        """The lists of lines, of which those at ``begins`` begin one, and empty ones for ids that are left out; nul:
        whether there may be NUL bytes.

        They come one by one if any has a bad line, or marks of phrases.
        """
        if self.layout is None:  # that of most of the first lines that may have one
            first_lines = lines[: begins[: FIRST_LISTS + 1][-1]][:LAYOUT_LINES]
            layouts = Counter(layout_of(one.fields) for one in first_lines if 3 <= len(one.fields) <= MOST_FIELDS)
            self.layout = next((layout for layout, _ in layouts.most_common(1)), None)
        ids, starts, first, failure = list[str](), list[int](), [0], None
        for begin, end in pairwise(begins):
            try:
                left_out = self._gap(lines[begin:end]) if self.reader.ids == "file" else 0
            except DataError as error:  # the lists before may hold an earlier one
                failure, lines, begins = error, lines[:begin], begins[: begins.index(begin) + 1]
                break
            ids += map(str, range(self.next, self.next + left_out + 1))
            starts += [lines[begin].number] * (left_out + 1)
            first += [begin] * left_out + [end]
            self.next += left_out + 1
        if failure is not None and not ids:
            raise failure
        problems = dict[int, Problem]()
        every, filled = self._candidates(lines, begins, problems)
        spans = list(pairwise(first))
        sides: dict[str, Sequence[Any]] = {
            "raw": [Pieces(self.layout, [line.text for line in lines[a:b]]) if a < b else None for a, b in spans],
            "duplicates": [repeats_of(every.texts[a:b]) for a, b in spans],
            "absent": [
                {name: n for name, n in zip(self.columns.names, filled[a:b].sum(axis=0).tolist(), strict=True) if n}
                for a, b in spans
            ]
            if filled.any()
            else [{}] * len(spans),
        }
        whole = every.changed(ids=ids, starts=starts, first=np.array(first), sides=sides)
        if nul:
            problems |= {y: Problem("nul", NUL) for y, one in enumerate(lines) if b"\0" in one.text}
        apart = problems.keys() | {y for y, text in enumerate(whole.texts) if b"|" in text and MARK.search(text)}
        if self.reader.duplicates == "drop":
            apart |= {first[i] for i, count in enumerate(whole.side("duplicates")) if count}
        if not apart:
            yield whole
        for i in range(len(ids) if apart else 0):
            bad = {y - first[i]: problems[y] for y in range(first[i], first[i + 1]) if y in problems}
            yield self._mended(whole.part(i, i + 1), bad, lines[first[i]].fields if bad else ())
        if failure is not None:
            raise failure

    def _candidates(
        self, lines: list[MosesLine], begins: list[int], problems: dict[int, Problem]
    ) -> tuple[Lists, np.ndarray]:
        """What lines hold, as if they were one list, and where a value is 0 because it is missing (bool [N, K]);
        ``problems`` gets those of the bad lines."""
        n, layout = len(lines), self.layout or Layout(4, 2, 3)
        for y, line in enumerate(lines):
            if len(line.fields) != layout.fields:
                form = "id ||| text ||| features ||| score" if self.layout is None else "as in the file's first lists"
                found = f"found {len(line.fields)} fields in {excerpt(line.text)}"
                problems[y] = Problem("fields", f"{found}; expected {layout.fields}, {form}")
            elif line.name is None and self.reader.ids == "file":
                message = f"found the id {excerpt(line.fields[0])}; expected a whole number"
                problems[y] = Problem("id", f"{message} (ids of any kind take the reader's option ids: ordinal)")
        right = np.array([y not in problems for y in range(n)])
        none = (b"",) * layout.fields
        rows = (line.fields if fits else none for line, fits in zip(lines, right.tolist(), strict=True))
        columns = list(map(list, zip(*rows, strict=True)))
        features = columns[layout.features] if layout.features >= 0 else [b""] * n
        if layout.words not in (-1, layout.features):
            features = list(map(b" ".join, zip(features, columns[layout.words], strict=True)))
        values, words = read_values(features, problems), np.empty((n, 0))
        if layout.words >= 0:
            own = np.array([key.label == WORD_SCORES for key in values.keys], np.bool_)[values.which]
            parts, values = values.some(own), values.some(~own)
            sizes = np.bincount(parts.rows, minlength=n)
            sums, least = np.bincount(parts.rows, parts.values, n), np.zeros(n)
            if parts.values.size:
                least[sizes > 0] = np.minimum.reduceat(parts.values, offsets(sizes)[:-1][sizes > 0])
            words = np.column_stack([sums, sums / np.maximum(sizes, 1), least, sizes])  # the columns OF_WORDS
            for y in np.flatnonzero(right & (words[:, -1] == 0)).tolist():
                message = f"found no {WORD_SCORES.decode()}= in {excerpt(lines[y].text, 200)}; expected it"
                problems.setdefault(y, Problem("columns", f"{message}, as in the file's first lists"))
        totals = np.zeros(n)
        if layout.score >= 0:
            numbers = list(map(as_number, columns[layout.score]))
            totals[:] = [0.0 if total is None else total for total in numbers]
            for y in np.flatnonzero(right & [total is None for total in numbers]).tolist():
                shown = excerpt(columns[layout.score][y]).replace("''", "an empty field")
                problems.setdefault(y, Problem("score", f"found {shown}; expected the candidate's score"))
        usable = np.array([y not in problems for y in range(n)])
        self._settle(values.some(usable[values.rows]), usable, begins, OF_WORDS[: words.shape[1]])
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
        few, labels = values.some(owners < 0), [key.name for key in values.keys]
        names, first = [labels[k] for k in few.which.tolist()], offsets(np.bincount(few.rows, minlength=n))
        roles = self._roles(columns, layout)
        return Lists(
            [""], self.path, [0], columns[layout.text], [line.number for line in lines], scores, np.array([0, n]),
            self.names.index(self.reader.base) if self.names else 0, form="moses", names=self.names or (TOTAL,),
            others=self.columns.others, sparse=SparseScores(first, names, few.values) if names else None,
            segmentation=roles.get("segmentation"), alignment=roles.get("alignment"), ended=layout.ended,
        ), filled  # fmt: skip

    def _roles(self, columns: list[list[bytes]], layout: Layout) -> dict[str, list[bytes]]:
        """The fields besides the text, by what they are: as their values show it or, if all are empty, their places."""
        fields = dict[str, list[bytes]]()
        for place in layout.extra:
            values = list(islice(filter(None, columns[place]), ROLE_VALUES))
            if values and place not in self.roles:
                forms = {"segmentation": SEGMENTATION, "alignment": ALIGNMENT}
                self.roles[place] = next((role for role in forms if any(map(forms[role].fullmatch, values))), "other")
            after = place - max(layout.features, layout.score)
            usual = "segmentation" if after == 1 else "alignment" if after < 3 else "other"
            fields.setdefault(self.roles.get(place, usual), columns[place])
        return fields

    def _mended(self, nbest: Lists, bad: dict[int, Problem], fields: tuple[bytes, ...]) -> Lists:
        """A list without its bad lines, and with marks of phrases as a segmentation; ``fields``: of its first line."""
        if bad and len(nbest) == 1 and len(fields) == 2 and not fields[1]:
            return nbest.some([], absent={})
        if (nbest := nbest.without(bad)).problem is not None:
            return nbest
        texts, marks = unmark(nbest.texts)
        derived = marks if nbest.segmentation is None else nbest.segmentation
        return nbest.changed(texts=texts, segmentation=derived).repeated(self.reader.duplicates)

    def _settle(self, values: Values, usable: np.ndarray, begins: list[int], of_words: tuple[str, ...]) -> None:
        """Decide what the columns are from the first lists or, if these are damaged, up to the first that is not."""
        reader, asked = self.reader, self.reader.asked
        if not self.names and usable.any():
            lists = max(FIRST_LISTS, bisect_right(begins, int(np.argmax(usable))))
            end = begins[: lists + 1][-1]
            given = tuple(name for name in of_words if name in (reader.columns or of_words))
            labels = None if asked is None else tuple(name for name in asked if name not in given)
            self.columns = find_columns(values.some(values.rows < end), int(np.count_nonzero(usable[:end])), labels)
            if reader.columns or asked is None:
                self.columns = self.columns._replace(others=())
            self.names = (*self.columns.names, *given, TOTAL)
            self.words = [OF_WORDS.index(name) for name in given]
            if reader.base not in self.names:
                message = f"no column {reader.base!r} for the base score; the columns are {', '.join(self.names)}"
                raise DataError(f"{message}; set the reader's option base to one of them", path=self.path)
        if None in self.columns.keys:
            seen = {values.keys[k].column: values.keys[k] for k in dict.fromkeys(values.which.tolist()[::-1])}
            keys = tuple(key or seen.get(name) for name, key in zip(self.columns.names, self.columns.keys, strict=True))
            self.columns = self.columns._replace(keys=keys)

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
        cells, counts = np.unique(rows * scores.shape[1] + columns, return_counts=True)
        for cell in cells[counts > 1].tolist():
            misplaced(cell // scores.shape[1], cell % scores.shape[1], "more than one")
        holes, optional = np.isnan(scores) & readable[:, None], np.array(self.columns.optional, np.bool_)
        for y in np.flatnonzero((holes & ~optional).any(axis=1)).tolist():
            misplaced(y, int(np.argmax(holes[y] & ~optional)), "no")
        scores[holes] = 0.0
        return np.asarray(holes & optional)

    def _gap(self, lines: list[MosesLine]) -> int:
        """The number of ids that are left out before the list of these lines."""
        number, line = next((int(line.name) for line in lines if line.name is not None), -1), lines[0].number
        if number < 0:  # no line has an id: the list is bad, and takes the next place
            return 0
        if not self.next <= number <= self.next + LARGEST_GAP:
            message = f"found the id {number}; expected {self.next} or more, as ids must rise, and at most "
            message += f"{LARGEST_GAP:,} more: sort the lists, set the reader's option first_id, or number the lists "
            raise DataError(f"{message}with ids: ordinal", path=self.path, line=line, list_id=str(number))
        return number - self.next
