"""Moses-style files as blocks of whole lists, and what their fields and columns are, as the first lists decide."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Literal, NamedTuple, Protocol

import numpy as np

from rerank.base.errors import DataError
from rerank.readers.base import excerpt
from rerank.readers.lines import LONGEST
from rerank.readers.moses.kernel import (
    BEGIN,
    COUNT,
    END,
    FIELDS,
    FIRST,
    NUMBER,
    WIDTH,
    Entries,
    group_lines,
    index_lines,
)
from rerank.readers.streams import InputStream

CHUNK = 1 << 20  # bytes read at a time
FIRST_LISTS, FIRST_BYTES = 20, 1 << 24  # the first block has at least this many lists, unless they are this large
STRAYS = 1 << 16  # lines in a row without an id; more are not a damaged list but another kind of file
LARGEST_LIST = 1 << 30  # bytes of a list
MOST = 1 << 20  # candidates of a list; each takes half a kilobyte of memory


class MosesBlock(NamedTuple):
    """Some whole lists of a file."""

    data: bytes
    rows: np.ndarray  # int64 [n, WIDTH]: the lines, see ``index_lines``
    ids: np.ndarray  # int64 [n]: their whole-number ids, or -1
    starts: np.ndarray  # int64 [lists + 1]: the lines of list i are starts[i]..starts[i + 1]
    line: int  # number of lines before the block
    pieces: int  # an upper bound of the number of labels and values
    marked: bool  # whether there may be |0-1| marks

    def field(self, line: int, field: int) -> bytes:
        """A field of a line; ``field`` must be less than the line's number of fields, and than FIELDS."""
        begin, end = self.rows[line, FIRST + 2 * field : FIRST + 2 * field + 2].tolist()
        return self.data[begin:end]

    def line_text(self, line: int) -> bytes:
        """A line without its line end."""
        begin, end = self.rows[line, [BEGIN, END]].tolist()
        return self.data[begin:end]

    def column(self, field: int) -> list[bytes]:
        """A field of every line, which all lines must have."""
        return self.texts(slice(None), FIRST + 2 * field)

    def texts(self, lines: slice, place: int) -> list[bytes]:
        """The bytes from ``rows[:, place]`` to ``rows[:, place + 1]`` of some lines."""
        begins, ends = self.rows[lines, place].tolist(), self.rows[lines, place + 1].tolist()
        return [self.data[begin:end] for begin, end in zip(begins, ends, strict=True)]


def read_blocks(stream: InputStream, numbered: bool) -> Iterator[MosesBlock]:
    """The lists of ``stream`` in blocks of whole lists; ``numbered``: their ids are whole numbers.

    Memory holds a chunk and the longest list.
    """
    data, line, wanted, ended = b"", 0, FIRST_LISTS, False
    while not ended:
        piece = stream.read(max(CHUNK, len(data)))
        ended = not piece
        data += piece
        array, room = np.frombuffer(data, np.uint8), data.count(b"\n") + 1
        rows, ids, starts = np.empty((room, WIDTH), np.int64), np.empty(room, np.int64), np.empty(room + 1, np.int64)
        count, number, used, pieces, marks = index_lines(array, ended, rows, ids)
        _check_lengths(stream.path, rows[:count], line, number, len(data) - used)
        rows, ids = rows[:count], ids[:count]
        lists = group_lines(array, rows, ids, numbered, starts)
        whole = lists if ended else lists - 1
        if not ended and whole < wanted and (whole < 1 or len(data) < FIRST_BYTES):
            if lists:
                starts[lists] = count
                _check_sizes(stream.path, rows, line, starts[: lists + 1])
                _check_list(stream.path, data, rows, ids, line, int(starts[lists - 1]), numbered)
            else:  # nothing but blank lines
                data, line = data[used:], line + number
            continue
        wanted = 1
        starts[lists] = count
        _check_sizes(stream.path, rows, line, starts[: lists + 1])
        if whole:
            end = int(starts[whole])
            yield MosesBlock(data, rows[:end], ids[:end], starts[: whole + 1], line, pieces, marks > 0)
            if not ended:
                data, line = data[int(rows[end, BEGIN]) :], line + int(rows[end, NUMBER])


