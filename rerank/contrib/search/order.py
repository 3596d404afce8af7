"""Metrics of an order: what all candidates of a list are worth in the order of their scores, as search is measured.

A list is the documents found for a query, and the gain of a candidate its grade, a score column. Their rows come from
the order of candidates and not from one of them, and still add up: a row is the value of its list.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from typing import Annotated, ClassVar, Literal

import numpy as np

from rerank.base.errors import DataError
from rerank.base.ranges import Positive, Range
from rerank.data.corpus import freeze
from rerank.kernels.compile import kernel
from rerank.learn.mert import precedes
from rerank.metrics.gain import Gain
from rerank.metrics.metric import owners
from rerank.readers.lists import Lists

NDCG, AVERAGE_PRECISION, RECIPROCAL_RANK, RECALL, PRECISION = range(5)
HIGHEST_GRADE = 60.0  # whose 2^grade − 1 sums up to exact numbers
MAX_DEPTH = 1_000_000_000


@kernel
def document_value(kind: int, k: int, useful: float, rank: int, relevant: float) -> float:
    """Return what a relevant document with ``rank`` others before it adds to the sum of its list; useful: see
    ``OrderMetric``; relevant: how many of these are relevant."""
    if rank >= k or (kind == RECIPROCAL_RANK and relevant > 0.0):
        return 0.0
    if kind == NDCG:
        return useful / float(np.log2(rank + 2.0))
    if kind == AVERAGE_PRECISION:
        return (relevant + 1.0) / (rank + 1.0)
    return 1.0 / (rank + 1.0) if kind == RECIPROCAL_RANK else 1.0


@kernel
def order_values(
    kind: int, k: int, lists: np.ndarray, order: np.ndarray, useful: np.ndarray, divisor: np.ndarray,
    values: np.ndarray,
) -> None:  # fmt: skip
    """The measure ``kind`` of every list's first k candidates in ``order`` (int64 [N]) to ``values`` (float64 [L]).

    divisor: of the sums over documents, 0 for lists where nothing is relevant, whose value is 0.
    """
    for i in range(values.shape[0]):
        value, relevant = 0.0, 0.0
        for r in range(min(k, lists[i + 1] - lists[i])):
            u = useful[order[lists[i] + r]]
            if u > 0.0:
                value += document_value(kind, k, u, r, relevant)
                relevant += 1.0
        values[i] = value / divisor[i] if divisor[i] > 0.0 else 0.0


@kernel
def keep_nearest(over: float, rate: float, z: int, count: int, near: np.ndarray, who: np.ndarray) -> int:
    """Insert the crossing over/rate with document z into the first ``count`` of ``near`` (float64 [m], rising; who:
    int64 [m]), of which the m smallest stay; returns how many there are then."""
    if count == near.shape[0]:
        if not over < near[count - 1] * rate:
            return count
        count -= 1
    gamma, index = over / rate, count
    while index > 0 and near[index - 1] > gamma:
        near[index], who[index] = near[index - 1], who[index - 1]
        index -= 1
    near[index], who[index] = gamma, z
    return count + 1


@kernel
def follow_documents(
    kind: int, k: int, lists: np.ndarray, order: np.ndarray, intercept: np.ndarray, slope: np.ndarray,
    ties: np.ndarray, useful: np.ndarray, divisor: np.ndarray, near: np.ndarray, who: np.ndarray, at: np.ndarray,
    change: np.ndarray,
) -> int:  # fmt: skip
    """The values of all lists along a line, on which a document scores intercept + γ·slope.

    Each relevant document is followed from γ = −∞ to ∞: its place changes where it overtakes another one, or is
    overtaken, and it counts while fewer than k are ahead. So of the documents that it overtakes the k last matter, and
    of those that overtake it the k first: these crossings are collected in near and who, float64 and int64 [2, m] with
    m = k or the length of the longest list. order (int32 [N]): the documents, list after list, by rising slope.

    Returns E, the number of places where a value changes: ``at`` (float64 [E]) gets their γ in any order and ``change``
    by how much; the first has γ = −∞ and the sum of the values there.
    """
    E, at[0], change[0] = 1, -np.inf, 0.0
    for i in range(divisor.shape[0]):
        if not divisor[i] > 0.0:
            continue
        for r in range(lists[i], lists[i + 1]):
            y = order[r]
            if not useful[y] > 0.0:
                continue
            falls, rises, rank, relevant = 0, 0, 0, 0.0
            for q in range(r - 1, lists[i] - 1, -1):
                z = order[q]
                if slope[z] < slope[y]:
                    falls = keep_nearest(intercept[y] - intercept[z], slope[y] - slope[z], z, falls, near[1], who[1])
                elif precedes(z, y, 0.0, intercept, slope, ties):
                    rank += 1
                    relevant += useful[z] > 0.0
            since = -near[1, k - 1] if falls == k else -np.inf  # before, all falls are ahead
            for q in range(r + 1, lists[i + 1]):
                z = order[q]
                over, rate = intercept[y] - intercept[z], slope[z] - slope[y]
                if rate > 0.0 and over > since * rate:
                    rises = keep_nearest(over, rate, z, rises, near[0], who[0])
                elif rate > 0.0 or precedes(z, y, 0.0, intercept, slope, ties):
                    rank += 1
                    if rank == k:
                        break
                    relevant += useful[z] > 0.0
            if rank >= k:
                continue
            for e in range(falls):
                relevant += useful[who[1, e]] > 0.0
            rank += falls
            before, e = document_value(kind, k, useful[y], rank, relevant), 0
            change[0] += before / divisor[i]
            while falls > 0 or e < rises:
                rise = falls == 0 or (e < rises and near[0, e] < -near[1, falls - 1])
                if rise:
                    gamma, z, rank, e = near[0, e], who[0, e], rank + 1, e + 1
                else:
                    gamma, z, rank, falls = -near[1, falls - 1], who[1, falls - 1], rank - 1, falls - 1
                if useful[z] > 0.0:
                    relevant += 1.0 if rise else -1.0
                value = document_value(kind, k, useful[y], rank, relevant)
                if value != before:
                    at[E], change[E] = gamma, (value - before) / divisor[i]
                    E += 1
                before = value
    return E


@dataclass(frozen=True)
class OrderMetric(Gain):
    """The mean over lists of a measure of the candidates in the order of their scores.

    A candidate's row is its grade, and what the formula takes of that; a row of an order its value, and the grade of
    the first candidate. The row of a reference is 1, and what the best order has before it is divided by that
    (``ideal``, with the relevant documents that are not in the list). A list without a relevant document counts 0, as
    trec_eval has it for a query with judgements.

    Parameters
    ----------
    column: the name of the score column that holds the grades. A grade below 0 is none.
    k: how many of the first candidates are looked at; 0 for all.
    """

    ordered = True
    columns = ("value", "first")
    reference_columns = ("lists", "ideal")
    kind: ClassVar[int]

    k: Annotated[int, Range(0, MAX_DEPTH)] = 0

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
        return f"{self.primary}|{self.settings}column:{self.column}|norel:zero|ties:base,place|version:1"

    @property
    def words(self) -> str:
        return f"{self.primary} of {self.column}"

    @abstractmethod
    def useful(self, grades: np.ndarray) -> np.ndarray:
        """The values of grades in the formula: float64 [N] → [N], 0 for what is not relevant, rising with the grade."""

    def ideal(self, useful: np.ndarray) -> float:
        """The divisor, of all documents of a query (float64 [n]): by default the number of the relevant."""
        return float(np.count_nonzero(useful))

    def list_stats(self, nbest: Lists, references: object) -> tuple[np.ndarray, np.ndarray]:  # noqa: ARG002
        reference, stats = self._stats(nbest, np.array([0, len(nbest)]), [nbest.missing_grades])
        return reference[0], stats

    def block_stats(self, block: Lists) -> tuple[np.ndarray, np.ndarray]:
        return self._stats(block, block.first, block.side("missing_grades"))

    def _stats(
        self, nbest: Lists, lists: np.ndarray, extra: Sequence[Sequence[float]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rows of lists and of their candidates, of which ``nbest`` has all: float64 [L, 2] and [N, 2]."""
        grades = super().list_stats(nbest, ())[1][:, 0]
        stats, reference = self.statistics(lists, grades, extra)
        if not np.isfinite(reference).all() or not np.isfinite(stats).all():
            highest = max(*grades, *chain.from_iterable(extra))
            message = f"found the grade {highest:g}, which is too high for {self.signature}; divide the grades"
            raise DataError(message, path=nbest.path, line=nbest.line, list_id=nbest.id)
        return reference, stats

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """The grade of a candidate, and the value of a row of an order."""
        return np.asarray(stats[..., 0])

    def report(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, float]:
        """The measure, and the mean gain of the first candidates."""
        first = float(stats[1] / max(reference[0], 1.0))
        return {self.primary: float(self.scores(stats, reference)), "gain": first}

    def rows_in_order(
        self, lists: np.ndarray, scores: np.ndarray, ties: np.ndarray, stats: np.ndarray, reference: np.ndarray
    ) -> np.ndarray:
        order = freeze(np.lexsort((-np.asarray(ties), -np.asarray(scores), owners(lists))))
        rows, values = np.zeros((lists.size - 1, 2)), np.zeros(lists.size - 1)
        order_values(self.kind, self.depth, freeze(lists), order, *self._arrays(stats, reference), values)
        some = np.diff(lists) > 0
        rows[:, 0], rows[some, 1] = values, stats[order[lists[:-1][some]], 0]
        return rows

    def along(
        self, lists: np.ndarray, intercept: np.ndarray, slope: np.ndarray, ties: np.ndarray, stats: np.ndarray,
        reference: np.ndarray, order: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        useful, divisor = self._arrays(stats, reference)
        intercept, slope, ties = (freeze(np.ascontiguousarray(each)) for each in (intercept, slope, ties))
        sizes, relevant = np.diff(lists), np.add.reduceat(np.append(useful > 0, False), lists[:-1], dtype=np.int64)
        limit = int(min(self.depth, sizes.max(initial=1)))
        at, change = np.empty((2, 1 + int((relevant * np.minimum(sizes, 2 * limit))[sizes > 0].sum())))
        near, who = np.empty((2, limit)), np.empty((2, limit), np.int64)
        about = freeze(lists), order, intercept, slope, ties, useful, divisor
        E = follow_documents(self.kind, self.depth, *about, near, who, at, change)
        sequence = np.argsort(at[:E], kind="stable")
        at, values = at[sequence], np.cumsum(change[sequence])
        last = np.append(at[1:] > at[:-1], True)  # of the changes at one place
        return at[last][1:], values[last]

    def statistics(
        self, lists: np.ndarray, grades: np.ndarray, extra: Iterable[Sequence[float]] = repeat(())
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rows of candidates with ``grades`` (float64 [N]) and of their ``lists`` (int64 [L + 1]): float64 [N, 2]
        and [L, 2]; extra: the grades of relevant ones that a list does not have."""
        useful = self.useful(np.asarray(grades, np.float64))
        more = (self.useful(np.array(others, np.float64)) for others in extra)
        bounds = zip(pairwise(lists.tolist()), more, strict=False)
        ideal = np.array([self.ideal(np.concatenate([useful[a:b], others])) for (a, b), others in bounds])
        return np.column_stack([grades, useful]), np.column_stack([np.ones(ideal.size), ideal])

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
    def depth(self) -> int:
        """The number of candidates that are looked at."""
        return self.k or MAX_DEPTH

    def _arrays(self, stats: np.ndarray, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The arguments useful (float64 [N]) and divisor (float64 [L]) of kernels."""
        ideal = reference[:, 1]
        divisor = {PRECISION: float(self.depth), RECIPROCAL_RANK: 1.0}.get(self.kind, ideal)
        return freeze(np.ascontiguousarray(stats[:, 1])), freeze(np.where(ideal > 0, divisor, 0.0))


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
        best = -np.sort(-useful)[: self.depth]
        return math.fsum(best / np.log2(np.arange(best.size) + 2.0))


@dataclass(frozen=True)
class LevelMetric(OrderMetric):
    """One that knows only relevant documents and others.

    Parameters
    ----------
    level: the least grade of a relevant document.
    """

    level: Positive = 1.0

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

    k: Annotated[int, Range(1, MAX_DEPTH)] = 10
