"""The weights of the few scores that lists have, and what they are worth: for any metric, with what chance there is.

Searches by minimum error rate training begin at maxent's weights, at those of pairs, at the base score alone and at
random points. What weighing is worth is measured by cross-validation over lists; the weights of all lists have
intervals by the bootstrap.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.base.interrupts import check
from rerank.base.progress import track
from rerank.learn.base import Weights
from rerank.learn.mert import MertSettings, mert
from rerank.metrics.oracle import rows_of_scores
from rerank.readers.score_columns import MINMAX
from rerank.runs.compared import Compared, Scored
from rerank.runs.report.table import TextTable, plain_text
from rerank.runs.vote import WORDS, Gathered, about, gathered, table_of
from rerank.runs.ways import FIRST, MOST, PENALTY, Samples, maxent_weights, scored

if TYPE_CHECKING:
    from rerank.models.reranker import Reranker

DENSE, COUNTED = "Dense|", "Length(binned=False)"  # the second is the template of WORDS
BASE, MAXENT, WEIGHED = "base", "maxent", "weighed"
ORACLE = "best possible (oracle)"
SUM, COMBSUM = "sum of the columns", "CombSUM"  # the second of scores from 0 to 1 in each run (Fox & Shaw 1994)
ALONE = 10  # columns at most that are shown each by itself
RANDOM = 10  # directions of a search besides those of the columns
NOISE = 1.0  # how far from the start random points are at most, in units of the mean weight
LEAST = {"folds": 2, "resamples": 2, "restarts": 0, "samples": 1}
CHANCE = 0.05
PAIRS = 50  # of a list, those with the largest differences in gain (Hopkins & May 2011)
MOST_COLUMNS = 50  # more take hours, and need a penalty that searches do not have


def unit(weights: np.ndarray) -> np.ndarray:
    """``weights`` (float64 [F]) with absolute values that sum up to 1; zeros stay."""
    total = float(np.abs(weights).sum())
    return weights / total if total > 0 else weights


def standardised(source: Gathered) -> tuple[Gathered, np.ndarray]:
    """The lists with columns of mean 0 in every list and deviation 1 within lists, 0 where a column says nothing; and
    what these were divided by (float64 [F])."""
    samples = source.samples
    apart = np.array(samples.columns)
    apart -= np.repeat(apart[:, samples.first[:-1]], np.diff(samples.first), axis=1)  # exactly 0 where all are alike
    varied = np.asarray(apart.any(axis=1))
    centred = samples._replace(columns=apart).features(agree=False)
    spread = np.where(varied, np.sqrt(np.mean(centred**2, axis=1)), 1.0)
    columns = np.where(varied[:, None], centred / spread[:, None], 0.0)
    return source._replace(samples=samples._replace(columns=columns)), spread


def pairs(samples: Samples) -> Samples:
    """Lists of two: for every list its PAIRS pairs of candidates with the largest differences in gain."""
    places = list[np.ndarray]()
    for first, last in pairwise(samples.first.tolist()):
        by_gain = first + np.argsort(-samples.gain[first:last], kind="stable")
        high, low = by_gain[:PAIRS], by_gain[::-1][:PAIRS]
        apart = samples.gain[high][:, None] - samples.gain[low]
        widest = np.argsort(-apart, axis=None, kind="stable")[: min(PAIRS, int(np.count_nonzero(apart > 0)))]
        one, other = np.unravel_index(widest, apart.shape)
        places.append(np.column_stack([high[one], low[other]]).ravel())
    every = np.concatenate(places)
    return samples.some(every, np.arange(0, every.size + 1, 2))


class Fitted(NamedTuple):
    """Weights of ``standardised`` columns (float64 [F] each), their absolute values summing up to 1."""

    maxent: np.ndarray
    weighed: np.ndarray


def fitted(source: Gathered, restarts: int, seed: int) -> Fitted:
    """The weights that lists, at most MOST of them, teach: those of maxent, and the best that searches from there, from
    those of pairs, from the base score and from ``restarts`` random points find."""
    check()
    if (count := source.samples.fold.size) > MOST:
        source = source.lists(np.sort(np.random.default_rng(seed).permutation(count)[:MOST]))
    samples, metric = source.samples, source.metric
    loss: Any = "listnet" if metric.ordered else "log"
    maxent = unit(maxent_weights(samples, agree=False, loss=loss))
    alone = np.array([float(name == source.base) for name in source.names])
    two = pairs(samples)
    paired = unit(maxent_weights(two, agree=False)) if two.gain.size else alone
    starts = [start for start in (maxent, paired, alone) if start.any()] or [unit(np.ones(len(source.names)))]
    about = samples.first, samples.columns.T, source.stats, source.reference, metric
    searches = [
        mert(*about, start, MertSettings(random=RANDOM, restarts=tries, noise=NOISE, seed=seed), ties=source.scores)
        for start, tries in zip(starts, (restarts, 0, 0), strict=False)
    ]
    sign = -1.0 if metric.lower_is_better else 1.0
    return Fitted(maxent, unit(max(searches, key=lambda result: sign * result.score).weights))


def rows_by(source: Gathered, scores: np.ndarray) -> np.ndarray:
    """float64 [L, K]: what ``scores`` (float64 [n]) choose, or their orders."""
    about = source.scores, source.stats, source.reference
    return rows_of_scores(source.metric, source.samples.first, scores, *about)


class ColumnWeight(NamedTuple):
    """The weight of a column: in the unit of the file, with an interval, and with mean and deviation over folds; share:
    of all weights, in units of the columns' deviations within lists; maxent: its weight there."""

    column: str
    weight: float
    interval: tuple[float, float]
    mean: float
    deviation: float
    share: float
    maxent: float


