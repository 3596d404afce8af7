"""Learning how probable brackets are: from lists of training, scored by models that were not trained on them."""

import logging
from itertools import pairwise

import numpy as np

from rerank.base.errors import RecipeError
from rerank.data.shards import section
from rerank.data.symbols import SymbolTable
from rerank.engines.settings import Engine
from rerank.extraction.content.trees import Parses
from rerank.learn.base import Weights
from rerank.metrics.decoding.bracket_model import BracketModel, fit, require_classifier
from rerank.metrics.decoding.columns import BracketColumns, bracket_columns, right_brackets
from rerank.metrics.decoding.fusion import Fusion
from rerank.recipes.recipe import ListRecipe
from rerank.runs.corpora import Data, shared_lists
from rerank.runs.ensembles import members, spread
from rerank.runs.lists_again import ListAgain, run_scores, see_again
from rerank.runs.run import Run, beside
from rerank.runs.training import RunTask, trained_on, trained_once

log = logging.getLogger("rerank")
FOLDS = 5


class BracketReading:
    """The columns of all lists' brackets, and which are right.

    scores, base: float64 [N], of all candidates; scores in units of their deviation, as ``base_deviation`` has that of
    the base scores.
    """

    def __init__(self, scores: np.ndarray, base_deviation: float, sharpness: float) -> None:
        self._scores, self._deviation, self._sharpness = scores, base_deviation, sharpness
        self._columns, self._right = list[BracketColumns](), list[np.ndarray]()
        self._symbols = SymbolTable()

    def part(self, lists: int, candidates: slice) -> "BracketReading":  # noqa: ARG002 - it has no list's place
        return BracketReading(self._scores[candidates], self._deviation, self._sharpness)

    def join(self, part: "BracketReading", first: int, candidate: int) -> None:  # noqa: ARG002
        """Every part has symbols of its own."""
        symbols = part._symbols
        known = np.array([-1, *(self._symbols.intern(symbols.text(i)) for i in range(len(symbols)))], np.int32)
        self._columns += [column._replace(symbols=known[column.symbols + 1]) for column in part._columns]
        self._right += part._right

    def see(self, again: ListAgain) -> None:
        """A list of failed parses alone has no brackets to learn from."""
        parses, fusion = again.pair.content, again.evidence.fusion
        assert isinstance(parses, Parses)
        self._symbols, gold = parses.symbols, Fusion(again.pair.gold, parses.symbols)  # one table for the part
        if not fusion.used.any() or not np.array_equal(fusion.words, gold.words):
            return
        scores, base = self._scores[again.own], again.pair.nbest.base / self._deviation
        self._columns.append(bracket_columns(fusion, scores, base, self._sharpness))
        self._right.append(right_brackets(fusion, gold))

    def skip(self) -> None:
        """See ``Reading``."""

    def fit(self) -> BracketModel:
        """The learned part."""
        every = BracketColumns(*map(np.concatenate, zip(*self._columns, strict=True))) if self._columns else None
        if every is None:
            raise RecipeError("no list of training has brackets to learn from", key="decode.kinds")
        log.info("learned fusion: %s brackets of %s lists", f"{every.numbers.shape[0]:,}", f"{len(self._right):,}")
        return fit(every, np.concatenate(self._right), self._symbols, self._deviation)


def check_learning(recipe: ListRecipe) -> None:
    """Refuse to learn where models that have not seen a list cannot be had, or scikit-learn."""
    require_classifier()
    if recipe.training.start is not None:
        message = "brackets are learned from lists that a model has not seen: leave it out, or decode by mbr and fuse"
        raise RecipeError(message, key="training.start")


def learn_brackets(
    recipe: ListRecipe, data: Data, run: Run, sharpness: float, engine: Engine | None = None
) -> BracketModel:
    """What a run learns of brackets: each fifth of the training lists, or of its share of them, is scored by a training
    on the others (of an ensemble, that of its first member).

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
        trained = trained_once(RunTask(run.name, single, rest, dev, lists, kept), engine)
        held = section(corpus, first, last)
        scored.append(run_scores(trained, held) / spread(held, trained.weights[single.predictor]))
    base = spread(corpus, Weights(np.zeros(corpus.width), 1.0))
    reading = BracketReading(np.concatenate(scored), base, sharpness)
    see_again(recipe, data, recipe.data.training, training, [reading], engine)
    return reading.fit()
