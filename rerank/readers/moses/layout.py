"""Lines of Moses-style files: their fields, and what these are, as the first lists decide; and lists as such lines, as
they were read, with other totals, or composed from those of other formats.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from rerank.base.encoding import encoded
from rerank.base.errors import DataError
from rerank.readers.lists import Lists
from rerank.readers.texts.text_list import Pieces

SEGMENTATION = re.compile(rb"\d+(-\d+)?=\d+(-\d+)?(\s+\d+(-\d+)?=\d+(-\d+)?)*")
ALIGNMENT = re.compile(rb"\d+-\d+(\s+\d+-\d+)*")
WORD_SCORES = b"WordScores"  # Marian's label of the scores of words
MOST_FIELDS = 8  # of a line that may decide on the layout

# With a comma: weights of source words, target word by target word.
_SOFT = re.compile(rb"[\d.,eE+-]+(\s+[\d.,eE+-]+)*")
_LABEL = re.compile(rb"[=:]")
_LINES, _VALUES = 1000, 100  # looked at to decide on the layout, and on the roles of further fields
MARK = re.compile(rb"(?<!\S)\|(\d+)(?:-(\d+))?(?:,[^|]*)?\|(?!\S)")
BAR = re.compile(rb"(?<!\S)\|\|\|(?!\S)")
_ID = re.compile(rb"\d{1,18}(?=\|\|\|(?!\S))")  # a whole number that bars follow directly, as old Moses writes it


class MosesLine(NamedTuple):
    """A line that is not blank: its number in the file, and its fields without the white space around them."""

    number: int
    text: bytes
    fields: tuple[bytes, ...]
    id: int  # the whole number in its first field, or -1


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


def parts_of(line: bytes) -> list[bytes]:
    """The fields of a line, with the white space around them."""
    if (name := _ID.match(line)) is not None:
        return [name[0], *BAR.split(line[name.end() :])[1:]]
    return BAR.split(line)


def fields_of(line: bytes) -> tuple[bytes, ...]:
    """The fields of a line. Texts may contain bars too: only three that stand alone separate."""
    plain = line.count(b"|||") == line.count(b" ||| ")
    return tuple(map(bytes.strip, line.split(b" ||| ") if plain else parts_of(line)))


def find_layout(lines: Sequence[MosesLine]) -> Layout | None:
    """The layout of most of the first lines; None if no line has at least three fields."""
    counts: Counter[Layout] = Counter()
    for line in lines[:_LINES]:
        if 3 <= len(line.fields) <= MOST_FIELDS:
            found = layout_of(line.fields)
            among = found.words < 0 <= found.features and b" WordScores=" in b" " + line.fields[found.features]
            counts[found._replace(words=found.features) if among else found] += 1
    return counts.most_common(1)[0][0] if counts else None


def layout_of(fields: Sequence[bytes]) -> Layout:
    """The layout of one line, given its fields (at least three) without the white space around them.

    The score is after the features, before them (Travatar), or missing. An alignment and the scores of words may come
    before the features (Marian), the source before the text (Joshua, for lattices).
    """
    one, two, count = fields[2], fields[3] if len(fields) > 3 else b"", len(fields)
    if count > 3 and _is_number(two):
        return Layout(count, 2, 3)
    if _is_number(one):
        return Layout(count, -1 if count == 3 or _is_derivation(two) else 3, 2)
    words = next((k for k in (2, 3) if k < count and fields[k].startswith(WORD_SCORES + b"=")), -1)
    features = words + 1 or 2 + bool(_is_derivation(one) or (b"," in one and _SOFT.fullmatch(one)))
    if 2 < features < count - 1 and _is_number(fields[features + 1]):
        return Layout(count, features, features + 1, words=words)
    if count > 4 and _is_labelled(two) and not _is_labelled(one) and _is_number(fields[4]):
        return Layout(count, 3, 4, text=2)
    return Layout(count, 2, -1) if count == 3 or _is_derivation(two) else Layout(count, 2, 3)


def _is_number(text: bytes) -> bool:
    return as_number(text) is not None


def _is_derivation(text: bytes) -> bool:
    return bool(SEGMENTATION.fullmatch(text) or ALIGNMENT.fullmatch(text))


def _is_labelled(text: bytes) -> bool:
    values = [_LABEL.split(word)[-1] for word in text.split()]
    return bool(_LABEL.search(text)) and all(not value or _is_number(value) for value in values)


def as_number(text: bytes) -> float | None:
    """The number that ``text`` denotes, or None."""
    try:
        return float(text) if b"_" not in text else None  # Python reads 1_000 as a number
    except ValueError:
        return None


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


OLD = b"BaseScore"  # the label of the total that a list had before it was reranked

_OLD_LABEL = re.compile(rb"(?:^|[\s;])BaseScore[=:]")


def line_of(nbest: Lists, i: int) -> bytes:
    """The line of candidate i: as it was read or, for a list of another format, composed."""
    known = _known_layout(nbest)
    return _composed(nbest, i) if known is None else bytes(nbest.raw.candidates[i])


def _known_layout(nbest: Lists) -> Layout | None:
    """The layout of a list's own file; None if it is of another format."""
    head = nbest.raw.head if isinstance(nbest.raw, Pieces) else None
    return head if isinstance(head, Layout) else None