@dataclass(frozen=True)
class WeightTable:
    """The weights of the columns of a source, and their value."""

    compared: Compared
    source: Gathered
    folds: int
    resamples: int
    weights: tuple[ColumnWeight, ...]

    @property
    def rows(self) -> Mapping[str, Scored]:
        return self.compared.scored

    def as_data(self) -> dict[str, Any]:
        """The table as JSON."""
        counts = {key: getattr(self, key) for key in ("folds", "resamples")}
        weights = [line._asdict() for line in self.weights]
        return about(self.compared, self.source) | counts | {"base": self.source.base, "weights": weights}

    def tables(self) -> tuple[TextTable, TextTable]:
        """The value of weighing, and the weights."""
        weights = [
            {"column": w.column, "weight": f"{w.weight:.4g}",
             "95 % interval": " to ".join(f"{end:.3g}" for end in w.interval),
             "over folds": f"{w.mean:.3g} ± {w.deviation:.2g}", "share": f"{100 * w.share:.0f} %",
             "maxent": f"{w.maxent:.3g}"}
            for w in self.weights
        ]  # fmt: skip
        base = f"by the column {self.source.base}" if self.source.base else "the first candidate, as none has a score"
        worth = f"base: {base}. Cross-validated: the choices in each of {self.folds} folds are learned from the rest."
        note = "Weights of all lists, in the units of their columns; intervals from "
        note += f"{self.resamples} resamples of lists."
        worth = worth if self.source.doubt else f"{worth} {self.verdict}"
        return table_of(self.compared, self.source, worth), TextTable.of("Weights", weights, note=note)

    @property
    def verdict(self) -> str:
        """Whether weighing helps on lists that it does not know."""
        if self.source.doubt:
            return self.source.doubt
        test = self.rows[WEIGHED].test
        assert test is not None
        if test.p >= CHANCE:
            return "Weighing makes no difference beyond chance."
        better = (test.difference < 0) == self.compared.metric.lower_is_better
        return "Weighing helps." if better else "Weighing does harm: keep the base."

    def __str__(self) -> str:
        return "\n\n".join(plain_text(table.rich()) + table.note for table in self.tables())


