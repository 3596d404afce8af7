"""Labelled examples: what classification reads, before they become lists of candidates.

Axes: n examples, nnz nonzeros, D columns, k classes.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.data.corpus import MAX_COLUMNS, Corpus, freeze, offsets, ranges_of

_DTYPES = {
    "rows": np.int64, "columns": np.int32, "values": np.float32, "label": np.int64, "group": np.int64,
    "weight": np.float64,
}  # fmt: skip
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Labelled:
    """Examples, each with sparse features and a label; all arrays are read-only.

    | field   | dtype, shape     | meaning |
    |---------|------------------|---------|
    | rows    | int64 [n + 1]    | nonzeros of example i are rows[i]..rows[i + 1] |
    | columns | int32 [nnz]      | feature columns from 0, sorted and unique within a row |
    | values  | float32 [nnz]    | feature values |
    | label   | int64 [n]        | index into ``classes`` |
    | group   | int64 [n] or [0] | the query (qid) of an example; empty if there are none |
    | weight  | float64 [n]      | importance of an example |

    ``classes`` are the texts of the labels (see ``canonical_order``), ``width`` is D, the number of columns that exist,
    and ``omissions`` counts the nonzeros that ``align`` left out.

    Raises DataError: the arrays do not fit together.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    label: np.ndarray
    classes: tuple[str, ...]
    group: np.ndarray
    weight: np.ndarray
    width: int
    omissions: int = 0

    def __post_init__(self) -> None:
        for name, dtype in _DTYPES.items():
            object.__setattr__(self, name, freeze(np.asarray(getattr(self, name), dtype=dtype)))
        n, k = self.label.size, len(self.classes)
        wrong = (
            self.rows.shape != (n + 1,)
            or self.rows[0] != 0
            or self.rows[-1] != self.columns.size
            or bool((np.diff(self.rows) < 0).any())
            or self.columns.ndim != 1
            or self.columns.shape != self.values.shape
            or self.label.ndim != 1
            or self.group.shape not in {(0,), (n,)}
            or self.weight.shape != (n,)
            or not 0 <= self.width <= MAX_COLUMNS
        )
        if wrong:
            raise DataError("the arrays of labelled examples do not fit together")
        if n and not 0 <= int(self.label.min()) <= int(self.label.max()) < k:
            message = f"labels from {self.label.min()} to {self.label.max()} for {k} classes; expected 0..{k - 1}"
            raise DataError(message)
        if self.columns.size and not 0 <= int(self.columns.min()) <= int(self.columns.max()) < self.width:
            span = f"from {self.columns.min()} to {self.columns.max()} for width {self.width}"
            raise DataError(f"columns {span}; expected 0..{self.width - 1}")

    @property
    def size(self) -> int:
        """Number of examples n."""
        return int(self.label.size)

    @property
    def nonzeros(self) -> int:
        """Number of stored feature values."""
        return int(self.columns.size)

    def take(self, indices: Sequence[int] | np.ndarray) -> "Labelled":
        """The examples ``indices`` (int [m], or bool [n]) in that order, as a copy."""
        order = np.arange(self.size)[np.asarray(indices, dtype=None if len(indices) else np.int64)]
        entries, group = ranges_of(self.rows, order), self.group[order] if self.group.size else self.group
        return replace(
            self, rows=offsets(np.diff(self.rows)[order]), columns=self.columns[entries], values=self.values[entries],
            group=group, label=self.label[order], weight=self.weight[order],
        )  # fmt: skip

    def flip(self, probability: float, seed: int) -> "Labelled":
        """Flip every label of two classes with this probability, independently."""
        if not 0 <= probability <= 1:
            raise RecipeError(f"found {probability} as the share of flipped labels; expected 0 to 1")
        if len(self.classes) != 2:
            raise DataError(f"labels of {len(self.classes)} classes cannot be flipped; expected two classes")
        mask = np.random.default_rng(seed).random(self.size) < probability
        return replace(self, label=np.where(mask, 1 - self.label, self.label))

    def with_bias(self, value: float = 1.0) -> "Labelled":
        """The examples with an additional constant feature in a new last column (index ``width``)."""
        with np.errstate(over="ignore"):
            constant = np.float32(value)
        if not np.isfinite(constant):
            raise RecipeError(f"found {value} as the value of the bias feature; expected a finite number")
        if self.width == MAX_COLUMNS:
            raise DataError(f"there is no column left for a bias; at most {MAX_COLUMNS:,} are possible")
        columns, values = (
            np.insert(array, self.rows[1:], last)
            for array, last in ((self.columns, self.width), (self.values, constant))
        )
        rows = self.rows + np.arange(self.size + 1)
        return replace(self, rows=rows, columns=columns, values=values, width=self.width + 1)

    def align(self, classes: Sequence[str], width: int) -> "Labelled":
        """These examples with the classes and columns of others, as test examples take over those of training.

        Nonzeros in columns from ``width`` on are left out and counted in ``omissions``.
        """
        class_of = {name: c for c, name in enumerate(classes)}
        present = np.unique(self.label)
        unknown = [self.classes[c] for c in present if self.classes[c] not in class_of]
        if unknown:
            message = f"found label {unknown[0]}, which the training examples do not have; expected {_some(classes)}"
            raise DataError(message)
        labels = np.array([class_of.get(name, -1) for name in self.classes], dtype=np.int64)
        label = labels[self.label] if self.size else self.label
        if self.width <= width:
            return replace(self, label=label, classes=tuple(classes), width=width)
        mask = self.columns < width
        return replace(
            self, rows=offsets(mask)[self.rows], columns=self.columns[mask], values=self.values[mask],
            label=label, classes=tuple(classes), width=width, omissions=self.omissions + int(np.count_nonzero(~mask)),
        )  # fmt: skip

    def corpus(self, *, trusted: bool = False) -> Corpus:
        """One list per example, with one candidate per class.

        Two classes: candidate 0 has no features and candidate 1 those of the example, so that the difference of the
        two is ±x and a tie goes to class 0; the nonzeros are the same arrays. k > 2 classes: candidate c has the
        example's features in the columns c·D to (c + 1)·D - 1. The gain of the true class is 1, of others 0; the
        statistics are those of the metric ``error``: ``stats`` is 1 where wrong, ``reference`` is 1.

        trusted: the order of the columns is not checked again.
        """
        n, k, width = self.size, len(self.classes), self.width
        if k < 2:
            raise DataError(f"all examples have the label {_some(self.classes)}; expected two classes or more")
        blocks = 1 if k == 2 else k
        if blocks * width > MAX_COLUMNS:
            raise DataError(f"{k:,} classes of {width:,} columns are more than {MAX_COLUMNS:,} columns")
        rows, columns, values = np.repeat(self.rows, 2)[:-1], self.columns, self.values
        if k > 2:
            examples = np.repeat(np.arange(n), k)
            entries, sizes = ranges_of(self.rows, examples), np.diff(self.rows)[examples]
            first = np.repeat(np.tile(np.arange(k, dtype=np.int32) * width, n), sizes)
            rows, columns, values = offsets(sizes), columns[entries] + first, values[entries]
        gain = np.zeros(n * k)
        gain[np.arange(n) * k + self.label] = 1.0
        return Corpus(
            lists=np.arange(n + 1) * k, rows=rows, columns=columns, values=values, base=np.zeros(n * k), gain=gain,
            stats=(1.0 - gain)[:, np.newaxis], reference=np.ones((n, 1)), weight=self.weight, width=blocks * width,
            about={"classes": list(self.classes), "columns_per_class": width}, trusted=trusted,
        )  # fmt: skip


def _some(classes: Sequence[str]) -> str:
    return ", ".join(classes[:8]) + (f" or another of {len(classes)}" if len(classes) > 8 else "") or "none"


def canonical(label: str) -> str:
    """The same text for all ways to write a number ("+1", "1", "1.0"); other labels stay as they are."""
    if not _NUMBER.fullmatch(label):
        return label
    number = float(label)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def canonical_order(labels: Iterable[str]) -> tuple[str, ...]:
    """The distinct canonical labels in order: by value if all are numbers, else by text."""
    distinct = set(labels)
    if all(map(_NUMBER.fullmatch, distinct)):
        return tuple(sorted(distinct, key=lambda name: (float(name), name)))
    return tuple(sorted(distinct))
