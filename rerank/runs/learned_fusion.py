"""Learned fusion in a run: what brackets of training lists look like, and which of them are right.

Each fifth of the training lists is scored by a training on the others, as a model scores lists that it does not know.
"""

import logging
from functools import partial
from itertools import product

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.progress import DETAIL
from rerank.data.corpus import Corpus
from rerank.data.symbols import SymbolTable
from rerank.learn.folds import FOLDS, sections
from rerank.metrics import bracket_model
from rerank.metrics.bracket_model import BracketColumns, BracketModel
from rerank.metrics.fusion import Fusion
from rerank.metrics.metric import Metric
from rerank.recipes.recipe import ListRecipe
from rerank.runs.combination import deviation_of, members
from rerank.runs.corpora import Data, RereadList, Visitor, shared_lists, visit_lists
from rerank.runs.decoding import MEANT, Points, Sweep
from rerank.runs.run import Run, beside
from rerank.runs.training import RunTask, trained_on, trained_once

log = logging.getLogger("rerank")
THRESHOLDS = np.array([0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6])  # half of F is about the best
SLACKS = np.array([0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4])  # in brackets; from .5 on F falls
EVEN = 0.5  # the threshold where the lists are too few to choose one


SeenBrackets = tuple[BracketColumns, list[str | int], np.ndarray]


def brackets_of(deviation: float, sharpness: float, again: RereadList, scores: np.ndarray) -> SeenBrackets | None:
    """The columns of a list's brackets, in which symbols are places among the texts that follow (or -1, -2), and which
    are right; a list of failed parses alone has none to learn from. ``scores`` (float64 [T]) are in units of their
    deviation, as ``deviation`` is that of the base scores."""
    if again.pair is None or again.evidence is None:
        return None
    symbols, fusion = again.pair.content.symbols, again.evidence.fusion
    gold = Fusion(again.pair.gold, symbols)
    if not fusion.used.any() or not np.array_equal(fusion.words, gold.words):
        return None
    columns = bracket_model.bracket_columns(fusion, scores, again.pair.nbest.base / deviation, sharpness)
    ids, places = np.unique(columns.symbols, return_inverse=True)
    texts = [symbols.text(one) if one >= 0 else one for one in ids.tolist()]
    columns = columns._replace(symbols=places.reshape(columns.symbols.shape))
    return columns, texts, bracket_model.right_brackets(fusion, gold)


class BracketReading:
    """The columns of all lists' brackets, and which are right.

    scores: float64 [N], of all candidates, in units of their deviation, as ``base_deviation`` has that of the base
    scores; fold: int64 [L], the part of the training lists that a list is in.
    """

    def __init__(self, scores: np.ndarray, fold: np.ndarray, base_deviation: float, sharpness: float) -> None:
        self.visitor = Visitor(self._add, partial(brackets_of, base_deviation, sharpness), [scores])
        self._fold, self._deviation, self._symbols = fold, base_deviation, SymbolTable()
        self._columns, self._right, self._folds = list[BracketColumns](), list[np.ndarray](), list[int]()

    def _add(self, place: int, number: int, found: SeenBrackets) -> None:  # noqa: ARG002
        columns, texts, right = found
        ids = np.array([one if isinstance(one, int) else self._symbols.intern(one) for one in texts], np.int32)
        self._columns.append(columns._replace(symbols=ids[columns.symbols]))
        self._right.append(right)
        self._folds.append(int(self._fold[number]))

    def fit(self, without: int | None = None) -> BracketModel:
        """The learned part, of all folds or of those but one."""
        kept = [i for i, fold in enumerate(self._folds) if fold != without]
        if not kept:
            raise RecipeError("no list of training has brackets to learn from", key="decode.kinds")
        every = BracketColumns(*map(np.concatenate, zip(*(self._columns[i] for i in kept), strict=True)))
        if without is None:
            log.info("learned fusion: %s brackets of %s lists", f"{every.numbers.shape[0]:,}", f"{len(kept):,}")
        return bracket_model.fit(every, np.concatenate([self._right[i] for i in kept]), self._symbols, self._deviation)