def _check_lengths(path: str, rows: np.ndarray, line: int, number: int, rest: int) -> None:
    """Refuse lines that are too long; ``rest`` is the length so far of the incomplete one, line ``number``."""
    lengths = rows[:, END] - rows[:, BEGIN]
    at = int(rows[np.argmax(lengths), NUMBER]) if len(rows) and lengths.max() > LONGEST else None
    if at is not None or rest > LONGEST:
        message = f"a line of more than {LONGEST >> 20} MiB; expected a text file with one candidate per line"
        raise DataError(message, path=path, line=line + (number if at is None else at) + 1)


def _check_sizes(path: str, rows: np.ndarray, line: int, starts: np.ndarray) -> None:
    """Refuse lists with too many candidates."""
    sizes = np.diff(starts)
    if sizes.max(initial=0) > MOST:
        at = line + int(rows[starts[np.argmax(sizes)], NUMBER]) + 1
        message = f"a list of more than {MOST:,} candidates; do its lines have the ids they should?"
        raise DataError(message, path=path, line=at)


def _check_list(
    path: str, data: bytes, rows: np.ndarray, ids: np.ndarray, line: int, start: int, numbered: bool
) -> None:
    """Refuse a list that grows without end."""
    strays = ids[start:] < 0 if numbered else rows[start:, COUNT] < 2
    if np.count_nonzero(strays) > STRAYS:
        row = rows[start + int(np.argmax(strays))]
        message = f"found {excerpt(data[row[BEGIN] : row[END]])} and more than {STRAYS:,} such lines; expected "
        message += "candidates, 'id ||| text ||| features ||| score'" + ", with whole numbers as ids" * numbered
        raise DataError(message, path=path, line=line + int(row[NUMBER]) + 1)
    if len(data) > LARGEST_LIST:
        raise DataError(
            f"a list of more than {LARGEST_LIST >> 30} GiB", path=path, line=line + int(rows[start, NUMBER]) + 1
        )


SEGMENTATION = re.compile(rb"\d+(-\d+)?=\d+(-\d+)?(\s+\d+(-\d+)?=\d+(-\d+)?)*")
ALIGNMENT = re.compile(rb"\d+-\d+(\s+\d+-\d+)*")
WORD_SCORES = b"WordScores="  # Marian's label of the scores of words
TOTAL = "score"  # the column of totals

# With a comma: weights of source words, target word by target word.
_SOFT = re.compile(rb"[\d.,eE+-]+(\s+[\d.,eE+-]+)*")
_LABEL = re.compile(rb"[=:]")
_LINES, _VALUES = 1000, 100  # looked at to decide on the layout, and on the roles of further fields
_MARK = re.compile(rb"(?<!\S)\|(\d+)(?:-(\d+))?(?:,[^|]*)?\|(?!\S)")


class Options(Protocol):
    """The options of a reader of such files."""

    @property
    def base(self) -> str: ...
    @property
    def duplicates(self) -> Literal["keep", "drop"]: ...
    @property
    def ids(self) -> Literal["file", "ordinal"]: ...
    @property
    def first_id(self) -> int: ...
    @property
    def features(self) -> Literal["auto", "dense", "sparse"]: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def asked(self) -> tuple[str, ...] | None: ...


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
        named = self.features, self.score, self.words
        return tuple(field for field in range(self.text + 1, self.fields) if field not in named)

    @property
    def ended(self) -> bool:
        """Whether alignments may name the ends of sentences: those of Marian, which come before the features."""
        return any(field < self.features for field in self.extra)

    def role(self, field: int) -> str:
        """The role of an ``extra`` field that does not show it, being empty on every line."""
        place = field - max(self.features, self.score) - 1
        return "segmentation" if place == 0 else "alignment" if place < 2 else "other"


