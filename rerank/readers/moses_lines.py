"""The lines of Moses-style lists: their fields, which layout these have, and the labelled values in them."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from rerank.base.encoding import DECIMAL, encoded
from rerank.base.errors import DataError
from rerank.data.corpus import offsets
from rerank.readers.base import excerpt
from rerank.readers.lines import as_number
from rerank.readers.lists import Lists
from rerank.readers.problems import Problem

TOTAL = "score"  # the column of totals
WORD_SCORES = b"WordScores"  # Marian's label of the scores of words
OLD = b"BaseScore"  # the label of the total that a list had before it was reranked
SEGMENTATION = re.compile(rb"\d+(-\d+)?=\d+(-\d+)?(\s+\d+(-\d+)?=\d+(-\d+)?)*")
ALIGNMENT = re.compile(rb"\d+-\d+(\s+\d+-\d+)*")
_DERIVATION = re.compile(b"|".join([SEGMENTATION.pattern, ALIGNMENT.pattern]))
_SOFT = re.compile(rb"(?=\S*,)[\d.,eE+-]+(\s+[\d.,eE+-]+)*")  # weights of source words, target word by target word
MARK = re.compile(rb"(?<!\S)\|(\d+)(?:-(\d+))?(?:,[^|]*)?\|(?!\S)")
BAR = re.compile(rb"(?<!\S)\|\|\|(?!\S)")
_ID = re.compile(rb"\d{1,18}(?=\|\|\|(?!\S))")  # a whole number that bars follow directly, as old Moses writes it
_LABELLED = re.compile(rb"\S+[=:][-+.\deE]*(\s+(\S+[=:])?[-+.\deE]*)*")  # values behind labels
_OLD_LABEL = re.compile(rb"(?:^|[\s;])BaseScore[=:]")
_ENDS = {sign: re.compile(sign + rb"(?!\S)") for sign in (b"=", b":")}  # of labels that precede their values
_SEMICOLON = re.compile(rb"(\S+?=%s);+" % DECIMAL)  # after a whole label=value it separates
# A label, which ends at the last sign of its word, with its values, or the values that precede the first label.
_RUN = re.compile(rb"(?:(\S+)[=:](\S*)|(?=\S))((?:\s*+(?=\S)[=:]?[^\s=:]*+(?!\S))*+)")


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
        named = self.features, self.score, self.words
        return tuple(field for field in range(self.text + 1, self.fields) if field not in named)

    @property
    def ended(self) -> bool:
        """Whether alignments may name the ends of sentences: those of Marian, which come before the features."""
        return any(field < self.features for field in self.extra)


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
    if count > 4 and _LABELLED.fullmatch(two) and not _LABELLED.fullmatch(one) and as_number(fields[4]) is not None:
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


# Labelled values


class Key(NamedTuple):
    """What a value is: its place among those of its label, and how many these are. A label with another number of
    values has other columns, instead of values that are silently shifted."""

    label: bytes  # b"": there is none
    place: int
    of: int

    @property
    def name(self) -> bytes:
        """Its name as a sparse feature: the label, and its place unless there is no other."""
        place = b"" if self.label and self.of == 1 else b"%d" % self.place
        return b"_".join(filter(None, (self.label, place)))

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

    def some(self, chosen: np.ndarray) -> "Values":
        """The values that are ``chosen`` (bool [m])."""
        return Values(self.keys, *(array[chosen] for array in self[1:]))


def read_values(fields: list[bytes], problems: dict[int, Problem]) -> Values:
    """The labelled values of feature fields; ``problems`` gets those of the fields that are damaged.

    A label ends with ``=`` or ``:`` and precedes its values, or is joined to its only (or first) value.
    """
    if (alike := _values_alike(fields)) is not None:
        return alike
    runs, order, of, texts = dict[tuple[bytes, int, bool], int](), list[int](), list[int](), list[bytes]()
    for row, field in enumerate(fields):
        for label, joined, more in _RUN.findall(_SEMICOLON.sub(rb"\1 ", field) if b";" in field else field):
            found = [joined, *more.split()] if joined else more.split()
            texts += found
            order.append(runs.setdefault((label, len(found), joined != b""), len(runs)))
            of.append(row)
    first, keys = dict[tuple[bytes, int], int](), list[Key]()  # the place of the first key of a label
    for label, size, _ in runs:
        if first.setdefault((label, size), len(keys)) == len(keys):
            keys += [Key(label, k, size) for k in range(size)]
    sizes = np.array([size for _, size, _ in runs], np.int64)[order]
    rows = np.repeat(np.array(of, np.int64), sizes)
    begins = np.array([first[label, size] for label, size, _ in runs], np.int64)[order]
    which = np.repeat(begins - offsets(sizes)[:-1], sizes) + np.arange(len(rows))
    inline = np.repeat(np.array([size == 1 and joined for _, size, joined in runs], np.bool_)[order], sizes)
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
    """The values of fields that have the same labels at the same places, each before its values, as those of Moses: a
    third of the time that ``read_values`` takes otherwise; None for other fields, and damaged ones."""
    words = list(map(bytes.split, fields))
    if len({*map(len, words)}) != 1 or b";" in fields[0]:
        return None
    columns, keys, texts = list(zip(*words, strict=True)), list[Key](), list[tuple[bytes, ...]]()
    begins = [k for k, column in enumerate(columns) if len(column[0]) > 1 and column[0].endswith((b"=", b":"))]
    for begin, end in pairwise([*begins, len(columns)]):
        label, size = columns[begin], end - begin - 1
        if size == 0 or label.count(label[0]) < len(fields):
            return None
        keys += [Key(label[0][:-1], k, size) for k in range(size)]
        texts += columns[begin + 1 : end]
    joined, m = b"".join(chain.from_iterable(texts)), len(fields) * len(keys)
    if begins[:1] != [0] or len({*keys}) < len(keys) or any(sign in joined for sign in (b"=", b":", b";", b"_")):
        return None
    try:
        values = np.fromiter(map(float, chain.from_iterable(zip(*texts, strict=True))), np.float64, m)
    except ValueError:
        return None
    rows, which = np.divmod(np.arange(m), len(keys))
    return Values(keys, which, rows, values, np.zeros(m, np.bool_))


class Columns(NamedTuple):
    """The labelled values that all candidates of a file have, or nearly all."""

    names: tuple[str, ...] = ()
    keys: tuple[Key | None, ...] = ()  # None if no candidate has had the label yet
    optional: tuple[bool, ...] = ()  # written label=value, as by programs that may leave out a 0
    others: tuple[str, ...] = ()  # labels that all candidates have, though they were not asked for


def find_columns(values: Values, total: int, asked: Sequence[str] | None) -> Columns:
    """The columns of a file: those ``asked`` for or, where none are, as its first ``total`` candidates show them, in
    order of first appearance.

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
    names = tuple(dense if asked is None else asked)
    keys = tuple(values.keys[labels[name]] if name in labels else None for name in names)
    optional = tuple(name in labels and inline[labels[name]] for name in names)
    return Columns(names, keys, optional, tuple(name for name in dense if name in shared and name not in names))


