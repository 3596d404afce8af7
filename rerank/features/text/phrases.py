"""Templates over the phrases of a derivation: PhrasePair and its parts, PhraseLengths, PhraseBoundary, Jump.

PhrasePair is the discriminative phrase translation model of Gao, Xiao, Xu & He: one indicator per phrase pair.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rerank.base.ranges import Range
from rerank.features.marks import ARROW, BAR, NUMBER, NUMBER_OFFSET, SIGNED, SIGNED_OFFSET
from rerank.features.sink import Sink, begin, emit_value, put
from rerank.features.template import TextTemplate
from rerank.features.text.view import SOURCE_BEGIN, SOURCE_END, TARGET_BEGIN, TARGET_END, TextView
from rerank.kernels.compile import kernel

BOTH, SOURCE, TARGET = 0, 1, 2


@kernel
def put_words(sink: Sink, h: np.uint64, words: np.ndarray, first: int, last: int) -> np.uint64:
    """Append words[first:last]."""
    for i in range(first, last):
        h = put(sink, h, words[i])
    return h


@kernel
def _fire_phrase(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    for y in range(view.base.shape[0]):
        for i in range(view.phrase_first[y], view.phrase_first[y + 1]):
            for v in range(ids.shape[0]):
                h, part = begin(sink, ids[v], seeds[v]), options[v].part
                if part != TARGET:
                    h = put_words(sink, h, view.source, view.spans[i, SOURCE_BEGIN], view.spans[i, SOURCE_END])
                if part == BOTH:
                    h = put(sink, h, ARROW)
                if part != SOURCE:
                    at = view.first[y]
                    h = put_words(sink, h, view.words, at + view.spans[i, TARGET_BEGIN], at + view.spans[i, TARGET_END])
                emit_value(sink, h, y, 1.0)


@dataclass(frozen=True)
class _Phrase(TextTemplate):
    needs: ClassVar[str] = "segmentation"

    fire = staticmethod(_fire_phrase)


@dataclass(frozen=True)
class PhrasePair(_Phrase):
    """A source phrase with its translation.

    >>> from rerank.features.fired import fired
    >>> fired("PhrasePair", "ein Mann", "", source="a man", segmentation=[b"0-1=0-1", b""])
    {'a man → ein Mann': 1.0}

    Gao, Xiao, Xu & He; one feature per phrase.
    """

    fixed: ClassVar[dict[str, int]] = {"part": BOTH}


@dataclass(frozen=True)
class SourcePhrase(_Phrase):
    """The source side of a phrase pair: how the source was cut.

    >>> from rerank.features.fired import fired
    >>> fired("SourcePhrase", "ein Mann", "", source="a man", segmentation=[b"0=0 1=1", b""])
    {'a': 1.0, 'man': 1.0}

    One feature per phrase.
    """

    fixed: ClassVar[dict[str, int]] = {"part": SOURCE}


@dataclass(frozen=True)
class TargetPhrase(_Phrase):
    """The target side of a phrase pair.

    >>> from rerank.features.fired import fired
    >>> fired("TargetPhrase", "ein Mann", "", source="a man", segmentation=[b"0=0 1=1", b""])
    {'ein': 1.0, 'Mann': 1.0}

    One feature per phrase.
    """

    fixed: ClassVar[dict[str, int]] = {"part": TARGET}


@kernel
def _fire_lengths(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    for y in range(view.base.shape[0]):
        for i in range(view.phrase_first[y], view.phrase_first[y + 1]):
            for v in range(ids.shape[0]):
                most = options[v].most
                source = min(view.spans[i, SOURCE_END] - view.spans[i, SOURCE_BEGIN], most)
                target = min(view.spans[i, TARGET_END] - view.spans[i, TARGET_BEGIN], most)
                h = put(sink, begin(sink, ids[v], seeds[v]), NUMBER[NUMBER_OFFSET + source])
                emit_value(sink, put(sink, put(sink, h, ARROW), NUMBER[NUMBER_OFFSET + target]), y, 1.0)


@dataclass(frozen=True)
class PhraseLengths(TextTemplate):
    """The lengths of a phrase pair in words; those above ``most`` count as ``most``.

    >>> from rerank.features.fired import fired
    >>> fired("PhraseLengths", "ein Mann", "", source="a man", segmentation=[b"0-1=0-1", b""])
    {'2 → 2': 1.0}

    One feature per phrase.
    """

    needs: ClassVar[str] = "segmentation"
    most: Annotated[int, Range(1, NUMBER_OFFSET)] = 5

    fire = staticmethod(_fire_lengths)


@kernel
def _fire_boundary(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
    for y in range(view.base.shape[0]):
        for i in range(view.phrase_first[y], view.phrase_first[y + 1]):
            at, end = view.first[y] + view.spans[i, TARGET_BEGIN], view.first[y] + view.spans[i, TARGET_END]
            if at == view.first[y] or at == end:  # nothing precedes it, or the word was dropped
                continue
            for v in range(ids.shape[0]):
                h = put(sink, begin(sink, ids[v], seeds[v]), view.words[at - 1])
                emit_value(sink, put(sink, put(sink, h, BAR), view.words[at]), y, 1.0)


@dataclass(frozen=True)
class PhraseBoundary(TextTemplate):
    """The last word before a target phrase with the first word of the phrase.

    >>> from rerank.features.fired import fired
    >>> fired("PhraseBoundary", "ein Mann", "", source="a man", segmentation=[b"0=0 1=1", b""])
    {'ein | Mann': 1.0}

    One feature per phrase but the first.
    """

    needs: ClassVar[str] = "segmentation"

    fire = staticmethod(_fire_boundary)


@kernel
def _fire_jump(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    for y in range(view.base.shape[0]):
        end = 0
        for i in range(view.phrase_first[y], view.phrase_first[y + 1]):
            jump = view.spans[i, SOURCE_BEGIN] - end
            end = view.spans[i, SOURCE_END]
            for v in range(ids.shape[0]):
                most = options[v].most
                symbol = SIGNED[SIGNED_OFFSET + max(-most, min(jump, most))]
                emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), symbol), y, 1.0)


@dataclass(frozen=True)
class Jump(TextTemplate):
    """The number of source words skipped from one phrase to the next in target order; backward jumps are below 0.

    >>> from rerank.features.fired import fired
    >>> fired("Jump", "Mann ein", "", source="a man", segmentation=[b"1=0 0=1", b""])
    {'+1': 1.0, '-2': 1.0}

    The first phrase jumps from the start of the source. Distances above ``most`` count as ``most``.

    One feature per phrase.
    """

    needs: ClassVar[str] = "segmentation"
    most: Annotated[int, Range(1, SIGNED_OFFSET)] = 6

    fire = staticmethod(_fire_jump)