class Columns(NamedTuple):
    """The labelled values that all candidates of a file have, or nearly all."""

    names: tuple[str, ...]
    hashes: np.ndarray  # uint64 [K]: see Entries; 0 if no candidate has had the label yet
    optional: np.ndarray  # bool [K]: written label=value, as by programs that may leave out a 0
    others: tuple[str, ...] = ()  # labels that all candidates have, though they were not asked for


def find_layout(block: MosesBlock) -> Layout | None:
    """The layout of most lines of the first lists; None if no line has at least three fields."""
    counts: Counter[Layout] = Counter()
    for line in range(min(int(block.starts[: FIRST_LISTS + 1][-1]), _LINES)):
        count = int(block.rows[line, COUNT])
        if 3 <= count <= FIELDS:
            fields = [block.field(line, field) for field in range(count)]
            found = layout_of(fields)
            among = found.words < 0 <= found.features and b" " + WORD_SCORES in b" " + fields[found.features]
            counts[found._replace(words=found.features) if among else found] += 1
    return counts.most_common(1)[0][0] if counts else None


def layout_of(fields: list[bytes]) -> Layout:
    """The layout of one line, given its fields (at least three) without the white space around them.

    The score is after the features, before them (Travatar), or missing. An alignment and the scores of words may come
    before the features (Marian), the source before the text (Joshua, for lattices).
    """
    one, two, count = fields[2], fields[3] if len(fields) > 3 else b"", len(fields)
    if count > 3 and _is_number(two):
        return Layout(count, 2, 3)
    if _is_number(one):
        return Layout(count, -1 if count == 3 or _is_derivation(two) else 3, 2)
    words = next((k for k in (2, 3) if k < count and fields[k].startswith(WORD_SCORES)), -1)
    features = words + 1 or 2 + (_is_derivation(one) or _is_soft(one))
    if 2 < features < count - 1 and _is_number(fields[features + 1]):
        return Layout(count, features, features + 1, words=words)
    if count > 4 and _is_labelled(two) and not _is_labelled(one) and _is_number(fields[4]):
        return Layout(count, 3, 4, text=2)
    return Layout(count, 2, -1) if count == 3 or _is_derivation(two) else Layout(count, 2, 3)


def _is_number(text: bytes) -> bool:
    return as_number(text) is not None


def _is_derivation(text: bytes) -> bool:
    return bool(SEGMENTATION.fullmatch(text) or ALIGNMENT.fullmatch(text))


def _is_soft(text: bytes) -> bool:
    return b"," in text and bool(_SOFT.fullmatch(text))


def _is_labelled(text: bytes) -> bool:
    values = [_LABEL.split(word)[-1] for word in text.split()]
    return bool(_LABEL.search(text)) and all(not value or _is_number(value) for value in values)


def as_number(text: bytes) -> float | None:
    """The number that ``text`` denotes, or None."""
    try:
        return float(text) if b"_" not in text else None  # Python reads 1_000 as a number
    except ValueError:
        return None


def entry_name(data: bytes, entries: Entries, entry: int) -> bytes:
    """The label of an entry, followed by the place of the value if the label has several, or there is no label."""
    begin, end = entries.labels[entry].tolist()
    place = int(entries.places[entry])
    return data[begin:end] + (b"" if place < 0 else b"_" * (end > begin) + str(place).encode())


class LabelledValues(NamedTuple):
    """The labels of some candidates, in order of first appearance; arrays have one entry per label."""

    names: list[str]
    places: dict[str, int]  # the first with a name: a label with another number of values has other columns
    hashes: np.ndarray  # uint64
    inline: np.ndarray  # bool: written label=value
    plain: np.ndarray  # bool: has several values, or no "_"; sparse features do not look like that
    shared: np.ndarray  # bool: all candidates have it
    usual: np.ndarray  # bool: at least nine in ten have it
    once: np.ndarray  # bool: none has it twice


