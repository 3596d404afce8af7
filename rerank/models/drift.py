"""Score columns as they were in the training lists, beside the columns of the lists that a model works on.

Three measures of a column in a list are compared: its mean, its standard deviation, and its correlation with the base
score. The unit is the list, as the candidates of one are alike. A measure is unlike training where the distribution
functions over lists differ, somewhere, by more than ``PART`` plus what chance explains, by the bound of Dvoretzky,
Kiefer and Wolfowitz with Massart's constant, which holds for all distributions. So lists drawn like those of training
are called unlike them with a probability of at most ``ALPHA``, for all columns, measures and looks together, and three
lists never are. A smaller difference, however many lists show it, is none to speak of: no two sets of real lists are
quite the same.
"""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, groupby
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, PositiveInt, model_validator

from rerank.extraction.seen import GREATEST, LEAST, SeenSample, measured, values_of
from rerank.readers.lists import Lists

log = logging.getLogger("rerank")
ALPHA, PART = 1e-4, 1 / 3
COMPARED = {  # the first measures, in their order, and what messages call them
    "mean": "mean", "spread": "standard deviation", "agreement": "correlation with the base score",
}  # fmt: skip
M = len(COMPARED)
CUTS = 8  # quantiles of every measure that are kept
MOST_WAITING = 64  # lists that ``watch`` measures together
T = TypeVar("T")


