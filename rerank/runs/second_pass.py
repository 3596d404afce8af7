"""A second pass over the lists of a split, for what needs the candidates themselves beside their scores.

A corpus holds features and statistics, not texts: all lists of a split need not fit into memory. So decoding, which
compares candidates with one another, reads the files again, once for everything that visits the lists.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.progress import DETAIL, track
from rerank.data.corpus import Corpus
from rerank.data.symbols import SymbolTable
from rerank.extraction.content import Pair
from rerank.extraction.extraction import Extracted
from rerank.extraction.kinds import content_of
from rerank.extraction.trees import Parses
from rerank.learn.base import Weights
from rerank.learn.folds import FOLDS, sections
from rerank.learn.scoring import scores
from rerank.metrics import bracket_model
from rerank.metrics.bracket_model import BracketColumns, BracketModel
from rerank.metrics.fusion import Fusion, probabilities
from rerank.metrics.metric import Metric, chosen_rows
from rerank.metrics.parseval import Parseval
from rerank.models.decoding import Evidence, agreed, best_expected, gain_functions, settled
from rerank.models.provenance import Decoding
from rerank.readers.base import ScoreColumns, SkipCount
from rerank.readers.trees.trees import Trees, brackets, picked
from rerank.recipes.recipe import ListRecipe
from rerank.runs.combination import members, spread
from rerank.runs.corpora import Data, shared_lists
from rerank.runs.run import Run, beside
from rerank.runs.training import RunTask, trained_on, trained_once


class RereadList(NamedTuple):
    """A list of a corpus, read again: its number, its candidates in the corpus, and what these are."""

    number: int
    own: slice
    pair: Pair
    evidence: Evidence


class Visitor(ABC):
    """Something that looks at the lists of a split one after the other."""

    @abstractmethod
    def see(self, again: RereadList) -> None:
        """Look at a list."""

    def skip(self) -> None:
        """Pass over a list that is not in the corpus, or has no candidates."""
        return


def visit_lists(recipe: ListRecipe, data: Data, split: str, extracted: Extracted, visitors: Sequence[Visitor]) -> None:
    """Read all lists of a split again, for all ``visitors``."""
    content = content_of(recipe, columns=ScoreColumns.of_table(data.table.about))
    sizes = np.diff(extracted.corpus.lists)
    gains = None if recipe.decode.gains is None else gain_functions.get(recipe.decode.gains)
    lists, ends, long = content.read_again(recipe.data, split, extracted.ids, sizes), np.cumsum(sizes), 0
    for number, nbest in track(lists, f"decode {split}", total=extracted.corpus.list_count):
        usable = number >= 0 and nbest.problem is None and sizes[number] > 0
        pair = content.pair(nbest, SkipCount("skip")) if usable else None
        if pair is None:
            for visitor in visitors:
                visitor.skip()
            continue
        evidence = Evidence(content, pair.nbest, pair.content, recipe.decode.most, gains)
        long += len(pair.nbest) > recipe.decode.most and evidence.answers is None
        again = RereadList(number, slice(int(ends[number] - sizes[number]), int(ends[number])), pair, evidence)
        for visitor in visitors:
            visitor.see(again)
    if long and any(isinstance(visitor, GainSweep) for visitor in visitors):
        message = "%s: of %d lists only the %d candidates with the best scores were compared with each other"
        log.warning(f"{message} (decode.most)", split, long, recipe.decode.most)


def run_scores(run: Run, corpus: Corpus) -> np.ndarray:
    """float64 [N]: the scores of all candidates by the run's predictor."""
    return scores(corpus, run.weights[run.recipe.predictor])


class Points(NamedTuple):
    """The points that are tried on lists with ``scores`` (float64 [N], of all candidates): A sharpnesses, H thresholds
    and, of fusion, S slacks: see ``Decoding``."""

    scores: np.ndarray
    deviation: float
    sharpness: np.ndarray  # float64 [A]
    thresholds: np.ndarray  # float64 [H]
    slacks: np.ndarray = np.zeros(1)  # float64 [S]


class Sweep(Visitor):
    """One way to decode, tried at all points on one list after the other.

    At the first point: texts, the answers, empty to lists that cannot be decoded; candidates (int64 [L]), those of the
    corpus that these are, -1 for none.
    """

    def __init__(self, points: Points, lists: int) -> None:
        self.points, self.texts, self.candidates = points, list[bytes](), np.full(lists, -1, np.int64)

    def skip(self) -> None:
        self.texts.append(b"")

    @abstractmethod
    def sums(self, corpus: Corpus) -> np.ndarray:
        """float64 [points, K]: the statistics of all answers, by sharpness, then by threshold, then by slack."""

    @abstractmethod
    def rows(self, corpus: Corpus) -> np.ndarray:
        """float64 [L, K]: the statistics of the answers at the first point."""


