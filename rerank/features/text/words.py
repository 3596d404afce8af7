"""Templates over words, TargetNGram, WordPair, Unaligned and CoOccurrence, and over the phrases of a derivation:
PhrasePair and its parts, PhraseLengths, PhraseBoundary, Jump; those that measure a candidate by itself and its source,
LengthRatio, Length, Copy and Punctuation; and Given, the list's own features.

PhrasePair is the discriminative phrase translation model of Gao, Xiao, Xu & He: one indicator per phrase pair.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from rerank.base.ranges import Range
from rerank.features import template as marks
from rerank.features.sink import Sink, begin, emit_value, put
from rerank.features.template import Symbols, TextTemplate
from rerank.features.text.view import DIGIT, PUNCTUATION, SOURCE_BEGIN, SOURCE_END, TARGET_BEGIN, TARGET_END, TextView
from rerank.kernels.compile import kernel
from rerank.readers.lists import Lists


@dataclass(frozen=True)
class TargetNGram(TextTemplate):
    """``n`` adjacent words of the candidate; with n > 1, there is a mark before the first and after the last word.

    >>> fired("TargetNGram", "ein Mann")
    {'ein': 1.0, 'Mann': 1.0}

    One feature per word.
    """

    n: Annotated[int, Range(1, 9)] = 1

    @staticmethod
    @kernel
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        for y in range(view.base.shape[0]):
            first, last = view.first[y], view.first[y + 1]
            for v in range(ids.shape[0]):
                n = options[v].n
                edge = 1 if n > 1 else 0  # one mark at either end
                for i in range(first - edge, last + edge - n + 1):
                    h = begin(sink, ids[v], seeds[v])
                    for j in range(i, i + n):
                        end = marks.TEXT_START if j < first else marks.TEXT_END
                        h = put(sink, h, view.words[j] if first <= j < last else end)
                    emit_value(sink, h, y, 1.0)


@kernel
def emit_pair(sink: Sink, template: int, seed: np.uint64, source: np.uint64, target: np.uint64, y: int) -> None:
    """Count ``source → target`` in candidate y; also for words that take the place of others."""
    h = put(sink, put(sink, begin(sink, template, seed), source), marks.ARROW)
    emit_value(sink, put(sink, h, target), y, 1.0)


@dataclass(frozen=True)
class WordPair(TextTemplate):
    """A source word with a target word that the word alignment links it to.

    >>> fired("WordPair", "ein Mann", "", source="a man", alignment=[b"0-0 1-1", b""])
    {'a → ein': 1.0, 'man → Mann': 1.0}

    One feature per point of the alignment.
    """

    needs: ClassVar[str] = "alignment"

    @staticmethod
    @kernel
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
        for y in range(view.base.shape[0]):
            for a in range(view.point_first[y], view.point_first[y + 1]):
                source, target = view.source[view.points[a, 0]], view.words[view.first[y] + view.points[a, 1]]
                for v in range(ids.shape[0]):
                    emit_pair(sink, ids[v], seeds[v], source, target, y)


@dataclass(frozen=True)
class Unaligned(TextTemplate):
    """A word of the source, or of the target, that the word alignment links to no other.

    >>> fired("Unaligned", "ein Mann", "ein Mann", source="a man", alignment=[b"0-0", b"0-0 1-1"])
    {'man': 1.0}

    At most one feature per word; time: words times points.
    """

    needs: ClassVar[str] = "alignment"
    side: Literal["source", "target"] = "source"

    @staticmethod
    @kernel
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        for y in range(view.base.shape[0]):
            for v in range(ids.shape[0]):
                side = options[v].side
                words = view.words[view.first[y] : view.first[y + 1]] if side else view.source
                for i in range(words.shape[0]):
                    a, last = view.point_first[y], view.point_first[y + 1]
                    while a < last and view.points[a, side] != i:
                        a += 1
                    if a == last:
                        emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), words[i]), y, 1.0)


@dataclass(frozen=True)
class CoOccurrence(TextTemplate):
    """A source word with a target word, without any alignment.

    >>> fired("CoOccurrence", "ein", source="a man")
    {'a → ein': 1.0, 'man → ein': 1.0}

    Only the first ``words`` words of either text are used, so that long texts do not make millions of pairs. With
    ``band`` > 0 the target word must be in about the same place: at most ``band`` source words off the diagonal.

    A feature per pair of words: by far the most of all templates.
    """

    needs: ClassVar[str] = "source"
    words: Annotated[int, Range(1, 1000)] = 50
    band: Annotated[int, Range(0, 1000)] = 0

    @staticmethod
    @kernel
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        for y in range(view.base.shape[0]):
            words = view.words[view.first[y] : view.first[y + 1]]
            S, T = view.source.shape[0], words.shape[0]
            for v in range(ids.shape[0]):
                most, band = options[v].words, options[v].band
                for t in range(min(T, most)):
                    for s in range(min(S, most)):
                        # |s/S − t/T| · S ≤ band, in whole numbers
                        if band == 0 or abs(s * T - t * S) <= band * T:
                            emit_pair(sink, ids[v], seeds[v], view.source[s], words[t], y)


BOTH, SOURCE, TARGET = 0, 1, 2


@kernel
def put_words(sink: Sink, h: np.uint64, words: np.ndarray, first: int, last: int) -> np.uint64:
    """Append words[first:last]."""
    for i in range(first, last):
        h = put(sink, h, words[i])
    return h


@dataclass(frozen=True)
class _Phrase(TextTemplate):
    needs: ClassVar[str] = "segmentation"

    @staticmethod
    @kernel
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        for y in range(view.base.shape[0]):
            for i in range(view.phrase_first[y], view.phrase_first[y + 1]):
                for v in range(ids.shape[0]):
                    h, part = begin(sink, ids[v], seeds[v]), options[v].part
                    if part != TARGET:
                        h = put_words(sink, h, view.source, view.spans[i, SOURCE_BEGIN], view.spans[i, SOURCE_END])
                    if part == BOTH:
                        h = put(sink, h, marks.ARROW)
                    if part != SOURCE:
                        at = view.first[y]
                        first, last = at + view.spans[i, TARGET_BEGIN], at + view.spans[i, TARGET_END]
                        h = put_words(sink, h, view.words, first, last)
                    emit_value(sink, h, y, 1.0)


@dataclass(frozen=True)
class PhrasePair(_Phrase):
    """A source phrase with its translation.

    >>> fired("PhrasePair", "ein Mann", "", source="a man", segmentation=[b"0-1=0-1", b""])
    {'a man → ein Mann': 1.0}

    Gao, Xiao, Xu & He; one feature per phrase.
    """

    constants: ClassVar[dict[str, int]] = {"part": BOTH}


@dataclass(frozen=True)
class SourcePhrase(_Phrase):
    """The source side of a phrase pair: how the source was cut.

    >>> fired("SourcePhrase", "ein Mann", "", source="a man", segmentation=[b"0=0 1=1", b""])
    {'a': 1.0, 'man': 1.0}

    One feature per phrase.
    """

    constants: ClassVar[dict[str, int]] = {"part": SOURCE}


@dataclass(frozen=True)
class TargetPhrase(_Phrase):
    """The target side of a phrase pair.

    >>> fired("TargetPhrase", "ein Mann", "", source="a man", segmentation=[b"0=0 1=1", b""])
    {'ein': 1.0, 'Mann': 1.0}

    One feature per phrase.
    """

    constants: ClassVar[dict[str, int]] = {"part": TARGET}


@dataclass(frozen=True)
class PhraseLengths(TextTemplate):
    """The lengths of a phrase pair in words; those above ``most`` count as ``most``.

    >>> fired("PhraseLengths", "ein Mann", "", source="a man", segmentation=[b"0-1=0-1", b""])
    {'2 → 2': 1.0}

    One feature per phrase.
    """

    needs: ClassVar[str] = "segmentation"
    most: Annotated[int, Range(1, marks.NUMBER_OFFSET)] = 5

    @staticmethod
    @kernel
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        for y in range(view.base.shape[0]):
            for i in range(view.phrase_first[y], view.phrase_first[y + 1]):
                for v in range(ids.shape[0]):
                    most = options[v].most
                    source = min(view.spans[i, SOURCE_END] - view.spans[i, SOURCE_BEGIN], most)
                    target = min(view.spans[i, TARGET_END] - view.spans[i, TARGET_BEGIN], most)
                    h = put(sink, begin(sink, ids[v], seeds[v]), marks.NUMBER[marks.NUMBER_OFFSET + source])
                    h = put(sink, put(sink, h, marks.ARROW), marks.NUMBER[marks.NUMBER_OFFSET + target])
                    emit_value(sink, h, y, 1.0)


@dataclass(frozen=True)
class PhraseBoundary(TextTemplate):
    """The last word before a target phrase with the first word of the phrase.

    >>> fired("PhraseBoundary", "ein Mann", "", source="a man", segmentation=[b"0=0 1=1", b""])
    {'ein | Mann': 1.0}

    One feature per phrase but the first.
    """

    needs: ClassVar[str] = "segmentation"

    @staticmethod
    @kernel
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
        for y in range(view.base.shape[0]):
            for i in range(view.phrase_first[y], view.phrase_first[y + 1]):
                at, end = view.first[y] + view.spans[i, TARGET_BEGIN], view.first[y] + view.spans[i, TARGET_END]
                if at == view.first[y] or at == end:  # nothing precedes it, or the word was dropped
                    continue
                for v in range(ids.shape[0]):
                    h = put(sink, begin(sink, ids[v], seeds[v]), view.words[at - 1])
                    emit_value(sink, put(sink, put(sink, h, marks.BAR), view.words[at]), y, 1.0)


@dataclass(frozen=True)
class Jump(TextTemplate):
    """The number of source words skipped from one phrase to the next in target order; backward jumps are below 0.

    >>> fired("Jump", "Mann ein", "", source="a man", segmentation=[b"1=0 0=1", b""])
    {'+1': 1.0, '-2': 1.0}

    The first phrase jumps from the start of the source. Distances above ``most`` count as ``most``.

    One feature per phrase.
    """

    needs: ClassVar[str] = "segmentation"
    most: Annotated[int, Range(1, marks.SIGNED_OFFSET)] = 6

    @staticmethod
    @kernel
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        for y in range(view.base.shape[0]):
            end = 0
            for i in range(view.phrase_first[y], view.phrase_first[y + 1]):
                jump = view.spans[i, SOURCE_BEGIN] - end
                end = view.spans[i, SOURCE_END]
                for v in range(ids.shape[0]):
                    most = options[v].most
                    symbol = marks.SIGNED[marks.SIGNED_OFFSET + max(-most, min(jump, most))]
                    emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), symbol), y, 1.0)


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
            tenths = min((view.first[y + 1] - view.first[y]) * 10 // S, marks.RATIO.shape[0] - 1)
            for v in range(ids.shape[0]):
                _emit_one(sink, ids[v], seeds[v], marks.RATIO[tenths], y, 1.0)


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
                    _emit_one(sink, ids[v], seeds[v], marks.LENGTHS[bin_of(length, marks.LENGTH_FROM)], y, 1.0)
                else:
                    _emit_one(sink, ids[v], seeds[v], marks.WORDS, y, length)


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
            copies, digits, new_digits = 0, 0, 0
            first, last = view.first[y], view.first[y + 1]
            for t in range(first, last):
                s = 0
                while s < view.source.shape[0] and view.source[s] != view.words[t]:
                    s += 1
                here = s < view.source.shape[0]
                copies += here
                if view.kinds[t] == DIGIT:
                    digits += here
                    new_digits += not here
            for v in range(ids.shape[0]):
                _emit_one(sink, ids[v], seeds[v], marks.COPIED, y, copies)
                _emit_one(sink, ids[v], seeds[v], marks.RATE, y, copies / max(last - first, 1))
                _emit_one(sink, ids[v], seeds[v], marks.DIGITS, y, digits)
                _emit_one(sink, ids[v], seeds[v], marks.NEW_DIGITS, y, new_digits)


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
    most: Annotated[int, Range(1, marks.SIGNED_OFFSET)] = 3

    @staticmethod
    @kernel
    def fire(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
        S = view.source.shape[0]
        if S == 0:
            return
        end, count = _final(view.source, view.source_kinds, 0, S), _marks(view.source_kinds, 0, S)
        for y in range(view.base.shape[0]):
            first, last = view.first[y], view.first[y + 1]
            agrees = marks.SAME if _final(view.words, view.kinds, first, last) == end else marks.DIFFERENT
            more = _marks(view.kinds, first, last) - count
            for v in range(ids.shape[0]):
                most = options[v].most
                symbol = marks.SIGNED[marks.SIGNED_OFFSET + max(-most, min(more, most))]
                emit_value(sink, put(sink, put(sink, begin(sink, ids[v], seeds[v]), marks.FINAL), agrees), y, 1.0)
                emit_value(sink, put(sink, put(sink, begin(sink, ids[v], seeds[v]), marks.COUNT), symbol), y, 1.0)


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
            for e in range(view.sparse_first[y], view.sparse_first[y + 1]):
                for v in range(ids.shape[0]):
                    emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), view.sparse_names[e]), y, view.sparse[e])

    def columns(self, rows: Lists, lists: np.ndarray) -> dict[Symbols, np.ndarray]:  # noqa: ARG002
        """None: lists with sparse features are in no block."""
        return {}
