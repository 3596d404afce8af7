"""A model at work: lists in, ranked lists out, and the reasons for a choice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rerank.compile import kernel
from rerank.corpus import Corpus
from rerank.errors import ModelError
from rerank.extraction import make_extractor, make_reader
from rerank.features.extract import Extractor, ListFeatures
from rerank.features.rows import RowBuilder
from rerank.model import Model
from rerank.predict import vote_model
from rerank.readers.base import BadList, NBestList, Reader, SkipCount
from rerank.readers.pairs import parse_list
from rerank.readers.streams import Writable
from rerank.readers.trees import Trees
from rerank.recipe import FeatureSettings
from rerank.symbols import SymbolTable

VOTE_BATCH = 64


class Ranked(NamedTuple):
    """A list in the model's order. ``scores`` (float64 [N]) are in the list's own order; votes for a voted model."""

    nbest: NBestList
    order: np.ndarray  # int64 [N], best first
    scores: np.ndarray


class Contribution(NamedTuple):
    """What one feature adds to the difference of two candidates' scores: weight × (value − other's value)."""

    feature: str
    weight: float
    value: float
    other: float

    @property
    def amount(self) -> float:
        """The contribution."""
        return self.weight * (self.value - self.other)


@kernel
def add_scores(
    weight: np.ndarray, first: np.ndarray, candidate: np.ndarray, value: np.ndarray, scores: np.ndarray
) -> None:
    """Add weight[i] × value of every feature i of a list to the scores of its candidates."""
    for i in range(weight.shape[0]):
        for e in range(first[i], first[i + 1]):
            scores[candidate[e]] += weight[i] * value[e]


def write_ranked(out: Writable, reader: Reader, lists: Iterable[Ranked | BadList], most: int | None = None) -> None:
    """Write lists in the format of ``reader``, at most ``most`` candidates each, with new and old scores.

    A bad list becomes one without candidates, so that the output stays aligned with the references.
    """
    form: str | None = None  # the variant of the format, known with the first list that is not bad
    waiting: list[BadList] = []

    def write_bad() -> None:
        for bad in waiting:
            empty = NBestList(bad.id, bad.path, bad.line, [], [], np.zeros((0, 1)), form=form or "header")
            reader.write(out, empty, [], np.zeros(0))
        waiting.clear()

    for ranked in lists:
        if isinstance(ranked, BadList):
            waiting.append(ranked)
        else:
            form = ranked.nbest.form
            write_bad()
            reader.write(out, ranked.nbest, [int(y) for y in ranked.order[:most]], ranked.scores)
    write_bad()


def rank(scores: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Candidates by score, ties by base score, then by index (int64 [N])."""
    return np.lexsort((np.arange(scores.size), -base, -scores))


