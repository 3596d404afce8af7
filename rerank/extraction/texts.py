"""Lists of texts: translations, transcripts, samples of a language model."""

import logging
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from rerank.base.encoding import decoded
from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import build
from rerank.data.corpus import first_unfit
from rerank.extraction.content import Content, Description, MeasuredLists, Pair, SelectedTexts
from rerank.features.extract import TextExtractor
from rerank.features.scores import find_unfit
from rerank.features.sink import ListFeatures
from rerank.features.text.view import TextView, make_view
from rerank.metrics.gain import ColumnMetric
from rerank.metrics.metric import metrics
from rerank.metrics.text import Ter, TextMetric
from rerank.metrics.wer import Match
from rerank.readers.inputs import Attach, Side
from rerank.readers.lists import GAIN, Lists
from rerank.readers.reader import Problem, SkipCount, count_usable, learns_from, make_reader
from rerank.readers.texts.answers import with_answers
from rerank.readers.texts.text_files import complete, lists_of_texts, text_list, text_sides, with_texts
from rerank.recipes.recipe import TextDataSettings, TextRecipe
from rerank.recipes.sections import SplitSettings
from rerank.recipes.settings import Settings

log = logging.getLogger("rerank")
CHECKED_LISTS = 50  # of a split: both this program's sums and the reference implementation make their figures


class TextContent(Content[TextView | Lists]):
    """Texts, with texts as references. Where columns are all that templates see, there is no view of a text."""

    metric: TextMetric
    extractor: TextExtractor

    def __init__(self, recipe: TextRecipe, **how: Any) -> None:
        super().__init__(TextExtractor, "texts", recipe.features, **how)
        self.metric, self.needs = make_text_metric(recipe.metric), self.extractor.needs
        learns_gain = learns_from(GAIN, recipe.data.reader)
        self.gains = {*self.metric.measured, *(() if learns_gain else (GAIN,))}
        if self.columns is not None:  # gains are no features: where a model works they are unknown
            self.columns = self.columns.without(self.gains)
        self.final = final_metrics(recipe.task, self.metric, recipe.metrics)
        self.task, self.answer = recipe.task, recipe.data.answer

    def read_source(self, data: SplitSettings, source: str) -> Iterator[Lists]:
        reader = make_reader(data.reader).for_columns(self.model_columns)
        return lists_of_texts(reader, data.lists(source), **_texts_of(data, source))

    def beside(self, data: SplitSettings, source: str) -> tuple[Sequence[Side], Attach]:
        files = _texts_of(data, source)
        return text_sides(**files), partial(with_texts, sourced=files["sources"] is not None)

    def pair(self, nbest: Lists, count: SkipCount) -> Pair | None:
        try:
            nbest, content = self.open(complete(text_list(nbest), needs_references=not self.metric.measured))
        except Problem as problem:
            count.bad(problem)
            return None
        count_usable(nbest, count)
        count.unknown.update(self.unknown(nbest))
        return Pair(nbest, content, nbest.references)

    def comparable(self, nbest: Lists) -> Pair:
        return Pair(with_answers(text_list(nbest).sound(), self.answer), nbest, nbest.references)

    @property
    def flat(self) -> bool:
        return isinstance(self.metric, ColumnMetric) and self.extractor.bits == 64 and self.by_columns

    @cached_property
    def by_columns(self) -> bool:
        """Whether all features are columns, for which nobody looks at a text."""
        return not self.user and all(template.gives_columns() for template in self.extractor.templates)

    def measure_block(self, lists: Lists) -> MeasuredLists | None:
        if lists.sparse is not None or any(map(lists.sides.get, ("problem", "missing"))):
            return None
        try:
            lists = with_answers(lists, self.answer)
            rows = self.rows(lists)
            if find_unfit(rows):
                return None
            return MeasuredLists(Pair(lists, rows), *cast(ColumnMetric, self.metric).block_stats(lists))
        except DataError:  # of one of the lists
            return None

    def open(self, nbest: Lists) -> tuple[Lists, TextView | Lists]:
        """The words, phrases and scores of a list; without a source there are no phrases.

        The scores are those of ``columns`` where these are known: a list that lacks one is bad, and others are ignored.
        """
        try:
            nbest = with_answers(text_list(nbest).sound(), self.answer)
        except Problem as problem:
            raise nbest.fault(problem, problem.size) from None
        rows = self.rows(nbest)
        if self.by_columns and not self.keeps_texts and (rows.sparse is None or "Given" not in self.names):
            if first_unfit(rows.scores) < 0:
                return nbest, rows
        return nbest.open_usable(self._view)

    def rows(self, nbest: Lists) -> Lists:
        """Lists with the columns that templates look at. Raises Problem."""
        return self.hold(without_columns(nbest, self.gains))

    def _view(self, nbest: Lists) -> TextView:
        """The view that templates have of a list. Raises Problem."""
        lists = self.rows(nbest)
        if lists.source is None and (lists.segmentation is not None or lists.alignment is not None):
            lists = lists.replace(segmentation=None, alignment=None)
        return make_view(lists, lists.source or b"", self.symbols if self.keeps_texts else None)

    def extract(self, nbest: Lists, content: TextView | Lists) -> ListFeatures:
        content = self._view(nbest) if isinstance(content, Lists) else content
        candidates = nbest.candidates if self.user else ()
        return self.extractor.features(content, self.rows(nbest), candidates, names=self.keeps_texts)

    def stats(self, nbest: Lists, content: TextView | Lists, gold: tuple[bytes, ...]) -> tuple[np.ndarray, np.ndarray]:  # noqa: ARG002
        if isinstance(self.metric, Match) and nbest.answers is not None:
            right = with_answers(nbest.replace(texts=list(gold), answers=None), self.answer).answers or ()
            gold = (*gold, *filter(None, right))
        return self.metric.list_stats(nbest, gold)

    def text_stats(self, pair: Pair, text: bytes) -> np.ndarray:
        return np.asarray(self.metric.stats([text], pair.gold)[1][0])

    def pairwise(self, nbest: Lists, content: TextView | Lists, indices: Sequence[int]) -> np.ndarray:  # noqa: ARG002
        return self.metric.pairwise([nbest.texts[y] for y in indices])

    def gold_text(self, pair: Pair) -> str:
        """The references, one per line."""
        return "\n".join(" ".join(text.decode("utf-8", "replace").splitlines()) for text in pair.gold)

    def describe(self, split: str, names: Sequence[str], lists: Iterable[SelectedTexts]) -> Description:
        """The figures of the selections' texts by the field's reference implementations, with their signatures.

        For translations these are BLEU and chrF, whatever was trained for; there are none where a list has no
        references, which nothing needs when the gain measured is one that the lists hold. What the implementations are
        given are sums of this program's statistics, or the texts where these are not theirs for the first lists.
        """
        texts, references = {name: list[str]() for name in names}, list[list[str]]()
        for choice, gold in lists:
            references.append([decoded(text) for text in gold])
            for name, own in texts.items():
                own.append(decoded(choice[name]))
        reports, signatures = {name: dict[str, float]() for name in texts}, dict[str, str]()
        if not all(references):
            metric_names = ", ".join(metric.name for metric in self.final)
            log.info("%s: no %s, as there are lists without references", split, metric_names)
            return reports, signatures
        for metric in self.final:
            sums = sums_of(metric, list(texts.values()), references)
            if sums is None:
                log.info("%s: %s is computed from all texts, as they are too long to be counted one by one, or are "
                         "counted otherwise here", split, metric.name)  # fmt: skip
            for k, (name, own) in enumerate(texts.items()):
                figures = metric.corpus(own, references) if sums is None else metric.of_sums(sums[0][k], sums[1])
                reports[name].update(figures)
            signatures[metric.name] = metric.corpus_signature(references)
        return reports, signatures


