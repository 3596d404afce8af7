"""Score columns as they were in the training lists, beside those of the lists that a model works on.

What is compared are three measures of a column in a list: its mean, its standard deviation, and its correlation with
the base score. The unit is the list, as the candidates of one are alike. A measure is unlike training where the
distribution functions over lists differ, somewhere, by more than ``PART`` plus what chance explains, by the bound of
Dvoretzky, Kiefer and Wolfowitz with Massart's constant, which holds for all distributions. So lists that are drawn as
those of training were are called unlike them with a probability of at most ``ALPHA``, for all columns, measures and
looks together, and three lists never are. A smaller difference, however many lists show it, is none to speak of: no two
sets of real lists are quite the same.
"""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, PositiveInt, model_validator

from rerank.extraction.seen import GREATEST, LEAST, SeenSample, measured, values_of
from rerank.readers.nbest import NBestList

log = logging.getLogger("rerank")
ALPHA, PART = 1e-4, 1 / 3
COMPARED = {  # the first measures, in their order, and what messages call them
    "mean": "mean", "spread": "standard deviation", "agreement": "correlation with the base score",
}  # fmt: skip
CUTS = 8  # quantiles of every measure that are kept
BATCH = 64  # lists that are counted together
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
    cuts: list[list[FiniteFloat]] = Field(min_length=len(COMPARED), max_length=len(COMPARED))
    below: list[list[int]]

    @model_validator(mode="after")
    def _check_sizes(self) -> "ColumnSeen":
        if [len(own) for own in self.cuts] != [len(own) for own in self.below]:
            raise ValueError("expected as many counts as cuts")
        return self

    @staticmethod
    def of(measures: np.ndarray) -> "ColumnSeen":
        """What a column is like in lists with these ``measures`` (float64 [S, MEASURES])."""
        compared = measures[:, : len(COMPARED)]
        quantiles = np.quantile(compared, np.linspace(0, 1, CUTS + 1), axis=0, method="inverted_cdf").T
        cuts = [np.unique([own, np.nextafter(own, -np.inf)]) for own in quantiles]
        below = [np.searchsorted(np.sort(own), cut, "right") for own, cut in zip(compared.T, cuts, strict=True)]
        return ColumnSeen(
            lists=len(measures), **dict(zip(COMPARED, compared.mean(axis=0).tolist(), strict=True)),
            least=float(measures[:, LEAST].min()), greatest=float(measures[:, GREATEST].max()),
            constant=float(np.mean(measures[:, LEAST] == measures[:, GREATEST])),
            cuts=[cut.tolist() for cut in cuts], below=[counts.tolist() for counts in below],
        )  # fmt: skip


def chance(first: Any, second: Any, level: float) -> Any:
    """How far apart chance takes the distribution functions of two samples of these sizes: ``PART`` and this are
    exceeded by samples of one distribution with a probability below ``level``."""
    return np.sqrt(np.log(4 / level) / 2 * (1 / first + 1 / second))


def columns_seen(names: Sequence[str], used: Sequence[str], lists: SeenSample) -> dict[str, Any]:
    """What a model keeps of the score columns ``names`` of its training lists, the base score's first: those ``used``,
    each as a ``ColumnSeen``. Empty where no list has two candidates."""
    found = {name: lists.measures[:, k] for k, name in enumerate(names) if name in used and lists.digests.size}
    return {name: ColumnSeen.of(measures).model_dump() for name, measures in found.items()}


