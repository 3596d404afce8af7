"""``rerank.evaluate``: what a model's choices, or anybody's, are worth."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import Annotated, Any, Unpack

import numpy as np

from rerank.base.encoding import amount, encoded
from rerank.base.errors import DataError, RecipeError
from rerank.base.ranges import Range
from rerank.data.corpus import Corpus
from rerank.extraction.content import Content, MeasuredLists, Pair
from rerank.extraction.kinds import content_of
from rerank.extraction.list_checks import doubts_of_lists
from rerank.extraction.sample import ListSample, ListSampler
from rerank.extraction.texts import TextContent
from rerank.metrics.gain import Gain
from rerank.metrics.metric import Metric, TestName, blind_rows, measured_corpus, scored_rows, usual_scores
from rerank.metrics.significance import Significance
from rerank.models.provenance import Decoding
from rerank.models.reranker import Reranker
from rerank.models.scorer import Ranked, Scorer
from rerank.readers.detection import ACCOUNT_LISTS, Account, log_account
from rerank.readers.lists import Lists, one_by_one
from rerank.readers.memory.nbest import error_context, iterate, row_of
from rerank.readers.memory.reading import FrameColumns, check_keys, first_list, is_frame, lists_from, memory_blocks
from rerank.readers.reader import SkipCount
from rerank.readers.texts.jsonl import is_table
from rerank.recipes.loading import measuring_recipe
from rerank.recipes.settings import Section, Seed, Settings, as_settings, validate
from rerank.runs.compared import Compared, doubts_of_base
from rerank.runs.corpora import MIN_LENGTHS, reference_doubts, spelling_doubt, training_differences
from rerank.runs.fitting import task_of
from rerank.runs.report.table import plain_text

log = logging.getLogger("rerank")
BATCH_SIZE = 64  # lists that are ranked together


@dataclass(frozen=True)
class Evaluation:
    """The scores of choices from lists, and what chance there is.

    results: the rows "choice", "base", "first" if it differs, and "oracle"; predictor: what a model has chosen by;
    empty where the choices are anybody's.
    """

    results: Compared
    predictor: str

    @property
    def metric(self) -> Metric:
        """The metric of the choices; ``metric.signature`` has everything that changes the numbers."""
        return self.results.metric

    @property
    def lists(self) -> int:
        """The number of lists."""
        return len(self.results.reference)

    @cached_property
    def scores(self) -> dict[str, dict[str, float]]:
        """All measures of every row."""
        return self.results.reports()

    @property
    def score(self) -> float:
        """The primary measure of the choice."""
        return self.scores["choice"][self.metric.primary]

    @cached_property
    def against_base(self) -> Significance:
        """The test of the choice against the base: ``difference``, ``p``, an interval ``low`` to ``high``."""
        return self.results.test_between("choice", "base")

    @property
    def p(self) -> float:
        """The probability that chance alone makes a difference from the base as large as this one."""
        return self.against_base.p

    def __str__(self) -> str:
        note = f"choice: by the predictor {self.predictor}. " if self.predictor else ""
        note += self.metric.signature
        table = self.results.table(amount(self.lists, "list"), note, heading=self.metric.heading)
        return "\n\n".join(filter(None, [self.results.doubt, plain_text(table.rich()) + table.note]))


class Sampling(Section):
    """The number of corpora that a test of significance draws, and its seed."""

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
    """The scores of a model's choices from ``lists``, compared with the best by base score and by the metric.

    Parameters
    ----------
    model: a model, or the choices themselves, one for every list: its place in the list, from 0, or the candidate.
    lists: ``NBest``s with references or gains, what ``read`` gives, a data frame, or pairs, as in ``fit``.
    metric: its name, or a mapping of name and options; by default the model's, or what ``fit`` would take.
    decode: what is measured: what ``model.best`` gives; by "mbr", "fuse" or "learned", what ``model.decode`` gives; by
        "best", or False, the best candidates.
    test, samples, seed: of significance, as in recipes.
    columns: of a data frame, as in ``read``; by default as in the data frame that the model was trained on.

    Raises
    ------
    ModelError: the model was not tuned to decode so. DataError: no lists, lists that cannot be used, not as many
        choices as lists, a choice that is not in its list. Lists that the model was trained on are logged as a warning.
    RecipeError: an unknown metric or test, or samples or a seed out of range.
    """
    check_keys("evaluate", columns)
    validate(Sampling, {"samples": samples, "seed": seed})
    if isinstance(model, Reranker):
        if is_frame(lists) or is_table(lists):
            lists, columns = model.frame_lists(lists, columns, with_truth=True), {}
        scorer = Scorer(model.model, model.predictor)
        content, choose, predictor = _chooser(scorer, model, metric, decode)
    first, lists = first_list(lists_from(lists, columns))
    if not isinstance(model, Reranker):
        request: Settings = {} if metric is None else {"metric": as_settings(metric)}
        data = {"answer": getattr(lists, "answer", None)}
        content = content_of(measuring_recipe(task_of(request, first), metric, data))
        what = ("a choice for every list", "the scores of every list's candidates")[content.metric.ordered]
        choices, predictor = iterate(model, f"a model, or {what}", "model"), ""
        take = _scores if content.metric.ordered else _index
        choose = lambda pairs: [take(next(choices, _MISSING), pair.nbest) for pair in pairs]  # noqa: E731
    measurements, answers, examples = list[tuple[np.ndarray, ...]](), list[np.ndarray](), list[Lists]()
    count, sampler = SkipCount(getattr(lists, "on_bad_list", "error")), ListSampler(content.column_names)
    options: Any = {"texts": isinstance(content, TextContent), "gains": isinstance(content.metric, Gain)}
    with error_context():
        usable = content.measure(one_by_one(memory_blocks(lists, **options)), count)
        while batch := list(islice(usable, BATCH_SIZE)):
            for item, answer in zip(batch, choose([item.pair for item in batch]), strict=True):
                nbest = item.pair.nbest
                measurements.append((nbest.first, nbest.base, item.stats, item.reference))
                answers.append(_row_of(content, item, answer))
                sampler.add(nbest)
                examples += [nbest][: ACCOUNT_LISTS - len(examples)]
        count.warn()
    log_account(Account.of("", examples, metric=content.metric))
    sample, reader = sampler.finish(), getattr(lists, "settings", {})
    if isinstance(model, Reranker):
        reader = getattr(lists, "settings", scorer.recipe.data.reader)
        for line in training_differences(sample, content, scorer.model.about.get("columns", {}), scorer.model.seen):
            log.warning("%s", line)
    elif next(choices, _MISSING) is not _MISSING:
        raise DataError(f"found more choices than the {amount(len(measurements), 'list')}; expected one for each")
    if not measurements:
        raise DataError("no lists to evaluate")
    measure, corpus = content.metric, measured_corpus(measurements, content.metric)
    usual = usual_scores(corpus, measure).items()
    rows = {name: scored_rows(corpus, measure, scores) for name, scores in usual} | {"choice": np.stack(answers)}
    how: Any = {"test": test, "samples": samples, "seed": seed}
    how["doubt"] = _doubts(content, corpus, examples, sample, reader)
    return Evaluation(Compared(measure, corpus.reference, rows, **how), predictor)


_MISSING = object()
Answer = int | bytes | np.ndarray  # a candidate's place, -1 for none; the text of what is no candidate; or all scores
Choose = Callable[[list[Pair]], Sequence[Answer]]


def _chooser(
    scorer: Scorer, model: Reranker, metric: str | Mapping[str, Any] | None, decode: bool | str
) -> tuple[Content[Any], Choose, str]:
    """What measures lists by ``metric``, what gives a model's answers to some of them, and by which predictor."""
    variant = model.model  # decoding is by the model's own metric
    if metric is not None:
        settings = model.recipe.change({"metric": as_settings(metric)}).model_dump(mode="json")
        variant = replace(variant, settings=settings)
    content = Scorer(variant, model.predictor).content
    ordered = content.metric.ordered  # by scores, which decoding does not give
    how = scorer.decoding(decode if isinstance(decode, str) else "best" if ordered or not decode else None)
    if ordered and how is not None:
        raise RecipeError(f"{content.metric.primary} measures orders; expected best", key="decode")
    return content, partial(_model_answers, scorer, how, ordered), scorer.ranked_by if how is None else how.kind