# Writing


def rescored(known: Layout | None, line: bytes, score: float) -> bytes:
    """``line`` with another total; the old one is added to the features, unless they hold an earlier one.

    known: the layout of the file that the line is from; lists of several files may have several layouts.
    """
    parts = parts_of(line)
    fields = list(map(bytes.strip, parts))
    fits = known is not None and known.fields == len(fields)
    if known is None or not fits or (known.score >= 0 and as_number(fields[known.score]) is None):
        known = layout_of(fields)
    features = fields[known.features] if known.features >= 0 else b""

    def put(place: int, text: bytes) -> None:
        """Put ``text`` into a field, between the white space that is there."""
        blank = b" " * (place + 1 < len(parts))
        parts[place] = parts[place].replace(fields[place], text, 1) if fields[place] else b" " + text + blank

    if known.score < 0:
        put(known.features, b"%s ||| %r" % (features, score))
        return b"|||".join(parts)
    old = fields[known.score]
    put(known.score, b"%s= %s ||| %r" % (OLD, old, score) if known.features < 0 else b"%r" % score)
    if known.features >= 0 and not (OLD in features and _OLD_LABEL.search(features)):
        alone = b";" in features and len(features.split()) == 1  # label=value;label=value, as cdec writes them
        sign = b":" if b":" in features and b"=" not in features else b"="
        label = OLD + sign + b" " * (sign not in features or _ENDS[sign].search(features) is not None)
        put(known.features, (features + (b";" if alone else b" ") + label + old).strip())
    return b"|||".join(parts)


def composed(nbest: Lists, i: int) -> bytes:
    """A line for a candidate of another format: all scores except the base score become labelled values."""
    one = nbest.candidates[i]
    values = [*one.columns.items(), *one.features.items()]
    derivations = [column[i] for column in (nbest.segmentation, nbest.alignment) if column is not None]
    features = b" ".join(b"%s= %r" % (b"_".join(encoded(name).split()) or b"_", value) for name, value in values)
    fields = [encoded(nbest.id), nbest.written(i), features, b"%r" % one.score, *derivations]
    if any(b"\n" in field or BAR.search(field) for field in fields):
        message = f"candidate {i + 1} cannot be written on a line: there is a line break or '|||' in it"
        raise DataError(message, path=nbest.path, line=nbest.lines[i], list_id=nbest.id)
    return b" ||| ".join(fields)
