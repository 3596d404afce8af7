"""Metrics of an order: what all candidates of a list are worth in the order of their scores, as search is measured.

A list is the documents found for a query, and the gain of a candidate its grade, a score column. Their rows come from
the order of candidates and not from one of them, and still add up: a row is the value of its list.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

import numpy as np

from rerank.base.errors import DataError
from rerank.base.ranges import Range
from rerank.data.corpus import frozen, offsets
from rerank.kernels.compile import kernel
from rerank.learn.error_surface import is_ahead
from rerank.metrics.gain import Gain
from rerank.metrics.metric import owners
from rerank.readers.lists import Lists

NDCG, AVERAGE_PRECISION, RECIPROCAL_RANK, RECALL, PRECISION, EXPECTED_RECIPROCAL_RANK = range(6)
HIGHEST_GRADE = 60.0  # whose 2^grade − 1 sums up to exact numbers
LARGEST_CUT = 1_000_000_000


@kernel
def order_value(kind: int, k: int, useful: np.ndarray, order: np.ndarray, first: int, last: int, ideal: float) -> float:
    """The measure ``kind`` of a list's first k candidates, order[first:last]; useful, ideal: see ``OrderMetric``."""
    value, found, left = 0.0, 0.0, 1.0
    for r in range(min(k, last - first)):
        u = useful[order[first + r]]
        if u == 0.0:
            continue
        found += u
        if kind == NDCG:
            value += u / np.log2(r + 2.0)
        elif kind == AVERAGE_PRECISION:
            value += found / (r + 1.0)
        elif kind == RECIPROCAL_RANK:
            return 1.0 / (r + 1.0)
        elif kind == EXPECTED_RECIPROCAL_RANK:
            value += left * u / (r + 1.0)
            left *= 1.0 - u
        else:
            value += 1.0
    return value / (k if kind == PRECISION else ideal if kind != EXPECTED_RECIPROCAL_RANK else 1.0)


@kernel
def order_values(
    kind: int, k: int, none: float, lists: np.ndarray, order: np.ndarray, useful: np.ndarray, ideal: np.ndarray,
    values: np.ndarray,
) -> None:  # fmt: skip
    """``order_value`` of every list to ``values``; ``none`` where nothing in it is relevant."""
    for i in range(values.shape[0]):
        values[i] = none
        if ideal[i] > 0.0:
            values[i] = order_value(kind, k, useful, order, lists[i], lists[i + 1], ideal[i])


@kernel
def order_crossings(
    lists: np.ndarray, intercept: np.ndarray, slope: np.ndarray, useful: np.ndarray, starts: np.ndarray, at: np.ndarray
) -> int:
    """The γ at which two candidates of a list that are not equally useful score the same, list after list to
    ``at`` (float64 [E]), and where those of a list begin to ``starts`` (int64 [L + 1]); with an empty ``at`` they are
    only counted. Returns E.

    A candidate scores intercept + γ·slope. Where equally useful ones cross, nothing is lost or gained.
    """
    E, fill = 0, at.shape[0] > 0
    for i in range(lists.shape[0] - 1):
        starts[i] = E
        for y in range(lists[i], lists[i + 1]):
            for z in range(y + 1, lists[i + 1]):
                if slope[y] != slope[z] and useful[y] != useful[z]:
                    if fill:
                        at[E] = (intercept[z] - intercept[y]) / (slope[y] - slope[z])
                    E += 1
    starts[lists.shape[0] - 1] = E
    return E


@kernel
def walk_orders(
    kind: int, k: int, none: float, lists: np.ndarray, intercept: np.ndarray, slope: np.ndarray, ties: np.ndarray,
    useful: np.ndarray, ideal: np.ndarray, starts: np.ndarray, at: np.ndarray, order: np.ndarray, change: np.ndarray,
) -> float:  # fmt: skip
    """The values of all lists along a line: their sum for γ → −∞ is returned, and ``change`` (float64 [E]) gets how
    much every crossing adds to it.

    ``at`` (float64 [E]): the crossings of list i, rising, are at starts[i]..starts[i + 1]; ``order`` (int64 [N]): the
    candidates in any order within lists. Between crossings a list is sorted anew: by insertion, as little changes.
    """
    total = 0.0
    for i in range(lists.shape[0] - 1):
        before = none
        for e in range(starts[i] - 1, starts[i + 1]):
            here, there = e >= starts[i], e + 1 < starts[i + 1]
            if here:
                change[e] = 0.0
            if ideal[i] <= 0.0 or (here and there and not at[e] < at[e + 1]):
                continue
            gamma = 0.0
            if here and there:
                gamma = at[e] + (at[e + 1] - at[e]) / 2
            elif here:
                gamma = at[e] + max(1.0, abs(at[e]))
            elif there:
                gamma = at[e + 1] - max(1.0, abs(at[e + 1]))
            highest = lists[i + 1] if here else lists[i]  # the first place with another candidate than before
            for r in range(lists[i] + 1, lists[i + 1]):
                y, place = order[r], r
                while place > lists[i] and is_ahead(y, order[place - 1], gamma, intercept, slope, ties):
                    order[place] = order[place - 1]
                    place -= 1
                if place < r:
                    order[place] = y
                    highest = min(highest, place)
            value = before
            if highest - lists[i] < k:
                value = order_value(kind, k, useful, order, lists[i], lists[i + 1], ideal[i])
            if here:
                change[e] = value - before
            before = value
            if not here:
                total += value
        if ideal[i] <= 0.0:
            total += none
    return total


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

    def list_stats(self, nbest: Lists, references: object) -> tuple[np.ndarray, np.ndarray]:  # noqa: ARG002
        reference, stats = self._stats(nbest, np.array([0, len(nbest)]), [nbest.unlisted])
        return reference[0], stats

    def block_stats(self, block: Lists) -> tuple[np.ndarray, np.ndarray]:
        return self._stats(block, block.first, block.side("unlisted"))

    def _stats(
        self, nbest: Lists, lists: np.ndarray, unlisted: Sequence[Sequence[float]]
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
