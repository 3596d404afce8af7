"""Templates over words: TargetNGram of a candidate; WordPair, Unaligned and CoOccurrence with those of its source."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from rerank.base.ranges import Range
from rerank.features.marks import ARROW, TEXT_END, TEXT_START
from rerank.features.sink import Sink, begin, emit_value, put
from rerank.features.template import TextTemplate
from rerank.features.text.view import TextView
from rerank.kernels.compile import kernel


@kernel
def _fire_ngram(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    for y in range(view.base.shape[0]):
        first, last = view.first[y], view.first[y + 1]
        for v in range(ids.shape[0]):
            n = options[v].n
            edge = 1 if n > 1 else 0  # one mark at either end
            for i in range(first - edge, last + edge - n + 1):
                h = begin(sink, ids[v], seeds[v])
                for j in range(i, i + n):
                    h = put(sink, h, TEXT_START if j < first else (TEXT_END if j >= last else view.words[j]))
                emit_value(sink, h, y, 1.0)


@dataclass(frozen=True)
class TargetNGram(TextTemplate):
    """``n`` adjacent words of the candidate; with n > 1, there is a mark before the first and after the last word.

    >>> from rerank.features.fired import fired
    >>> fired("TargetNGram", "ein Mann")
    {'ein': 1.0, 'Mann': 1.0}

    One feature per word.
    """

    n: Annotated[int, Range(1, 9)] = 1

    fire = staticmethod(_fire_ngram)


@kernel
def emit_pair(sink: Sink, template: int, seed: np.uint64, source: np.uint64, target: np.uint64, y: int) -> None:
    """Count ``source → target`` in candidate y; also for words that take the place of others."""
    h = put(sink, put(sink, begin(sink, template, seed), source), ARROW)
    emit_value(sink, put(sink, h, target), y, 1.0)


@kernel
def _fire_pair(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, _options: np.ndarray) -> None:
    for y in range(view.base.shape[0]):
        for a in range(view.point_first[y], view.point_first[y + 1]):
            source, target = view.source[view.points[a, 0]], view.words[view.first[y] + view.points[a, 1]]
            for v in range(ids.shape[0]):
                emit_pair(sink, ids[v], seeds[v], source, target, y)


@dataclass(frozen=True)
class WordPair(TextTemplate):
    """A source word with a target word that the word alignment links it to.

    >>> from rerank.features.fired import fired
    >>> fired("WordPair", "ein Mann", "", source="a man", alignment=[b"0-0 1-1", b""])
    {'a → ein': 1.0, 'man → Mann': 1.0}

    One feature per point of the alignment.
    """

    needs: ClassVar[str] = "alignment"

    fire = staticmethod(_fire_pair)


@kernel
def _is_aligned(view: TextView, y: int, side: int, word: int) -> bool:
    a, last = view.point_first[y], view.point_first[y + 1]
    while a < last and view.points[a, side] != word:
        a += 1
    return bool(a < last)


@kernel
def _fire_unaligned(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    for y in range(view.base.shape[0]):
        for v in range(ids.shape[0]):
            side = options[v].side
            words = view.words[view.first[y] : view.first[y + 1]] if side else view.source
            for i in range(words.shape[0]):
                if not _is_aligned(view, y, side, i):
                    emit_value(sink, put(sink, begin(sink, ids[v], seeds[v]), words[i]), y, 1.0)


@dataclass(frozen=True)
class Unaligned(TextTemplate):
    """A word of the source, or of the target, that the word alignment links to no other.

    >>> from rerank.features.fired import fired
    >>> fired("Unaligned", "ein Mann", "ein Mann", source="a man", alignment=[b"0-0", b"0-0 1-1"])
    {'man': 1.0}

    At most one feature per word; time: words times points.
    """

    needs: ClassVar[str] = "alignment"
    side: Literal["source", "target"] = "source"

    fire = staticmethod(_fire_unaligned)


@kernel
def _fire_together(view: TextView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
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


@dataclass(frozen=True)
class CoOccurrence(TextTemplate):
    """A source word with a target word, without any alignment.

    >>> from rerank.features.fired import fired
    >>> fired("CoOccurrence", "ein", source="a man")
    {'a → ein': 1.0, 'man → ein': 1.0}

    Only the first ``words`` words of either text are used, so that long texts do not make millions of pairs. With
    ``band`` > 0 the target word must be in about the same place: at most ``band`` source words off the diagonal.

    A feature per pair of words: by far the most of all templates.
    """

    needs: ClassVar[str] = "source"
    words: Annotated[int, Range(1, 1000)] = 50
    band: Annotated[int, Range(0, 1000)] = 0

    fire = staticmethod(_fire_together)
