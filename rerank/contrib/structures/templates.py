"""Templates over whole label sequences, of texts like ``The/B-NP dog/I-NP``: LabelNGram, LabelSpan, SpanNGram."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np

from rerank.base.encoding import decoded
from rerank.base.ranges import Range
from rerank.contrib.structures.metrics import has_spans, spans_of
from rerank.contrib.structures.readers import parted
from rerank.features.marks import NOTHING, NUMBER, NUMBER_OFFSET, TEXT_END, TEXT_START
from rerank.features.sink import Sink, begin, emit_value, put
from rerank.features.template import TextTemplate
from rerank.kernels.compile import kernel

NONE, LAST, ALL = 0, 1, 2  # which words an n-gram of labels is seen with
WORDS, ENDS, OUTSIDE, LENGTH = 0, 1, 2, 3  # what a span is seen with


class LabelView(NamedTuple):
    """N texts with W words and S spans; nothing where words have no labels. Words, labels and types are hashes."""

    first: np.ndarray  # int64 [N + 1]: words of text y are first[y]..first[y + 1]
    forms: np.ndarray  # uint64 [W]: words without labels
    labels: np.ndarray  # uint64 [W]
    span_first: np.ndarray  # int64 [N + 1]: spans of text y are span_first[y]..span_first[y + 1]
    spans: np.ndarray  # int64 [S, 2]: first word and last + 1, counted over all texts
    types: np.ndarray  # uint64 [S]


def is_labelled(texts: Sequence[bytes]) -> bool:
    """Whether all words of the first text have a label."""
    words = texts[0].split() if texts else []
    return bool(words) and all(0 < word.rfind(b"/") < len(word) - 1 for word in words)


def label_view(texts: Sequence[bytes], hash_of: Callable[[str], int]) -> LabelView:
    """What templates see of texts; a word without a slash has the label that it is."""
    hashes = dict[str, tuple[int, int]]()
    first, forms, labels = [0], list[int](), list[int]()
    span_first, spans, types = [0], list[tuple[int, int]](), list[int]()
    labelled = is_labelled(texts)
    for text in texts:
        names = list[str]()
        for word in decoded(text).split() if labelled else ():
            form, label = parted(word)
            if word not in hashes:
                hashes[word] = hash_of(form), hash_of(label)
            names.append(label)
            forms.append(hashes[word][0])
            labels.append(hashes[word][1])
        for start, end, kind in spans_of(names) if has_spans(names) else ():
            spans.append((first[-1] + start, first[-1] + end))
            types.append(hash_of(kind))
        first.append(len(forms))
        span_first.append(len(spans))
    words = np.array(first, np.int64), np.array(forms, np.uint64), np.array(labels, np.uint64)
    inside = np.array(spans, np.int64).reshape(-1, 2)
    return LabelView(*words, np.array(span_first, np.int64), inside, np.array(types, np.uint64))


class LabelTemplate(TextTemplate):
    """A template of texts whose words have labels behind a slash."""

    look = staticmethod(label_view)


@kernel
def _fire_labels(view: LabelView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    for y in range(view.first.shape[0] - 1 if view.labels.shape[0] else 0):
        first, last = view.first[y], view.first[y + 1]
        for v in range(ids.shape[0]):
            n, words = options[v].n, options[v].words
            edge = 1 if n > 1 else 0  # one mark at either end
            for i in range(first - edge, last + edge - n + 1):
                h = begin(sink, ids[v], seeds[v])
                for j in range(i, i + n):
                    inside = first <= j < last
                    h = put(sink, h, view.labels[j] if inside else (TEXT_START if j < first else TEXT_END))
                    if inside and (words == ALL or (words == LAST and j == i + n - 1)):
                        h = put(sink, h, view.forms[j])
                emit_value(sink, h, y, 1.0)


@dataclass(frozen=True)
class LabelNGram(LabelTemplate):
    """``n`` adjacent labels, with ``words``: none, the last or all; with n > 1, there is a mark before the first and
    after the last label.

    >>> from rerank.features.fired import fired
    >>> fired("LabelNGram(words=last)", "The/DT dog/NN")
    {'DT The': 1.0, 'NN dog': 1.0}

    One feature per word.
    """

    n: Annotated[int, Range(1, 9)] = 1
    words: Literal["none", "last", "all"] = "none"

    fire = staticmethod(_fire_labels)


@kernel
def _fire_span(view: LabelView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    for y in range(view.first.shape[0] - 1):
        for s in range(view.span_first[y], view.span_first[y + 1]):
            first, last = view.spans[s, 0], view.spans[s, 1]
            for v in range(ids.shape[0]):
                h = put(sink, begin(sink, ids[v], seeds[v]), view.types[s])
                see = options[v].see
                if see == WORDS:
                    for j in range(first, last):
                        h = put(sink, h, view.forms[j])
                elif see == ENDS:
                    h = put(sink, put(sink, h, view.forms[first]), view.forms[last - 1])
                elif see == OUTSIDE:
                    h = put(sink, h, view.forms[first - 1] if first > view.first[y] else TEXT_START)
                    h = put(sink, h, view.forms[last] if last < view.first[y + 1] else TEXT_END)
                else:
                    h = put(sink, h, NUMBER[NUMBER_OFFSET + min(last - first, 9)])
                emit_value(sink, h, y, 1.0)


@dataclass(frozen=True)
class LabelSpan(LabelTemplate):
    """A span of the labels, its type with what ``see`` says: its words, those at its ends, those outside next to it, or
    its length up to 9.

    >>> from rerank.features.fired import fired
    >>> fired("LabelSpan(see=outside)", "The/B-NP dog/I-NP barks/O")
    {'NP <s> barks': 1.0}

    One feature per span.
    """

    see: Literal["words", "ends", "outside", "length"] = "words"

    fire = staticmethod(_fire_span)


@kernel
def _fire_span_ngram(view: LabelView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
    for y in range(view.first.shape[0] - 1 if view.types.shape[0] else 0):
        last, end = view.first[y + 1], view.span_first[y + 1]
        for v in range(ids.shape[0]):
            at, s = view.first[y], view.span_first[y]
            while at < last:
                h, j, span = begin(sink, ids[v], seeds[v]), at, s
                for k in range(options[v].n):
                    if j >= last:
                        h = put(sink, h, TEXT_END)
                        break
                    if span < end and view.spans[span, 0] == j:
                        h = put(sink, h, view.types[span])
                        j, span = view.spans[span, 1], span + 1
                    else:
                        h = put(sink, h, view.forms[j] if options[v].words else NOTHING)
                        j += 1
                    if k == 0:
                        at, s = j, span
                emit_value(sink, h, y, 1.0)


@dataclass(frozen=True)
class SpanNGram(LabelTemplate):
    """``n`` adjacent types of spans, words outside of spans being themselves, or all alike without ``words``; at the
    end of the text fewer, and a mark.

    >>> from rerank.features.fired import fired
    >>> fired("SpanNGram(n=2)", "The/B-NP dog/I-NP barks/O")
    {'NP barks': 1.0, 'barks </s>': 1.0}

    One feature per span, and per word outside of spans.
    """

    n: Annotated[int, Range(1, 9)] = 3
    words: bool = True

    fire = staticmethod(_fire_span_ngram)