class GainSweep(Sweep):
    """By expected gain: ``chosen`` (int64 [A, L]) are candidates of the corpus, -1 for lists without any; margins
    (float64 [L]), and candidates, are those at the first point by a Decoding ``how`` with the margin that it asks for.
    """

    def __init__(self, points: Points, lists: int, how: Decoding | None = None) -> None:
        super().__init__(points, lists)
        self.how, self.margins = how, np.zeros(lists)
        self.chosen = np.full((points.sharpness.size, lists), -1, np.int64)

    def see(self, again: RereadList) -> None:
        scores, nbest = self.points.scores[again.own], again.pair.nbest
        places = best_expected(again.evidence.expected(scores, self.points.sharpness, self.points.deviation), scores)
        self.chosen[:, again.number] = again.own.start + places
        place: int | None = int(places[0])
        if self.how is not None:
            p = probabilities(scores, self.points.sharpness, self.points.deviation)[0]
            self.margins[again.number] = margin = agreed(nbest, p)[1]
            place = settled(self.how, int(places[0]), margin, nbest.base)
        self.texts.append(b"" if place is None else nbest.written(place))
        if place is not None:
            self.candidates[again.number] = again.own.start + place

    def sums(self, corpus: Corpus) -> np.ndarray:
        return np.stack([chosen_rows(corpus.stats, chosen).sum(axis=0) for chosen in self.chosen])

    def rows(self, corpus: Corpus) -> np.ndarray:
        return chosen_rows(corpus.stats, self.candidates)

    @property
    def decided(self) -> bool:
        """Whether no list with candidates was left without an answer."""
        return bool(((self.candidates >= 0) == (self.chosen[0] >= 0)).all())


class FusionSweep(Sweep):
    """Fused trees, of brackets that ``brackets`` judge if that is given, or candidates that are worth nearly as much;
    of a list of failed parses alone the best candidate."""

    def __init__(self, points: Points, lists: int, metric: Parseval, brackets: BracketModel | None = None) -> None:
        super().__init__(points, lists)
        self._metric, self._brackets, K = metric, brackets, len(metric.columns)
        count = points.sharpness.size * points.thresholds.size * points.slacks.size
        self._rows, self._sums = np.zeros((lists, K)), np.zeros((count, K))

    def see(self, again: RereadList) -> None:
        scores, parses = self.points.scores[again.own], again.pair.content
        assert isinstance(parses, Parses)
        if again.evidence.fusion.used.any():
            text, best, rows = self._fused(again, scores, parses)
        else:
            best = int(np.argmax(scores))
            text, rows = again.pair.nbest.written(best), self._stats(again, picked(parses.trees, [best]), parses)
        self.texts.append(text)
        self._sums += rows
        self._rows[again.number] = rows[0]
        if best is not None:
            self.candidates[again.number] = again.own.start + best

    def _stats(self, again: RereadList, trees: Trees, parses: Parses) -> np.ndarray:
        return np.asarray(self._metric.stats(again.pair.gold, trees, parses.symbols)[1])

    def _fused(self, again: RereadList, scores: np.ndarray, parses: Parses) -> tuple[bytes, int | None, np.ndarray]:
        """The answer at the first point, the candidate that it is, and the statistics at all points."""
        fusion, points, judged = again.evidence.fusion, self.points, None
        if self._brackets is not None:
            judged = again.evidence.judged(self._brackets, scores, points.sharpness, points.deviation)
        weights = probabilities(scores, points.sharpness, points.deviation)
        trees = fusion.trees(weights, points.thresholds, judged)
        rows = np.repeat(self._stats(again, trees, parses), points.slacks.size, axis=0)
        if judged is not None and points.slacks.any():
            found = [fusion.nearest(row, float(h), scores) for row in judged for h in points.thresholds]
            near, lost = [place for place, _ in found], np.array([lost for _, lost in found])
            kept = (lost[:, None] < points.slacks).ravel()
            own = np.repeat(self._stats(again, picked(parses.trees, near), parses), points.slacks.size, axis=0)
            rows = np.where(kept[:, None], own, rows)
            if kept[0]:
                return again.pair.nbest.written(near[0]), near[0], rows
        best = fusion.place_of(trees, scores) if trees.first.size == 2 else None
        return brackets(trees, 0, parses.symbols).encode("utf-8", "surrogateescape"), best, rows

    def sums(self, corpus: Corpus) -> np.ndarray:  # noqa: ARG002
        return self._sums

    def rows(self, corpus: Corpus) -> np.ndarray:  # noqa: ARG002
        return self._rows


