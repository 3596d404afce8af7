"""A model at work: lists in, ranked lists out, and the reasons for a choice."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rerank.base.encoding import encoded
from rerank.base.errors import ModelError
from rerank.data.corpus import Corpus
from rerank.data.symbols import hash_all, quick_hash
from rerank.extraction.content import Content, Pair
from rerank.extraction.kinds import content_of
from rerank.extraction.sample import SAMPLE_SIZE, measure_columns, values_of
from rerank.features.rows import RowBuilder
from rerank.features.sink import ListFeatures
from rerank.features.table import HashedTable
from rerank.learn.learner import Weights
from rerank.learn.scoring import add_scores, dense_scores
from rerank.learn.scoring import scores as scores_of
from rerank.models.model import Model, recipe_of
from rerank.models.provenance import Decoding, columns_unlike, decodings_of
from rerank.readers.inputs import in_step
from rerank.readers.lists import Lists
from rerank.readers.memory.nbest import Plain
from rerank.readers.reader import ListWriter, Problem, Reader, ScoreColumns, SkipCount, filter_usable, make_reader
from rerank.storage.streams import PathLike, Writable, read_in

if TYPE_CHECKING:
    from rerank.metrics.bracket_model import BracketModel
    from rerank.models.decoding import Decoded, Gains

log = logging.getLogger("rerank")
VOTE_BATCH = 64
FEW_NUMBERS = 128  # numbers that are added up in less time than numpy takes to begin
RANDOM_ROWS = 64  # candidates that show what features do with numbers


class Ranked(NamedTuple):
    """A list in the model's order. ``scores`` (float64 [N]) are in the list's own order; votes for a voted model.

    Where lists are decoded, ``answer`` is what this one is decoded to: if a candidate, it comes first in the order.
    """

    nbest: Lists
    order: np.ndarray  # int64 [N], best first
    scores: np.ndarray
    unknown: int = 0  # how many features that vary in the list the model does not know
    answer: "Decoded | None" = None

    @property
    def best(self) -> bytes:
        """The text that is chosen; nothing where there is no candidate."""
        if self.answer is not None:
            return encoded(self.answer.text)
        return self.nbest.original(int(self.order[0])) if self.order.size else b""


class Contribution(NamedTuple):
    """The part of one feature in the difference of two candidates' scores: weight × (value − other's value)."""

    feature: str
    weight: float
    value: float
    other: float

    @property
    def amount(self) -> float:
        """The contribution."""
        return self.weight * (self.value - self.other)


def write_ranked(out: Writable, reader: Reader, lists: Iterable[Ranked | Problem], most: int | None = None) -> None:
    """Write lists in the format of ``reader``, at most ``most`` candidates each, with new and old scores.

    A bad list becomes one without candidates, so that the output stays aligned with the references.
    """
    writer = ListWriter(out, reader)
    for ranking in lists:
        if isinstance(ranking, Problem):
            writer.bad(ranking)
        else:
            writer.good(ranking.nbest, [int(y) for y in ranking.order[:most]], ranking.scores)
    writer.finish()


def rank(scores: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Candidates by score, ties by base score, then by index (int64 [N])."""
    return np.lexsort((-base, -scores))  # which keeps the order of equals


def put_first(order: np.ndarray, index: int | None) -> np.ndarray:
    """``order`` (int64 [N]) with the candidate ``index`` before all others, if there is one."""
    return order if index is None else np.concatenate([[index], order[order != index]])