def best_fusion(sweep: Sweep, lists: Corpus, metric: Metric) -> tuple[float, float]:
    """The threshold with the best score on the lists without slack, the smallest of equals; and, of the slacks that
    cost nothing of that score, the one with the most trees that are entirely right."""
    total, points = lists.reference.sum(axis=0), sweep.points
    reports = [metric.report(row, total) for row in sweep.sums]
    for (h, slack), report in zip(product(points.thresholds, points.slacks), reports, strict=True):
        measures = ", ".join(f"{key} {100 * report[key]:.2f}" for key in ("f1", "exact_match"))
        message = "learned fusion: threshold %g, slack %g, on folds of training: %s"
        log.info(message, h, slack, measures, extra={DETAIL: True})
    shape = points.thresholds.size, points.slacks.size
    score = np.reshape([metric.sign * report[metric.primary] for report in reports], shape)
    exact = np.reshape([report["exact_match"] for report in reports], shape)
    best = int(np.argmax(score[:, 0]))
    slack = int(np.argmax(np.where(score[best] >= score[best, 0], exact[best], -np.inf)))
    return float(points.thresholds[best]), float(points.slacks[slack])


def learn_brackets(recipe: ListRecipe, data: Data, run: Run, metric: Metric) -> None:
    """Learn a run's model of brackets, and the threshold and slack that go with it: each fifth of the training lists,
    or of its share of them, is scored by a training on the others (of an ensemble, that of its first member).

    The threshold is the recipe's, without slack, or both are the best on all these lists, each fused by what was
    learned without its fifth: they are many more than dev has, whose best is unstable.

    Those that an interrupted call has finished are kept at the place of the run.
    """
    training = shared_lists(data.training, run.recipe.training.share, run.recipe.seed)
    corpus = training.corpus
    single = members(run.recipe)[0] if run.recipe.training.ensemble else run.recipe
    single = single.changed({"training.vote": False, "training.share": 1.0})
    dev = None if recipe.data.dev is None else data.others[recipe.data.dev].corpus
    if corpus.list_count < FOLDS:
        message = f"found {corpus.list_count} training lists; expected {FOLDS} or more, one for each part to learn from"
        raise RecipeError(message, key="decode.kinds")
    scored, folds = list[np.ndarray](), np.zeros(corpus.list_count, np.int64)
    for fold, (first, last) in enumerate(sections(corpus.list_count)):
        log.info("learned fusion: fold %d of %d", fold + 1, FOLDS)
        rest = corpus.take(np.concatenate([np.arange(first), np.arange(last, corpus.list_count)]))
        lists = f"{trained_on(run.data[0], run.recipe)} without {first} to {last}", *run.data[1:]
        kept = None if run.place is None else beside(run.place, f"fold-{fold}")
        held, folds[first:last] = corpus.slice(first, last), fold
        own = trained_once(RunTask(run.name, single, rest, dev, lists, kept)).scores(held)
        scored.append(own / deviation_of(held, own))
    base, sharpness = deviation_of(corpus, corpus.base), recipe.decode.sharpness or MEANT
    every = np.concatenate(scored)
    reading = BracketReading(every, folds, base, sharpness)
    visit_lists(recipe, data, recipe.data.training, [(training, [reading.visitor])])
    run.brackets = reading.fit()
    if recipe.decode.threshold is not None:
        run.fused_at = recipe.decode.threshold, 0.0
        return
    try:
        models = [reading.fit(number) for number in range(FOLDS)]
    except RecipeError:
        log.warning("learned fusion: too few lists to choose a threshold by folds; it is %g", EVEN)
        run.fused_at = EVEN, 0.0
        return
    points = Points(1.0, np.array([sharpness]), THRESHOLDS, SLACKS)
    sweep = Sweep("learned", points, every, corpus, metric, models, folds=[folds])
    visit_lists(recipe, data, recipe.data.training, [(training, [sweep.visitor])])
    run.fused_at = best_fusion(sweep, corpus, metric)
