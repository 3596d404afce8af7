"""Templates that compare a candidate with its source, or measure it: LengthRatio, Length, Copy, Punctuation."""

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
from rerank.features.template import TextTemplate
from rerank.features.text.view import DIGIT, PUNCTUATION, TextView
from rerank.kernels.compile import kernel


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


@kernel
def _fire_ratio(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
    S = view.source.shape[0]
    if S == 0:
        return
    for y in range(view.base.shape[0]):
        tenths = min((view.first[y + 1] - view.first[y]) * 10 // S, RATIO.shape[0] - 1)
        for v in range(ids.shape[0]):
            _emit_one(sink, ids[v], seeds[v], RATIO[tenths], y, 1.0)


@dataclass(frozen=True)
class LengthRatio(TextTemplate):
    """The length of the candidate divided by that of the source, in words, cut to tenths; 3.0 is the highest.

    >>> from rerank.features.fired import fired
    >>> fired("LengthRatio", "ein Mann", source="a man")
    {'1.0': 1.0}

    One feature per candidate.
    """

    needs: ClassVar[str] = "source"

    fire = staticmethod(_fire_ratio)


@kernel
def _fire_length(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    for y in range(view.base.shape[0]):
        length = view.first[y + 1] - view.first[y]
        for v in range(ids.shape[0]):
            if options[v].binned:
                _emit_one(sink, ids[v], seeds[v], LENGTHS[bin_of(length, LENGTH_FROM)], y, 1.0)
            else:
                _emit_one(sink, ids[v], seeds[v], WORDS, y, length)


@dataclass(frozen=True)
class Length(TextTemplate):
    """The number of words of the candidate: an indicator of its bin, or (``binned=False``) the number as a value.

    >>> from rerank.features.fired import fired
    >>> fired("Length", "ein Mann")
    {'2': 1.0}

    One feature per candidate.
    """

    binned: bool = True

    fire = staticmethod(_fire_length)


@kernel
def _in_source(view: TextView, word: np.uint64) -> bool:
    s = 0
    while s < view.source.shape[0] and view.source[s] != word:
        s += 1
    return bool(s < view.source.shape[0])


@kernel
def _fire_copy(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
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


@dataclass(frozen=True)
class Copy(TextTemplate):
    """The number of the candidate's words that occur in the source (``copied``), and their share (``rate``).

    >>> from rerank.features.fired import fired
    >>> fired("Copy", "der 5 , 6", source="the 5")
    {'copied': 1.0, 'rate': 0.25, 'digits': 1.0, 'new-digits': 1.0}

    For words with digits: how many occur in the source (``digits``), and how many do not (``new-digits``).

    Four features per candidate; time: words of the source times words of the candidate.
    """

    needs: ClassVar[str] = "source"

    fire = staticmethod(_fire_copy)


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


@kernel
def _fire_punctuation(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
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


@dataclass(frozen=True)
class Punctuation(TextTemplate):
    """Whether the candidate ends in the same punctuation as the source (``final same``: also if neither has any).

    >>> from rerank.features.fired import fired
    >>> fired("Punctuation", "ja .", "ja", source="yes")
    {'final different': 1.0, 'count +1': 1.0}

    And how many more punctuation tokens it has (``count -1``). Differences above ``most`` count as ``most``.

    Two features per candidate.
    """

    needs: ClassVar[str] = "source"
    most: Annotated[int, Range(1, SIGNED_OFFSET)] = 3

    fire = staticmethod(_fire_punctuation)
