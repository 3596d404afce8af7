"""Measures given by the user: score columns of the lists themselves."""

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rerank.base.errors import DataError
from rerank.base.ranges import Range
from rerank.metrics.metric import f_measure, f_report
from rerank.metrics.text import TextMetric, equality
from rerank.readers.lists import Lists

LOWER = re.compile(r"(^|_)(rank|cost|loss|error|errors|[wct]er)$", re.IGNORECASE)  # columns of which lower is better
REWARD = re.compile("reward", re.IGNORECASE)  # what a gain may be called, among others
LARGEST_GAIN = 1e30  # in absolute value; sums over lists and squares of such gains are finite


class ColumnMetric(TextMetric):
    """A metric of score columns; a list without candidates adds 0 to their sums."""

    reference_columns: ClassVar[tuple[str, ...]] = ("lists",)

    @abstractmethod
    def values(self, nbest: Lists) -> np.ndarray:
        """float64 [N, K]: the statistics of N > 0 candidates."""

    def stats(self, texts: Sequence[bytes], references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:  # noqa: ARG002
        names = ", ".join(f"the column {name!r}" for name in self.measured)
        raise DataError(f"{self.name} needs {names} of lists; it cannot be computed from texts")

    def list_stats(self, nbest: Lists, references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:  # noqa: ARG002
        return np.ones(1), self.values(nbest) if len(nbest) else np.zeros((0, len(self.columns)))

    def block_stats(self, block: Lists) -> tuple[np.ndarray, np.ndarray]:
        """``list_stats`` of L lists at once: float64 [L, R] and [N, K]."""
        reference, stats = self.list_stats(block, ())
        return np.broadcast_to(reference, (block.list_count, reference.size)), stats

    def pairwise(self, texts: Sequence[bytes]) -> np.ndarray:
        """float64 [N, N]: 1 for equal texts, else 0: lists say what a candidate gains, but not in the place of another.

        The expected gain of a candidate is then the probability of its text: equal answers vote together.
        """
        return equality([text.strip() for text in texts])


def column_of(nbest: Lists, name: str, option: str) -> np.ndarray:
    """float64 [N]: the column that an ``option`` of the metric names, whose values are finite and not too large."""
    if name not in nbest.names:
        likely = () if nbest.roles is None else nbest.roles.gains
        fault = f"found the columns {', '.join(nbest.names) or '(none)'}, expected {name!r}"
        fault = f"{' and '.join(map(repr, likely))} could be the gain" if likely else fault
        message = f"{fault}; add it to the list or name another one (in a recipe: metric.{option})"
        if nbest.roles is not None and name in (*nbest.roles.unused_keys, nbest.roles.gain_key):
            role = "no role" if name in nbest.roles.unused_keys else "the role gain"
            message = f"{name!r} has {role}; say that it is a column: --roles {name}=column (data.roles)"
        elif option == "column" and nbest.roles is not None:
            others = [other for k, other in enumerate(nbest.names) if k != nbest.column]
            key = next(iter([*likely, *nbest.roles.doubtful, *filter(REWARD.search, others), "KEY"]))
            message += f", or say which key it is: --roles {key}=gain (data.roles)"
        message += "; what is right in them is measured by --metric match" if nbest.references else ""
        raise DataError(message, path=nbest.path, line=nbest.line, list_id=nbest.id)
    values = np.asarray(nbest.scores[:, nbest.names.index(name)], np.float64)
    bounds = f"a finite number from {-LARGEST_GAIN:g} to {LARGEST_GAIN:g}: divide the gains by a constant"
    check_each(nbest, np.abs(values) <= LARGEST_GAIN, lambda y: f"found {values[y]} as {name!r}, expected {bounds}")
    return values


def check_each(nbest: Lists, good: np.ndarray, message: Callable[[int], str]) -> None:
    """Refuse a list with a candidate that is not ``good`` (bool [N])."""
    if not good.all():
        y = int(np.argmin(good))
        fault = f"candidate {y + 1}: {message(y)}"
        raise DataError(fault, path=nbest.path, line=nbest.lines[y], list_id=nbest.id)


@dataclass(frozen=True)
class Gain(ColumnMetric):
    """The mean of a column over the chosen candidates; a list without candidates adds 0 or, where lower is better, does
    not count.

    >>> float(Gain().scores(np.array([1.5]), np.array([2.0])))
    0.75

    Parameters
    ----------
    column: the name of the score column.
    best: the value that cannot be bettered, by default 1, or 0 where lower is better: a candidate that reaches it
        counts as entirely right.
    lower: whether lower is better, as of ranks, costs and errors, of which it has to be said.
    """

    name: ClassVar[str] = "gain"

    primary = "gain"
    columns: ClassVar[tuple[str, ...]] = ("value",)
    percent = 1.0  # it keeps its own scale, whatever that is
    gain_percent = 1.0
    digits = 4

    column: str = "gain"
    best: float | None = None
    lower: bool | None = None

    @property
    def measured(self) -> Sequence[str]:  # type: ignore[override]
        return (self.column,)

    @property
    def lower_is_better(self) -> bool:  # type: ignore[override]
        return bool(self.lower)

    def values(self, nbest: Lists) -> np.ndarray:
        key = self.column if nbest.roles is None else nbest.roles.gain_key or self.column
        if self.lower is None and LOWER.search(key):
            message = f"{key!r} is the gain; of ranks, costs and errors lower is better: say lower: true, or false"
            how = "--metric '{name: gain, lower: true}'; in a recipe: metric.lower"
            raise DataError(f"{message} ({how})", path=nbest.path)
        return column_of(nbest, self.column, "column").reshape(-1, 1).copy()

    def list_stats(self, nbest: Lists, references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        reference, stats = super().list_stats(nbest, references)
        return (reference if len(nbest) or not self.lower else np.zeros(1)), stats

    def block_stats(self, block: Lists) -> tuple[np.ndarray, np.ndarray]:
        reference, stats = super().block_stats(block)
        counts = np.diff(block.first)[:, None] > 0
        return (np.where(counts, reference, 0.0) if self.lower else reference), stats

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        return np.asarray(stats[..., 0] / np.maximum(reference[..., 0], 1.0))

    def perfect(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        best = float(not self.lower) if self.best is None else self.best
        return np.asarray(self.gain(stats, reference) >= (-best if self.lower else best) - 1e-12)

    @property
    def heading(self) -> str:
        return f"{self.column} (lower is better)" if self.lower else self.primary

    @property
    def words(self) -> str:
        return f"mean {self.column}{', lower is better' if self.lower else ''}"

    @property
    def signature(self) -> str:
        return f"gain|column:{self.column}|{'lower is better|' if self.lower else ''}version:1"


@dataclass(frozen=True)
class Counts(ColumnMetric):
    """F of counts that every candidate has: (1 + beta²) · correct / (found + beta² · right), all summed over the
    chosen candidates; 1 if nothing is found and nothing is right.

    >>> Counts(beta=0.5).report(np.array([2.0, 4.0, 8.0]), np.array([3.0]))
    {'f0.5': 0.4166666666666667, 'precision': 0.5, 'recall': 0.25}

    Reference: van Rijsbergen 1979.

    Parameters
    ----------
    correct, found, right: the columns with the number of things that are correct in a candidate, that it has, and that
        it should have; columns joined by a plus are added, as ``tp+fp`` (found) and ``tp+fn`` (right).
    beta: how many times as much recall counts as precision: 0.5 for corrections of grammar (Ng et al. 2014).
    """

    name: ClassVar[str] = "counts"

    columns: ClassVar[tuple[str, ...]] = ("correct", "found", "right")

    correct: str = "correct"
    found: str = "found"
    right: str = "right"
    beta: Annotated[float, Range(above=0, high=1000)] = 1.0

    @property
    def primary(self) -> str:  # type: ignore[override]
        """F with its beta, as in ``f0.5``."""
        return f"f{self.beta:g}"

    @property
    def measured(self) -> Sequence[str]:  # type: ignore[override]
        return [name for option in self.columns for name in getattr(self, option).split("+")]

    def values(self, nbest: Lists) -> np.ndarray:
        counts = np.stack(
            [sum(column_of(nbest, name, of) for name in getattr(self, of).split("+")) for of in self.columns]
        )
        correct, found, right = counts
        good = (correct >= 0) & (correct <= np.minimum(found, right))
        rule = "expected 0 ≤ correct ≤ found and right, as in columns tp, tp+fp and tp+fn"
        check_each(nbest, good, lambda y: f"{correct[y]:g} correct, {found[y]:g} found, {right[y]:g} right; {rule}")
        return counts.T

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:  # noqa: ARG002
        return f_measure(stats[..., 0], stats[..., 1], stats[..., 2], self.beta)

    def report(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, float]:  # noqa: ARG002
        return f_report(self.primary, float(stats[0]), float(stats[1]), float(stats[2]), self.beta)

    @property
    def signature(self) -> str:
        return f"{super().signature}|version:1"
