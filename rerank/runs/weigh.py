"""The weights of the few scores that lists have, and what they are worth: for any metric, with what chance there is.

Searches by minimum error rate training begin at maxent's weights, at those of pairs, at the base score alone and at
random points. What weighing is worth is measured by cross-validation over lists; the weights of all lists have
intervals by the bootstrap. A column that others determine has no weight of its own.
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
from rerank.learn.learner import Weights
from rerank.learn.mert import MertSettings, mert
from rerank.metrics.metric import scored_rows, usual_scores
from rerank.readers.reader import MINMAX
from rerank.runs import vote
from rerank.runs.compared import Compared
from rerank.runs.report.results import SIGNIFICANT_BELOW
from rerank.runs.report.table import TextTable

if TYPE_CHECKING:
    from rerank.models.reranker import Reranker

LENGTH_TEMPLATE = "Length(binned=False)"  # the template of WORDS
BASE, MAXENT, WEIGHED, ORACLE = "base", "maxent", "weighed", vote.GAIN_ORACLE
SUM, COMBSUM = "sum of the columns", "CombSUM"  # the second of scores from 0 to 1 in each run (Fox & Shaw 1994)
MAX_ALONE = 10  # columns at most that are shown each by itself
DIRECTIONS = 10  # directions of a search besides those of the columns
NOISE = 1.0  # how far from the start random points are at most, in units of the mean weight
MAX_PAIRS = 50  # pairs of a list, those with the largest differences in gain (Hopkins & May 2011)
MOST_COLUMNS = 50  # more take hours, and need a penalty that searches do not have
MIN_OWN_SHARE = 0.02  # of a column's variance within lists, the least that no combination of columns before it has


def unit(weights: np.ndarray) -> np.ndarray:
    """``weights`` (float64 [F]) with absolute values that sum up to 1; zeros stay."""
    total = float(np.abs(weights).sum())
    return weights / total if total > 0 else weights


def standardise(source: vote.ListSource) -> tuple[vote.ListSource, np.ndarray]:
    """The lists with columns of mean 0 in every list and deviation 1 within lists, 0 where a column says nothing; and
    what these were divided by (float64 [F])."""
    columns = np.array(source.columns)
    lists = source.corpus.lists
    columns -= np.repeat(columns[:, lists[:-1]], np.diff(lists), axis=1)  # exactly 0 where all are alike
    mask = np.asarray(columns.any(axis=1))
    values = source._replace(columns=columns).features()
    spread = np.where(mask, np.sqrt(np.mean(values**2, axis=1)), 1.0)
    return source._replace(columns=np.where(mask[:, None], values / spread[:, None], 0.0)), spread


def independent_columns(source: vote.ListSource) -> list[int]:
    """The columns of standardised lists, without those of which less than MIN_OWN_SHARE is not determined by those
    before them; the base score comes first of all."""
    rest, indices = source.features(), list[int]()
    for k in sorted(range(len(source.names)), key=lambda k: source.names[k] != source.base):
        variance = np.mean(rest[k] ** 2)
        if variance > MIN_OWN_SHARE:
            indices.append(k)
            rest -= np.mean(rest * rest[k], axis=1, keepdims=True) / variance * rest[k]
    return sorted(indices)


def gain_pairs(samples: vote.ListSource) -> vote.ListSource:
    """Lists of two: for every list its MAX_PAIRS pairs of candidates with the largest differences in gain."""
    indices, gain = list[np.ndarray](), samples.corpus.gain
    for first, last in pairwise(samples.corpus.lists.tolist()):
        by_gain = first + np.argsort(-gain[first:last], kind="stable")
        high, low = by_gain[:MAX_PAIRS], by_gain[::-1][:MAX_PAIRS]
        gaps = gain[high][:, None] - gain[low]
        widest = np.argsort(-gaps, axis=None, kind="stable")[: min(MAX_PAIRS, int(np.count_nonzero(gaps > 0)))]
        one, other = np.unravel_index(widest, gaps.shape)
        indices.append(np.column_stack([high[one], low[other]]).ravel())
    pairs = np.concatenate(indices)
    return samples.take(pairs, np.arange(0, pairs.size + 1, 2))


def fit_weights(source: vote.ListSource, restarts: int, seed: int) -> dict[str, np.ndarray]:
    """The weights of standardised columns (float64 [F]) that lists, at most MAX_LISTS of them, teach: MAXENT's, and the
    best that searches from there, from those of pairs, from the base score and from ``restarts`` random points find;
    their absolute values sum up to 1."""
    check()
    if (count := source.corpus.list_count) > vote.MAX_LISTS:
        source = source.lists(np.sort(np.random.default_rng(seed).permutation(count)[: vote.MAX_LISTS]))
    ordered = source.metric.ordered
    maxent = unit(vote.maxent_weights(source, loss="listnet" if ordered else "log"))
    starts = [maxent, np.array([float(name == source.base) for name in source.names])]
    if not ordered and (pair_lists := gain_pairs(source)).answers.size:
        starts.insert(1, unit(vote.maxent_weights(pair_lists)))
    starts = [start for start in starts if start.any()] or [unit(np.ones(len(source.names)))]
    return {MAXENT: maxent, WEIGHED: search_weights(source, starts, restarts, seed)}


def search_weights(source: vote.ListSource, starts: Sequence[np.ndarray], restarts: int, seed: int) -> np.ndarray:
    """The best weights that searches from ``starts``, and from ``restarts`` points around the first, find."""
    corpus = source.corpus
    about = corpus.lists, source.columns.T, corpus.stats, corpus.reference, source.metric
    results = [
        mert(*about, start, MertSettings(random=DIRECTIONS, restarts=tries, noise=NOISE, seed=seed), ties=corpus.base)
        for start, tries in zip(starts, (restarts, 0, 0), strict=False)
    ]
    return unit(max(results, key=lambda result: source.metric.sign * result.score).weights)


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
class WeightTable(vote.SourceTable):
    """The weights of the columns of a source, and their value; without: names of the columns that others determine."""

    resamples: int
    weights: tuple[ColumnWeight, ...]
    without: tuple[str, ...]

    @property
    def learned(self) -> str:
        """The better of the two rows of learned weights."""
        return max(WEIGHED, MAXENT, key=self._goodness)

    @property
    def learned_weights(self) -> dict[str, float]:
        """The weights of that row, by column."""
        return {line.column: line.weight if self.learned == WEIGHED else line.maxent for line in self.weights}

    def _goodness(self, name: str) -> float:
        return self.results.metric.sign * self.rows[name].score

    def as_data(self) -> dict[str, Any]:
        weights = {"weights": [line._asdict() for line in self.weights], "without": self.without}
        return super().as_data() | {
            "resamples": self.resamples, "base": self.source.base, "learned": self.learned, **weights
        }  # fmt: skip

    def tables(self) -> tuple[TextTable, ...]:
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
        note += f" Others determine these, which have none: {', '.join(self.without)}." if self.without else ""
        worth = worth if self.results.doubt else f"{worth} {self.verdict}"
        return self.table(worth), TextTable.of("Weights", weights, note=note)

    @property
    def verdict(self) -> str:
        """The row that is best on lists that it does not know, in a sentence."""
        best = max((name for name in self.rows if name != ORACLE), key=self._goodness)
        test = self.rows[best].test
        if test is None or test.p >= SIGNIFICANT_BELOW:
            return "Nothing is better than the base beyond chance."
        words = f"The best is {best}, {self.results.metric.signed(test.difference)} beside the base (p = {test.p:.2g})"
        return f"{words}." if best in (MAXENT, WEIGHED) else f"{words}; learned weights add nothing to it."


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
    restarts: searches from random points; none for resamples, which are searched from the weights of all lists.
    samples, seed: of intervals and tests; of folds, draws and directions.
    use: the columns that are weighed, by name; by default all.
    columns: of a data frame, as in ``read``.

    Raises
    ------
    DataError: lists that cannot be used, fewer than folds, or without a column that differs within one. RecipeError: an
        unknown metric or column, too few folds or samples.
    """
    vote.check_least(folds=(folds, 2), resamples=(resamples, 2), restarts=(restarts, 0), samples=(samples, 1))
    source = vote.load_source(lists, metric, use, folds, seed, columns, with_words=True)
    if len(source.names) > MOST_COLUMNS:
        message = f"found {len(source.names)}; expected {MOST_COLUMNS} or fewer: name them, or train a model"
        raise RecipeError(message, key="columns")
    raw = source.columns
    source, spread = standardise(source)
    if not source.columns.any():
        names_text = ", ".join(source.names) or "none"
        raise DataError(f"no score differs within a list (columns: {names_text}); there is nothing to weigh")
    rows, names = independent_columns(source), source.names
    source, spread = source._replace(columns=source.columns[rows], names=tuple(names[k] for k in rows)), spread[rows]
    by_fold = [
        fit_weights(source.lists(np.flatnonzero(source.fold != fold)), restarts, seed)
        for fold in track(range(folds), "weigh folds", unit="folds")
    ]
    lists, by = source.corpus, usual_scores(source.corpus, source.metric)
    oracle = by.pop("oracle")
    run_columns = [k for k, name in enumerate(names) if name.startswith(MINMAX)]  # other columns of a run order alike
    columns_alone = run_columns or [k for k, name in enumerate(names) if name != source.base]
    few = len(columns_alone) <= MAX_ALONE
    if len(names) > 1 and few:
        by |= {f"{names[k]} alone": raw[k] for k in columns_alone}
    if len(names) > 1 and (few or run_columns):
        by[COMBSUM if run_columns else SUM] = raw[run_columns or slice(None)].sum(axis=0)
    for name in (MAXENT, WEIGHED):
        by[name] = vote.fold_scores(source, [fit[name] for fit in by_fold])
    choices = {name: scored_rows(lists, source.metric, scores) for name, scores in {**by, ORACLE: oracle}.items()}
    how: dict[str, Any] = {"samples": samples, "seed": seed}
    results = Compared(source.metric, lists.reference, choices, BASE, (ORACLE,), **how, doubt=source.doubt)
    weights = _weights(source, spread, by_fold, resamples, restarts, seed)
    return WeightTable(results, source, folds, resamples, weights, tuple(sorted({*names} - {*source.names})))