def sums_of(
    metric: TextMetric, texts: Sequence[Sequence[str]], references: Sequence[Sequence[str]]
) -> tuple[np.ndarray, np.ndarray] | None:
    """``metric.sum_stats``; None where a text is longer than candidates may be, or the reference implementation makes
    another figure of the first ones."""
    few = next(iter(texts), [])[:CHECKED_LISTS]
    right_few = references[: len(few)]
    try:
        sums, ((first,), right) = metric.sum_stats(texts, references), metric.sum_stats([few], right_few)
    except DataError:
        return None
    return sums if metric.of_sums(first, right) == metric.corpus(few, right_few) else None


def _texts_of(data: SplitSettings, source: str) -> dict[str, Any]:
    """The files of references and sources, and their form."""
    files = data.files_of(source)
    sources = next(iter(files.get("sources") or ()), None)
    return {"references": files.get("references"), "sources": sources, "form": cast(TextDataSettings, data).form}


def without_columns(nbest: Lists, names: Set[str]) -> Lists:
    """``nbest`` without the score columns ``names``, those that it has; never without its base score."""
    if names.isdisjoint(nbest.names):
        return nbest
    indices = [k for k, name in enumerate(nbest.names) if name not in names]
    if nbest.column not in indices:
        name = nbest.names[nbest.column]
        raise RecipeError(f"the column {name!r} is the base score; it cannot be the gain too", key="metric.column")
    rest = tuple(nbest.names[k] for k in indices)
    return nbest.replace(names=rest, scores=nbest.scores[:, indices], column=indices.index(nbest.column))


def final_metrics(task: str, metric: TextMetric, more: Iterable[str] = ()) -> list[TextMetric]:
    """The metrics of final figures: the recipe's own with its settings, what translations are measured by, and more.

    What the lists hold, a gain or answers, is not among them: it cannot be computed from texts.
    """
    names = (*(("bleu", "chrf") if task == "translation" else ()), *more)
    by_name = {name: make_text_metric({"name": name}, reported=True) for name in names} | {metric.name: metric}
    return [measure for measure in by_name.values() if not isinstance(measure, ColumnMetric | Match)]


def make_text_metric(spec: Settings, *, reported: bool = False) -> TextMetric:
    """The metric of texts that a recipe (or a model) describes; ``reported``: to be reported, and no more."""
    metric = build(metrics, spec, "metric")
    if isinstance(metric, Ter) and not reported:
        raise RecipeError("metrics: [ter] reports it; training and oracles take bleu or chrf", key="metric")
    if not isinstance(metric, TextMetric):
        raise RecipeError(f"{spec['name']} does not measure texts", key="metric.name")
    return metric