def _doubts(
    content: Content[Any], corpus: Corpus, first: Sequence[Lists], sample: ListSample, reader: Mapping[str, Any]
) -> str:
    """What speaks against claims, which is logged; as is whether references look like those of other lists."""
    metric, base = content.metric, content.column_names[0] if corpus.base.any() else None
    several = first if len(first) >= MIN_LENGTHS else ()  # of few lists, one may differ by chance
    doubts = doubts_of_lists(several, metric, reader.get("roles")) + doubts_of_base(base, reader, [corpus])
    blind = {"oracle": scored_rows(corpus, metric, corpus.gain), "random": blind_rows(corpus, metric)}
    total, size = corpus.reference.sum(axis=0), {"lists": corpus.list_count, "candidates": corpus.candidate_count}
    counts = size | {name: metric.report(choice.sum(axis=0), total) for name, choice in blind.items()}
    for line in ([] if spelling_doubt(doubts) else reference_doubts(metric, counts, sample.lengths, "")) + doubts:
        log.warning("%s", line)
    return " ".join(doubts)


def _row_of(content: Content[Any], item: MeasuredLists, answer: Answer) -> np.ndarray:
    """float64 [K]: the statistics of the answer to a list."""
    if isinstance(answer, bytes):
        return content.text_stats(item.pair, answer)
    if isinstance(answer, np.ndarray):
        lists = item.pair.nbest.first, answer, item.pair.nbest.base, item.stats, item.reference
        return np.asarray(content.metric.rows_in_order(*lists)[0])
    return item.stats[answer] if answer >= 0 else np.zeros(item.stats.shape[1])


