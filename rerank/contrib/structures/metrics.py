"""Measures of labels: spans as conlleval counts them, and the share of tokens that are right.

Texts are words with their labels behind a slash, ``Words/B-NP matter/O``. Spans are those of
``rerank.contrib.structures.spans``.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.base.encoding import decoded
from rerank.base.errors import DataError
from rerank.contrib.structures.slash import parted
from rerank.contrib.structures.spans import spans_of
from rerank.metrics.base import f_measure, f_report
from rerank.metrics.text import TextMetric, check_references


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
    def row(self, labels: Sequence[str], right: Sequence[str]) -> list[float]:
        """The statistics of a sentence: [K]."""

    @abstractmethod
    def reference_row(self, right: Sequence[str]) -> list[float]:
        """Those of what is right: [R]."""

    def rows(self, guessed: Iterable[Sequence[str]], right: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """float64 [R] and [N, K] of N guesses for one sentence.

        Raises
        ------
        DataError: a guess for another number of words.
        """
        made = []
        for labels in guessed:
            if len(labels) != len(right):
                raise DataError(f"found {len(labels)} labels for {len(right)} words; expected one for each")
            made.append(self.row(labels, right))
        return np.array(self.reference_row(right), np.float64), np.array(made, np.float64).reshape(
            len(made), len(self.columns)
        )

    def of_sentences(
        self, guessed: Iterable[Sequence[str]], right: Iterable[Sequence[str]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """float64 [L, R] and [L, K] of L sentences with a guess each."""
        found = [self.rows([labels], each) for labels, each in zip(guessed, right, strict=True)]
        return np.stack([reference for reference, _ in found]), np.concatenate([rows for _, rows in found])

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

    def row(self, labels: Sequence[str], right: Sequence[str]) -> list[float]:
        found = spans_of(labels)
        return [float(len(set(found) & set(spans_of(right)))), float(len(found))]

    def reference_row(self, right: Sequence[str]) -> list[float]:
        return [float(len(spans_of(right)))]

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

    def row(self, labels: Sequence[str], right: Sequence[str]) -> list[float]:
        return [float(sum(map(str.__eq__, labels, right)))]

    def reference_row(self, right: Sequence[str]) -> list[float]:
        return [float(len(right))]

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        words = reference[..., 0]
        return np.where(words > 0, stats[..., 0] / np.maximum(words, 1.0), 1.0)


def counts_by_type(guessed: Iterable[Sequence[str]], right: Iterable[Sequence[str]]) -> dict[str, list[int]]:
    """By type of span: how many are correct, found and right, as conlleval lists them."""
    return _counts((map(spans_of, labels) for labels in zip(guessed, right, strict=True)), 2)


def counts_by_label(guessed: Iterable[Sequence[str]], right: Iterable[Sequence[str]]) -> dict[str, list[int]]:
    """By label: for how many words it is correct, found and right."""
    return _counts((map(enumerate, labels) for labels in zip(guessed, right, strict=True)), 1)


def _counts(pairs: Iterable[Iterable[Iterable[Any]]], name: int) -> dict[str, list[int]]:
    """Counts of what stands at the place ``name`` of every item: in both of two sentences, the first, the second."""
    counts = dict[str, list[int]]()
    for pair in pairs:
        found, right = map(set, pair)
        for k, items in enumerate((found & right, found, right)):
            for item in items:
                counts.setdefault(str(item[name]), [0, 0, 0])[k] += 1
    return dict(sorted(counts.items()))
