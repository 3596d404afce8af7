"""A gain given by the user: a score column of the lists themselves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from rerank.base.errors import DataError
from rerank.metrics.text import TextMetric
from rerank.readers.block import ListBlock
from rerank.readers.texts.text_list import TextList

LARGEST_GAIN = 1e30  # in absolute value; sums over lists and squares of such gains are finite


@dataclass(frozen=True)
class Gain(TextMetric):
    """The mean of a column over the chosen candidates; a list without candidates adds 0.

    >>> float(Gain().scores(np.array([1.5]), np.array([2.0])))
    0.75

    Parameters
    ----------
    column: the name of the score column; higher is better.
    best: the value that cannot be exceeded: a candidate that reaches it counts as entirely right.
    """

    name: ClassVar[str] = "gain"

    primary = "gain"
    columns: ClassVar[tuple[str, ...]] = ("value",)
    reference_columns: ClassVar[tuple[str, ...]] = ("lists",)
    percent = 1.0  # it keeps its own scale, whatever that is
    gain_percent = 1.0
    digits = 4

    column: str = "gain"
    best: float = 1.0

    def stats(self, texts: Sequence[bytes], references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:  # noqa: ARG002
        raise DataError(f"the gain is the column {self.column!r} of lists; it cannot be computed from texts")

    def list_stats(self, nbest: TextList, references: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:  # noqa: ARG002
        lists = np.ones(1)
        if not len(nbest):
            return lists, np.zeros((0, 1))
        if self.column not in nbest.names:
            raise DataError(
                f"found the columns {', '.join(nbest.names) or '(none)'}, expected {self.column!r}; "
                "add it to the list or name another one (in a recipe: metric.column)",
                path=nbest.path,
                line=nbest.line,
                list_id=nbest.id,
            )
        values = np.asarray(nbest.scores[:, nbest.names.index(self.column)], np.float64)
        wrong = np.flatnonzero(~(np.abs(values) <= LARGEST_GAIN))
        if wrong.size:
            y = int(wrong[0])
            raise DataError(
                f"candidate {y + 1}: found {values[y]} as {self.column!r}, expected a finite number "
                f"from {-LARGEST_GAIN:g} to {LARGEST_GAIN:g}: divide the gains by a constant",
                path=nbest.path,
                line=nbest.lines[y],
                list_id=nbest.id,
            )
        return lists, values.reshape(-1, 1).copy()

    def block_stats(self, block: ListBlock) -> tuple[np.ndarray, np.ndarray]:
        """``list_stats`` of L lists at once: float64 [L, R] and [N, K]."""
        reference, stats = self.list_stats(cast(TextList, block.rows), ())
        return np.broadcast_to(reference, (len(block), reference.size)), stats

    def pairwise(self, texts: Sequence[bytes]) -> np.ndarray:
        """float64 [N, N]: 1 for equal texts, else 0: lists say what a candidate gains, but not in the place of another.

        The expected gain of a candidate is then the probability of its text: equal answers vote together.
        """
        _, same = np.unique(np.array([text.strip() for text in texts], object), return_inverse=True)
        return np.asarray(same[:, None] == same, np.float64)

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        return np.asarray(stats[..., 0] / np.maximum(reference[..., 0], 1.0))

    def correct(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        return np.asarray(self.gain(stats, reference) >= self.best - 1e-12)

    @property
    def signature(self) -> str:
        return f"gain|column:{self.column}|version:1"