def _model_answers(scorer: Scorer, how: Decoding | None, ordered: bool, pairs: list[Pair]) -> list[Answer]:
    """The answers of a model: its scores where lists are ``ordered``, else what it decodes, or its best candidates."""
    if how is None:
        rankings = [ranked for ranked in scorer.rank_by_scores(pairs) if isinstance(ranked, Ranked)]
        if ordered:
            return [ranked.scores for ranked in rankings]
        return [int(ranked.order[0]) if ranked.order.size else -1 for ranked in rankings]
    answers = [scorer.answer(one, how) if len(one.nbest) else None for one in pairs]
    return [
        -1 if answer is None or (answer.place is None and not answer.text)
        else encoded(answer.text) if answer.place is None
        else answer.place
        for answer in answers
    ]  # fmt: skip


def _scores(numbers: Any, nbest: Lists) -> np.ndarray:
    """The scores of the candidates that can be used: float64 [N]."""
    try:
        scores = np.zeros(0) if numbers is _MISSING else np.asarray(numbers, np.float64)
    except (TypeError, ValueError):
        scores = np.zeros(0)
    if scores.ndim != 1 or scores.size <= max(nbest.indices, default=-1) or not np.isfinite(scores).all():
        count = len(nbest.indices)
        message = f"expected a finite score for every one of the {count} candidates, which give their order"
        raise DataError(message, list_id=nbest.id)
    return scores[list(nbest.indices)]


def _index(choice: Any, nbest: Lists) -> int:
    """The place of a choice among the candidates that can be used."""
    if choice is _MISSING:
        raise DataError("no choice is given for this list; expected one for each", list_id=nbest.id)
    if not len(nbest):
        return -1
    if isinstance(choice, int | np.integer) and not isinstance(choice, bool):
        if choice in nbest.indices:
            return nbest.indices.index(int(choice))
        raise DataError(f"found the choice {choice}; expected a place from 0 to {len(nbest) - 1}", list_id=nbest.id)
    text = encoded(row_of(choice, 1)["text"]).strip()
    if text not in nbest.texts:
        raise DataError(f"the choice {row_of(choice, 1)['text']!r} is not among the candidates", list_id=nbest.id)
    return nbest.texts.index(text)
