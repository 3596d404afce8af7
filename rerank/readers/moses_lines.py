"""The lines of Moses-style lists: their fields, which layout these have, labelled values in them, and their lists."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from rerank.base.encoding import DECIMAL, excerpt
from rerank.base.errors import DataError
from rerank.data.corpus import offsets
from rerank.readers.lines import as_number
from rerank.readers.lists import Lists, SparseScores, repeats_of
from rerank.readers.problems import NUL, Problem
from rerank.readers.reader import LARGEST_GAP
from rerank.readers.texts.text_list import OF_WORDS, Pieces

FIRST_LISTS, LAYOUT_LINES = 20, 1000  # at first, and lines of these, looked at to decide on columns and the layout
ROLE_VALUES, MAX_FIELDS = 100, 8  # looked at to decide on the roles of further fields; of a line that tells the layout
TOTAL = "score"  # the column of totals
WORD_SCORES = b"WordScores"  # Marian's label of the scores of words
SEGMENTATION = re.compile(rb"\d+(-\d+)?=\d+(-\d+)?(\s+\d+(-\d+)?=\d+(-\d+)?)*")
ALIGNMENT = re.compile(rb"\d+-\d+(\s+\d+-\d+)*")
_DERIVATION = re.compile(b"|".join([SEGMENTATION.pattern, ALIGNMENT.pattern]))
_SOFT = re.compile(rb"(?=\S*,)[\d.,eE+-]+(\s+[\d.,eE+-]+)*")  # weights of source words, target word by target word
MARK = re.compile(rb"(?<!\S)\|(\d+)(?:-(\d+))?(?:,[^|]*)?\|(?!\S)")
BAR = re.compile(rb"(?<!\S)\|\|\|(?!\S)")
_ID = re.compile(rb"\d{1,18}(?=\|\|\|(?!\S))")  # a whole number that bars follow directly, as old Moses writes it
_VALUE_RUNS = re.compile(rb"\S+[=:][-+.\deE]*(\s+(\S+[=:])?[-+.\deE]*)*")  # values behind labels
_SEMICOLON = re.compile(rb"(\S+?=%s);+" % DECIMAL)  # after a whole label=value it separates
# A label, which ends at the last sign of its word, with its values, or the values that precede the first label. The
# repeated group is atomic, not possessive: Python 3.11.2 backtracks into one that is.
_RUN = re.compile(rb"(?:(\S+)[=:](\S*)|(?=\S))((?>(?:\s*+(?=\S)[=:]?[^\s=:]*+(?!\S))*))")


class MosesLine(NamedTuple):
    """A line that is not blank: its number in the file, and its fields without the white space around them."""

    number: int
    text: bytes
    fields: tuple[bytes, ...]
    name: int | bytes | None  # see ``Moses.name_of``


class Layout(NamedTuple):
    """The number of a line's fields, and the places of some of them, counted from the id; -1: there is none."""

    fields: int
    features: int
    score: int
    text: int = 1
    words: int = -1  # the scores of words, which may be among the features

    @property
    def extra(self) -> tuple[int, ...]:
        """The fields after the text that are none of these."""
        roles = self.features, self.score, self.words
        return tuple(field for field in range(self.text + 1, self.fields) if field not in roles)


def parts_of(line: bytes) -> list[bytes]:
    """The fields of a line, with the white space around them. Texts may contain bars too: only three that stand alone
    separate."""
    parts = line.split(b"|||")
    if len(parts) == line.count(b" ||| ") + 1:
        return parts
    if (name := _ID.match(line)) is not None:
        return [name[0], *BAR.split(line[name.end() :])[1:]]
    return BAR.split(line)


def fields_of(line: bytes) -> tuple[bytes, ...]:
    """The fields of a line, without the white space around them."""
    return tuple(map(bytes.strip, parts_of(line)))