def table_of_weights(
    lists: Any,
    metric: str | Mapping[str, Any] | None = None,
    *,
    folds: int = 5,
    resamples: int = 20,
    restarts: int = 3,
    samples: int = 1000,
    seed: int = 1,
    use: str | Sequence[str] | None = None,
    **columns: Any,
) -> WeightTable:
    """The weights of the columns of ``lists``, the base score's too, with which ``metric`` comes out best, and what
    that is worth on lists held out.

    Parameters
    ----------
    lists: as ``fit`` takes them, or several that ``read`` gives of files.
    metric: its name, or a mapping of name and options; by default the gain that lists hold.
    folds: ≥ 2; of the cross-validation.
    resamples: ≥ 2; of lists, for the intervals of weights.
    restarts: searches from random points; none for resamples, which are searched from maxent and the base alone.
    samples, seed: of intervals and tests; of folds, draws and directions.
    use: the columns that are weighed, by name; by default all.
    columns: of a data frame, as in ``read``.

    Raises
    ------
    DataError: lists that cannot be used, fewer than folds, or without a column that differs within one. RecipeError: an
        unknown metric or column, too few folds or samples.
    """
    for key, number in (("folds", folds), ("resamples", resamples), ("restarts", restarts), ("samples", samples)):
        if number < LEAST[key]:
            raise RecipeError(f"found {number}; expected {LEAST[key]} or more", key=key)
    source = gathered(lists, metric, use, folds, seed, columns, with_words=True)
    if len(source.names) > MOST_COLUMNS:
        message = (
            f"found {len(source.names)}; expected {MOST_COLUMNS} or fewer: name them, or train a model (`rerank run`)"
        )
        raise RecipeError(message, key="columns")
    raw = source.samples.columns
    source, spread = standardised(source)
    every = source.samples
    if not every.columns.any():
        names = ", ".join(source.names) or "none"
        raise DataError(f"no score differs within a list (columns: {names}); there is nothing to weigh")
    by_fold = [
        fitted(source.lists(np.flatnonzero(every.fold != fold)), restarts, seed)
        for fold in track(range(folds), "weigh folds", unit="folds")
    ]
    base = rows_by(source, source.scores)
    first = rows_by(source, -np.arange(len(source.scores), dtype=np.float64))
    chosen = {BASE: base} | ({} if np.array_equal(first, base) else {FIRST: first})
    of_runs = [
        k for k, name in enumerate(source.names) if name.startswith(MINMAX)
    ]  # other columns of a run order alike
    alone = of_runs or [k for k, name in enumerate(source.names) if name != source.base]
    if len(source.names) > 1 and len(alone) <= ALONE:
        chosen |= {f"{source.names[k]} alone": rows_by(source, raw[k]) for k in alone}
        chosen[COMBSUM if of_runs else SUM] = rows_by(source, raw[of_runs or slice(None)].sum(axis=0))
    for name, of_folds in ((MAXENT, [fit.maxent for fit in by_fold]), (WEIGHED, [fit.weighed for fit in by_fold])):
        chosen[name] = rows_by(source, scored(every, of_folds, agree=False))
    chosen[ORACLE] = rows_by(source, every.gain)
    how: dict[str, Any] = {"samples": samples, "seed": seed}
    compared = Compared(source.metric, source.reference, chosen, BASE, (ORACLE,), **how)
    weights = _weights(source, spread, by_fold, resamples, restarts, seed)
    return WeightTable(compared, source, folds, resamples, weights)


def _weights(
    source: Gathered, spread: np.ndarray, by_fold: Sequence[Fitted], resamples: int, restarts: int, seed: int
) -> tuple[ColumnWeight, ...]:
    """The weights of all lists, with intervals by ``resamples`` of lists drawn with replacement."""
    everything = fitted(source, restarts, seed)
    draws, count = np.random.default_rng(seed), source.samples.fold.size
    drawn = [
        fitted(source.lists(draws.integers(count, size=count)), 0, seed).weighed
        for _ in track(range(resamples), "weigh resamples", unit="resamples")
    ]
    low, high = np.percentile(np.array(drawn) / spread, [2.5, 97.5], axis=0).tolist()
    over = np.array([fit.weighed for fit in by_fold]) / spread
    numbers = (
        (everything.weighed / spread).tolist(), zip(low, high, strict=True), over.mean(axis=0).tolist(),
        over.std(axis=0).tolist(), np.abs(everything.weighed).tolist(), (everything.maxent / spread).tolist(),
    )  # fmt: skip
    return tuple(ColumnWeight(name, *line) for name, *line in zip(source.names, *numbers, strict=True))


def weighed_model(lists: Any, metric: Mapping[str, Any], table: WeightTable) -> "Reranker":
    """The model that scores candidates by the weights of ``table``, which was made of ``lists``."""
    from rerank.models.reranker import Reranker
    from rerank.runs.fitting import fit

    alone = [line.column for line in table.weights] == [table.source.base]  # of which no template makes a column
    counted = [COUNTED] if any(line.column == WORDS for line in table.weights) else []
    features = {"set": "base"} if alone else {"set": None, "templates": ["Dense", *counted], "min_lists": 1}
    model = fit(lists, metric=metric, features=features, learner={"name": "maxent", "l2": PENALTY}).model
    known = {line.column: line.weight for line in table.weights}
    prefix = re.compile(rf"{re.escape(DENSE)}|{re.escape(COUNTED)}\|")
    names = [prefix.sub("", model.table.name(j)) for j in range(model.table.width)]
    w = np.array([known.get(name, 0.0) for name in names])
    weights = Weights(w, known.get(table.source.base or "", 0.0))
    same = dict.fromkeys(("last", "average"), weights)
    return Reranker(replace(model, weights=same, state={}, votes={}, brackets={}))