class Scorer:
    """Applies a model to lists as readers give them, one at a time.

    Threads may share a Scorer, and the lists that it opens: a call keeps what it needs to itself, and no trace of a
    list remains. See docs/serving.md.

    Parameters
    ----------
    model: what ``Model.load`` gave.
    predictor: "average", "last", "mert" (if it was tuned) or "voted" (if it kept its votes), whose best candidate is
        chosen; "base", the base score alone; or "mbr", "fuse" or "learned", by which the model was tuned to decode
        lists; by default what the model has decided.

    ``how``: how lists are decoded, None for not at all; ``ranked_by``: the predictor whose scores rank them, by
    ``weights`` (in a vote, those of the average, which explain it).
    """

    def __init__(self, model: Model, predictor: str | None = None) -> None:
        recipe = recipe_of(model)
        decision, kinds = model.decision, decodings_of(model.about)
        predictor = decision.predictor if predictor is None else predictor
        names = [*model.weights, "voted", "base", *kinds]
        if predictor not in names:
            raise ModelError(f"no predictor {predictor!r}; expected {', '.join(names)}")
        if predictor == "voted" and not model.votes:
            raise ModelError("the model keeps no votes; train with training.vote: true, or use the average")
        self.model, self.predictor, self.recipe, self.how = model, predictor, recipe, kinds.get(predictor)
        self.ranked_by = decision.ranked_by if self.how else predictor
        predictors = model.weights | {"base": Weights(np.zeros(model.table.width), 1.0)}
        self.weights = predictors["average" if self.ranked_by == "voted" else self.ranked_by]
        self._column_weights = lru_cache(maxsize=64)(self._weigh_columns)

    @cached_property
    def content(self) -> Content[Any]:
        """The kind of candidates, and their features."""
        # Values as they are, not relative to the list, make scores comparable across lists.
        columns = ScoreColumns.of_table(self.model.table.about)
        table = self.model.table
        content = content_of(self.recipe, centred=False, columns=columns, keeps_texts=False)
        content.needs_scores = bool(table.about.get("scored"))
        if not isinstance(table, HashedTable):  # nobody misses what templates need that gave nothing in training either
            templates = {table.templates[k] for k in np.flatnonzero(np.bincount(table.template))}
            for names in content.needs.values():
                names[:] = [name for name in names if name in templates]
        return content

    def watch(self, lists: Iterable[Pair | Problem]) -> Iterator[Pair | Problem]:
        """Pass lists on, and log at the end how the score columns of the first ``SAMPLE_SIZE`` are unlike training."""
        record, names = self.model.about.get("columns", {}), self.content.column_names
        columns, measures = {name: column for name, column in record.items() if name in names}, list[np.ndarray]()
        for each in lists:
            if columns and isinstance(each, Pair) and len(each.nbest) > 1 and len(measures) < SAMPLE_SIZE:
                measures.append(measure_columns(values_of(each.nbest, tuple(columns))))
            yield each
        for line in columns_unlike(columns, np.array(measures)):
            log.warning("%s", line)

    @property
    def reader(self) -> Reader:
        """The reader of the format that the model was trained on; see ``Reader.of_others``."""
        return make_reader(self.recipe.data.reader).of_others()

    def read(
        self, reader: Reader, path: str, count: SkipCount, sources: PathLike | None = None
    ) -> Iterator[Pair | Problem]:
        """Lists with what their candidates are; bad ones to be skipped stay as they are, so that output stays aligned.

        sources: a file with the source of every list, bad ones included, one per line; for lists of texts that do not
        hold theirs. What is unlike the training lists in their score columns is logged at the end.
        """
        sides = []
        if sources is not None:
            from rerank.readers.texts.text_files import source_lines

            sides.append(source_lines(sources, getattr(self.recipe.data, "form", "auto")))
        reader = reader.for_columns(self.content.columns, normal=self.content.normalize, live=True)
        lists = read_in(self.recipe.data.encoding, in_step(reader, path, sides))
        return self.watch(filter_usable(lists, self._count, count))

    def _count(self, item: tuple[Lists, tuple[Any, ...]], count: SkipCount) -> Pair | Problem:
        nbest, source = item
        if source and not nbest.of_trees:
            nbest = nbest.replace(source=source[0][0])
        pair = self.open(nbest)
        if isinstance(pair, Problem):
            count.bad(pair)
        else:
            count.good(pair.nbest)
            count.unknown.update(self.content.unknown(pair.nbest))
        return pair

    def open(self, nbest: Lists) -> Pair | Problem:
        """A list, minus the candidates that cannot be used, with what the others are; or why there are none."""
        try:
            return Pair(*self.content.open(nbest))
        except Problem as problem:
            return problem

    def features(self, pair: Pair) -> tuple[ListFeatures, np.ndarray]:
        """Features of a list, and their columns (int32, negative where the model does not know them)."""
        features = self.content.features(pair.nbest, pair.content)
        return features, self.model.table.columns(features)

    def _dense(self, rows: Lists) -> list[tuple[float | None, np.ndarray]]:
        """The dense features of a list: the weight of each, None if it is unknown, and its values (float64 [N])."""
        parts = [(each.seed, each.columns(rows, rows.first) or {}) for each in self.content.extractor.templates]
        values = {hash_all(seed, *map(quick_hash, name)) | 1: of for seed, found in parts for name, of in found.items()}
        columns = map(self.model.table.free_columns.get, values)
        weights = [None if column is None else float(self.weights.w[column]) for column in columns]
        return list(zip(weights, values.values(), strict=True))

    def _weigh_columns(self, names: tuple[str, ...], column: int) -> list[tuple[float | None, int]] | None:
        """Of lists without answers with these score columns, the base score's at ``column``: the weights of dense
        features, and the score columns that these are, as numbers of all sizes show; None if they are more."""
        random, size = np.random.default_rng(0), (RANDOM_ROWS, max(column + 1, len(names)))
        scores = random.normal(size=size) * 10.0 ** random.integers(-30, 30, size)
        texts, lines = [b""] * RANDOM_ROWS, range(RANDOM_ROWS)
        dense = self._dense(Lists.one("", "", 0, texts, lines, scores, column, names=names))
        same = [(weight, np.flatnonzero((values == scores.T).all(axis=1))) for weight, values in dense]
        return [(weight, int(k[0])) for weight, k in same] if all(k.size for _, k in same) else None

    def rank_plain(self, plain: Plain) -> tuple[np.ndarray | list[int], np.ndarray | list[float], int] | None:
        """The order and the scores of a plain list, as in ``Ranked``, and how many features are unknown. None
        where features are more than score columns as they stand."""
        if (pairs := self._column_weights(plain.columns.names, plain.base)) is None:
            return None
        few = len(plain.rows) * len(plain.columns.names) <= FEW_NUMBERS
        columns: Any = list(zip(*plain.numbers, strict=True)) if few else np.array(plain.numbers).T
        scores, unknown = self._sums(base := columns[plain.base], [(weight, columns[k]) for weight, k in pairs])
        order = sorted(range(len(base)), key=lambda y: (-scores[y], -base[y])) if few else rank(scores, base)
        return order, scores, unknown

    def _sums(self, base: Any, features: Sequence[tuple[float | None, Any]]) -> tuple[Any, int]:
        return dense_scores(float(self.weights.base), base, features, relative=self.content.extractor.relative)

    def _score(self, pair: Pair) -> Ranked:
        """A list in the order of its scores."""
        weights, table = self.weights, self.model.table
        if isinstance(rows := pair.content, Lists) and weights.trees is None and not isinstance(table, HashedTable):
            pairs = self._column_weights(rows.names, rows.column) if rows.answers is None else None
            dense = self._dense(rows) if pairs is None else [(weight, rows.scores[:, k]) for weight, k in pairs]
            scores, unknown = self._sums(rows.base, dense if len(rows) else ())
            return Ranked(pair.nbest, rank(scores, rows.base), scores, unknown)
        features, columns = self.features(pair)
        absent = columns < 0
        if weights.trees is not None:
            scores = scores_of(self._corpus([(pair, features, columns)]), weights)
        else:
            weight = np.zeros(columns.size) if absent.all() else weights.w[columns]  # of those absent, any other
            weight[absent] = 0.0
            scores = weights.base * pair.nbest.base
            add_scores(weight, features.first, features.candidate, features.value, scores)
        order = rank(scores, pair.nbest.base)
        return Ranked(pair.nbest, order, scores, int(np.count_nonzero(absent)))

    def rank(self, lists: Iterable[Pair | Problem]) -> Iterator[Ranked | Problem]:
        """Every list with its candidates ranked, and its answer if it is decoded, in the order of the input; bad lists
        pass through."""
        if (how := self.how) is None:
            yield from self.rank_by_scores(lists)
            return
        for item in lists:
            ranking = item if isinstance(item, Problem) else self._score(item)
            if isinstance(item, Pair) and isinstance(ranking, Ranked) and ranking.order.size:
                answer = self._decode(item, ranking, how)
                ranking = ranking._replace(order=put_first(ranking.order, answer.place), answer=answer)
            yield ranking

    def rank_by_scores(self, lists: Iterable[Pair | Problem]) -> Iterator[Ranked | Problem]:
        """The same by the scores alone: nothing is decoded."""
        if self.predictor != "voted":
            for item in lists:
                yield item if isinstance(item, Problem) else self._score(item)
            return
        waiting = iter(lists)
        while batch := list(islice(waiting, VOTE_BATCH)):
            yield from self._vote(batch)

    def _vote(self, batch: Sequence[Pair | Problem]) -> Iterator[Ranked | Problem]:
        from rerank.learn.epoch import Votes
        from rerank.learn.voting import vote  # the kernels of voting

        lists = [(item, *self.features(item)) for item in batch if not isinstance(item, Problem)]
        corpus = self._corpus(lists)
        votes = vote(Votes(**self.model.votes), corpus)
        bounds = zip(corpus.lists, corpus.lists[1:], strict=False)
        rankings = (
            Ranked(item.nbest, rank(votes[a:b], item.nbest.base), votes[a:b], int(np.count_nonzero(columns < 0)))
            for (item, _, columns), (a, b) in zip(lists, bounds, strict=True)
        )
        for item in batch:
            yield item if isinstance(item, Problem) else next(rankings)

    def decoding(self, kind: str | None = None) -> Decoding | None:
        """The decoding of lists, by ``kind`` if that is given; None, as for "best": their best candidates are taken."""
        if kind is None:
            return self.how
        if kind == "best":
            return None
        decodings, ranked_by = decodings_of(self.model.about), self.model.decision.ranked_by
        if kind not in decodings:
            raise ModelError(f"the model was not tuned to decode by {kind!r}; it has {', '.join([*decodings, 'best'])}")
        if self.ranked_by != ranked_by:
            message = f"decoding was tuned for the scores of the predictor {ranked_by!r}"
            raise ModelError(f"{message}, not {self.ranked_by!r}; take that one, or the best candidates")
        return decodings[kind]

    def answer(self, pair: Pair, how: Decoding | None, gains: "Gains | None" = None) -> "Decoded":
        """The answer that a list is decoded to; ``gains`` take the place of the metric's, or of those that ``how``
        names."""
        from rerank.models.decoding import best_answer

        (ranking,) = self.rank_by_scores([pair])
        assert isinstance(ranking, Ranked)
        if how is None:
            return best_answer(pair.nbest, ranking.order, ranking.scores)
        return self._decode(pair, ranking, how, gains)

    def _decode(self, pair: Pair, ranking: Ranked, how: Decoding, gains: "Gains | None" = None) -> "Decoded":
        from rerank.models.decoding import decode  # with the kernels of decoding

        return decode(how, self.content, pair.nbest, pair.content, ranking.scores, gains, self._brackets)

    @cached_property
    def _brackets(self) -> "BracketModel | None":
        """The model of brackets."""
        from rerank.metrics.bracket_model import BracketModel

        return BracketModel.of(self.model.brackets) if self.model.brackets else None

    def _corpus(self, lists: Sequence[tuple[Pair, ListFeatures, np.ndarray]]) -> Corpus:
        rows = RowBuilder()
        for pair, features, columns in lists:
            nothing = np.zeros(len(pair.nbest))
            rows.add(features, columns, pair.nbest.base, nothing, np.zeros((nothing.size, 0)), np.zeros(0))
        return rows.finish(None, self.model.table.width, {}, scale=self.model.table.scale)

    def explain(self, pair: Pair, choice: int, other: int) -> list[Contribution]:
        """The reasons for the score of ``choice`` against ``other``: the features that differ, strongest first. Where
        there are trees, a value is what they add to the score when they ask for the feature, with the weight 1."""
        weights = self.weights
        features, columns = self.features(pair)
        values = np.zeros((2, columns.size))
        for row, candidate in zip(values, (choice, other), strict=True):
            entries = np.flatnonzero(features.candidate == candidate)
            row[np.searchsorted(features.first, entries, side="right") - 1] = features.value[entries]
        base = pair.nbest.base
        parts = [Contribution("base score", weights.base, float(base[choice]), float(base[other]))]
        if weights.trees is not None:
            corpus, table = self._corpus([(pair, features, columns)]), self.model.table
            amounts = np.stack([weights.trees.parts(corpus, y) for y in (choice, other)], axis=1)
            for j in np.flatnonzero(amounts[:, 0] != amounts[:, 1]).tolist():
                name = table.name(j) if j < table.width else "base score in trees"
                parts.append(Contribution(name, 1.0, *amounts[j].tolist()))
            columns = np.full_like(columns, -1)
        for i in np.flatnonzero((columns >= 0) & (values[0] != values[1])):
            weight = float(weights.w[columns[i]])
            if weight:
                name = self.model.table.name(int(columns[i]))
                parts.append(Contribution(name, weight, float(values[0, i]), float(values[1, i])))
        return sorted(parts, key=lambda part: (-abs(part.amount), part.feature))