class Drift:
    """The score columns of lists as they come, compared with those of training; threads may share it.

    known: the ``columns`` that a model keeps, the base score's first; of a model that keeps none, nothing is said.
    """

    def __init__(self, known: Mapping[str, Mapping[str, Any]]) -> None:
        self.known = {name: ColumnSeen.model_validate(own) for name, own in known.items()}
        self.names, self.lists, self._looks, self._due, self._told = tuple(self.known), 0, 0, 1, set[str]()
        C, width = len(self.known), max((len(cut) for own in self.known.values() for cut in own.cuts), default=0)
        self._sums, self._constant = np.zeros((C, len(COMPARED))), np.zeros(C)
        self._least, self._greatest = np.full(C, np.inf), np.full(C, -np.inf)
        self._cuts, self._share = np.full((C, len(COMPARED), width), np.inf), np.ones((C, len(COMPARED), width))
        for c, own in enumerate(self.known.values()):
            for m, (cut, below) in enumerate(zip(own.cuts, own.below, strict=True)):
                self._cuts[c, m, : len(cut)], self._share[c, m, : len(cut)] = cut, np.array(below) / own.lists
        self._below, self._lock = np.zeros(self._cuts.shape, np.int64), threading.Lock()
        self._waiting = list[np.ndarray]()

    def through(self, lists: Iterable[T], of: Any = lambda each: each) -> Iterator[T]:
        """Pass lists on and see them (``of`` each, an ``NBestList`` or what is none); warn at the end."""
        for each in lists:
            self.see(of(each))
            yield each
        self.warn()

    def see(self, nbest: Any) -> None:
        """Take a list into account; one of fewer than two candidates, or what is no list, is left out."""
        if self.names and isinstance(nbest, NBestList) and len(nbest) > 1:
            self.take(measured(values_of(nbest, self.names)))

    def take(self, *measures: np.ndarray) -> None:
        """Take lists into account by their measures (float64 [C, MEASURES])."""
        with self._lock:
            self.lists += len(measures)
            self._waiting += measures
            if len(self._waiting) >= BATCH:
                self._count()

    def _count(self) -> None:
        """Count the lists that wait, ``BATCH`` at a time, which is faster than one at a time."""
        for first in range(0, len(self._waiting), BATCH):
            measures = np.stack(self._waiting[first : first + BATCH])
            compared, least, greatest = measures[..., : len(COMPARED)], measures[..., LEAST], measures[..., GREATEST]
            self._sums += compared.sum(axis=0)
            self._constant += (least == greatest).sum(axis=0)
            np.minimum(self._least, least.min(axis=0), out=self._least)
            np.maximum(self._greatest, greatest.max(axis=0), out=self._greatest)
            self._below += (compared[..., None] <= self._cuts).sum(axis=0)
        self._waiting.clear()

    def of(self, name: str) -> dict[str, float]:
        """What a column has been like, by the names that ``ColumnSeen`` has for it; empty before the first list."""
        with self._lock:
            self._count()
        if not self.lists:
            return {}
        c = self.names.index(name)
        found = dict(zip(COMPARED, (self._sums[c] / self.lists).tolist(), strict=True))
        found |= {"least": float(self._least[c]), "greatest": float(self._greatest[c])}
        return found | {"constant": float(self._constant[c] / self.lists)}

    def unlike(self) -> dict[str, list[str]]:
        """The columns that are unlike training, and in which of the measures ``COMPARED``; a look at the lists so far.

        The k-th look gets the share 1/(k (k + 1)) of ``ALPHA``, so that all looks together have no more.
        """
        if not self.lists or not self.names:
            return {}
        with self._lock:
            self._count()
            self._looks += 1
            apart = np.abs(self._below / self.lists - self._share).max(axis=2)
        trained = np.array([own.lists for own in self.known.values()])[:, None]
        level = ALPHA / (self._looks * (self._looks + 1) * apart.size)
        beyond = apart > PART + chance(self.lists, trained, level)
        measures = [[m for m, is_so in zip(COMPARED, own, strict=True) if is_so] for own in beyond]
        return {name: own for name, own in zip(self.names, measures, strict=True) if own}

    def warnings(self) -> list[str]:
        """A line for every column that is unlike training and of which nothing was said before."""
        lines = []
        for name, measures in self.unlike().items():
            if name not in self._told:
                self._told.add(name)
                here, there = self.of(name), self.known[name]
                shown = ", ".join(f"{COMPARED[m]} {here[m]:.4g}, in training {getattr(there, m):.4g}" for m in measures)
                asked = "is its sign or unit another, or is it a file of other lists or another column?"
                lines.append(f"the score column {name!r} is unlike that of the training lists: {shown}; {asked}")
        return lines

    def warn(self) -> None:
        """Log the ``warnings``."""
        for line in self.warnings():
            log.warning("%s", line)

    def watch(self, nbest: Any) -> None:
        """``see``, and ``warn`` whenever the number of lists has doubled: for lists without an end."""
        self.see(nbest)
        if self.lists >= self._due:
            self._due = 2 * self.lists
            self.warn()