class ColumnSeen(BaseModel):
    """A score column in ``lists`` of two candidates or more: the means over lists of its mean, its standard deviation
    (``spread``) and its correlation with the base score (``agreement``, 0 where one is constant, and for the base score
    itself), its least and its greatest value, and the share of lists in which it is constant.

    below: for each of the three measures, in how many lists it is at most as large as each of the ``cuts``.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    lists: PositiveInt
    mean: FiniteFloat
    spread: FiniteFloat
    agreement: FiniteFloat
    least: FiniteFloat
    greatest: FiniteFloat
    constant: FiniteFloat
    cuts: list[list[FiniteFloat]] = Field(min_length=M, max_length=M)
    below: list[list[int]]

    @model_validator(mode="after")
    def _check_sizes(self) -> "ColumnSeen":
        if [len(cuts) for cuts in self.cuts] != [len(counts) for counts in self.below]:
            raise ValueError("expected as many counts as cuts")
        return self

    @staticmethod
    def of(measures: np.ndarray) -> "ColumnSeen":
        """The statistics of a column in lists with these ``measures`` (float64 [S, MEASURES])."""
        # A distribution function may jump at a quantile: it is kept there, and just below.
        quantiles = np.quantile(measures[:, :M], np.linspace(0, 1, CUTS + 1), axis=0, method="inverted_cdf").T
        cuts = [np.unique([values, np.nextafter(values, -np.inf)]) for values in quantiles]
        least, greatest, mean = measures[:, LEAST], measures[:, GREATEST], measures[:, :M].mean(axis=0)
        return ColumnSeen(
            lists=len(measures), **dict(zip(COMPARED, mean.tolist(), strict=True)),
            least=float(least.min()), greatest=float(greatest.max()), constant=float(np.mean(least == greatest)),
            cuts=[cut.tolist() for cut in cuts],
            below=[np.searchsorted(np.sort(measures[:, m]), cut, "right").tolist() for m, cut in enumerate(cuts)],
        )  # fmt: skip


def chance(first: Any, second: Any, level: float) -> Any:
    """The distance that chance puts between the distribution functions of two samples of these sizes: ``PART`` and this
    are exceeded by samples of one distribution with a probability below ``level``."""
    return np.sqrt(np.log(4 / level) / 2 * (1 / first + 1 / second))


def columns_seen(names: Sequence[str], used: Sequence[str], lists: SeenSample) -> dict[str, Any]:
    """The record that a model keeps of the score columns ``names`` of its training lists, the base score's first: those
    ``used``, each as a ``ColumnSeen``. Empty where no list has two candidates."""
    columns = {name: lists.measures[:, k] for k, name in enumerate(names) if name in used and lists.digests.size}
    return {name: ColumnSeen.of(measures).model_dump() for name, measures in columns.items()}


class Drift:
    """The score columns of lists as they come, compared with those of training; threads may share it.

    known: the ``columns`` that a model keeps, the base score's first; of a model that keeps none, nothing is said.
    """

    def __init__(self, seen: Mapping[str, Mapping[str, Any]]) -> None:
        self.known = {name: ColumnSeen.model_validate(column) for name, column in seen.items()}
        self.names, self.lists, self._looks, self._due, self._told = tuple(self.known), 0, 0, 1, set[str]()
        sizes = (len(cuts) for column in self.known.values() for cuts in column.cuts)
        C, width = len(self.names), max(sizes, default=0)
        self._cuts, self._share = np.full((C, M, width), np.inf), np.ones((C, M, width))
        for c, column in enumerate(self.known.values()):
            for m, (cuts, below) in enumerate(zip(column.cuts, column.below, strict=True)):
                self._cuts[c, m, : len(cuts)], self._share[c, m, : len(cuts)] = cuts, np.array(below) / column.lists
        self._below, self._sums, self._constant = np.zeros(self._cuts.shape, np.int64), np.zeros((C, M)), np.zeros(C)
        self._least, self._greatest = np.full(C, np.inf), np.full(C, -np.inf)
        self._lock, self._waiting = threading.Lock(), list[np.ndarray]()  # values of lists that are not measured yet

    def through(self, lists: Iterable[T], of: Any = lambda each: each) -> Iterator[T]:
        """Pass lists on and see them (``of`` each, ``Lists`` or what is none); warn at the end."""
        for each in lists:
            self.see(of(each))
            yield each
        self.warn()

    def see(self, nbest: Any) -> None:
        """Take a list into account; one of fewer than two candidates, or what is no list, is left out."""
        if self.names and isinstance(nbest, Lists) and len(nbest) > 1:
            self.take(measured(values_of(nbest, self.names)))

    def take(self, *of_lists: np.ndarray) -> None:
        """Take lists into account by their measures (float64 [C, MEASURES])."""
        if not of_lists:
            return
        measures = np.stack(of_lists)
        least, greatest = measures[..., LEAST], measures[..., GREATEST]
        below = (measures[..., :M, None] <= self._cuts).sum(axis=0)
        with self._lock:
            self.lists += len(measures)
            self._sums += measures[..., :M].sum(axis=0)
            self._constant += (least == greatest).sum(axis=0)
            self._least = np.minimum(self._least, least.min(axis=0))
            self._greatest = np.maximum(self._greatest, greatest.max(axis=0))
            self._below += below

    def of(self, name: str) -> dict[str, float]:
        """The statistics of a column, by the names that ``ColumnSeen`` has for it; empty before the first list."""
        self._settle()
        if not self.lists:
            return {}
        c = self.names.index(name)
        values = *(self._sums[c] / self.lists), self._least[c], self._greatest[c], self._constant[c] / self.lists
        return dict(zip((*COMPARED, "least", "greatest", "constant"), map(float, values), strict=True))

    def unlike(self) -> dict[str, list[str]]:
        """The columns that are unlike training, and in which of the measures ``COMPARED``; a look at the lists so far.

        The k-th look gets the share 1/(k (k + 1)) of ``ALPHA``, so that all looks together have no more.
        """
        if not self.lists or not self.names:
            return {}
        with self._lock:
            self._looks += 1
            apart = np.abs(self._below / self.lists - self._share).max(axis=2)
        trained = np.array([column.lists for column in self.known.values()])[:, None]
        level = ALPHA / (self._looks * (self._looks + 1) * apart.size)
        beyond = apart > PART + chance(self.lists, trained, level)
        measures = (list(compress(COMPARED, of_column)) for of_column in beyond)
        return {name: unusual for name, unusual in zip(self.names, measures, strict=True) if unusual}

    def warnings(self) -> list[str]:
        """A line for every column that is unlike training and of which nothing was said before."""
        lines = []
        for name, measures in self.unlike().items():
            if name not in self._told:
                self._told.add(name)
                here, there = self.of(name), self.known[name]
                values = ", ".join(
                    f"{COMPARED[m]} {here[m]:.4g}, in training {getattr(there, m):.4g}" for m in measures
                )
                asked = "is its sign or unit another, or is it a file of other lists or another column?"
                lines.append(f"the score column {name!r} is unlike that of the training lists: {values}; {asked}")
        return lines

    def warn(self) -> None:
        """Log the ``warnings``."""
        for line in self.warnings():
            log.warning("%s", line)

    def watch(self, nbest: Any) -> None:
        """``see``, some lists at a time, and ``warn`` whenever their number has doubled: for lists without an end."""
        if self.names and isinstance(nbest, Lists) and len(nbest) > 1:
            with self._lock:
                self._waiting.append(values_of(nbest, self.names))
            if len(self._waiting) >= min(MOST_WAITING, self._due - self.lists):
                self._settle()
        if self.lists >= self._due:
            self._due = 2 * self.lists
            self.warn()

    def _settle(self) -> None:
        """Take the lists that wait into account, those of one size at once: that costs little more than one list."""
        with self._lock:
            waiting, self._waiting = sorted(self._waiting, key=len), []
        for _, alike in groupby(waiting, len):
            self.take(*measured(np.stack(list(alike))))
