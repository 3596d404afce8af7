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
from rerank.runs.decoding import LEARNING_SHARPNESS, Points, Sweep
from rerank.runs.run import Run, sibling_path
from rerank.runs.training import RunTask, data_identity, train_once

log = logging.getLogger("rerank")
THRESHOLDS = np.array([0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6])  # half of F is about the best
SLACKS = np.array([0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4])  # in brackets; from .5 on F falls
DEFAULT_THRESHOLD = 0.5  # where the lists are too few to choose one


ListBrackets = tuple[BracketColumns, list[str | int], np.ndarray]


def brackets_of(deviation: float, sharpness: float, entry: RereadList, scores: np.ndarray) -> ListBrackets | None:
    """The columns of a list's brackets, in which symbols are indices of the texts that follow (or -1, -2), and which
    are right; a list of failed parses alone has none to learn from. ``scores`` (float64 [T]) are in units of their
    deviation, as ``deviation`` is that of the base scores."""
    if entry.pair is None or entry.evidence is None:
        return None
    symbols, fusion = entry.pair.content.symbols, entry.evidence.fusion
    gold = Fusion(entry.pair.gold, symbols)
    if not fusion.used.any() or not np.array_equal(fusion.words, gold.words):
        return None
    columns = bracket_model.bracket_columns(fusion, scores, entry.pair.nbest.base / deviation, sharpness)
    ids, inverse = np.unique(columns.symbols, return_inverse=True)
    texts = [symbols.text(one) if one >= 0 else one for one in ids.tolist()]
    columns = columns._replace(symbols=inverse.reshape(columns.symbols.shape))
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

    def _add(self, index: int, number: int, brackets: ListBrackets) -> None:  # noqa: ARG002
        columns, texts, right = brackets
        ids = np.array([one if isinstance(one, int) else self._symbols.intern(one) for one in texts], np.int32)
        self._columns.append(columns._replace(symbols=ids[columns.symbols]))
        self._right.append(right)
        self._folds.append(int(self._fold[number]))

    def fit(self, without: int | None = None) -> BracketModel:
        """The learned part, of all folds or of those but one."""
        lists = [i for i, fold in enumerate(self._folds) if fold != without]
        if not lists:
            raise RecipeError("no list of training has brackets to learn from", key="decode.kinds")
        columns = BracketColumns(*map(np.concatenate, zip(*(self._columns[i] for i in lists), strict=True)))
        if without is None:
            log.info("learned fusion: %s brackets of %s lists", f"{columns.numbers.shape[0]:,}", f"{len(lists):,}")
        right = np.concatenate([self._right[i] for i in lists])
        return bracket_model.fit(columns, right, self._symbols, self._deviation)


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

    Trainings that an interrupted call has finished are kept next to the file of the run.
    """
    training = shared_lists(data.training, run.recipe.training.share, run.recipe.seed)
    corpus = training.corpus
    single = members(run.recipe)[0] if run.recipe.training.ensemble else run.recipe
    single = single.change({"training.vote": False, "training.share": 1.0})
    dev = None if recipe.data.dev is None else data.others[recipe.data.dev].corpus
    if corpus.list_count < FOLDS:
        message = f"found {corpus.list_count} training lists; expected {FOLDS} or more, one for each part to learn from"
        raise RecipeError(message, key="decode.kinds")
    fold_scores, folds = list[np.ndarray](), np.zeros(corpus.list_count, np.int64)
    for fold, (first, last) in enumerate(sections(corpus.list_count)):
        log.info("learned fusion: fold %d of %d", fold + 1, FOLDS)
        rest = corpus.take(np.concatenate([np.arange(first), np.arange(last, corpus.list_count)]))
        lists = f"{data_identity(run.data[0], run.recipe)} without {first} to {last}", *run.data[1:]
        path = None if run.path is None else sibling_path(run.path, f"fold-{fold}")
        part, folds[first:last] = corpus.slice(first, last), fold
        values = train_once(RunTask(run.name, single, rest, dev, lists, path)).scores(part)
        fold_scores.append(values / deviation_of(part, values))
    base, sharpness = deviation_of(corpus, corpus.base), recipe.decode.sharpness or LEARNING_SHARPNESS
    scores = np.concatenate(fold_scores)
    reading = BracketReading(scores, folds, base, sharpness)
    visit_lists(recipe, data, recipe.data.training, [(training, [reading.visitor])])
    run.brackets = reading.fit()
    if recipe.decode.threshold is not None:
        run.fusion_point = recipe.decode.threshold, 0.0
        return
    try:
        models = [reading.fit(number) for number in range(FOLDS)]
    except RecipeError:
        log.warning("learned fusion: too few lists to choose a threshold by folds; it is %g", DEFAULT_THRESHOLD)
        run.fusion_point = DEFAULT_THRESHOLD, 0.0
        return
    points = Points(1.0, np.array([sharpness]), THRESHOLDS, SLACKS)
    sweep = Sweep("learned", points, scores, corpus, metric, models, folds=[folds])
    visit_lists(recipe, data, recipe.data.training, [(training, [sweep.visitor])])
    run.fusion_point = best_fusion(sweep, corpus, metric)