def layout_of(fields: Sequence[bytes]) -> Layout:
    """The layout of one line, given its fields (at least three) without the white space around them.

    The score is after the features, before them (Travatar), or missing. An alignment and the scores of words may come
    before the features (Marian), the source before the text (Joshua, for lattices).
    """
    one, two, count = fields[2], fields[3] if len(fields) > 3 else b"", len(fields)
    if count > 3 and as_number(two) is not None:
        among = b" %s=" % WORD_SCORES in b" " + one
        return Layout(count, 2, 3, words=2 if among else -1)
    if as_number(one) is not None:
        return Layout(count, -1 if count == 3 or _DERIVATION.fullmatch(two) else 3, 2)
    words = next((k for k in (2, 3) if k < count and fields[k].startswith(WORD_SCORES + b"=")), -1)
    features = words + 1 or 2 + bool(_DERIVATION.fullmatch(one) or _SOFT.fullmatch(one))
    if 2 < features < count - 1 and as_number(fields[features + 1]) is not None:
        if words < 0 and b" %s=" % WORD_SCORES in b" " + fields[features]:
            words = features
        return Layout(count, features, features + 1, words=words)
    if count > 4 and _VALUE_RUNS.fullmatch(two) and not _VALUE_RUNS.fullmatch(one) and as_number(fields[4]) is not None:
        return Layout(count, 3, 4, text=2)
    return Layout(count, 2, -1) if count == 3 or _DERIVATION.fullmatch(two) else Layout(count, 2, 3)


def unmark(texts: list[bytes]) -> tuple[list[bytes], list[bytes] | None]:
    """Texts without Moses' phrase marks, as in ``das haus |0-1| regnet |2-2|``, and the segmentations that these give.

    Unless every nonempty text consists of marked phrases, the texts are returned as they are, with None.
    """
    plain, segmentations = [], []
    for text in texts:
        pieces = MARK.split(text)
        if pieces[-1].strip() or (len(pieces) == 1 and text):
            return texts, None
        spans, words = list[bytes](), list[bytes]()
        for phrase, begin, end in zip(pieces[0::3], pieces[1::3], pieces[2::3], strict=False):
            tokens, at = phrase.split(), len(words)
            if tokens:
                source = begin if end is None or end == begin else begin + b"-" + end
                target = b"%d" % at if len(tokens) == 1 else b"%d-%d" % (at, at + len(tokens) - 1)
                spans.append(source + b"=" + target)
            words += tokens
        plain.append(b" ".join(words))
        segmentations.append(b" ".join(spans))
    return plain, segmentations if any(segmentations) else None


class Key(NamedTuple):
    """A value: its number among those of its label, and how many these are. A label with another number of
    values has other columns, instead of values that are silently shifted."""

    label: bytes  # b"": there is none
    number: int
    of: int

    @property
    def name(self) -> bytes:
        """Its name as a sparse feature: the label, and its place unless there is no other."""
        suffix = b"" if self.label and self.of == 1 else b"%d" % self.number
        return b"_".join(filter(None, (self.label, suffix)))

    @property
    def column(self) -> str:
        """Its name as a column."""
        name = self.name.decode("utf-8", "surrogateescape")
        return f"{TOTAL}_0" if name == TOTAL else name


class Values(NamedTuple):
    """The m labelled values of some lines, in their order."""

    keys: list[Key]
    which: np.ndarray  # int64 [m]: their places in ``keys``
    rows: np.ndarray  # int64 [m]: their lines
    values: np.ndarray  # float64 [m]
    inline: np.ndarray  # bool [m]: written as label=value, without a space

    def select(self, mask: np.ndarray) -> "Values":
        """The values that are ``mask`` (bool [m])."""
        return Values(self.keys, *(array[mask] for array in self[1:]))


