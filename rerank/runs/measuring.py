"""``rerank.evaluate``: what a model's choices, or anybody's, are worth."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Annotated, Any, Unpack

import numpy as np

from rerank.base.encoding import encoded
from rerank.base.errors import DataError
from rerank.base.ranges import Range
from rerank.data.corpus import Corpus
from rerank.extraction.content import content_of
from rerank.extraction.content.base import Content, Pair
from rerank.extraction.content.texts import TextContent
from rerank.extraction.seen import SeenLists
from rerank.metrics.base import Metric, TestName
from rerank.metrics.gain import Gain
from rerank.metrics.oracle import base_choice, oracle
from rerank.metrics.significance import Significance, compare, score_interval
from rerank.models.provenance import Decoding
from rerank.models.reranker import Reranker
from rerank.models.scorer import Ranked, Scorer
from rerank.readers.base import NBestList, SkipCount, SkippedList, usable
from rerank.readers.given.frames import FrameColumns, FrameLists, check_keys, is_frame, is_table
from rerank.readers.given.lists import candidate_of
from rerank.readers.given.nbest import NBest, each_of, told
from rerank.readers.given.reading import ListFile, first_list, lists_from, lists_given
from rerank.recipes.loading import read_settings
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.settings import Section, Seed, named, validate
from rerank.runs.doubts import unlike_training
from rerank.runs.evaluation import Selections
from rerank.runs.fitting import task_of
from rerank.runs.report.html import fill
from rerank.runs.report.measures import measures_of
from rerank.runs.report.table import TextTable, plain_text

log = logging.getLogger("rerank")
BATCH = 64  # lists that are ranked together


@dataclass(frozen=True)
class Evaluation:
    """What choices from lists are worth.

    | field        | meaning |
    |--------------|---------|
    | metric       | what they are measured by; ``metric.signature`` has everything that changes the numbers |
    | predictor    | what a model has chosen them by; empty where they are anybody's |
    | lists        | how many lists there are |
    | scores       | all measures of the "choice", of the best by base score ("base") and by the metric ("oracle") |
    | intervals    | of the primary measure of each: 95 %, by the bootstrap over lists |
    | against_base | the test of the choice against the base: ``difference``, ``p``, its interval ``low`` to ``high`` |
    """

    metric: Metric
    predictor: str
    lists: int
    scores: dict[str, dict[str, float]]
    intervals: dict[str, tuple[float, float]]
    against_base: Significance

    @property
    def score(self) -> float:
        """The primary measure of the choice."""
        return self.scores["choice"][self.metric.primary]

    @property
    def p(self) -> float:
        """How probable it is that a difference from the base as large as this one is due to chance."""
        return self.against_base.p

    def to_html(self) -> str:
        """The figures as one self-contained page."""
        return fill("evaluation.html.j2", {"title": "Evaluation", "table": self._table(), "facts": self._facts()})

    def __str__(self) -> str:
        return plain_text(self._table().rich()) + "\n".join(self._facts())

    def _table(self) -> TextTable:
        primary = self.metric.primary
        others = [each for each in measures_of({"splits": {"": self.scores}}) if each.key != primary]
        rows = [
            [name, self.metric.text(report[primary]), " to ".join(map(self.metric.text, self.intervals[name]))]
            + [measure.text(report.get(measure.key)) for measure in others]
            for name, report in self.scores.items()
        ]
        headings = ["selection", primary, "95 % interval", *(measure.heading for measure in others)]
        return TextTable(f"{self.lists:,} lists", headings, rows)

    def _facts(self) -> list[str]:
        found, shown = self.against_base, self.metric.signed
        by = f"by the predictor {self.predictor}, " if self.predictor else ""
        against = f"{by}against the base: {shown(found.difference)} ({shown(found.low)} to {shown(found.high)})"
        return [f"{against}, p = {found.p:.2g} by {found.test.replace('_', ' ')}", self.metric.signature]


class Sampling(Section):
    """How many corpora a test of significance draws, from which seed."""

    samples: Annotated[int, Range(1, 1_000_000)]
    seed: Seed


def evaluate(
    model: Reranker | Iterable[Any],
    lists: Any,
    metric: str | Mapping[str, Any] | None = None,
    *,
    decode: bool | str = True,
    test: TestName = "approximate_randomization",
    samples: int = 10_000,
    seed: int = 1,
    **columns: Unpack[FrameColumns],
) -> Evaluation:
    """What the choices of a model from ``lists`` are worth, compared with the best by base score and by the metric.

    Parameters
    ----------
    model: a model; or the choices themselves, one for every list: its place in the list, from 0, or the candidate.
    lists: ``NBest``s with references or gains, what ``read`` gives, a data frame, or pairs, as in ``fit``.
    metric: its name, or a mapping of name and options; by default the model's, or what ``fit`` would take.
    decode: what is measured: what ``model.best`` gives; by "mbr", "fuse" or "learned", what ``model.decode`` gives; by
        "best", or False, the best candidates.
    test, samples, seed: of significance, as in recipes.
    columns: of a data frame, as in ``read``; by default those of the data frame that the model was trained on.

    Raises
    ------
    ModelError: the model was not tuned to decode so. DataError: no lists, lists that cannot be used, not as many
        choices as lists, a choice that is not in its list. Lists that the model was trained on are logged as a warning.
    RecipeError: an unknown metric or test, or samples or a seed out of range.
    """
    check_keys("evaluate", columns)
    validate(Sampling, {"samples": samples, "seed": seed})
    if isinstance(model, Reranker) and (is_frame(lists) or is_table(lists)):
        lists = model.frame_lists(lists, columns, known=True)
    first, lists = first_list(lists_from(lists, columns if not isinstance(lists, FrameLists) else {}))
    settings = model.recipe.model_dump(mode="json") if isinstance(model, Reranker) else {"features": {"set": "base"}}
    if metric is not None:
        settings["metric"] = named(metric)
    recipe = read_settings({"name": "evaluate", "task": task_of(settings, first), **settings})
    assert isinstance(recipe, ListRecipe)
    if isinstance(model, Reranker):
        scorer = Scorer(model.model, model.predictor)
        settled = replace(model.model, settings=recipe.model_dump(mode="json"))
        measured = scorer if metric is None else Scorer(settled)  # decoding is by the model's own metric
        how = scorer.decoding(decode if isinstance(decode, str) else None if decode else "best")
        found = Choosing(measured.content, scorer, how)
    else:
        found = Choosing(content_of(recipe), given=each_of(model, "a model, or a choice for every list", "model"))
    with told():
        found.read(lists)
    return found.evaluation(test, samples, seed)


_MISSING = object()


@dataclass
class Choosing:
    """Lists with their statistics, and one answer to each: by ``scorer``, as ``how`` says or its best candidate, or
    ``given``. Of answers that are no candidates, ``other`` has the statistics (float64 [K]) by list."""

    content: Content[Any]
    scorer: Scorer | None = None
    how: Decoding | None = None
    given: Iterator[Any] = field(default_factory=lambda: iter(()))
    sizes: list[int] = field(default_factory=lambda: [0])
    base: list[np.ndarray] = field(default_factory=list)
    stats: list[np.ndarray] = field(default_factory=list)
    reference: list[np.ndarray] = field(default_factory=list)
    chosen: list[int] = field(default_factory=list)  # counted from the first candidate of the first list
    ids: list[str] = field(default_factory=list)
    other: dict[int, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.seen = SeenLists(self.content.held)

    def read(self, lists: Iterable[NBest]) -> None:
        """Take all lists, and the choices from them.

        Raises
        ------
        DataError: see ``evaluate``.
        """
        texts = isinstance(self.content, TextContent)
        policy = lists.on_bad_list if isinstance(lists, ListFile) else "error"
        rows = (
            lists.rows()
            if isinstance(lists, ListFile)
            else lists_given(lists, texts=texts, gains=isinstance(self.content.metric, Gain))
        )
        pairs = usable(rows, self._take, SkipCount(policy))
        while batch := list(islice(pairs, BATCH)):
            found = [pair for pair, _ in batch]
            places = [place for _, place in batch]
            if self.how is not None:
                places = [self._decoded(pair, number) for number, pair in enumerate(found, start=len(self.ids))]
            elif self.scorer is not None:
                ranked = self.scorer.scored([self.scorer.opened(pair) for pair in found])
                places = [int(each.order[0]) if each.order.size else -1 for each in ranked if isinstance(each, Ranked)]
            for pair, place in zip(found, places, strict=True):
                self._add(pair, place)
        if self.scorer is None and next(self.given, _MISSING) is not _MISSING:
            raise DataError(f"found more choices than the {len(self.ids):,} lists; expected one for each")
        if not self.ids:
            raise DataError("no lists to evaluate")
        if self.scorer is not None:
            model = self.scorer.model
            for line in unlike_training(self.seen.finish(), self.content, model.about.get("columns", {}), model.seen):
                log.warning("%s", line)

    def _decoded(self, pair: Pair, number: int) -> int:
        """The place of a list's answer; the first candidate's for one that is in ``other``, -1 without candidates."""
        if not len(pair.nbest):
            return -1
        assert self.scorer is not None
        answer = self.scorer.answer(self.scorer.opened(pair), self.how)
        if answer.place is None:
            self.other[number] = self.content.text_stats(pair, encoded(answer.text))
        return answer.place or 0

    def _take(self, nbest: NBestList | SkippedList, count: SkipCount) -> tuple[Pair, int] | None:
        """A list with its choice; see ``usable``."""
        choice = next(self.given, _MISSING) if self.scorer is None else None
        pair = self.content.pair(nbest, count)
        if pair is None:
            return None
        return pair, -1 if self.scorer is not None else _place(choice, pair.nbest)

    def _add(self, pair: Pair, place: int) -> None:
        reference, stats = self.content.stats(*pair)
        self.chosen.append(-1 if place < 0 else self.sizes[-1] + place)
        self.sizes.append(self.sizes[-1] + len(pair.nbest))
        self.base.append(pair.nbest.base)
        self.stats.append(stats)
        self.reference.append(reference)
        self.ids.append(pair.nbest.id)
        self.seen.add(pair.nbest, self.content.lengths(pair))

    def evaluation(self, test: TestName, samples: int, seed: int) -> Evaluation:
        """What the choices are worth."""
        metric, sizes = self.content.metric, np.array(self.sizes)
        stats, reference, base = np.concatenate(self.stats), np.stack(self.reference), np.concatenate(self.base)
        gain = metric.gain(stats, np.repeat(reference, np.diff(sizes), axis=0))
        corpus = Corpus(
            lists=sizes, rows=np.zeros(int(sizes[-1]) + 1, np.int64), columns=np.zeros(0, np.int32),
            values=np.zeros(0, np.float32), base=base, gain=gain, stats=stats, reference=reference,
            weight=np.ones(len(self.ids)), width=0,
        )  # fmt: skip
        choices = {
            "base": base_choice(sizes, base),
            "oracle": oracle(sizes, gain, base),
            "choice": np.array(self.chosen, np.int64),
        }
        found = Selections.of(corpus, self.ids, metric, choices)
        for number, row in self.other.items():
            found.rows["choice"][number] = row
        intervals = {
            name: score_interval(metric, rows, reference, samples=samples, seed=seed)
            for name, rows in found.rows.items()
        }
        rows = found.rows["choice"], found.rows["base"]
        against = compare(metric, *rows, reference, test=test, samples=samples, seed=seed)
        by = "" if self.scorer is None else self.how.kind if self.how is not None else self.scorer.ranked_by
        return Evaluation(metric, by, len(self.ids), found.reports(metric), intervals, against)


def _place(choice: Any, nbest: NBestList) -> int:
    """The place of a choice among the candidates that can be used."""
    if choice is _MISSING:
        raise DataError("no choice is given for this list; expected one for each", list_id=nbest.id)
    if not len(nbest):
        return -1
    if isinstance(choice, int | np.integer) and not isinstance(choice, bool):
        if choice in nbest.places:
            return nbest.places.index(int(choice))
        raise DataError(f"found the choice {choice}; expected a place from 0 to {len(nbest) - 1}", list_id=nbest.id)
    text = encoded(candidate_of(choice, 1).text).strip()
    if text not in nbest.texts:
        raise DataError(f"the choice {candidate_of(choice, 1).text!r} is not among the candidates", list_id=nbest.id)
    return nbest.texts.index(text)