def make_sweep(
    kind: str, points: Points, lists: int, metric: Metric, brackets: BracketModel | None, how: Decoding | None = None
) -> Sweep:
    """One way to decode; ``how``: see ``GainSweep``."""
    if kind == "mbr":
        return GainSweep(points, lists, how)
    assert isinstance(metric, Parseval)
    return FusionSweep(points, lists, metric, brackets if kind == "learned" else None)


log = logging.getLogger("rerank")
THRESHOLDS = np.array([0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6])  # half of F is about the best
SLACKS = np.array([0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4])  # in brackets; from .5 on F falls
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
        self._columns.append(bracket_model.bracket_columns(fusion, scores, base, self._sharpness))
        self._right.append(bracket_model.right_brackets(fusion, gold))
        self._folds.append(int(self._fold[again.own.start]))

    def fit(self, without: int | None = None) -> BracketModel:
        """The learned part, of all folds or of those but one."""
        kept = [i for i, fold in enumerate(self._folds) if fold != without]
        if not kept:
            raise RecipeError("no list of training has brackets to learn from", key="decode.kinds")
        every = BracketColumns(*map(np.concatenate, zip(*(self._columns[i] for i in kept), strict=True)))
        if without is None:
            log.info("learned fusion: %s brackets of %s lists", f"{every.numbers.shape[0]:,}", f"{len(kept):,}")
        return bracket_model.fit(every, np.concatenate([self._right[i] for i in kept]), self._symbols, self._deviation)


class FoldedFusion(Visitor):
    """Fused trees of lists, each by the brackets that were learned without its fold (int64 [N], of candidates)."""

    def __init__(self, sweeps: list[FusionSweep], fold: np.ndarray) -> None:
        self.sweeps, self._fold = sweeps, fold

    def see(self, again: RereadList) -> None:
        self.sweeps[self._fold[again.own.start]].see(again)

    def best(self, lists: Corpus, metric: Metric) -> tuple[float, float]:
        """The threshold with the best score on all of the lists without slack, the smallest of equals; and, of the
        slacks that cost nothing of that score, the one with the most trees that are entirely right."""
        total, points = lists.reference.sum(axis=0), self.sweeps[0].points
        sums = np.sum([sweep.sums(lists) for sweep in self.sweeps], axis=0)
        reports = [metric.report(row, total) for row in sums]
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


def learn_brackets(
    recipe: ListRecipe, data: Data, run: Run, metric: Parseval
) -> tuple[BracketModel, tuple[float, float]]:
    """A run's model of brackets, and the threshold and slack that go with it: each fifth of the training lists, or of
    its share of them, is scored by a training on the others (of an ensemble, that of its first member).

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
    scored: list[np.ndarray] = []
    for fold, (first, last) in enumerate(sections(corpus.list_count)):
        log.info("learned fusion: fold %d of %d", fold + 1, FOLDS)
        rest = corpus.take(np.concatenate([np.arange(first), np.arange(last, corpus.list_count)]))
        lists = f"{trained_on(run.data[0], run.recipe)} without {first} to {last}", *run.data[1:]
        kept = None if run.place is None else beside(run.place, f"fold-{fold}")
        trained = trained_once(RunTask(run.name, single, rest, dev, lists, kept))
        held = corpus.slice(first, last)
        scored.append(run_scores(trained, held) / spread(held, trained.weights[single.predictor]))
    base, sharpness = spread(corpus, Weights(np.zeros(corpus.width), 1.0)), recipe.decode.sharpness or MEANT
    scores, folds = np.concatenate(scored), np.repeat(np.arange(FOLDS), [part.size for part in scored])
    reading = BracketReading(scores, folds, base, sharpness)
    visit_lists(recipe, data, recipe.data.training, training, [reading])
    learned = reading.fit()
    if recipe.decode.threshold is not None:
        return learned, (recipe.decode.threshold, 0.0)
    points = Points(scores, 1.0, np.array([sharpness]), THRESHOLDS, SLACKS)
    try:
        apart = [FusionSweep(points, corpus.list_count, metric, reading.fit(number)) for number in range(FOLDS)]
    except RecipeError:
        log.warning("learned fusion: too few lists to choose a threshold by folds; it is %g", EVEN)
        return learned, (EVEN, 0.0)
    folded = FoldedFusion(apart, folds)
    visit_lists(recipe, data, recipe.data.training, training, [folded])
    return learned, folded.best(corpus, metric)
