"""Learning how probable brackets are: from lists of training, scored by models that were not trained on them."""

import logging
from itertools import pairwise

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.progress import DETAIL
from rerank.data.shards import Corpora, reference_rows, section
from rerank.data.symbols import SymbolTable
from rerank.extraction.content.trees import Parses
from rerank.learn.base import Weights
from rerank.metrics.base import Metric
from rerank.metrics.bracket_model import (
    BracketColumns,
    BracketModel,
    bracket_columns,
    fit,
    require_classifier,
    right_brackets,
)
from rerank.metrics.fusion import Fusion
from rerank.metrics.parseval import Parseval
from rerank.recipes.recipe import ListRecipe
from rerank.runs.corpora import Data, shared_lists
from rerank.runs.ensembles import members, spread
from rerank.runs.run import Run, beside
from rerank.runs.second_pass import FusionSweep, Points, RereadList, Visitor, run_scores, visit_lists
from rerank.runs.training import RunTask, trained_on, trained_once

log = logging.getLogger("rerank")
FOLDS = 5
THRESHOLDS = np.array([0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6])  # half of F is about the best
EVEN = 0.5  # the threshold where the lists are too few to choose one
MEANT = 2.0  # the sharpness around which it is learned what scores mean


class BracketReading(Visitor):
    """The columns of all lists' brackets, and which are right.

    scores: float64 [N], of all candidates, in units of their deviation, as ``base_deviation`` has that of the base
    scores; fold: int64 [N], the part of the training lists that a candidate is in.
    """

    def __init__(self, scores: np.ndarray, fold: np.ndarray, base_deviation: float, sharpness: float) -> None:
        self._scores, self._fold, self._deviation, self._sharpness = scores, fold, base_deviation, sharpness
        self._columns, self._right, self._folds = list[BracketColumns](), list[np.ndarray](), list[int]()
        self._symbols = SymbolTable()

    def see(self, again: RereadList) -> None:
        """A list of failed parses alone has no brackets to learn from."""
        parses, fusion = again.pair.content, again.evidence.fusion
        assert isinstance(parses, Parses)
        self._symbols, gold = parses.symbols, Fusion(again.pair.gold, parses.symbols)
        if not fusion.used.any() or not np.array_equal(fusion.words, gold.words):
            return
        scores, base = self._scores[again.own], again.pair.nbest.base / self._deviation
        self._columns.append(bracket_columns(fusion, scores, base, self._sharpness))
        self._right.append(right_brackets(fusion, gold))
        self._folds.append(int(self._fold[again.own.start]))

    def fit(self, without: int | None = None) -> BracketModel:
        """The learned part, of all folds or of those but one."""
        kept = [i for i, fold in enumerate(self._folds) if fold != without]
        if not kept:
            raise RecipeError("no list of training has brackets to learn from", key="decode.kinds")
        every = BracketColumns(*map(np.concatenate, zip(*(self._columns[i] for i in kept), strict=True)))
        if without is None:
            log.info("learned fusion: %s brackets of %s lists", f"{every.numbers.shape[0]:,}", f"{len(kept):,}")
        return fit(every, np.concatenate([self._right[i] for i in kept]), self._symbols, self._deviation)


class FoldedFusion(Visitor):
    """Fused trees of lists, each by the brackets that were learned without its fold (int64 [N], of candidates)."""

    def __init__(self, sweeps: list[FusionSweep], fold: np.ndarray) -> None:
        self.sweeps, self._fold = sweeps, fold

    def see(self, again: RereadList) -> None:
        self.sweeps[self._fold[again.own.start]].see(again)

    def best(self, lists: Corpora, metric: Metric) -> float:
        """The threshold with the best score on all of the lists, the smallest of equals."""
        sign, total = -1.0 if metric.lower_is_better else 1.0, reference_rows(lists).sum(axis=0)
        sums = np.sum([sweep.sums(lists) for sweep in self.sweeps], axis=0)
        reports = [metric.report(row, total) for row in sums]
        for h, report in zip(self.sweeps[0].points.thresholds, reports, strict=True):
            shown = ", ".join(f"{key} {100 * report[key]:.2f}" for key in ("f1", "exact_match"))
            log.info("learned fusion: threshold %g, on folds of training: %s", h, shown, extra={DETAIL: True})
        best = int(np.argmax([sign * report[metric.primary] for report in reports]))
        return float(self.sweeps[0].points.thresholds[best])


def check_learning(recipe: ListRecipe) -> None:
    """Refuse to learn where models that have not seen a list cannot be had, or scikit-learn."""
    require_classifier()
    if recipe.training.start is not None:
        message = "brackets are learned from lists that a model has not seen: leave it out, or decode by mbr and fuse"
        raise RecipeError(message, key="training.start")


def learn_brackets(recipe: ListRecipe, data: Data, run: Run, metric: Parseval) -> tuple[BracketModel, float]:
    """A run's model of brackets, and the threshold that goes with it: each fifth of the training lists, or of its
    share of them, is scored by a training on the others (of an ensemble, that of its first member).

    The threshold is the recipe's, or the best on all these lists, each fused by what was learned without its fifth:
    they are many more than dev has, whose best is unstable.

    Those that an interrupted call has finished are kept at the place of the run.
    """
    training = shared_lists(data.training, run.recipe.training.share, run.recipe.seed)
    corpus = training.corpus
    single = members(run.recipe)[0] if run.recipe.training.ensemble else run.recipe
    single = single.changed({"training.vote": False, "training.share": 1.0})
    dev = None if recipe.data.dev is None else data.others[recipe.data.dev].corpus
    if corpus.list_count < FOLDS:
        message = (
            f"found {corpus.list_count} training lists; expected at least {FOLDS}, one for each part to learn from"
        )
        raise RecipeError(message, key="decode.kinds")
    edges = np.linspace(0, corpus.list_count, FOLDS + 1).astype(int).tolist()
    scored: list[np.ndarray] = []
    for fold, (first, last) in enumerate(pairwise(edges)):
        log.info("learned fusion: fold %d of %d", fold + 1, FOLDS)
        rest = corpus.take(np.concatenate([np.arange(first), np.arange(last, corpus.list_count)]))
        lists = f"{trained_on(run.data[0], run.recipe)} without {first} to {last}", *run.data[1:]
        kept = None if run.place is None else beside(run.place, f"fold-{fold}")
        trained = trained_once(RunTask(run.name, single, rest, dev, lists, kept))
        held = section(corpus, first, last)
        scored.append(run_scores(trained, held) / spread(held, trained.weights[single.predictor]))
    base, sharpness = spread(corpus, Weights(np.zeros(corpus.width), 1.0)), recipe.decode.sharpness or MEANT
    scores, folds = np.concatenate(scored), np.repeat(np.arange(FOLDS), [part.size for part in scored])
    reading = BracketReading(scores, folds, base, sharpness)
    visit_lists(recipe, data, recipe.data.training, training, [reading])
    learned = reading.fit()
    if recipe.decode.threshold is not None:
        return learned, recipe.decode.threshold
    points = Points(scores, 1.0, np.array([sharpness]), THRESHOLDS)
    try:
        apart = [FusionSweep(points, corpus.list_count, metric, reading.fit(number)) for number in range(FOLDS)]
    except RecipeError:
        log.warning("learned fusion: too few lists to choose a threshold by folds; it is %g", EVEN)
        return learned, EVEN
    folded = FoldedFusion(apart, folds)
    visit_lists(recipe, data, recipe.data.training, training, [folded])
    return learned, folded.best(corpus, metric)
