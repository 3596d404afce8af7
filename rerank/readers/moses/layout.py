"""Lines of Moses-style files: their fields, and what these are, as the first lists decide."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

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
