"""A Moses-style file being read: its blocks, and the lists in them."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rerank.base.errors import DataError
from rerank.readers.base import LARGEST_GAP, Problem, SkippedList, excerpt
from rerank.readers.decimal_kernel import POWERS
from rerank.readers.moses.kernel import BEGIN, COUNT, FIRST, NUMBER, Entries, fill_columns, parse_entries, parse_totals
from rerank.readers.moses.layout import (
    FIRST_LISTS,
    TOTAL,
    WORD_SCORES,
    Columns,
    Layout,
    MosesBlock,
    Options,
    as_number,
    ask_for,
    entry_name,
    find_columns,
    find_labels,
    find_layout,
    find_role,
    look_again,
    unmark,
)
from rerank.readers.problems import NUL
from rerank.readers.texts.text_list import OF_WORDS, Pieces, SparseScores, TextList


class Values(NamedTuple):
    """The labelled values and totals of n lines."""

    entries: Entries
    length: int  # number of entries
    totals: np.ndarray  # float64 [n]: 0 if there is none
    words: np.ndarray  # float64 [n, 4]: the columns ``OF_WORDS``; [n, 0] if the lines have no scores of words
    problems: dict[int, Problem]  # the lines with something that is not a number


def read_values(block: MosesBlock, layout: Layout, right: np.ndarray) -> Values:
    """The numbers of the lines that have the ``layout`` (``right``, bool [n])."""
    n, problems = len(block.rows), dict[int, Problem]()  # the first problem of a line stays
    entries, count = _entries(block, layout.features, right, problems)
    words = np.empty((n, 0))
    if layout.words >= 0 and layout.words == layout.features:
        _, at, which = np.unique(entries.hashes[:count], return_index=True, return_inverse=True)
        labels = [block.data[begin:end] for begin, end in entries.labels[at].tolist()]
        own = np.array([label + b"=" == WORD_SCORES for label in labels], np.bool_)[which]
        (words_alone, number), (entries, count) = _some(entries, own), _some(entries, ~own)
        words = _of_words(words_alone, number)
        for line in np.flatnonzero(right & (words[:, -1] == 0)).tolist():
            message = f"found no {WORD_SCORES.decode()} in {excerpt(block.line_text(line), 200)}; expected it"
            problems.setdefault(line, Problem("columns", f"{message}, as in the file's first lists"))
    elif layout.words >= 0:
        words = _of_words(*_entries(block, layout.words, right, problems))
    totals, slow = np.zeros(n), np.empty((n, 4), np.int64)
    if layout.score >= 0:
        data, scores = np.frombuffer(block.data, np.uint8), _spans(block, layout.score, right)
        undecided = parse_totals(data, scores, right, POWERS, totals, slow)
        _decide(block, slow[:undecided], totals, problems, "the candidate's score")
    return Values(entries, count, totals, words, problems)


def _entries(block: MosesBlock, field: int, right: np.ndarray, problems: dict[int, Problem]) -> tuple[Entries, int]:
    """The labelled values in a field of every line, and how many there are."""
    # Lines of another layout have empty spans: they have no entries, and their fields are reported as the problem.
    spans = _spans(block, field, right)
    # Kernels cannot allocate, so the arrays have room for as many entries as the bytes may hold.
    room = _room(spans, block.pieces)
    entries = Entries(
        np.empty(len(spans) + 1, np.int64), np.empty(room, np.uint64), np.empty(room, np.float64),
        np.empty((room, 2), np.int64), np.empty(room, np.int32), np.empty(room, np.bool_),
    )  # fmt: skip
    slow = np.empty((room, 4), np.int64)
    count, undecided = parse_entries(np.frombuffer(block.data, np.uint8), spans, POWERS, entries, slow)
    _decide(block, slow[:undecided], entries.values, problems, "a number")
    return entries, count


def _some(entries: Entries, chosen: np.ndarray) -> tuple[Entries, int]:
    """Those of the entries that are ``chosen`` (bool), and how many these are."""
    first = np.concatenate([[0], np.cumsum(chosen)])[entries.first]
    return Entries(first, *(array[: chosen.size][chosen] for array in entries[1:])), int(first[-1])


def _of_words(entries: Entries, count: int) -> np.ndarray:
    """float64 [n, 4]: sum, mean, least and number of the values of every line."""
    sizes, values = np.diff(entries.first), entries.values[:count]
    sums = np.zeros((len(sizes), len(OF_WORDS)))
    sums[:, 0] = np.bincount(np.repeat(np.arange(len(sizes)), sizes), values, len(sizes))
    sums[:, 1] = sums[:, 0] / np.maximum(sizes, 1)
    if count:
        sums[sizes > 0, 2] = np.minimum.reduceat(values, entries.first[:-1][sizes > 0])
    sums[:, 3] = sizes
    return sums


def _spans(block: MosesBlock, field: int, right: np.ndarray) -> np.ndarray:
    """int64 [n, 2]: the bounds of a field in every line; empty for lines that do not have the layout."""
    spans = np.zeros((len(right), 2), np.int64)
    if field >= 0:
        spans[right] = block.rows[right, FIRST + 2 * field : FIRST + 2 * field + 2]
    return spans


def _room(spans: np.ndarray, pieces: int) -> int:
    """At least the number of pieces in ``spans``, plus one per span, for a label without values.

    ``pieces``: an upper bound for the whole lines.
    """
    # A piece takes a byte at least, and another separates two. ``pieces`` is the lower bound where labels are long.
    return min(pieces, int(((spans[:, 1] - spans[:, 0] + 1) // 2).sum())) + len(spans)


def _decide(
    block: MosesBlock, slow: np.ndarray, values: np.ndarray, problems: dict[int, Problem], expected: str
) -> None:
    """Read the numbers that the kernels left aside, or note that they are not numbers."""
    for entry, line, begin, end in slow.tolist():
        text = block.data[begin:end]
        value = as_number(text) if entry >= 0 else None
        if value is not None:
            values[entry] = value
        elif line not in problems:
            shown = excerpt(text) if text else "an empty field"
            where = " after it" if entry < 0 else ""
            problems[line] = Problem("score", f"found {shown}; expected {expected}{where}")


class _Parsed(NamedTuple):
    """A block with its numbers read; n lines."""

    block: MosesBlock
    values: Values
    owners: np.ndarray  # int32, one per entry: its column, or -1
    scores: np.ndarray  # float64 [n, K + 1]
    columns: np.ndarray  # int64 [n]: 0, or k + 1 if column k is missing, or -k - 1 if it is there twice
    bad: np.ndarray  # bool [n]
    filled: np.ndarray | None  # bool [n, K]: where a value is 0 because it is missing, if that is so anywhere
    fields: dict[str, list[bytes]]  # by role; one value per line
    numbers: list[int]  # the line numbers in the file


class File:
    """The findings about a file so far."""

    def __init__(self, reader: Options, path: str) -> None:
        self.reader, self.path = reader, path
        self.layout: Layout | None = None
        self.columns = Columns((), np.empty(0, np.uint64), np.empty(0, np.bool_))
        self.names: tuple[str, ...] = ()
        self.words: list[int] = []  # which of ``OF_WORDS`` are columns
        self.base = 0
        self.roles: dict[int, str] = {}
        self.next = reader.first_id

    def lists(self, block: MosesBlock) -> Iterator[TextList | SkippedList]:
        """The lists of a block, and empty ones for ids that are left out."""
        self.layout = self.layout or find_layout(block)
        parsed = self._parse(block, self.layout or Layout(4, 2, 3))
        bad = np.add.reduceat(parsed.bad, block.starts[:-1]) > 0
        for (begin, end), damaged in zip(pairwise(block.starts.tolist()), bad.tolist(), strict=True):
            if self.reader.ids == "file":
                yield from self._gap(parsed, begin, end)
            name = str(self.next)
            self.next += 1
            yield self._list(parsed, name, begin, end, damaged=damaged)

    def _parse(self, block: MosesBlock, layout: Layout) -> _Parsed:
        n, rows = len(block.rows), block.rows
        right = rows[:, COUNT] == layout.fields
        if self.reader.ids == "file":
            right &= block.ids >= 0
        values = read_values(block, layout, right)
        unread = np.zeros(n, np.bool_)
        unread[list(values.problems)] = True
        if not self.names:
            self._name_columns(block, values, right & ~unread)
        elif not self.columns.hashes.all():
            self.columns = look_again(self.columns, find_labels(block, values.entries, right & ~unread))
        first, hashes, numbers = values.entries.first, values.entries.hashes, values.entries.values[: values.length]
        infinite = ~np.isfinite(values.totals) | ~np.isfinite(values.words).all(axis=1)
        infinite[np.searchsorted(first, np.flatnonzero(~np.isfinite(numbers)), side="right") - 1] = True
        wanted, missing, owners = self.columns.hashes, np.empty(n, np.int64), np.empty(values.length, np.int32)
        scores = np.full((n, max(1, len(self.names))), np.nan)
        fill_columns(first, hashes, numbers, wanted, np.empty(len(wanted), np.int64), scores, owners, missing)
        filled = self._fill(scores[:, : len(wanted)], missing, right & ~unread & ~infinite)
        scores[:, len(wanted) : -1] = values.words[:, self.words]
        scores[:, -1] = values.totals
        bad = ~right | unread | (missing != 0) | infinite
        if b"\0" in block.data:
            bad |= np.array([b"\0" in block.line_text(line) for line in range(n)])
        lines = (rows[:, NUMBER] + (block.line + 1)).tolist()
        fields = self._fields(block, layout, right)
        return _Parsed(block, values, owners, scores, missing, bad, filled, fields, lines)

    def _fill(self, scores: np.ndarray, missing: np.ndarray, readable: np.ndarray) -> np.ndarray | None:
        """Set values that are not there (NaN, on ``readable`` lines) to 0, or note that they are ``missing``."""
        holes = np.isnan(scores) & readable[:, None]
        if not holes.any():
            return None
        lacking = holes & ~self.columns.optional
        partly = lacking.any(axis=1) & (missing == 0)
        missing[partly] = np.argmax(lacking[partly], axis=1) + 1
        scores[holes] = 0.0
        return np.asarray(holes & self.columns.optional)

    def _name_columns(self, block: MosesBlock, values: Values, usable: np.ndarray) -> None:
        """Decide what the columns are from the first lists or, if these are damaged, up to the first that is not."""
        if not usable.any():
            return
        count = int(np.searchsorted(block.starts, np.argmax(usable), side="right"))  # number of lists up to that one
        first = usable.copy()
        first[int(block.starts[min(max(FIRST_LISTS, count), len(block.starts) - 1)]) :] = False
        labels, asked = find_labels(block, values.entries, first), self.reader.asked
        given = OF_WORDS[: values.words.shape[1]] if self.reader.features != "sparse" else ()
        if asked is not None:
            given = tuple(name for name in given if name in asked or not self.reader.columns)
            self.columns = ask_for(tuple(name for name in asked if name not in given), labels)
            if not self.columns.hashes.all():
                self.columns = look_again(self.columns, find_labels(block, values.entries, usable))
            if self.reader.columns or self.reader.features != "auto":
                self.columns = self.columns._replace(others=())
        else:
            self.columns = find_columns(labels, self.reader.features)
        self.names = (*self.columns.names, *given, TOTAL)
        self.words = [OF_WORDS.index(name) for name in given]
        if self.reader.base not in self.names:
            message = f"no column {self.reader.base!r} for the base score; the columns are {', '.join(self.names)}"
            raise DataError(f"{message}; set the reader's option base to one of them", path=self.path)
        self.base = self.names.index(self.reader.base)

    def _fields(self, block: MosesBlock, layout: Layout, right: np.ndarray) -> dict[str, list[bytes]]:
        """Texts and derivations; empty ones for lines that do not have the layout."""
        rows = block.rows
        if not right.all():
            rows = rows.copy()
            rows[~right, FIRST:] = 0
        columns = {"text": block._replace(rows=rows).column(layout.text)}
        for field in layout.extra:
            column = block._replace(rows=rows).column(field)
            role = self.roles.get(field) or find_role(column)
            if role:
                self.roles[field] = role
            columns.setdefault(role or layout.role(field), column)
        return columns

    def _gap(self, parsed: _Parsed, begin: int, end: int) -> Iterator[TextList]:
        """Empty lists for ids that are left out before this list."""
        ids = parsed.block.ids[begin:end]
        number, line = int(ids[np.argmax(ids >= 0)]), parsed.numbers[begin]
        if number < 0:  # no line has an id: the list is bad, and takes the next place
            return
        advice = "set the reader's option first_id, or number the lists with ids: ordinal"
        if number < self.next:
            message = f"found the id {number}; expected {self.next} or more, as ids must rise: sort the lists, {advice}"
            raise DataError(message, path=self.path, line=line, list_id=str(number))
        if number - self.next > LARGEST_GAP:
            message = f"found the id {number}; expected {self.next}, or at most {LARGEST_GAP:,} more: {advice}"
            raise DataError(message, path=self.path, line=line, list_id=str(number))
        while self.next < number:
            name = str(self.next)
            self.next += 1
            yield self._empty(name, line)

    def _fault(self, parsed: _Parsed, line: int) -> Problem:
        """The problem with a line."""
        block, fields = parsed.block, (self.layout or Layout(4, 2, 3)).fields
        text, count = block.line_text(line), int(block.rows[line, COUNT])
        if b"\0" in text:
            return Problem("nul", NUL)
        if count != fields:
            form = "id ||| text ||| features ||| score" if self.layout is None else "as in the file's first lists"
            return Problem("fields", f"found {count} fields in {excerpt(text)}; expected {fields}, {form}")
        if self.reader.ids == "file" and block.ids[line] < 0:
            message = f"found the id {excerpt(block.field(line, 0))}; expected a whole number"
            return Problem("id", f"{message} (ids of any kind take the reader's option ids: ordinal)")
        if line in parsed.values.problems:
            return parsed.values.problems[line]
        column = int(parsed.columns[line])
        if column:
            what = f"{'no' if column > 0 else 'more than one'} value of {self.columns.names[abs(column) - 1]!r}"
            why = "is a column in the file's first lists" if self.reader.asked is None else "column is asked for"
            message = f"found {what} in {excerpt(text)}; expected one, as that {why}"
            return Problem("columns", f"{message} (the reader's option columns can name those that are meant)")
        return Problem("infinite score", f"found NaN or an infinite value in {excerpt(text, 200)}")

    def _list(self, parsed: _Parsed, name: str, begin: int, end: int, *, damaged: bool) -> TextList | SkippedList:
        """A list without its bad lines, of which there are some if ``damaged``."""
        block, fields = parsed.block, parsed.fields
        if damaged and end - begin == 1 and _is_marker(block, begin):
            return self._empty(name, parsed.numbers[begin])
        bad = np.flatnonzero(parsed.bad[begin:end]).tolist() if damaged else []
        segmentation = fields["segmentation"][begin:end] if "segmentation" in fields else None
        alignment = fields["alignment"][begin:end] if "alignment" in fields else None
        every = TextList(
            name, self.path, parsed.numbers[begin], fields["text"][begin:end], parsed.numbers[begin:end],
            parsed.scores[begin:end], self.base, form="moses", names=self.names or (TOTAL,),
            sparse=_sparse(parsed, begin, end), segmentation=segmentation, alignment=alignment,
            raw=Pieces(self.layout, block.texts(slice(begin, end), BEGIN)),
            others=self.columns.others, absent=self._absent(parsed, begin, end),
            ended=self.layout is not None and self.layout.ended,
        )  # fmt: skip
        nbest = every.without({place: self._fault(parsed, begin + place) for place in bad})
        if isinstance(nbest, SkippedList):
            return nbest
        return (_unmarked(nbest) if block.marked else nbest).repeated(self.reader.duplicates)

    def _absent(self, parsed: _Parsed, begin: int, end: int) -> dict[str, int]:
        """The number of values in a list that are 0 because they are missing, by column."""
        if parsed.filled is None:
            return {}
        counts = parsed.filled[begin:end].sum(axis=0).tolist()
        return {name: count for name, count in zip(self.columns.names, counts, strict=True) if count}

    def _empty(self, name: str, line: int) -> TextList:
        """A list without candidates."""
        names = self.names or (TOTAL,)
        return TextList(name, self.path, line, [], [], np.empty((0, len(names))), self.base, form="moses", names=names)


def _is_marker(block: MosesBlock, line: int) -> bool:
    """Whether the line consists of an id and an empty text."""
    return int(block.rows[line, COUNT]) == 2 and not block.field(line, 1)


def _unmarked(nbest: TextList) -> TextList:
    """A list whose texts may contain phrase marks, without these."""
    texts, marks = unmark(nbest.texts)
    return replace(nbest, texts=texts, segmentation=marks if nbest.segmentation is None else nbest.segmentation)


def _sparse(parsed: _Parsed, begin: int, end: int) -> SparseScores | None:
    """The values of a list that belong to no column."""
    entries = parsed.values.entries
    first = entries.first[begin : end + 1]
    places = np.flatnonzero(parsed.owners[first[0] : first[-1]] < 0)
    if not len(places):
        return None
    places += first[0]
    names = [entry_name(parsed.block.data, entries, entry) for entry in places.tolist()]
    return SparseScores(np.searchsorted(places, first).astype(np.int64), names, entries.values[places])