def read_values(fields: list[bytes], problems: dict[int, Problem]) -> Values:
    """The labelled values of feature fields; ``problems`` gets those of the fields that are damaged.

    A label ends with ``=`` or ``:`` and precedes its values, or is joined to its only (or first) value.
    """
    runs, order, of, texts = dict[tuple[bytes, int, bool], int](), list[int](), list[int](), list[bytes]()
    for row, field in enumerate(fields):
        for label, head, more in _RUN.findall(_SEMICOLON.sub(rb"\1 ", field) if b";" in field else field):
            words = [head, *more.split()] if head else more.split()
            texts += words
            order.append(runs.setdefault((label, len(words), head != b""), len(runs)))
            of.append(row)
    first, keys = dict[tuple[bytes, int], int](), list[Key]()  # the place of the first key of a label
    for label, size, _ in runs:
        if first.setdefault((label, size), len(keys)) == len(keys):
            keys += [Key(label, k, size) for k in range(size)]
    sizes = np.array([size for _, size, _ in runs], np.int64)[order]
    rows = np.repeat(np.array(of, np.int64), sizes)
    begins = np.array([first[label, size] for label, size, _ in runs], np.int64)[order]
    which = np.repeat(begins - offsets(sizes)[:-1], sizes) + np.arange(len(rows))
    inline = np.repeat(np.array([size == 1 and head for _, size, head in runs], np.bool_)[order], sizes)
    for k in np.flatnonzero(sizes == 0).tolist():
        message = f"found {excerpt([*runs][order[k]][0] + b'=')}; expected a number after it"
        problems.setdefault(of[k], Problem("score", message))
    try:
        if b"_" in b"".join(texts):
            raise ValueError  # Python reads 1_000 as a number
        values = np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        numbers = list(map(as_number, texts))
        for k in [k for k, number in enumerate(numbers) if number is None]:
            problems.setdefault(int(rows[k]), Problem("score", f"found {excerpt(texts[k])}; expected a number"))
        values = np.array([0.0 if number is None else number for number in numbers])
    return Values(keys, which, rows, values, inline)


def _values_alike(fields: list[bytes]) -> Values | None:
    """The values of fields that have the same labels at the same places, each before its values, as those of Moses: in
    a third of the time; None for other fields, and damaged ones."""
    problems = dict[int, Problem]()
    words, first = list(map(bytes.split, fields)), read_values(fields[:1], problems)
    indices = [k for k, word in enumerate(words[0]) if not word.endswith((b"=", b":"))] if words else []
    if len({*map(len, words)}) != 1 or problems or first.inline.any() or not 0 < len(indices) == first.which.size:
        return None
    columns = list(zip(*words, strict=True))
    texts, content = [columns[k] for k in indices], b"".join(chain.from_iterable(columns[k] for k in indices))
    alike = all(column.count(column[0]) == len(fields) for k, column in enumerate(columns) if k not in indices)
    if not alike or any(sign in content for sign in (b"=", b":", b";", b"_")):
        return None
    try:
        values = np.fromiter(map(float, chain.from_iterable(zip(*texts, strict=True))), np.float64)
    except ValueError:
        return None
    which, rows = np.tile(first.which, len(fields)), np.repeat(np.arange(len(fields)), len(indices))
    return Values(first.keys, which, rows, values, np.zeros(values.size, np.bool_))


def sum_word_scores(values: Values, n: int) -> tuple[Values, np.ndarray]:
    """The values of n lines but for the scores of words, and the columns that these give (float64 [n, 4], see
    ``OF_WORDS``)."""
    own = np.array([key.label == WORD_SCORES for key in values.keys], np.bool_)[values.which]
    words = values.select(own)
    sizes = np.bincount(words.rows, minlength=n)
    sums, least = np.bincount(words.rows, words.values, n), np.zeros(n)
    if words.values.size:
        least[sizes > 0] = np.minimum.reduceat(words.values, offsets(sizes)[:-1][sizes > 0])
    return values.select(~own), np.column_stack([sums, sums / np.maximum(sizes, 1), least, sizes])


class Column(NamedTuple):
    """A labelled value that all candidates of a file have, or nearly all."""

    name: str
    key: Key | None  # None if no candidate has had the label yet
    optional: bool  # written label=value, as by programs that may leave out a 0