def find_labels(block: MosesBlock, entries: Entries, usable: np.ndarray) -> LabelledValues:
    """The labels on the lines that are ``usable`` (bool [n])."""
    rows = np.repeat(np.arange(len(usable)), np.diff(entries.first))
    taken = np.flatnonzero(usable[rows])
    hashes, at, which, counts = np.unique(
        entries.hashes[taken], return_index=True, return_inverse=True, return_counts=True
    )
    candidates = np.bincount(np.unique(which * len(usable) + rows[taken]) // max(1, len(usable)), minlength=hashes.size)
    order = np.argsort(at)
    hashes, at, counts, candidates = hashes[order], taken[at[order]], counts[order], candidates[order]
    names = [entry_name(block.data, entries, entry).decode("utf-8", "surrogateescape") for entry in at.tolist()]
    names = [f"{TOTAL}_0" if name == TOTAL else name for name in names]
    total = np.count_nonzero(usable)
    return LabelledValues(
        names,
        {name: k for k, name in reversed(list(enumerate(names)))},
        np.ascontiguousarray(hashes),
        entries.inline[at],
        (entries.places[at] >= 0) | np.array(["_" not in name for name in names], np.bool_),
        counts == total,
        10 * candidates >= 9 * total,
        candidates == counts,
    )


def find_columns(labels: LabelledValues, features: Literal["auto", "dense", "sparse"]) -> Columns:
    """The columns of a file, decided by its first candidates, in order of first appearance.

    features: "auto" decides label by label: columns are labels that nine candidates in ten have. If some labels precede
    their values, those written label=value are sparse, and those that look sparse are columns only if all candidates
    have them. "dense": all labels are columns. "sparse": none is.
    """
    kept = _look_dense(labels)
    if features != "auto":
        kept = np.full(len(labels.names), features == "dense")
    at = np.array([k for k in np.flatnonzero(kept).tolist() if labels.places[labels.names[k]] == k], np.int64)
    return Columns(tuple(labels.names[k] for k in at.tolist()), labels.hashes[at], labels.inline[at])


def _look_dense(labels: LabelledValues) -> np.ndarray:
    """bool: whether each label looks like a column."""
    if labels.inline.all():
        return np.asarray(labels.usual & labels.once)
    return np.asarray(~labels.inline & (labels.shared | (labels.plain & labels.usual)))


def ask_for(names: tuple[str, ...], labels: LabelledValues) -> Columns:
    """The columns ``names``, with what the first candidates of a file show of them."""
    unknown = Columns(names, np.zeros(len(names), np.uint64), np.zeros(len(names), np.bool_))
    at = [labels.places.get(name, -1) for name in names]
    optional = np.array([k >= 0 and labels.inline[k] for k in at], np.bool_)
    shared = [labels.names[k] for k in np.flatnonzero(labels.shared & _look_dense(labels)).tolist()]
    return look_again(unknown, labels)._replace(
        optional=optional, others=tuple(name for name in dict.fromkeys(shared) if name not in names)
    )


def look_again(columns: Columns, labels: LabelledValues) -> Columns:
    """The requested ``columns``, completed by what further candidates show of them."""
    hashes = columns.hashes.copy()
    for k in np.flatnonzero(hashes == 0).tolist():
        place = labels.places.get(columns.names[k])
        hashes[k] = 0 if place is None else labels.hashes[place]
    return columns._replace(hashes=hashes)


def find_role(column: list[bytes]) -> str:
    """The role of a field after features and score: "segmentation", "alignment", "other"; "" if it is always empty."""
    shown = list(islice(filter(None, column), _VALUES))
    if any(map(SEGMENTATION.fullmatch, shown)):
        return "segmentation"
    return ("alignment" if any(map(ALIGNMENT.fullmatch, shown)) else "other") if shown else ""


def unmark(texts: list[bytes]) -> tuple[list[bytes], list[bytes] | None]:
    """Texts without Moses' phrase marks, as in ``das haus |0-1| regnet |2-2|``, and the segmentations that these give.

    Unless every nonempty text consists of marked phrases, the texts are returned as they are, with None.
    """
    plain, segmentations = [], []
    for text in texts:
        pieces = _MARK.split(text)
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
