"""Templates that measure a candidate by itself, its source and its list: LengthRatio, Length, Copy, Punctuation,
and Given, the list's own features.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rerank.base.ranges import Range
from rerank.features.marks import (
    COPIED,
    COUNT,
    DIFFERENT,
    DIGITS,
    FINAL,
    LENGTH_FROM,
    LENGTHS,
    NEW_DIGITS,
    RATE,
    RATIO,
    SAME,
    SIGNED,
    SIGNED_OFFSET,
    WORDS,
)
from rerank.features.sink import Sink, begin, emit_value, put
from rerank.features.template import Symbols, TextTemplate
from rerank.features.text.view import DIGIT, PUNCTUATION, TextView
from rerank.kernels.compile import kernel
from rerank.readers.lists import Lists


@kernel
def bin_of(value: int, bounds: np.ndarray) -> int:
    """The last range that begins at or below ``value``."""
    b = 0
    while b + 1 < bounds.shape[0] and bounds[b + 1] <= value:
        b += 1
    return b


@kernel
def _emit_one(sink: Sink, template: int, seed: np.uint64, symbol: np.uint64, y: int, value: float) -> None:
    emit_value(sink, put(sink, begin(sink, template, seed), symbol), y, value)


@dataclass(frozen=True)
class LengthRatio(TextTemplate):
    """The length of the candidate divided by the length of the source, in words, cut to tenths; 3.0 is the highest.

    >>> fired("LengthRatio", "ein Mann", source="a man")
    {'1.0': 1.0}

    One feature per candidate.
    """

    needs: ClassVar[str] = "source"

    @staticmethod
    @kernel
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
        S = view.source.shape[0]
        if S == 0:
            return
        for y in range(view.base.shape[0]):
            tenths = min((view.first[y + 1] - view.first[y]) * 10 // S, RATIO.shape[0] - 1)
            for v in range(ids.shape[0]):
                _emit_one(sink, ids[v], seeds[v], RATIO[tenths], y, 1.0)


@dataclass(frozen=True)
class Length(TextTemplate):
    """The number of words of the candidate: an indicator of its bin, or (``binned=False``) the number as a value.

    >>> fired("Length", "ein Mann")
    {'2': 1.0}

    One feature per candidate.
    """

    binned: bool = True

    @staticmethod
    @kernel
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        for y in range(view.base.shape[0]):
            length = view.first[y + 1] - view.first[y]
            for v in range(ids.shape[0]):
                if options[v].binned:
                    _emit_one(sink, ids[v], seeds[v], LENGTHS[bin_of(length, LENGTH_FROM)], y, 1.0)
                else:
                    _emit_one(sink, ids[v], seeds[v], WORDS, y, length)


@kernel
def _in_source(view: TextView, word: np.uint64) -> bool:
    s = 0
    while s < view.source.shape[0] and view.source[s] != word:
        s += 1
    return bool(s < view.source.shape[0])


@dataclass(frozen=True)
class Copy(TextTemplate):
    """The number of the candidate's words that occur in the source (``copied``), and their share (``rate``).

    >>> fired("Copy", "der 5 , 6", source="the 5")
    {'copied': 1.0, 'rate': 0.25, 'digits': 1.0, 'new-digits': 1.0}

    For words with digits: how many occur in the source (``digits``), and how many do not (``new-digits``).

    Four features per candidate; time: words of the source times words of the candidate.
    """

    needs: ClassVar[str] = "source"

    @staticmethod
    @kernel
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
        if view.source.shape[0] == 0:
            return
        for y in range(view.base.shape[0]):
            copied, digits, new_digits = 0, 0, 0
            first, last = view.first[y], view.first[y + 1]
            for t in range(first, last):
                here = _in_source(view, view.words[t])
                copied += here
                if view.kinds[t] == DIGIT:
                    digits += here
                    new_digits += not here
            for v in range(ids.shape[0]):
                _emit_one(sink, ids[v], seeds[v], COPIED, y, copied)
                _emit_one(sink, ids[v], seeds[v], RATE, y, copied / max(last - first, 1))
                _emit_one(sink, ids[v], seeds[v], DIGITS, y, digits)
                _emit_one(sink, ids[v], seeds[v], NEW_DIGITS, y, new_digits)


@kernel
def _marks(kinds: np.ndarray, first: int, last: int) -> int:
    count = 0
    for i in range(first, last):
        count += kinds[i] == PUNCTUATION
    return count


@kernel
def _final(words: np.ndarray, kinds: np.ndarray, first: int, last: int) -> np.uint64:
    """The last word, if it is punctuation; else 0."""
    return words[last - 1] if last > first and kinds[last - 1] == PUNCTUATION else np.uint64(0)


@dataclass(frozen=True)
class Punctuation(TextTemplate):
    """Whether the candidate ends in the same punctuation as the source (``final same``: also if neither has any).

    >>> fired("Punctuation", "ja .", "ja", source="yes")
    {'final different': 1.0, 'count +1': 1.0}

    And how many more punctuation tokens it has (``count -1``). Differences above ``most`` count as ``most``.

    Two features per candidate.
    """

    needs: ClassVar[str] = "source"
    most: Annotated[int, Range(1, SIGNED_OFFSET)] = 3

    @staticmethod
    @kernel
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        S = view.source.shape[0]
        if S == 0:
            return
        end, count = _final(view.source, view.source_kinds, 0, S), _marks(view.source_kinds, 0, S)
        for y in range(view.base.shape[0]):
            first, last = view.first[y], view.first[y + 1]
            agrees = SAME if _final(view.words, view.kinds, first, last) == end else DIFFERENT
            more = _marks(view.kinds, first, last) - count
            for v in range(ids.shape[0]):
                most = options[v].most
                symbol = SIGNED[SIGNED_OFFSET + max(-most, min(more, most))]
                emit_value(sink, put(sink, put(sink, begin(sink, ids[v], seeds[v]), FINAL), agrees), y, 1.0)
                emit_value(sink, put(sink, put(sink, begin(sink, ids[v], seeds[v]), COUNT), symbol), y, 1.0)


@kernel
def best_base(view: TextView) -> int:
    """The candidate with the highest base score, the first of several; 0 if there is none."""
    best = 0
    for y in range(1, view.base.shape[0]):
        if view.base[y] > view.base[best]:
            best = y
    return best


def ranks_of(view: TextView) -> np.ndarray:
    """int64 [N]: 1 + the number of candidates ahead of each by base score; among equals, the first comes first."""
    ranks = np.empty(view.base.size, np.int64)
    ranks[np.argsort(-view.base, kind="stable")] = np.arange(1, view.base.size + 1)
    return ranks


@dataclass(frozen=True)
class Given(TextTemplate):
    """The sparse features in the list itself, with their values.

    >>> from rerank.readers.texts.text_list import SparseScores
    >>> fired("Given", "a", "b", sparse=SparseScores(np.array([0, 1, 1]), [b"seen"], np.array([0.5])))
    {'seen': 0.5}

    One feature per entry of the list.
    """

    @staticmethod
    @kernel
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
        for y in range(view.base.shape[0]):
            for e in range(view.given_first[y], view.given_first[y + 1]):
                for v in range(ids.shape[0]):
                    emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), view.given_names[e]), y, view.given[e])

    def columns(self, rows: Lists, lists: np.ndarray) -> dict[Symbols, np.ndarray]:  # noqa: ARG002
        """None: lists with sparse features are in no block."""
        return {}