class Reranker:
    """Applies a model to lists as they come, one at a time.

    Parameters
    ----------
    model: what ``Model.load`` gave.
    predictor: "average", "last" or "voted" (if the model kept its votes).
    """

    def __init__(self, model: Model, predictor: str = "average") -> None:
        if "features" not in model.settings:
            task = model.settings.get("task", "another task")
            raise ModelError(f"a model of {task}; only models of N-best lists rerank lists")
        if predictor not in (*model.weights, "voted"):
            raise ModelError(f"no predictor {predictor!r}; expected average, last or voted")
        if predictor == "voted" and not model.votes:
            raise ModelError("the model keeps no votes; train with training.vote: true, or use the average")
        self.model, self.predictor = model, predictor
        self.symbols = SymbolTable()
        self.settings = FeatureSettings.model_validate(model.settings["features"])
        # Values as they are, not relative to the list: scores then compare across lists.
        self.extractor: Extractor = make_extractor(self.settings, self.symbols, centred=False)
        self.unknown_features = 0

    @property
    def reader(self) -> Reader:
        """The reader of the format that the model was trained on."""
        return make_reader(self.model.settings["data"]["reader"])

    def read(self, reader: Reader, path: str, count: SkipCount) -> Iterator[tuple[NBestList, Trees] | BadList]:
        """Lists with their trees; bad ones, if they are to be skipped, as they are, so that output stays aligned."""
        for nbest in reader.read(path):
            parsed = nbest if isinstance(nbest, BadList) else parse_list(nbest, self.symbols)
            if isinstance(parsed, BadList):
                count.bad(parsed)
                yield parsed
            elif isinstance(nbest, NBestList):
                count.good(nbest)
                yield nbest, parsed

    def features(self, nbest: NBestList, trees: Trees) -> tuple[ListFeatures, np.ndarray]:
        """Features of a list, and their columns (int32, negative where the model does not know them)."""
        features = self.extractor.features(trees, nbest.base, nbest.candidates if self.settings.user else ())
        columns = self.model.table.columns(features)
        self.unknown_features += int(np.count_nonzero(columns < 0))
        return features, columns

    def scores(self, nbest: NBestList, trees: Trees) -> np.ndarray:
        """float64 [N]: the model's score of every candidate (last or average)."""
        weights = self.model.weights[self.predictor]
        features, columns = self.features(nbest, trees)
        weight = np.where(columns >= 0, weights.w[np.maximum(columns, 0)], 0.0) if weights.w.size else np.zeros(0)
        scores = weights.base * nbest.base
        add_scores(weight, features.first, features.candidate, features.value, scores)
        return scores

    def rank(self, lists: Iterable[tuple[NBestList, Trees] | BadList]) -> Iterator[Ranked | BadList]:
        """Every list with its candidates ranked, in the order of the input; bad lists pass through."""
        if self.predictor != "voted":
            for item in lists:
                if isinstance(item, BadList):
                    yield item
                else:
                    scores = self.scores(*item)
                    yield Ranked(item[0], rank(scores, item[0].base), scores)
            return
        batch: list[tuple[NBestList, Trees] | BadList] = []
        for item in lists:
            batch.append(item)
            if len(batch) == VOTE_BATCH:
                yield from self._vote(batch)
                batch = []
        yield from self._vote(batch)

    def _vote(self, batch: Sequence[tuple[NBestList, Trees] | BadList]) -> Iterator[Ranked | BadList]:
        corpus = self.corpus([item for item in batch if not isinstance(item, BadList)])
        votes = vote_model(self.model, corpus)
        at = 0
        for item in batch:
            if isinstance(item, BadList):
                yield item
                continue
            scores = votes[corpus.lists[at] : corpus.lists[at + 1]]
            at += 1
            yield Ranked(item[0], rank(scores, item[0].base), scores)

    def corpus(self, lists: Sequence[tuple[NBestList, Trees]]) -> Corpus:
        """Lists without references as a corpus of the model's columns."""
        rows = RowBuilder()
        for nbest, trees in lists:
            features, columns = self.features(nbest, trees)
            nothing = np.zeros(len(nbest))
            rows.add(features, columns, nbest.base, nothing, np.zeros((len(nbest), 0)), np.zeros(0))
        return rows.finish(None, self.model.table.width, {})

    def explain(self, nbest: NBestList, trees: Trees, chosen: int, other: int) -> list[Contribution]:
        """Why ``chosen`` scores as it does against ``other``: the features that differ, strongest first."""
        weights = self.model.weights["average" if self.predictor == "voted" else self.predictor]
        features, columns = self.features(nbest, trees)
        values = np.zeros((2, columns.size))
        for row, candidate in zip(values, (chosen, other), strict=True):
            entries = np.flatnonzero(features.candidate == candidate)
            row[np.searchsorted(features.first, entries, side="right") - 1] = features.value[entries]
        base = nbest.base
        found = [Contribution("base score", weights.base, float(base[chosen]), float(base[other]))]
        for i in np.flatnonzero((columns >= 0) & (values[0] != values[1])):
            weight = float(weights.w[columns[i]])
            if weight:
                name = self.model.table.name(int(columns[i]))
                found.append(Contribution(name, weight, float(values[0, i]), float(values[1, i])))
        return sorted(found, key=lambda part: (-abs(part.amount), part.feature))