def _weights(
    source: vote.ListSource, spread: np.ndarray, by_fold: Sequence[Mapping[str, np.ndarray]], resamples: int,
    restarts: int, seed: int,
) -> tuple[ColumnWeight, ...]:  # fmt: skip
    """The weights of all lists, with intervals by ``resamples`` of lists drawn with replacement."""
    maxent, weights = fit_weights(source, restarts, seed).values()
    draws, count = np.random.default_rng(seed), source.corpus.list_count
    samples = [
        search_weights(source.lists(draws.integers(count, size=count)), [weights], 0, seed)
        for _ in track(range(resamples), "weigh resamples", unit="resamples")
    ]
    low, high = np.percentile(np.array(samples) / spread, [2.5, 97.5], axis=0).tolist()
    over = np.array([fit[WEIGHED] for fit in by_fold]) / spread
    numbers = (
        (weights / spread).tolist(), zip(low, high, strict=True), over.mean(axis=0).tolist(),
        over.std(axis=0).tolist(), np.abs(weights).tolist(), (maxent / spread).tolist(),
    )  # fmt: skip
    return tuple(ColumnWeight(name, *line) for name, *line in zip(source.names, *numbers, strict=True))


def model_of_weights(lists: Any, metric: Mapping[str, Any], table: WeightTable) -> "Reranker":
    """The model that scores candidates by the learned weights of ``table``, which was made of ``lists``, and chooses
    the best by them, as the table does: it neither decodes nor looks at answers."""
    from rerank.models.reranker import Reranker
    from rerank.runs.fitting import fit

    alone = [line.column for line in table.weights] == [table.source.base]  # of which no template makes a column
    lengths = [LENGTH_TEMPLATE] if any(line.column == vote.WORDS for line in table.weights) else []
    dense = "Dense(answers=own)" if table.source.has_answers else "Dense"
    features = {"set": "base"} if alone else {"set": None, "templates": [dense, *lengths], "min_lists": 1}
    how: dict[str, Any] = {"recipe": {"decode": {"kinds": []}}, "learner": {"name": "maxent", "l2": vote.PENALTY}}
    model = fit(lists, metric=metric, features=features, **how).model
    weight_of = table.learned_weights
    prefix = re.compile(rf"{re.escape(dense)}\||{re.escape(LENGTH_TEMPLATE)}\|")
    names = [prefix.sub("", model.table.name(j)) for j in range(model.table.width)]
    w = np.array([weight_of.get(name, 0.0) for name in names])
    weights = Weights(w, weight_of.get(table.source.base or "", 0.0))
    same = dict.fromkeys(("last", "average"), weights)
    return Reranker(replace(model, weights=same, state={}, votes={}, brackets={}))