def find_columns(values: Values, total: int, choice: Sequence[str] | None) -> tuple[list[Column], tuple[str, ...]]:
    """The columns of a file: its ``choice`` or, without one, as its first ``total`` candidates show them, in order of
    first appearance; and the labels that all of these have, though they were not asked for.

    Columns are labels that nine candidates in ten have. If some labels precede their values, those written label=value
    are sparse, and those that look sparse are columns only if all candidates have them.
    """
    which = values.which.tolist()
    counts, having = Counter(which), Counter(k for k, _ in {*zip(which, values.rows.tolist(), strict=True)})
    inline = dict(zip(which[::-1], values.inline.tolist()[::-1], strict=True))  # of the first value of each
    labels, dense, shared = dict[str, int](), list[str](), set[str]()
    for k in counts:
        key, every, usual = values.keys[k], having[k] == total, 10 * having[k] >= 9 * total
        if all(inline.values()):
            usual = usual and having[k] == counts[k]
        else:  # sparse features do not have several values, and have "_" in their names
            usual = usual and not inline[k] and (every or key.of > 1 or "_" not in key.column)
        if labels.setdefault(key.column, k) == k and usual:
            dense.append(key.column)
            shared |= {key.column} if every else set()
    names = dense if choice is None else choice
    of_labels = {name: (values.keys[k], inline[k]) for name, k in labels.items()}
    columns = [Column(name, *of_labels.get(name, (None, False))) for name in names]
    return columns, tuple(name for name in dense if name in shared and name not in names)


