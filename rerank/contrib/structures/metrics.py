"""Measures of labels: spans as conlleval counts them, and the share of tokens that are right.

Texts are words with their labels behind a slash, ``Words/B-NP matter/O``. A label is O, outside of all spans, or a
prefix, a hyphen and a type: B begins a span, I goes on, E ends one, S is one alone (L and U are E and S, M is I). A
span begins where IOB1, IOB2 or BIOES say so, or another type than before goes on, as in conlleval (Tjong Kim Sang &
Buchholz 2000, https://www.clips.uantwerpen.be/conll2000/chunking/output.html).
"""

import re
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from rerank.base.encoding import decoded
from rerank.base.errors import DataError
from rerank.contrib.structures.readers import parted
from rerank.metrics.metric import f_measure, f_report
from rerank.metrics.text import TextMetric, check_references

Span = tuple[int, int, str]  # first token, last + 1, type
PREFIXES = {"B": "B", "I": "I", "E": "E", "S": "S", "L": "E", "U": "S", "M": "I", "O": "O"}
_OTHER = re.compile("(?i)([BIESLUM])[-_:/|](.+)|(.+)[-_:/|]([BIESLUM])")


@cache
def parts_of(label: str) -> tuple[str, str]:
    """A label's part in a span, one of B, I, E, S and O, and the type of the span.

    Raises
    ------
    DataError: a label that does not speak of spans.
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
    spans, first, before, kind_before, place = list[Span](), 0, "O", "", -1
    for place, label in enumerate(labels):
        part, kind = parts_of(label)
        goes_on = before in "BI" and part in "IE" and kind == kind_before
        if before != "O" and not goes_on:
            spans.append((first, place, kind_before))
        if part != "O" and not goes_on:
            first = place
        before, kind_before = part, kind
    return [*spans, (first, place + 1, kind_before)] if before != "O" else spans


def span_form(label: str) -> str:
    """The label that one means where it is written in other ways; others stay.

    >>> span_form("B_PER"), span_form("b-per"), span_form("PER-B"), span_form("o"), span_form("NN")
    ('B-PER', 'B-per', 'B-PER', 'O', 'NN')
    """
    if found := _OTHER.fullmatch(label):
        return f"{(found[1] or found[4]).upper()}-{found[2] or found[3]}"
    return "O" if label == "o" else label


def has_spans(labels: Iterable[str]) -> bool:
    """Whether all labels speak of spans, and one does so with a type."""
    labels = list(labels)
    prefixes = {label.partition("-")[0] for label in labels}
    return prefixes <= PREFIXES.keys() and any("-" in label for label in labels)


def labels_of(text: bytes) -> list[str]:
    """The labels of the words of a text.

    Raises
    ------
    DataError: a word without one.
    """
    pairs = [parted(word) for word in decoded(text).split()]
    if bare := next((label for word, label in pairs if not (word and label)), None):
        raise DataError(f"found {bare[:40]!r}; expected a word, a slash and its label")
    return [label for _, label in pairs]


class LabelMetric(TextMetric):
    """A metric of labels: rows for labels that are guessed, beside those that are right."""

    @abstractmethod
    def row(self, labels: Sequence[str], right: Sequence[str]) -> tuple[list[float], list[float]]:
        """The statistics of a sentence, [K], and of what is right, [R]."""

    def rows(self, guessed: Iterable[Sequence[str]], right: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """float64 [R] and [N, K] of N guesses for one sentence.

        Raises
        ------
        DataError: a guess for another number of words.
        """
        rows, reference = list[list[float]](), self.row(right, right)[1]
        for labels in guessed:
            if len(labels) != len(right):
                raise DataError(f"found {len(labels)} labels for {len(right)} words; expected one for each")
            rows.append(self.row(labels, right)[0])
        return np.array(reference, np.float64), np.array(rows, np.float64).reshape(-1, len(self.columns))

    def of_sentences(
        self, guessed: Iterable[Sequence[str]], right: Iterable[Sequence[str]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """float64 [L, R] and [L, K] of L sentences with a guess each."""
        pairs = [self.rows([labels], each) for labels, each in zip(guessed, right, strict=True)]
        return np.stack([reference for reference, _ in pairs]), np.concatenate([rows for _, rows in pairs])

    def stats(self, texts: Sequence[bytes], references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        check_references(references)
        return self.rows(map(labels_of, texts), labels_of(references[0]))


@dataclass(frozen=True)
class SpanScore(LabelMetric):
    """F1 of spans: 2 · correct / (found + right), where a span is correct that has both ends and the type; 1 if there
    are none at all.

    >>> SpanScore().corpus(["a/B-NP b/O c/B-VP"], [["a/B-NP b/I-NP c/B-VP"]])
    {'f1': 0.5, 'precision': 0.5, 'recall': 0.5}

    A text has one reference. Reference: Tjong Kim Sang & Buchholz 2000.
    """

    name: ClassVar[str] = "spans"

    primary = "f1"
    columns = ("correct", "found")
    reference_columns = ("spans",)

    def row(self, labels: Sequence[str], right: Sequence[str]) -> tuple[list[float], list[float]]:
        spans, others = {*spans_of(labels)}, {*spans_of(right)}
        return [len(spans & others), len(spans)], [len(others)]

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

    primary = "accuracy"
    columns = ("right",)
    reference_columns = ("words",)

    def row(self, labels: Sequence[str], right: Sequence[str]) -> tuple[list[float], list[float]]:
        return [sum(map(str.__eq__, labels, right))], [len(right)]

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        words = reference[..., 0]
        return np.where(words > 0, stats[..., 0] / np.maximum(words, 1.0), 1.0)


def counts_of(guessed: Iterable[Sequence[str]], right: Iterable[Sequence[str]], *, spans: bool) -> dict[str, list[int]]:
    """By type of span, or by label: how many are correct, found and right, as conlleval lists them."""
    counts = dict[str, list[int]]()
    for pair in zip(guessed, right, strict=True):
        ours, theirs = ({*(spans_of(labels) if spans else enumerate(labels))} for labels in pair)
        for k, items in enumerate((ours & theirs, ours, theirs)):
            for item in items:
                counts.setdefault(str(item[-1]), [0, 0, 0])[k] += 1
    return dict(sorted(counts.items()))
