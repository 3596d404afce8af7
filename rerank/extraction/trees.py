"""Lists of parse trees."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.registry import build
from rerank.data.symbols import SymbolTable
from rerank.data.trees import FIRST_SYMBOLS, Trees, brackets, no_changes, parse_brackets, subset
from rerank.extraction.content import Content, Pair
from rerank.features.extract import Extractor
from rerank.features.scores import find_unfit
from rerank.features.sink import ListFeatures
from rerank.metrics.evaluation import check_errors, refused_list
from rerank.metrics.metric import metrics
from rerank.metrics.parseval import Parseval
from rerank.readers.lists import Lists
from rerank.readers.reader import Problem, ScoreColumns, SkipCount, make_reader
from rerank.readers.trees.treebank import lists_of_trees, open_list, parse_list, parse_pair
from rerank.recipes.recipe import Recipe
from rerank.recipes.sections import SplitSettings
from rerank.recipes.settings import Settings


class Parses(NamedTuple):
    """The trees of a list, the table that they were read with, and the list with the scores that it is held to."""

    trees: Trees
    symbols: SymbolTable
    rows: Lists


class TreeContent(Content[Parses]):
    """Parses, with gold trees as references."""

    metric: Parseval
    extractor: Extractor
    unnamed = ScoreColumns(())

    def __init__(self, recipe: Recipe, **how: Any) -> None:
        super().__init__(Extractor, "trees", recipe.features, heads=recipe.features.heads, **how)
        self.metric, self.normalize = make_parseval(recipe.metric), recipe.data.normalize
        self.symbols.reserve(FIRST_SYMBOLS)  # so that copies have the room too

    def _table(self) -> SymbolTable:
        """The table to read a list with: labels that rules and templates ask about have the same ids in all tables."""
        return self.symbols if self.keeps_texts else self.symbols.copy()

    def read_source(self, data: SplitSettings, source: str) -> Iterator[Lists]:
        files = data.files_of(source)
        reader = make_reader(data.reader).for_columns(self.model_columns, normal=self.normalize)
        return lists_of_trees(reader, data.lists(source), files.get("gold"))

    def pair(self, nbest: Lists, count: SkipCount) -> Pair | None:
        symbols, changes = self._table(), no_changes() if self.normalize else None
        try:
            nbest = self._usable(nbest)
            if nbest.gold is None:
                raise nbest.fault(Problem("no reference", "no gold tree"))
            nbest, trees, gold = parse_pair(nbest, symbols, changes)
        except Problem as problem:
            count.bad(problem)
            return None
        count.good(nbest, changes)
        count.unknown.update(self.unknown(nbest))
        return Pair(nbest, Parses(trees, symbols, self.hold(nbest)), gold)

    def open(self, nbest: Lists) -> tuple[Lists, Parses]:
        symbols = self._table()
        nbest, trees = parse_list(self._usable(nbest), symbols, no_changes() if self.normalize else None)
        return nbest, Parses(trees, symbols, self.hold(nbest))

    def _usable(self, nbest: Lists) -> Lists:
        """A list without the candidates whose scores cannot be features. Raises Problem, also if it lacks a column."""
        self.hold(nbest.sound())
        return nbest.without(find_unfit(nbest)).sound()

    def without_bad(self, nbest: Lists) -> Lists:
        """With a gold tree, candidates need not have the same words."""
        return open_list(self._usable(nbest), self._table(), no_changes() if self.normalize else None)[0]

    def extract(self, nbest: Lists, content: Parses) -> ListFeatures:
        candidates = nbest.candidates if self.user else ()
        trees, symbols, rows = content
        return self.extractor.features(trees, nbest.base, candidates, rows=rows, symbols=symbols)

    def stats(self, nbest: Lists, content: Parses, gold: Trees) -> tuple[np.ndarray, np.ndarray]:  # noqa: ARG002
        return self.metric.stats(gold, content.trees, content.symbols)

    def text_stats(self, pair: Pair, text: bytes) -> np.ndarray:
        symbols = pair.content.symbols
        return np.asarray(self.metric.stats(pair.gold, parse_brackets([text], symbols), symbols)[1][0])

    def pairwise(self, nbest: Lists, content: Parses, indices: Sequence[int]) -> np.ndarray:
        n, K = len(indices), len(self.metric.columns)
        trees = content.trees if list(indices) == list(range(len(nbest))) else subset(content.trees, indices)
        reference, rows = self.metric.rows(trees, trees, None, content.symbols)
        return np.asarray(self.metric.gain(rows.reshape(n, n, K), reference[:, None]).T)

    def refusal(self, pair: Pair, stats: np.ndarray) -> str:
        return refused_list(self.metric, pair.nbest, pair.gold, pair.content.trees, stats, pair.content.symbols)

    def check(self, count: SkipCount) -> None:
        check_errors(self.metric, count.refusals, count.lists, count.first_refusal)

    def gold_text(self, pair: Pair) -> str:
        """The gold tree in brackets."""
        return brackets(pair.gold, 0, pair.content.symbols)


def make_parseval(spec: Settings) -> Parseval:
    """PARSEVAL as a recipe (or a model) describes it; ``prm`` names an EVALB parameter file."""
    spec = dict(spec)
    prm = spec.pop("prm", None)
    if prm is not None:
        if set(spec) - {"name", "punctuation"}:
            raise RecipeError("an EVALB parameter file leaves no room for other settings", key="metric.prm")
        return Parseval.from_prm(prm, punctuation=spec.get("punctuation", "evalb"))
    metric = build(metrics, spec, "metric")
    if not isinstance(metric, Parseval):
        raise RecipeError(f"{spec['name']} does not measure trees", key="metric.name")
    return metric
