"""Metrics of an order: what all candidates of a list are worth in the order of their scores, as search is measured.

A list is the documents found for a query, and the gain of a candidate its grade, a score column. Their rows come from
the order of candidates and not from one of them, and still add up: a row is the value of its list.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, cast

import numpy as np

from rerank.base.errors import DataError
from rerank.base.ranges import Range
from rerank.contrib.search.order_kernel import (
    AVERAGE_PRECISION,
    EXPECTED_RECIPROCAL_RANK,
    NDCG,
    PRECISION,
    RECALL,
    RECIPROCAL_RANK,
    order_crossings,
    order_values,
    walk_orders,
)
from rerank.data.corpus import frozen, offsets
from rerank.metrics.base import owners
from rerank.metrics.gain import Gain
from rerank.readers.block import ListBlock
from rerank.readers.texts.text_list import TextList

HIGHEST_GRADE = 60.0  # whose 2^grade − 1 sums up to exact numbers
LARGEST_CUT = 1_000_000_000


@dataclass(frozen=True)
class OrderMetric(Gain):
    """The mean over lists of a measure of the candidates in the order of their scores.

    A candidate's row is its grade, and what the formula takes of that; a row of an order its value, and the grade of
    the first candidate. The row of a reference is whether its list counts, what the best order has before it is divided
    by that (``ideal``, with the relevant documents that are not in the list), and 1.

    Parameters
    ----------
    column: the name of the score column that holds the grades. A grade below 0 is none.
    k: how many of the first candidates are looked at; 0 for all.
    empty: what a list without a relevant document counts: 0 (``zero``, as trec_eval does for a query with judgements),
        1 (``one``, as LightGBM and XGBoost do) or nothing (``skip``).
    """

    ordered = True
    columns = ("value", "first")
    reference_columns = ("counted", "ideal", "lists")
    kind: ClassVar[int]

    k: Annotated[int, Range(0, LARGEST_CUT)] = 0
    empty: Literal["zero", "one", "skip"] = "zero"

    @property
    def primary(self) -> str:  # type: ignore[override]
        """The name with its cut-off, as in ``ndcg@10``."""
        return f"{self.name}@{self.k}" if self.k else self.name

    @property
    def settings(self) -> str:
        """Further entries of the signature."""
        return ""

    @property
    def signature(self) -> str:
        """E.g. ``ndcg@10|gain:exp2|column:gain|norel:zero|ties:base,place|version:1``."""
        return f"{self.primary}|{self.settings}column:{self.column}|norel:{self.empty}|ties:base,place|version:1"

    @abstractmethod
    def useful(self, grades: np.ndarray) -> np.ndarray:
        """The values of grades in the formula: float64 [N] → [N], 0 for what is not relevant, rising with the grade."""

    def ideal(self, useful: np.ndarray) -> float:
        """The divisor, of all documents of a query (float64 [n]): by default the number of the relevant."""
        return float(np.count_nonzero(useful))

    def list_stats(self, nbest: TextList, references: object) -> tuple[np.ndarray, np.ndarray]:  # noqa: ARG002
        reference, stats = self._stats(nbest, np.array([0, len(nbest)]), [nbest.unlisted])
        return reference[0], stats

    def block_stats(self, block: ListBlock) -> tuple[np.ndarray, np.ndarray]:
        return self._stats(cast(TextList, block.rows), block.lists, block.sides.get("unlisted", [()] * len(block)))

    def _stats(
        self, nbest: TextList, lists: np.ndarray, unlisted: Sequence[Sequence[float]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rows of lists and of their candidates, of which ``nbest`` has all: float64 [L, 3] and [N, 2]."""
        grades = super().list_stats(nbest, ())[1][:, :1]
        missing = np.array([grade for grades_of_one in unlisted for grade in grades_of_one], np.float64)
        useful, others = self.useful(grades[:, 0]), self.useful(missing)
        if not np.isfinite([*useful, *others]).all():
            message = f"found the grade {max(*grades[:, 0], *missing):g}, which is too high for {self.signature}"
            raise DataError(f"{message}; divide the grades", path=nbest.path, line=nbest.line, list_id=nbest.id)
        ends = offsets(list(map(len, unlisted)))
        bounds = zip(pairwise(lists.tolist()), pairwise(ends.tolist()), strict=True)
        ideal = np.array([self.ideal(np.concatenate([useful[a:b], others[c:d]])) for (a, b), (c, d) in bounds])
        return self._references(ideal), np.column_stack([grades[:, 0], useful])

    def _references(self, ideal: np.ndarray) -> np.ndarray:
        """float64 [L, 3]: the rows of references."""
        return np.column_stack([(ideal > 0) | (self.empty != "skip"), ideal, np.ones(ideal.size)])

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """The grade of a candidate, and the value of a row of an order."""
        return np.asarray(stats[..., 0])

    def report(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, float]:
        """The measure, and the mean gain of the first candidates."""
        first = float(stats[1] / max(reference[2], 1.0))
        return {self.primary: float(self.scores(stats, reference)), "gain": first}

    def rows_in_order(
        self, lists: np.ndarray, scores: np.ndarray, ties: np.ndarray, stats: np.ndarray, reference: np.ndarray
    ) -> np.ndarray:
        order = frozen(np.lexsort((-np.asarray(ties), -np.asarray(scores), owners(lists))))
        rows = np.zeros((lists.size - 1, 2))
        values, (useful, ideal) = np.zeros(lists.size - 1), self._arrays(stats, reference)
        order_values(self.kind, self.cut, self.none, frozen(lists), order, useful, ideal, values)
        some = np.diff(lists) > 0
        rows[:, 0], rows[some, 1] = values, stats[order[lists[:-1][some]], 0]
        return rows

    def along(
        self, lists: np.ndarray, intercept: np.ndarray, slope: np.ndarray, ties: np.ndarray, stats: np.ndarray,
        reference: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        useful, ideal = self._arrays(stats, reference)
        lists, intercept, slope, ties = (frozen(np.ascontiguousarray(x)) for x in (lists, intercept, slope, ties))
        starts = np.empty(lists.size, np.int64)
        at = np.empty(order_crossings(lists, intercept, slope, useful, starts, np.empty(0)))
        if at.size:
            order_crossings(lists, intercept, slope, useful, starts, at)
        for first, last in pairwise(starts.tolist()):
            at[first:last].sort()
        change, order = np.empty(at.size), np.arange(int(lists[-1]))
        start = walk_orders(
            self.kind, self.cut, self.none, lists, intercept, slope, ties, useful, ideal, starts, at, order, change
        )  # fmt: skip
        by_place = np.flatnonzero(change)
        by_place = by_place[np.argsort(at[by_place], kind="stable")]
        values = np.concatenate([[start], start + np.cumsum(change[by_place])])
        wide = np.append(True, np.diff(at[by_place]) > 0) if by_place.size else np.zeros(0, np.bool_)
        return at[by_place][wide], np.append(values[:-1][wide], values[-1])

    def statistics(self, lists: np.ndarray, grades: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of candidates with ``grades`` (float64 [N]) and of their ``lists`` (int64 [L + 1]), in which all
        relevant ones are: float64 [N, 2] and [L, 3]."""
        useful = self.useful(np.asarray(grades, np.float64))
        ideal = np.array([self.ideal(useful[a:b]) for a, b in pairwise(lists.tolist())])
        return np.column_stack([grades, useful]), self._references(ideal)

    def of_lists(
        self, lists: np.ndarray, scores: np.ndarray, grades: np.ndarray, ties: np.ndarray | None = None
    ) -> float:
        """The measure of lists of documents with ``grades`` in the order of ``scores``, and ``ties`` where equal
        (float64 [N] each); list i has the documents ``lists[i]`` … ``lists[i + 1] − 1`` (int64 [L + 1])."""
        stats, reference = self.statistics(lists, grades)
        rows = self.rows_in_order(lists, scores, np.zeros(len(scores)) if ties is None else ties, stats, reference)
        return float(self.scores(rows.sum(axis=0), reference.sum(axis=0)))

    def of_grades(self, *grades: float) -> float:
        """The value of a list of documents with these grades, in this order."""
        return self.of_lists(np.array([0, len(grades)]), -np.arange(float(len(grades))), np.array(grades, np.float64))

    @property
    def cut(self) -> int:
        """The number of candidates that are looked at."""
        return self.k or LARGEST_CUT

    @property
    def none(self) -> float:
        """The value of a list without a relevant document."""
        return float(self.empty == "one")

    def _arrays(self, stats: np.ndarray, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return frozen(np.ascontiguousarray(stats[:, 1])), frozen(np.ascontiguousarray(reference[:, 1]))


@dataclass(frozen=True)
class Ndcg(OrderMetric):
    """Normalised discounted cumulative gain (Järvelin & Kekäläinen 2002): Σ gain/log2(rank + 1), over that of the best
    order of all documents of the query.

    >>> round(Ndcg(k=3).of_grades(0, 2, 1), 4)
    0.659

    Parameters
    ----------
    form: of the gain of a grade g: ``exp2``, 2^g − 1 (Burges et al. 2005; LightGBM, XGBoost, LETOR), or ``linear``, g
        itself (trec_eval).
    """

    name: ClassVar[str] = "ndcg"
    kind = NDCG

    form: Literal["exp2", "linear"] = "exp2"

    @property
    def settings(self) -> str:
        return f"gain:{self.form}|"

    def useful(self, grades: np.ndarray) -> np.ndarray:
        grades = np.maximum(grades, 0.0)
        if self.form == "linear":
            return grades
        return np.where(grades > HIGHEST_GRADE, np.inf, np.exp2(np.minimum(grades, HIGHEST_GRADE)) - 1)

    def ideal(self, useful: np.ndarray) -> float:
        best = -np.sort(-useful)[: self.cut]
        return math.fsum(best / np.log2(np.arange(best.size) + 2.0))


@dataclass(frozen=True)
class LevelMetric(OrderMetric):
    """One that knows only relevant documents and others.

    Parameters
    ----------
    level: the least grade of a relevant document.
    """

    level: Annotated[float, Range(above=0)] = 1.0

    @property
    def settings(self) -> str:
        return f"level:{self.level:g}|"

    def useful(self, grades: np.ndarray) -> np.ndarray:
        return np.asarray(grades >= self.level, np.float64)


@dataclass(frozen=True)
class AveragePrecision(LevelMetric):
    """Mean average precision: of a list the sum of the precisions at its relevant documents, over the number of all
    relevant ones, with a cut-off too (trec_eval's ``map`` and ``map_cut``).

    >>> round(AveragePrecision().of_grades(0, 1, 1), 4)
    0.5833
    """

    name: ClassVar[str] = "map"
    kind = AVERAGE_PRECISION


@dataclass(frozen=True)
class ReciprocalRank(LevelMetric):
    """Mean reciprocal rank of the first relevant document, 0 if there is none among the first k (trec_eval's
    ``recip_rank``).

    >>> ReciprocalRank().of_grades(0, 1, 1)
    0.5
    """

    name: ClassVar[str] = "mrr"
    kind = RECIPROCAL_RANK


@dataclass(frozen=True)
class Recall(LevelMetric):
    """The share of all relevant documents that is among the first k (trec_eval's ``recall``).

    >>> Recall(k=2).of_grades(0, 1, 1)
    0.5
    """

    name: ClassVar[str] = "recall"
    kind = RECALL


@dataclass(frozen=True)
class Precision(LevelMetric):
    """The number of relevant documents among the first k, over k, also where there are fewer (trec_eval's ``P``).

    >>> Precision(k=4).of_grades(0, 1, 1)
    0.5
    """

    name: ClassVar[str] = "precision"
    kind = PRECISION

    k: Annotated[int, Range(1, LARGEST_CUT)] = 10


@dataclass(frozen=True)
class ExpectedReciprocalRank(OrderMetric):
    """Expected reciprocal rank (Chapelle et al. 2009): of the document at which a reader is satisfied, which the r-th
    does with probability (2^g − 1)/2^highest where none before it did.

    >>> ExpectedReciprocalRank().of_grades(0, 2)
    0.09375

    Parameters
    ----------
    highest: the highest grade there can be; 4 as in the tracks of TREC and in LETOR's web sets.
    """

    name: ClassVar[str] = "err"
    kind = EXPECTED_RECIPROCAL_RANK

    highest: Annotated[float, Range(above=0, high=HIGHEST_GRADE)] = 4.0

    @property
    def settings(self) -> str:
        return f"highest:{self.highest:g}|"

    def useful(self, grades: np.ndarray) -> np.ndarray:
        satisfied = (np.exp2(np.clip(grades, 0.0, HIGHEST_GRADE)) - 1) / 2**self.highest
        return np.asarray(np.where(satisfied < 1, satisfied, np.inf))