class File:
    """The findings about a file so far."""

    def __init__(self, reader: Any, path: str) -> None:  # a ``Moses``
        self.reader, self.path = reader, path
        self.layout: Layout | None = None
        self.columns: Sequence[Column] = ()
        self.others: tuple[str, ...] = ()  # labels that all candidates have, though they were not asked for
        self.names: tuple[str, ...] = ()
        self.words: list[int] = []  # which of ``OF_WORDS`` are columns
        self.roles: dict[int, str] = {}
        self.next: int = reader.first_id  # the number of the next list

    @property
    def is_final(self) -> bool:
        """Whether nothing that lists may hold changes the findings."""
        has_layout = self.layout is not None and self.roles.keys() >= {*self.layout.extra}
        return has_layout and bool(self.names) and all(column.key for column in self.columns)

    def lists(self, lines: list[MosesLine], begins: list[int], *, nul: bool) -> Iterator[Lists]:
        """The lists of lines, of which those at ``begins`` begin one, and empty ones for ids that are left out; nul:
        whether there may be NUL bytes.

        They come one by one if any has a bad line, or marks of phrases.
        """
        if self.layout is None:  # that of most of the first lines that may have one
            first_lines = lines[: begins[: FIRST_LISTS + 1][-1]][:LAYOUT_LINES]
            layouts = Counter(layout_of(one.fields) for one in first_lines if 3 <= len(one.fields) <= MAX_FIELDS)
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
        every, holes = self._candidates(lines, begins, problems)
        spans = list(pairwise(first))
        sides: dict[str, Sequence[Any]] = {
            "raw": [Pieces(self.layout, [line.text for line in lines[a:b]]) if a < b else None for a, b in spans],
            "duplicates": [repeats_of(every.texts[a:b]) for a, b in spans],
        }
        if holes.any():
            counts = (holes[a:b].sum(axis=0).tolist() for a, b in spans)
            sides["absent"] = [{one.name: n for one, n in zip(self.columns, of, strict=True) if n} for of in counts]
        whole = every.replace(ids=ids, starts=starts, first=np.array(first), sides=sides)
        if nul:
            problems |= {y: Problem("nul", NUL) for y, one in enumerate(lines) if b"\0" in one.text}
        exceptions = problems.keys() | {y for y, text in enumerate(whole.texts) if b"|" in text and MARK.search(text)}
        if self.reader.duplicates == "drop":
            exceptions |= {first[i] for i, count in enumerate(whole.side("duplicates")) if count}
        if not exceptions:
            yield whole
        for i in range(len(ids) if exceptions else 0):
            bad = {y - first[i]: problems[y] for y in range(first[i], first[i + 1]) if y in problems}
            yield self._mend(whole.part(i, i + 1), bad, lines[first[i]].fields if bad else ())
        if failure is not None:
            raise failure

    def _candidates(
        self, lines: list[MosesLine], begins: list[int], problems: dict[int, Problem]
    ) -> tuple[Lists, np.ndarray]:
        """The candidates of lines, as if of one list, and where a value is 0 because it is missing (bool [N, K]);
        ``problems`` gets those of the bad lines."""
        n, layout = len(lines), self.layout or Layout(4, 2, 3)
        problems.update(self._misshapen(lines, layout.fields))
        right = np.array([y not in problems for y in range(n)])
        none = (b"",) * layout.fields
        rows = (line.fields if fits else none for line, fits in zip(lines, right.tolist(), strict=True))
        columns = list(map(list, zip(*rows, strict=True)))
        features = columns[layout.features] if layout.features >= 0 else [b""] * n
        if layout.words not in (-1, layout.features):
            features = list(map(b" ".join, zip(features, columns[layout.words], strict=True)))
        values, words = _values_alike(features) or read_values(features, problems), np.empty((n, 0))
        if layout.words >= 0:
            values, words = sum_word_scores(values, n)
            for y in np.flatnonzero(right & (words[:, -1] == 0)).tolist():
                message = f"found no {WORD_SCORES.decode()}= in {excerpt(lines[y].text, 200)}; expected it"
                problems.setdefault(y, Problem("columns", f"{message}, as in the file's first lists"))
        totals = np.zeros(n)
        if layout.score >= 0:
            numbers = list(map(as_number, columns[layout.score]))
            totals[:] = [0.0 if total is None else total for total in numbers]
            for y in np.flatnonzero(right & [total is None for total in numbers]).tolist():
                field = excerpt(columns[layout.score][y]).replace("''", "an empty field")
                problems.setdefault(y, Problem("score", f"found {field}; expected the candidate's score"))
        usable = np.array([y not in problems for y in range(n)])
        self._decide_columns(values.select(usable[values.rows]), usable, begins, OF_WORDS[: words.shape[1]])
        finite = np.isfinite(totals) & np.isfinite(words).all(axis=1)
        finite[values.rows[~np.isfinite(values.values)]] = False
        column_of = {column.key: k for k, column in enumerate(self.columns)}
        owners = np.array([column_of.get(key, -1) for key in values.keys], np.int64)[values.which]
        width, scores = len(self.columns), np.full((n, max(1, len(self.names))), np.nan)
        holes = self._fill(scores[:, :width], values, owners, finite & usable, lines, problems)
        scores[:, width:-1] = words[:, self.words]
        scores[:, -1] = totals
        for y in np.flatnonzero(~finite).tolist():
            message = f"found NaN or an infinite value in {excerpt(lines[y].text, 200)}"
            problems.setdefault(y, Problem("infinite score", message))
        few, labels = values.select(owners < 0), [key.name for key in values.keys]
        ended = any(field < layout.features for field in layout.extra)  # as in Marian's, which precede the features
        names, first = [labels[k] for k in few.which.tolist()], offsets(np.bincount(few.rows, minlength=n))
        roles = self._roles(columns, layout)
        return Lists(
            [""], self.path, [0], columns[layout.text], [line.number for line in lines], scores, np.array([0, n]),
            self.names.index(self.reader.base) if self.names else 0, form="moses", names=self.names or (TOTAL,),
            others=self.others, sparse=SparseScores(first, names, few.values) if names else None,
            segmentation=roles.get("segmentation"), alignment=roles.get("alignment"), ended=ended,
        ), holes  # fmt: skip

    def _misshapen(self, lines: list[MosesLine], count: int) -> Iterator[tuple[int, Problem]]:
        """The lines that have not so many fields, and those without an id, with what is wrong."""
        form = "id ||| text ||| features ||| score" if self.layout is None else "as in the file's first lists"
        for y, line in enumerate(lines):
            if len(line.fields) != count:
                message = f"found {len(line.fields)} fields in {excerpt(line.text)}; expected {count}, {form}"
                yield y, Problem("fields", message)
            elif line.name is None and self.reader.ids == "file":
                message = f"found the id {excerpt(line.fields[0])}; expected a whole number"
                yield y, Problem("id", f"{message} (ids of any kind take the reader's option ids: ordinal)")

    def _roles(self, columns: list[list[bytes]], layout: Layout) -> dict[str, list[bytes]]:
        """The fields besides the text, by what they are: as their values show it or, if all are empty, their places."""
        fields = dict[str, list[bytes]]()
        for field in layout.extra:
            values = list(islice(filter(None, columns[field]), ROLE_VALUES))
            if values and field not in self.roles:
                forms = {"segmentation": SEGMENTATION, "alignment": ALIGNMENT}
                self.roles[field] = next((role for role in forms if any(map(forms[role].fullmatch, values))), "other")
            after = field - max(layout.features, layout.score)
            usual = "segmentation" if after == 1 else "alignment" if after < 3 else "other"
            fields.setdefault(self.roles.get(field, usual), columns[field])
        return fields

    def _mend(self, nbest: Lists, bad: dict[int, Problem], fields: tuple[bytes, ...]) -> Lists:
        """A list without its bad lines, and with marks of phrases as a segmentation; ``fields``: of its first line."""
        if bad and len(nbest) == 1 and len(fields) == 2 and not fields[1]:
            return nbest.select([], absent={})
        if (nbest := nbest.without(bad)).problem is not None:
            return nbest
        texts, marks = unmark(nbest.texts)
        segmentation = marks if nbest.segmentation is None else nbest.segmentation
        return nbest.replace(texts=texts, segmentation=segmentation).count_repeats(self.reader.duplicates)

    def _decide_columns(self, values: Values, usable: np.ndarray, begins: list[int], of_words: tuple[str, ...]) -> None:
        """Decide what the columns are from the first lists or, if these are damaged, up to the first that is not."""
        reader, choice = self.reader, self.reader.labels
        if not self.names and usable.any():
            lists = max(FIRST_LISTS, bisect_right(begins, int(np.argmax(usable))))
            end = begins[: lists + 1][-1]
            word_columns = tuple(name for name in of_words if name in (reader.columns or of_words))
            labels = None if choice is None else tuple(name for name in choice if name not in word_columns)
            size = int(np.count_nonzero(usable[:end]))
            self.columns, others = find_columns(values.select(values.rows < end), size, labels)
            self.others = () if reader.columns or choice is None else others
            self.names = (*(column.name for column in self.columns), *word_columns, TOTAL)
            self.words = [OF_WORDS.index(name) for name in word_columns]
            if reader.base not in self.names:
                message = f"no column {reader.base!r} for the base score; the columns are {', '.join(self.names)}"
                raise DataError(f"{message}; set the reader's option base to one of them", path=self.path)
        if not all(column.key for column in self.columns):
            rest = {values.keys[k].column: values.keys[k] for k in dict.fromkeys(values.which.tolist()[::-1])}
            self.columns = [one if one.key else one._replace(key=rest.get(one.name)) for one in self.columns]

    def _fill(
        self, scores: np.ndarray, values: Values, owners: np.ndarray, readable: np.ndarray, lines: list[MosesLine],
        problems: dict[int, Problem],
    ) -> np.ndarray:  # fmt: skip
        """Put values into their columns, of which a line should have one each, and 0 where they may be missing; returns
        where that is so."""

        def report(y: int, column: int, amount: str) -> None:
            why = "is a column in the file's first lists" if self.reader.labels is None else "column is asked for"
            message = f"found {amount} value of {self.columns[column].name!r} in {excerpt(lines[y].text)}; expected "
            message += f"one, as that {why} (the reader's option columns can name those that are meant)"
            problems.setdefault(y, Problem("columns", message))

        rows, columns = values.rows[owners >= 0], owners[owners >= 0]
        scores[rows, columns] = values.values[owners >= 0]
        cells, counts = np.unique(rows * scores.shape[1] + columns, return_counts=True)
        for cell in cells[counts > 1].tolist():
            report(cell // scores.shape[1], cell % scores.shape[1], "more than one")
        holes = np.isnan(scores) & readable[:, None]
        optional = np.array([column.optional for column in self.columns], np.bool_)
        for y in np.flatnonzero((holes & ~optional).any(axis=1)).tolist():
            report(y, int(np.argmax(holes[y] & ~optional)), "no")
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
