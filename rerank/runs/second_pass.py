"""A second pass over the lists of a split, for what needs the candidates themselves beside their scores.

A corpus holds features and statistics, not texts: all lists of a split need not fit into memory. So decoding, which
compares candidates with one another, reads the files again, once for everything that visits the lists.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from rerank.base.progress import track
from rerank.data.shards import Corpora, list_sizes
from rerank.extraction.content import content_of
from rerank.extraction.content.base import Pair
from rerank.extraction.content.trees import Parses
from rerank.extraction.extraction import Extracted
from rerank.learn.scoring import candidate_scores
from rerank.metrics.base import Metric
from rerank.metrics.bracket_model import BracketModel
from rerank.metrics.oracle import statistics_of
from rerank.metrics.parseval import Parseval
from rerank.models.decoding import Evidence, agreed, best_expected, gain_functions, probabilities, settled
from rerank.models.provenance import Decoding
from rerank.readers.base import SkipCount
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.trees.trees import brackets
from rerank.recipes.recipe import ListRecipe
from rerank.runs.corpora import Data
from rerank.runs.run import Run


class RereadList(NamedTuple):
    """A list of a corpus, read again: its number, its candidates in the corpus, and what these are."""

    number: int
    own: slice
    pair: Pair
    evidence: Evidence


class Visitor(Protocol):
    """Something that looks at the lists of a split one after the other."""

    def see(self, again: RereadList) -> None:
        """Look at a list."""

    def skip(self) -> None:
        """Pass over a list that is not in the corpus, or has no candidates; nothing by default."""
        return


def visit_lists(recipe: ListRecipe, data: Data, split: str, extracted: Extracted, visitors: Sequence[Visitor]) -> int:
    """Read all lists of a split again, for all ``visitors``; returns how many have more candidates than
    ``decode.most``."""
    content, sizes = content_of(recipe, columns=ScoreColumns.of_table(data.table.about)), list_sizes(extracted.corpus)
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
    return long


def run_scores(run: Run, corpus: Corpora) -> np.ndarray:
    """float64 [N]: the scores of all candidates by the run's predictor."""
    return candidate_scores(corpus, run.weights[run.recipe.predictor])


class Points(NamedTuple):
    """The points that are tried on lists with ``scores`` (float64 [N], of all candidates): A sharpnesses and H
    thresholds."""

    scores: np.ndarray
    deviation: float
    sharpness: np.ndarray  # float64 [A]
    thresholds: np.ndarray  # float64 [H]


class Sweep(Visitor, Protocol):
    """One way to decode, tried at all points on one list after the other."""

    points: Points
    texts: list[bytes]  # the answers at the first point, empty to lists that cannot be decoded

    def sums(self, corpus: Corpora) -> np.ndarray:
        """float64 [points, K]: the statistics of all answers, by sharpness, then by threshold."""

    def rows(self, corpus: Corpora) -> np.ndarray:
        """float64 [L, K]: the statistics of the answers at the first point."""

    @property
    def candidates(self) -> np.ndarray:
        """int64 [L]: the candidates of the corpus that these answers are, where it is the only point; -1 for none."""


class GainSweep:
    """By expected gain: ``chosen`` (int64 [A, L]) are candidates of the corpus, -1 for lists without any.

    At the first point: margins (float64 [L]), and candidates (int64 [L]), what is chosen by a Decoding ``how``, if
    given, with the margin that it asks for.
    """

    def __init__(self, points: Points, lists: int, how: Decoding | None = None) -> None:
        self.points, self.how, self.texts = points, how, list[bytes]()
        self.chosen = np.full((points.sharpness.size, lists), -1, np.int64)
        self.margins, self.candidates = np.zeros(lists), np.full(lists, -1, np.int64)

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

    def skip(self) -> None:
        self.texts.append(b"")

    def sums(self, corpus: Corpora) -> np.ndarray:
        return np.stack([statistics_of(corpus, chosen).sum(axis=0) for chosen in self.chosen])

    def rows(self, corpus: Corpora) -> np.ndarray:
        return statistics_of(corpus, self.candidates)

    @property
    def decided(self) -> bool:
        """Whether no list with candidates was left without an answer."""
        return bool(((self.candidates >= 0) == (self.chosen[0] >= 0)).all())


class FusionSweep:
    """Fused trees, of brackets that ``brackets`` judge if that is given.

    A list of failed parses alone is decoded by its best candidate.
    """

    def __init__(self, points: Points, lists: int, metric: Parseval, brackets: BracketModel | None = None) -> None:
        self.points, self.texts, self._metric, self._brackets = points, list[bytes](), metric, brackets
        K = len(metric.columns)
        self._rows, self.candidates = np.zeros((lists, K)), np.full(lists, -1, np.int64)
        self._sums = np.zeros((points.sharpness.size * points.thresholds.size, K))

    def see(self, again: RereadList) -> None:
        scores, parses = self.points.scores[again.own], again.pair.content
        assert isinstance(parses, Parses)
        if again.evidence.fusion.used.any():
            trees = again.evidence.fused(scores, *self.points[2:], self.points.deviation, self._brackets)
            _, rows = self._metric.stats(again.pair.gold, trees, parses.symbols)
            self.texts.append(brackets(trees, 0, parses.symbols).encode("utf-8", "surrogateescape"))
            best = again.evidence.fusion.place_of(trees, scores) if trees.first.size == 2 else None
        else:
            best = int(np.argmax(scores))
            rows = self._metric.stats(again.pair.gold, parses.trees, parses.symbols)[1][best : best + 1]
            self.texts.append(again.pair.nbest.written(best))
        self._sums += rows
        self._rows[again.number] = rows[0]
        if best is not None:
            self.candidates[again.number] = again.own.start + best

    def skip(self) -> None:
        self.texts.append(b"")

    def sums(self, corpus: Corpora) -> np.ndarray:  # noqa: ARG002
        return self._sums

    def rows(self, corpus: Corpora) -> np.ndarray:  # noqa: ARG002
        return self._rows


def make_sweep(
    kind: str, points: Points, corpus: Corpora, metric: Metric, brackets: BracketModel | None = None,
    how: Decoding | None = None,
) -> Sweep:  # fmt: skip
    """One way to decode; ``how``: see ``GainSweep``."""
    if kind == "mbr":
        return GainSweep(points, corpus.list_count, how)
    assert isinstance(metric, Parseval)
    return FusionSweep(points, corpus.list_count, metric, brackets if kind == "learned" else None)