def rescored(nbest: Lists, line: bytes, score: float) -> bytes:
    """``line`` with another total; the old one is added to the features, unless they hold an earlier one."""
    parts = parts_of(line)
    layout = _layout(nbest, parts)
    new = repr(score).encode()
    if layout.score < 0:
        parts.insert(layout.features + 1, b" " + new + b" " * (layout.features + 1 < len(parts)))
        parts[layout.features] = parts[layout.features].rstrip() + b" "
        return b"|||".join(parts)
    old = parts[layout.score].strip()
    last = layout.score == len(parts) - 1
    if layout.features < 0:
        new = OLD + b"= " + old + b" ||| " + new
    elif not _OLD_LABEL.search(parts[layout.features]):
        features = parts[layout.features].strip()
        features += _separator(features) + OLD + _mark(features) + old
        parts[layout.features] = _padded(parts[layout.features], features, layout.features == len(parts) - 1)
    parts[layout.score] = _padded(parts[layout.score], new, last)
    return b"|||".join(parts)


def _layout(nbest: Lists, parts: list[bytes]) -> Layout:
    """The layout of the file that the line is from; lists of several files may have several layouts."""
    fields = [part.strip() for part in parts]
    known = _known_layout(nbest)
    if known is None or known.fields != len(fields):
        return layout_of(fields)
    return known if known.score < 0 or as_number(fields[known.score]) is not None else layout_of(fields)


def _padded(part: bytes, text: bytes, last: bool) -> bytes:
    """``text`` with the white space around ``part``."""
    if not part.strip():
        return b" " + text + b" " * (not last)
    body = part.strip()
    at = part.index(body)
    return part[:at] + text + part[at + len(body) :]


def _separator(features: bytes) -> bytes:
    """The separator of labelled values: a blank or, as cdec writes them, a semicolon."""
    if not features:
        return b""
    return b";" if b";" in features and len(features.split()) == 1 else b" "


def _mark(features: bytes) -> bytes:
    """The separator of a label from its value."""
    mark = b":" if b":" in features and b"=" not in features else b"="
    joined = mark in features and not any(word.endswith(mark) for word in features.split())
    return mark if joined else mark + b" "


def _composed(nbest: Lists, i: int) -> bytes:
    """A line for a candidate of another format: all scores except the base score become labelled values."""
    names = nbest.names or tuple(map(str, range(nbest.scores.shape[1])))
    values = list(zip(map(encoded, names), nbest.scores[i].tolist(), strict=True))
    del values[nbest.column]
    if nbest.sparse is not None:
        begin, end = nbest.sparse.first[i : i + 2].tolist()
        values += zip(nbest.sparse.names[begin:end], nbest.sparse.values[begin:end].tolist(), strict=True)
    derivations = [column[i] for column in (nbest.segmentation, nbest.alignment) if column is not None]
    features = b" ".join((b"_".join(name.split()) or b"_") + b"= " + repr(value).encode() for name, value in values)
    base = repr(float(nbest.base[i])).encode()
    fields = [encoded(nbest.id), nbest.written(i), features, base, *derivations]
    if any(b"\n" in field or BAR.search(field) for field in fields):
        message = f"candidate {i + 1} cannot be written on a line: there is a line break or '|||' in it"
        raise DataError(message, path=nbest.path, line=nbest.lines[i], list_id=nbest.id)
    return b" ||| ".join(fields)


def marker(name: str) -> bytes:
    """The line that stands for a list without candidates."""
    return encoded(f"{name} |||\n")
