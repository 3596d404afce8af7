"""What the fields and columns of a Moses-style file are, decided on its first lists."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from typing import Literal, NamedTuple, Protocol

import numpy as np

from rerank.readers.moses_kernel import COUNT, FIELDS, Entries
from rerank.readers.moses_lines import FIRST_LISTS, Block

SEGMENTATION = re.compile(rb"\d+(-\d+)?=\d+(-\d+)?(\s+\d+(-\d+)?=\d+(-\d+)?)*")
ALIGNMENT = re.compile(rb"\d+-\d+(\s+\d+-\d+)*")
TOTAL = "score"  # the column of totals

_LINES, _VALUES = 1000, 100  # looked at for the layout, and for what else there is
_MARK = re.compile(rb"(?<!\S)\|(\d+)(?:-(\d+))?(?:,[^|]*)?\|(?!\S)")


class Options(Protocol):
    """What a reader of such files lets its user choose."""

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


class Layout(NamedTuple):
    """Which of a line's fields, counted from the id's, is what; -1: there is none."""

    fields: int
    features: int
    score: int

    @property
    def extra(self) -> range:
        """The fields behind features and score."""
        return range(max(self.features, self.score) + 1, self.fields)


class Columns(NamedTuple):
    """The labelled values that all candidates of a file have."""

    names: tuple[str, ...]
    hashes: np.ndarray  # uint64 [K]: see Entries


def find_layout(block: Block) -> Layout | None:
    """The layout of most lines of the first lists; None if there is no line with three fields at least."""
    found: Counter[Layout] = Counter()
    for line in range(min(int(block.starts[: FIRST_LISTS + 1][-1]), _LINES)):
        count = int(block.rows[line, COUNT])
        if 3 <= count <= FIELDS:
            found[layout_of([block.field(line, field) for field in range(count)])] += 1
    return found.most_common(1)[0][0] if found else None


def layout_of(fields: list[bytes]) -> Layout:
    """The layout of one line, given its fields without the white space around them, at least three.

    The score is behind the features, before them (Travatar), or missing.
    """
    one, two, count = fields[2], fields[3] if len(fields) > 3 else b"", len(fields)
    if count > 3 and _is_number(two):
        return Layout(count, 2, 3)
    if _is_number(one):
        return Layout(count, -1 if count == 3 or _is_derivation(two) else 3, 2)
    return Layout(count, 2, -1) if count == 3 or _is_derivation(two) else Layout(count, 2, 3)


def _is_number(text: bytes) -> bool:
    return as_number(text) is not None


def _is_derivation(text: bytes) -> bool:
    return bool(SEGMENTATION.fullmatch(text) or ALIGNMENT.fullmatch(text))


def as_number(text: bytes) -> float | None:
    """The number that ``text`` is, or None."""
    try:
        return float(text) if b"_" not in text else None  # Python reads 1_000 as a number
    except ValueError:
        return None


def entry_name(data: bytes, entries: Entries, entry: int) -> bytes:
    """The label of an entry, with the place of the value where the label has several, or none is written."""
    begin, end = entries.labels[entry].tolist()
    place = int(entries.places[entry])
    return data[begin:end] + (b"" if place < 0 else b"_" * (end > begin) + str(place).encode())


def find_columns(block: Block, entries: Entries, usable: np.ndarray, options: Options) -> Columns:
    """The columns of a file, in the order of its first usable candidate.

    Parameters
    ----------
    usable: bool [n], the lines that count.
    options: ``features``. "auto": what all candidates have; what nine in ten have is enough for values without a
        label, and for labels that have several values or no ``_``, as these are not what sparse features look like.
        Of values written label=value it is all or nothing, and nothing where labels stand before others. "dense": all
        that occurs. "sparse": nothing. ``columns``: the names instead.
    """
    rows = np.repeat(np.arange(len(usable)), np.diff(entries.first))
    taken = usable[rows]
    hashes, at, counts = np.unique(entries.hashes[: len(rows)][taken], return_index=True, return_counts=True)
    at = np.flatnonzero(taken)[at]
    order = np.argsort(at)
    hashes, at, counts = hashes[order], at[order], counts[order]
    names = [entry_name(block.data, entries, entry).decode("utf-8", "surrogateescape") for entry in at.tolist()]
    # A label with another number of values has other columns; of those of one name the first in the file counts.
    place = {name: k for k, name in reversed(list(enumerate(names)))}
    if options.columns:
        known = [hashes[place[name]] if name in place else 0 for name in options.columns]
        return Columns(options.columns, np.array(known, np.uint64))
    inline, candidates = entries.inline[at], np.count_nonzero(usable)
    shared = counts == candidates
    if options.features != "auto":
        shared[:] = options.features == "dense"
    elif not (inline.all() and shared.all()):
        plain = (entries.places[at] >= 0) | np.array(["_" not in name for name in names], np.bool_)
        shared = ~inline & (shared | (plain & (10 * counts >= 9 * candidates)))
    kept = np.array([k for k in np.flatnonzero(shared).tolist() if place[names[k]] == k], np.int64)
    named = tuple(f"{TOTAL}_0" if names[k] == TOTAL else names[k] for k in kept.tolist())
    return Columns(named, np.ascontiguousarray(hashes[kept]))


def find_role(column: list[bytes]) -> str:
    """What a field behind features and score is: "segmentation", "alignment", "other"; "" if it is always empty."""
    shown = list(islice(filter(None, column), _VALUES))
    if any(map(SEGMENTATION.fullmatch, shown)):
        return "segmentation"
    return ("alignment" if any(map(ALIGNMENT.fullmatch, shown)) else "other") if shown else ""


def unmark(texts: list[bytes]) -> tuple[list[bytes], list[bytes] | None]:
    """Texts without Moses' marks of phrases, ``das haus |0-1| regnet |2-2|``, and the segmentations these give.

    Texts come back as they are, and None, unless every text that is not empty consists of marked phrases.
    """
    plain, segmentations = [], []
    for text in texts:
        pieces = _MARK.split(text)
        if pieces[-1].strip() or (len(pieces) == 1 and text):
            return texts, None
        spans, words = list[bytes](), list[bytes]()
        for phrase, begin, end in zip(pieces[0::3], pieces[1::3], pieces[2::3], strict=False):
            found, at = phrase.split(), len(words)
            if found:
                source = begin if end is None or end == begin else begin + b"-" + end
                target = b"%d" % at if len(found) == 1 else b"%d-%d" % (at, at + len(found) - 1)
                spans.append(source + b"=" + target)
            words += found
        plain.append(b" ".join(words))
        segmentations.append(b" ".join(spans))
    return plain, segmentations if any(segmentations) else None
