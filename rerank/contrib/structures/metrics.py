"""Labels of whole sequences: measures of them, and templates over them.

Measures are those of spans, as conlleval counts them, and the share of tokens that are right. Texts are words with
their labels behind a slash, ``Words/B-NP matter/O``. A label is O, outside of all spans, or a prefix, a hyphen and a
type: B begins a span, I goes on, E ends one, S is one alone (L and U are E and S, M is I). A span begins where IOB1,
IOB2 or BIOES say so, or another type than before goes on, as in conlleval (Tjong Kim Sang & Buchholz 2000,
https://www.clips.uantwerpen.be/conll2000/chunking/output.html).
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np

from rerank.base.encoding import decoded
from rerank.base.errors import DataError
from rerank.base.ranges import Range
from rerank.contrib.structures.readers import split_tag, split_tags
from rerank.features.sink import Sink, begin, emit_value, put
from rerank.features.template import NOTHING, NUMBER, NUMBER_OFFSET, TEXT_END, TEXT_START, TextTemplate
from rerank.kernels.compile import kernel
from rerank.metrics.metric import f_measure, f_report
from rerank.metrics.text import TextMetric, check_references

Span = tuple[int, int, str]  # first token, last + 1, type
PREFIXES = {"B": "B", "I": "I", "E": "E", "S": "S", "L": "E", "U": "S", "M": "I", "O": "O"}
_OTHER = re.compile("(?i)([BIESLUM])[-_:/|](.+)|(.+)[-_:/|]([BIESLUM])")


@cache
def parts_of(label: str) -> tuple[str, str]:
    """A label's part in a span, one of B, I, E, S and O, and the type of the span.

    Raises DataError: a label that does not speak of spans.
    """
    prefix, _, kind = label.partition("-")
    if prefix not in PREFIXES or (prefix == "O" and kind):
        form = span_form(label)
        advice = "" if form == label else f"; write {form} for it"
        raise DataError(f"found the label {label!r}; spans have labels such as O, B-NP and I-NP{advice}")
    return PREFIXES[prefix], kind


def spans_of(labels: Iterable[str]) -> list[Span]:
    """The spans of a sentence, in their order.

    >>> spans_of(["B-NP", "I-NP", "B-NP", "O", "I-VP", "I-NP"])
    [(0, 2, 'NP'), (2, 3, 'NP'), (4, 5, 'VP'), (5, 6, 'NP')]
    """
    spans, first, before, kind_before, t = list[Span](), 0, "O", "", -1
    for t, label in enumerate(labels):
        part, kind = parts_of(label)
        goes_on = before in "BI" and part in "IE" and kind == kind_before
        if before != "O" and not goes_on:
            spans.append((first, t, kind_before))
        if part != "O" and not goes_on:
            first = t
        before, kind_before = part, kind
    return [*spans, (first, t + 1, kind_before)] if before != "O" else spans


def span_form(label: str) -> str:
    """Return the usual form of a label that is written in another way; other labels stay.

    >>> span_form("B_PER"), span_form("b-per"), span_form("PER-B"), span_form("o"), span_form("NN")
    ('B-PER', 'B-per', 'B-PER', 'O', 'NN')
    """
    if match := _OTHER.fullmatch(label):
        return f"{(match[1] or match[4]).upper()}-{match[2] or match[3]}"
    return "O" if label == "o" else label


def has_spans(labels: Iterable[str]) -> bool:
    """Whether all labels speak of spans, and one does so with a type."""
    labels = list(labels)
    prefixes = {label.partition("-")[0] for label in labels}
    return prefixes <= PREFIXES.keys() and any("-" in label for label in labels)


class LabelMetric(TextMetric):
    """A metric of labels: of what they say of a sentence, its items, some are right."""

    unit: ClassVar[str]  # what an item is counted by, as tables call it

    @abstractmethod
    def items(self, labels: Sequence[str]) -> set[Any]:
        """The items, each with what it is counted by as its last part."""

    def counts(self, guesses: Iterable[Sequence[str]], right: Iterable[Sequence[str]]) -> dict[str, list[int]]:
        """By type of span, or by label: how many are correct, found and right, as conlleval lists them."""
        counts = dict[str, list[int]]()
        for ours, theirs in (map(self.items, pair) for pair in zip(guesses, right, strict=True)):
            for k, items in enumerate((ours & theirs, ours, theirs)):
                for item in items:
                    counts.setdefault(item[-1], [0, 0, 0])[k] += 1
        return dict(sorted(counts.items()))

    def rows(self, guesses: Iterable[Sequence[str]], right: Iterable[Sequence[str]]) -> tuple[np.ndarray, np.ndarray]:
        """float64 [L, R] and [L, K] of L sentences with a guess each.

        Raises DataError: a guess for another number of words.
        """
        sizes = list[tuple[int, int, int]]()  # of items: correct, found, right
        for labels, each in zip(guesses, right, strict=True):
            if len(labels) != len(each):
                raise DataError(f"found {len(labels)} labels for {len(each)} words; expected one for each")
            ours, theirs = self.items(labels), self.items(each)
            sizes.append((len(ours & theirs), len(ours), len(theirs)))
        rows = np.array(sizes, np.float64).reshape(-1, 3)
        return rows[:, 2:], rows[:, : len(self.columns)]

    def stats(self, texts: Sequence[bytes], references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        check_references(references)
        right, *guesses = ([tag for _, tag in split_tags(decoded(text))] for text in (references[0], *texts))
        (reference,), _ = self.rows([right], [right])
        return reference, self.rows(guesses, [right] * len(texts))[1]


@dataclass(frozen=True)
class SpanScore(LabelMetric):
    """F1 of spans: 2 · correct / (found + right), where a span is correct that has both ends and the type; 1 if there
    are none at all.

    >>> SpanScore().corpus(["a/B-NP b/O c/B-VP"], [["a/B-NP b/I-NP c/B-VP"]])
    {'f1': 0.5, 'precision': 0.5, 'recall': 0.5}

    A text has one reference. Reference: Tjong Kim Sang & Buchholz 2000.
    """

    name: ClassVar[str] = "spans"

    unit = "type of span"
    primary = "f1"
    columns = ("correct", "found")
    reference_columns = ("spans",)

    def items(self, labels: Sequence[str]) -> set[Any]:
        return {*spans_of(labels)}

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        return f_measure(stats[..., 0], stats[..., 1], reference[..., 0])

    def report(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, float]:
        return f_report(self.primary, *map(float, (*stats, *reference)))


@dataclass(frozen=True)
class TagAccuracy(LabelMetric):
    """The share of words whose label is right; 1 without words.

    >>> TagAccuracy().corpus(["a/DT b/NN"], [["a/DT b/VB"]])
    {'accuracy': 0.5}

    A text has one reference.
    """

    name: ClassVar[str] = "tags"

    unit = "label"
    primary = "accuracy"
    columns = ("right",)
    reference_columns = ("words",)

    def items(self, labels: Sequence[str]) -> set[Any]:
        return {*enumerate(labels)}

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        return f_measure(stats[..., 0], reference[..., 0], reference[..., 0])


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


def label_view(texts: Sequence[bytes], hash_of: Callable[[str], int]) -> LabelView:
    """The view of texts for templates; empty unless all words of the first one have a label. In the others, a word
    without a slash is its own label."""
    hash_of = cache(hash_of)
    first, forms, labels = [0], list[int](), list[int]()
    span_first, spans, types = [0], list[tuple[int, int]](), list[int]()
    words = texts[0].split() if texts else []
    has_labels = bool(words) and all(0 < word.rfind(b"/") < len(word) - 1 for word in words)
    for text in texts:
        pairs = [split_tag(word) for word in decoded(text).split()] if has_labels else []
        names = [label for _, label in pairs]
        forms += [hash_of(form) for form, _ in pairs]
        labels += map(hash_of, names)
        for start, end, kind in spans_of(names) if has_spans(names) else ():
            spans.append((first[-1] + start, first[-1] + end))
            types.append(hash_of(kind))
        first.append(len(forms))
        span_first.append(len(spans))
    return LabelView(
        np.array(first, np.int64), np.array(forms, np.uint64), np.array(labels, np.uint64),
        np.array(span_first, np.int64), np.array(spans, np.int64).reshape(-1, 2), np.array(types, np.uint64),
    )  # fmt: skip


class LabelTemplate(TextTemplate):
    """A template of texts whose words have labels behind a slash."""

    look = staticmethod(label_view)


@dataclass(frozen=True)
class LabelNGram(LabelTemplate):
    """``n`` adjacent labels, with ``words``: none, the last or all; with n > 1, there is a mark before the first and
    after the last label.

    >>> from rerank.features.extract import fired
    >>> fired("LabelNGram(words=last)", "The/DT dog/NN")
    {'DT The': 1.0, 'NN dog': 1.0}

    One feature per word.
    """

    n: Annotated[int, Range(1, 9)] = 1
    words: Literal["none", "last", "all"] = "none"

    @staticmethod
    @kernel
    def fire(view: LabelView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
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
class LabelSpan(LabelTemplate):
    """A span of the labels, its type with what ``see`` says: its words, those at its ends, those outside next to it, or
    its length up to 9.

    >>> from rerank.features.extract import fired
    >>> fired("LabelSpan(see=outside)", "The/B-NP dog/I-NP barks/O")
    {'NP <s> barks': 1.0}

    One feature per span.
    """

    see: Literal["words", "ends", "outside", "length"] = "words"

    @staticmethod
    @kernel
    def fire(view: LabelView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
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
class SpanNGram(LabelTemplate):
    """``n`` adjacent types of spans, words outside of spans being themselves, or all alike without ``words``; at the
    end of the text fewer, and a mark.

    >>> from rerank.features.extract import fired
    >>> fired("SpanNGram(n=2)", "The/B-NP dog/I-NP barks/O")
    {'NP barks': 1.0, 'barks </s>': 1.0}

    One feature per span, and per word outside of spans.
    """

    n: Annotated[int, Range(1, 9)] = 3
    words: bool = True

    @staticmethod
    @kernel
    def fire(view: LabelView, sink: Sink, ids: np.ndarray, seeds: np.ndarray, options: np.ndarray) -> None:
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
