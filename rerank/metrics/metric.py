"""The interface of metrics: rows of sufficient statistics that add up, and a formula on their sums."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar, Literal

import numpy as np

from rerank.base.ranges import Checked
from rerank.base.registry import Registry

TestName = Literal["approximate_randomization", "paired_bootstrap", "paired_t", "mcnemar"]  # of significance


class Metric(Checked, ABC):
    """A corpus measure as a function of summed statistics.

    A candidate gives a row of K numbers, a reference a row of R numbers; the score of any selection is ``scores`` of
    their sums. For all measures higher is better, unless ``lower_is_better``.
    """

    name: ClassVar[str]  # by default the one that it is registered or imported under
    primary: ClassVar[str]  # the key of the measure that tuning and significance use
    columns: ClassVar[tuple[str, ...]]  # names of the K statistics
    reference_columns: ClassVar[tuple[str, ...]]  # names of the R statistics
    lower_is_better: ClassVar[bool] = False
    percent: ClassVar[float] = 100.0  # what the primary measure is multiplied by to be shown: 1 if it is 0-100
    gain_percent: ClassVar[float] = 100.0  # the same for gains
    digits: ClassVar[int] = 2  # how many are shown after the decimal point
    perfect_gain: ClassVar[float] = 1.0  # the gain of a candidate that cannot be better
    measured: ClassVar[Sequence[str]] = ()  # the score columns of lists that it is computed from: no features, then
    ordered: ClassVar[bool] = False  # of the order of all candidates? It has ``rows_in_order`` and ``along``

    @abstractmethod
    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Primary measure of summed statistics: float64 [..., K] and [..., R] → [...]; finite everywhere."""

    @property
    def sign(self) -> float:
        """1, and -1 where lower is better: with it, the highest score is the best."""
        return -1.0 if self.lower_is_better else 1.0

    def score(self, rows: np.ndarray, reference: np.ndarray) -> float:
        """The primary measure of a selection: float64 [L, K] and [L, R]."""
        return float(self.scores(rows.sum(axis=0), reference.sum(axis=0)))

    def report(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, float]:
        """All measures of one selection from its sums: float64 [K] and [R]; keys are those of metrics.json; by default
        the primary one."""
        return {self.primary: float(self.scores(stats, reference))}

    @property
    def signature(self) -> str:
        """Everything that changes the number: modes, cut-offs, version; printed with every score. By default the name
        and all settings."""
        settings = (field.name for field in fields(type(self)))  # type: ignore[arg-type]
        return "|".join([self.name, *(f"{name}:{getattr(self, name)}" for name in settings)])

    @property
    def words(self) -> str:
        """The measure as an account of lists says it: by default the signature."""
        return self.signature

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Sentence-level quality; higher is better: float64 [..., K] and [..., R] → [...]; by default the score."""
        scores = self.scores(stats, reference)
        return -scores if self.lower_is_better else scores

    def text(self, value: float) -> str:
        """The primary measure as it is shown everywhere."""
        return f"{self.percent * value:.{self.digits}f}"

    def signed(self, value: float) -> str:
        """A difference of the primary measure as it is shown everywhere."""
        return f"{self.percent * value:+.{self.digits}f}"

    def perfect(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """The rows that are entirely right (bool [...]): those that McNemar's test counts."""
        return np.asarray(self.gain(stats, reference) >= self.perfect_gain - 1e-12)

    def valid(self, stats: np.ndarray) -> np.ndarray:
        """The rows that may be chosen to raise a corpus score (bool [...]): not those that just drop out of the
        sums."""
        return np.ones(np.shape(stats)[:-1], dtype=np.bool_)

    def rows_in_order(
        self, lists: np.ndarray, scores: np.ndarray, ties: np.ndarray, stats: np.ndarray, reference: np.ndarray
    ) -> np.ndarray:
        """Of a metric that is ``ordered``: the rows of all lists (float64 [L, K]) in the order of ``scores``; among
        equal ones those with higher ``ties`` are first (float64 [N] each), then those with the lower index."""
        raise NotImplementedError

    def along(
        self, lists: np.ndarray, intercept: np.ndarray, slope: np.ndarray, ties: np.ndarray, stats: np.ndarray,
        reference: np.ndarray, order: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Of a metric that is ``ordered``: the sum of all values where candidates score intercept + γ·slope (float64
        [N] each): the γ where it changes (float64 [E], rising), and the sums between these (float64 [E + 1]); order
        (int32 [N]): the candidates, list after list, by slope and index."""
        raise NotImplementedError


metrics: Registry[type[Metric]] = Registry("metric", Metric)


def measures_orders(name: object) -> bool:
    """Whether the metric of this name is one of the order of all candidates."""
    return isinstance(name, str) and name in metrics and metrics.get(name).ordered


def owners(lists: np.ndarray) -> np.ndarray:
    """int64 [N]: the list of every candidate; ``lists``: int64 [L + 1]."""
    return np.repeat(np.arange(lists.size - 1), np.diff(lists))


def chosen_rows(stats: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The rows of a selection: float64 [N, K] and int64 [L] → float64 [L, K]; zeros where ``chosen`` is -1."""
    rows = np.zeros((chosen.shape[0], stats.shape[1]))
    rows[chosen >= 0] = stats[chosen[chosen >= 0]]
    return rows


def f_measure(correct: Any, found: Any, right: Any, beta: float = 1.0) -> np.ndarray:
    """(1 + beta²) · correct / (found + beta² · right), elementwise; 1 where nothing is found and nothing is right."""
    total = found + beta**2 * right
    return np.where(total > 0, (1.0 + beta**2) * correct / np.where(total > 0, total, 1.0), 1.0)


def f_report(key: str, correct: float, found: float, right: float, beta: float = 1.0) -> dict[str, float]:
    """``f_measure`` under ``key``, precision and recall, which are 0 of nothing."""
    shares = {"precision": correct / (found or 1.0), "recall": correct / (right or 1.0)}
    return {key: float(f_measure(correct, found, right, beta)), **shares}
