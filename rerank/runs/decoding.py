"""Decoding in a run: tuned on dev, evaluated on the test splits, for all runs in one pass over the lists of a split.

Decoding compares candidates with one another, of which the corpus has no texts: see ``runs.corpora``. For learned
fusion each fifth of the training lists is scored by a training on the others, as a model scores lists that it does not
know.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, product
from typing import NamedTuple, get_args

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.progress import DETAIL
from rerank.data.corpus import Corpus
from rerank.data.symbols import SymbolTable
from rerank.data.trees import Trees, brackets, subset
from rerank.extraction.extraction import ExtractedSplit
from rerank.learn.base_weight import AUTO
from rerank.learn.folds import FOLDS, sections
from rerank.metrics import bracket_model
from rerank.metrics.bracket_model import BracketColumns, BracketModel
from rerank.metrics.fusion import Fusion, probabilities
from rerank.metrics.gain import ColumnMetric, Gain
from rerank.metrics.metric import Metric, chosen_rows, measures_orders, scored_rows
from rerank.metrics.parseval import Parseval
from rerank.metrics.wer import Match
from rerank.models.decoding import agreement, best_expected, gain_functions, index_by_margin, require_trees
from rerank.models.provenance import MAJORITY, Decoding, Kind
from rerank.readers.lists import answer_numbers
from rerank.readers.reader import ScoreColumns
from rerank.recipes.recipe import DECODERS, ListRecipe
from rerank.recipes.sections import DecodeSettings
from rerank.runs.combination import deviation_of, fit, members
from rerank.runs.corpora import Data, RereadList, Visitor, part_of, visit_lists
from rerank.runs.run import Run, sibling_path, weight_counts
from rerank.runs.training import NOT_BEATEN, RunTask, base_alone, data_identity

log = logging.getLogger("rerank")
SHARPNESS = 2.0 ** (np.arange(-12, 25) / 4)  # in deviations of the scores
THRESHOLDS = np.array([0.5, 0.55, 0.6, 0.65, 0.7])
SCORE_TOLERANCE = 1e-9  # scores that differ by less, which is rounding, are the same
LEARNING_SHARPNESS = 2.0  # the sharpness around which it is learned what scores mean
BRACKET_THRESHOLDS = np.array([0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6])  # half of F is about the best
BRACKET_SLACKS = np.array([0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4])  # in brackets; from .5 on F falls
DEFAULT_THRESHOLD = 0.5  # where the lists are too few to choose one


class Points(NamedTuple):
    """The points of a grid: A sharpnesses, H thresholds and, of fusion, S slacks: see ``Decoding``."""

    deviation: float  # of scores
    sharpness: np.ndarray  # float64 [A]
    thresholds: np.ndarray  # float64 [H]
    slacks: np.ndarray = np.zeros(1)  # float64 [S]


class ListAnswer(NamedTuple):
    """The answer to a list at the first point, None for none, the candidate that it is, and the statistics of the
    answers at all points (float64 [points, K])."""

    text: bytes | None
    candidate: int | None
    rows: np.ndarray


def by_gain(points: Points, how: Decoding | None, entry: RereadList, scores: np.ndarray) -> ListAnswer | None:
    """Decide by expected gain; of a Decoding ``how`` with the margin that it asks for."""
    if entry.pair is None or entry.evidence is None:
        return None
    nbest = entry.pair.nbest
    indices = best_expected(entry.evidence.expected_gains(scores, points.sharpness, points.deviation), scores)
    index: int | None = int(indices[0])
    rows = entry.stats[indices]
    if how is not None and how.margin > 0:
        p = probabilities(scores, points.sharpness, points.deviation)[0]
        index = index_by_margin(how, int(indices[0]), agreement(nbest, p)[1], nbest.base)
        rows = np.zeros_like(rows) if index is None else entry.stats[[index]]
    return ListAnswer(None if index is None else nbest.original(index), index, rows)


def by_fusion(
    points: Points, metric: Parseval, models: Sequence[BracketModel | None], entry: RereadList, scores: np.ndarray,
    fold: int = 0,
) -> ListAnswer | None:  # fmt: skip
    """Decide by fused trees, of brackets that the model of the ``fold`` judges if there is one, or by
    candidates that are worth nearly as much; of a list of failed parses alone by the best candidate."""
    if entry.pair is None or entry.evidence is None:
        return None
    nbest, (candidates, symbols, _), gold = entry.pair.nbest, entry.pair.content, entry.pair.gold

    def stats(trees: Trees) -> np.ndarray:
        return np.asarray(metric.stats(gold, trees, symbols)[1])

    fusion, judgements, model = entry.evidence.fusion, None, models[fold]
    if not fusion.used.any():
        best = int(np.argmax(scores))
        return ListAnswer(nbest.original(best), best, stats(subset(candidates, [best])))
    if model is not None:
        judgements = model.judge(fusion, scores, nbest.base, points.sharpness, points.deviation)
    trees = fusion.trees(probabilities(scores, points.sharpness, points.deviation), points.thresholds, judgements)
    rows = np.repeat(stats(trees), points.slacks.size, axis=0)
    if judgements is not None and points.slacks.any():
        nearest = [fusion.nearest(row, float(h), scores) for row in judgements for h in points.thresholds]
        indices, losses = [index for index, _ in nearest], np.array([loss for _, loss in nearest])
        mask = (losses[:, None] < points.slacks).ravel()
        rows = np.where(mask[:, None], np.repeat(stats(subset(candidates, indices)), points.slacks.size, axis=0), rows)
        if mask[0]:
            return ListAnswer(nbest.original(indices[0]), indices[0], rows)
    same = fusion.index_of(trees, scores) if trees.first.size == 2 else None
    return ListAnswer(brackets(trees, 0, symbols).encode("utf-8", "surrogateescape"), same, rows)


class Sweep:
    """One way to decode, tested at all points on ``lists`` with ``scores`` (float64 [N], of all candidates).

    sums: float64 [points, K], the statistics of all answers, by sharpness, then by threshold, then by slack. At the
    first point: texts, the answers by the index of their lists in the files; rows, their statistics (float64 [L, K]);
    candidates (int64 [L]), those of the corpus that these are, -1 for none; complete: whether every list that was seen
    has an answer.
    """

    def __init__(
        self, kind: str, points: Points, scores: np.ndarray, lists: ExtractedSplit, metric: Metric,
        models: Sequence[BracketModel | None], how: Decoding | None = None, folds: Sequence[np.ndarray] = (),
    ) -> None:  # fmt: skip
        """models: of brackets, where the ``kind`` is learned: one for all lists, or for those of each of the ``folds``,
        whose numbers (int64 [L]) are then given; how: see ``by_gain``."""
        see: Callable[..., ListAnswer | None] = partial(by_gain, points, how)
        if kind != "mbr":
            assert isinstance(metric, Parseval)
            see = partial(by_fusion, points, metric, models if kind == "learned" else [None])
        self.kind, self.points, self.metric, self.corpus = kind, points, metric, lists.corpus
        self.visitor = Visitor(lists, self.add, see, [scores], folds)
        L, K = lists.corpus.list_count, len(metric.columns)
        self.texts, self.candidates, self.complete = dict[int, bytes](), np.full(L, -1, np.int64), True
        self.rows, self.sums = np.zeros((L, K)), np.zeros((1, K))

    def add(self, index: int, number: int, answer: ListAnswer) -> None:
        """Take over the answer to a list."""
        self.sums, self.rows[number] = self.sums + answer.rows, answer.rows[0]
        self.complete &= answer.text is not None
        if answer.text is not None:
            self.texts[index] = answer.text
        if answer.candidate is not None:
            self.candidates[number] = self.corpus.lists[number] + answer.candidate

    def best(self, settings: DecodeSettings) -> tuple[Decoding, float | None]:
        """The point with the best score, and that score (None where nothing was to be tuned)."""
        points, metric, score, a, h = self.points, self.metric, None, 0, 0
        if self.texts:
            total = self.corpus.reference.sum(axis=0)
            scores = metric.scores(self.sums, np.broadcast_to(total, (len(self.sums), total.size)))
            at = int(np.argmax(metric.sign * scores))
            score, (a, h) = float(scores[at]), divmod(at, points.thresholds.size if self.kind != "mbr" else 1)
        how = {"kind": self.kind, "sharpness": float(points.sharpness[a]), "deviation": points.deviation}
        if self.kind != "mbr":
            how |= {"threshold": float(points.thresholds[h]), "slack": float(points.slacks[0])}
        return Decoding.model_validate(how | settings.model_dump(include={"most", "gains", "margin", "below"})), score


def answers_of(names: Sequence[str], entry: RereadList) -> tuple[np.ndarray, np.ndarray] | None:
    """The answers of a list, and its columns with these names."""
    if entry.pair is None:
        return None
    nbest = entry.pair.nbest.with_names()
    return answer_numbers(nbest), nbest.scores[:, [nbest.names.index(name) for name in names]].T


def votes_of(
    names: Sequence[str], records: Sequence[tuple[int, np.ndarray, np.ndarray]], corpus: Corpus
) -> dict[str, np.ndarray]:  # fmt: skip
    """int64 [L] by way to choose of ``runs.vote`` that needs no training: the candidates that are chosen of the lists,
    -1 of those that were passed over; nothing where no list has an answer, or by a column that says nothing. records:
    of lists the number, the answers, and the columns with these names."""
    from rerank.runs.vote import ListSource, baselines

    if not records or all(answers.max(initial=-1) < 0 for _, answers, _ in records):
        return {}
    numbers, answers, columns = zip(*records, strict=True)
    values, indices = np.concatenate(columns, axis=1), np.array(numbers)
    varying = np.flatnonzero((values != values[:, :1]).any(axis=1))
    names, part = tuple(names[k] for k in varying.tolist()), corpus.only(indices)
    source = ListSource(part, Gain(), np.concatenate(answers), names, values[varying], indices * 0)
    choices = dict[str, np.ndarray]()
    for name, way in baselines(source).items():
        choices[name] = np.full(corpus.list_count, -1)
        choices[name][indices] = corpus.lists[indices] + way(source) - part.lists[:-1]
    return choices


def check_decoding(recipe: ListRecipe) -> None:
    """Refuse decoding that a recipe's lists do not allow, or that is used but never tuned."""
    settings, kinds = recipe.decode, recipe.decoders
    measure = recipe.metric.get("name")
    if (kinds or recipe.training.vote) and measures_orders(measure):
        key = "decode" if settings.kinds or settings.margin else "data.answer"
        message = f"{measure} is of the order of all candidates, which neither decoding nor votes give; leave them out"
        raise RecipeError(message, key=key if kinds else "training.vote")
    if "fuse" in kinds and settings.threshold is not None and settings.threshold < MAJORITY:
        message = f"found {settings.threshold:g}; expected one from {MAJORITY} to below 1, or decode.kinds without fuse"
        raise RecipeError(message, key="decode.threshold")
    if {"fuse", "learned"} & {*kinds, settings.use}:
        require_trees(recipe.task == "parse")
    if "learned" in kinds:
        bracket_model.require_classifier()
        if recipe.training.start is not None:
            message = "brackets are learned from lists that a model has not seen: leave it out, or decode by mbr and "
            raise RecipeError(f"{message}fuse", key="training.start")
    if settings.gains is not None:
        gain_functions.get(settings.gains)
    if settings.use not in ("auto", "best", *kinds):
        message = f"{settings.use!r} is not among decode.kinds ({', '.join(kinds) or 'none'})"
        message += f"; set decode.kinds: [{', '.join([*kinds, settings.use])}]"
        if not kinds and recipe.data.dev is None and settings.sharpness is None and recipe.task in DECODERS:
            message = "without a dev split nothing is tuned; name data.dev, or give decode.sharpness"
        raise RecipeError(message, key="decode.use")


class Tuning(NamedTuple):
    """A run that is tuned on lists, with the scores of their candidates by a training without them, and every way."""

    data: Data
    run: Run
    corpus: Corpus
    scores: np.ndarray
    sweeps: dict[str, Sweep]

    def score(self, scores: np.ndarray) -> float:
        """The metric on the best candidates by ``scores``."""
        return self.data.metric.score(scored_rows(self.corpus, self.data.metric, scores), self.corpus.reference)


def tune_decoding(runs: Sequence[tuple[Data, Run]]) -> None:
    """Find out on dev how every run decodes best, and whether that is better than its best candidates; without dev, on
    the training lists that were held out when the run was trained. Lists are read again once, for all runs with the
    data that they were trained on.

    The result goes to ``training["decode"]`` of the runs: for every kind the settings and the score, ``best``, the
    score of the best candidates, and ``use``, the kind that is used, empty for none. Every point of a grid is scored
    exactly; of equally good ones the smallest sharpness and threshold are taken, and the simplest way: the best
    candidate, mbr, fuse, learned.
    """
    tunings = [tuning for data, run in runs if data.recipe.decoders and (tuning := _tuning(data, run)) is not None]
    sweeps = [sweep for tuning in tunings for sweep in tuning.sweeps.values()]
    if any(sweep.points.sharpness.size * sweep.points.thresholds.size > 1 for sweep in sweeps):
        data = tunings[0].data
        visit_lists(data, data.recipe.data.dev or data.recipe.data.training, [sweep.visitor for sweep in sweeps])
    retries = list[tuple[Data, Run]]()
    for tuning in tunings:
        data, run, training, best = tuning.data, tuning.run, tuning.data.training.corpus, tuning.score(tuning.scores)
        sign, optima = data.metric.sign, {kind: sweep.best(data.recipe.decode) for kind, sweep in tuning.sweeps.items()}
        base, scores = run.training["base"], [best, *(score for _, score in optima.values() if score is not None)]
        in_doubt = base["beaten"] is False and base["setting"] == AUTO and not base["kept"] and data.dev is None
        most, of_base = max(sign * score for score in scores), sign * tuning.score(tuning.corpus.base)
        if in_doubt and most <= SCORE_TOLERANCE + of_base:
            log.warning(NOT_BEATEN)
            run.weights, optima = base_alone(run.weights, run.training, training), {}
            run.training["base"]["kept"] = True
            run.training |= weight_counts(run.weights, run.recipe.training.predictor)
            retries += [(data, run)] if data.recipe.decode.margin > 0 else []
        elif data.dev is None:  # scores of trainings on fewer lists are on another scale
            final = deviation_of(training, run.scores(training))
            optima = {kind: (how.model_copy(update={"deviation": final}), dev) for kind, (how, dev) in optima.items()}
        run.decodings = {kind: optima[kind][0] for kind in get_args(Kind) if kind in optima}
        use = _choose_kind(data.recipe, {kind: score for kind, (_, score) in optima.items()}, best, data.metric)
        entries = {kind: {**how.model_dump(), "dev": score} for kind, (how, score) in optima.items()}
        run.training["decode"] = {"use": use, "best": best, **entries}
    if retries:  # a margin of the base's scores
        tune_decoding(retries)


def _tuning(data: Data, run: Run) -> Tuning | None:
    """A run with the lists and points that its ways of decoding are tuned on; None where it has no such lists. Where
    nothing is tuned, or the model is the base itself, these are all training lists."""
    settings, scores = data.recipe.decode, run.held_out
    lists = data.dev or data.shared(run.recipe)
    if data.dev is not None or settings.sharpness is not None or run.training["base"]["kept"]:
        scores = run.scores(lists.corpus)
    elif scores.size:  # of the last lists, by a training without them
        mask = np.cumsum(np.diff(lists.corpus.lists)[::-1])[::-1] <= scores.size
        lists = part_of(lists, mask, f"{lists.key} last {scores.size}")
    elif settings.margin > 0:
        message = f"found {settings.margin:g}, but no lists were held out in training that tell what scores "
        raise RecipeError(f"{message}mean; name data.dev, or decode.sharpness", key="decode.margin")
    else:
        log.info("decoding is not tuned: no lists were held out in training; name data.dev, or decode.sharpness")
        return None
    deviation, sweeps = deviation_of(lists.corpus, scores), dict[str, Sweep]()
    for kind in data.recipe.decoders:
        threshold, slack = run.fusion_point if kind == "learned" else (settings.threshold, 0.0)
        sharpness = np.array([LEARNING_SHARPNESS]) if kind == "learned" else SHARPNESS
        if settings.sharpness is not None:
            sharpness = np.array([settings.sharpness])
        thresholds = THRESHOLDS if threshold is None else np.array([threshold])
        points = Points(deviation, sharpness, thresholds, np.array([slack]))
        sweeps[kind] = Sweep(kind, points, scores, lists, data.metric, [run.brackets])
    return Tuning(data, run, lists.corpus, scores, sweeps)


def _choose_kind(recipe: ListRecipe, scores: Mapping[str, float | None], best: float, metric: Metric) -> str:
    """The kind that is used: the one that the recipe names, or the best on dev if it is better than candidates are."""
    if recipe.decode.use != "auto":
        return "" if recipe.decode.use == "best" else recipe.decode.use
    if recipe.decode.margin > 0 and "mbr" in scores:
        return "mbr"
    simplest_first: dict[str, float | None] = {"": best, **{kind: scores.get(kind) for kind in get_args(Kind)}}
    values = {kind: metric.sign * score for kind, score in simplest_first.items() if score is not None}
    most = max(values.values())
    return next(kind for kind, score in values.items() if score >= most - SCORE_TOLERANCE)


def ways_to_decode(runs: Sequence[Run]) -> list[tuple[Run, str]]:
    """The ways in which runs decode, in the order in which lists are decoded."""
    return [(run, kind) for run in runs for kind in run.decodings]


class SplitDecoder:
    """The decoding of a split, whose lists are read again, by runs, one of which is the ``winner``.

    visitors: of the lists, ways to decode first.
    """

    def __init__(self, data: Data, runs: Sequence[Run], winner: Run, split: str) -> None:
        self.split, self.runs, self.winner, self.sweeps = split, runs, winner, list[Sweep]()
        self.lists, metric = (lists := data.others[split]), data.metric
        for run, kind in ways_to_decode(runs):
            how, scores = run.decodings[kind], run.scores(lists.corpus)
            points = Points(how.deviation, *(np.array([each]) for each in (how.sharpness, how.threshold, how.slack)))
            self.sweeps.append(Sweep(kind, points, scores, lists, metric, [run.brackets], how))
        self.visitors, columns = [sweep.visitor for sweep in self.sweeps], ScoreColumns.of_table(data.table.about)
        self._names, self._answers = tuple[str, ...](), list[tuple[int, np.ndarray, np.ndarray]]()
        if data.recipe.decoders and isinstance(metric, ColumnMetric | Match) and not metric.ordered and columns:
            self._names = columns.without(metric.measured).names
            add = lambda index, number, answer: self._answers.append((number, *answer))  # noqa: ARG005, E731
            self.visitors.append(Visitor(lists, add, partial(answers_of, self._names)))

    def finish(self, count: int) -> list[bytes] | None:
        """Add the answers to the results of the runs; return those of the winner to all lists of the files, so many, if
        it uses any of them, empty ones to lists that cannot be decoded."""
        corpus, winner, split = self.lists.corpus, self.winner, self.split
        votes = votes_of(self._names, self._answers, corpus)
        if votes:
            winner.choices[split] |= votes
            rows = {name: chosen_rows(corpus.stats, choice) for name, choice in votes.items()}
            winner.selections[split].rows.update(rows)
            winner.training.setdefault("votes", {})[split] = list(votes)
        answers = None
        for (run, kind), sweep in zip(ways_to_decode(self.runs), self.sweeps, strict=True):
            run.selections[split].rows[kind] = sweep.rows
            if sweep.complete and kind == "mbr":  # each answer is a candidate
                run.choices[split][kind] = sweep.candidates
            if run is winner and kind == run.decision.predictor:
                answers = [sweep.texts.get(index, b"") for index in range(count)]
        return answers


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


def fit_brackets(
    lists: Sequence[tuple[BracketColumns, np.ndarray]], symbols: SymbolTable, deviation: float
) -> BracketModel:
    """The model of the brackets of lists, in units of the ``deviation`` of base scores."""
    if not lists:
        raise RecipeError("no list of training has brackets to learn from", key="decode.kinds")
    columns = BracketColumns(*map(np.concatenate, zip(*(columns for columns, _ in lists), strict=True)))
    return bracket_model.fit(columns, np.concatenate([right for _, right in lists]), symbols, deviation)


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


def scores_by_folds(run: Run, corpus: Corpus, dev: Corpus | None) -> tuple[np.ndarray, np.ndarray]:
    """The scores of training lists (float64 [N]), each fifth by a training like ``run`` on the others (of an ensemble,
    like its first member) and in units of their deviation; and the folds of the lists (int64 [L]).

    Trainings that an interrupted call has finished are kept next to the file of the run.
    """
    single = members(run.recipe)[0] if run.recipe.training.ensemble else run.recipe
    single = single.change({"training.vote": False, "training.share": 1.0})
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
        values = fit(RunTask(run.name, single, rest, dev, lists, path)).scores(part)
        fold_scores.append(values / deviation_of(part, values))
    return np.concatenate(fold_scores), folds


def learn_brackets(data: Data, run: Run) -> None:
    """Learn a run's model of brackets, from ``scores_by_folds`` of its share of the training lists, and the threshold
    and slack that go with it: the recipe's, without slack, or the best on all these lists, each fused by what was
    learned without its fifth: they are many more than dev has, whose best is unstable."""
    training, settings = data.shared(run.recipe), data.recipe.decode
    corpus = training.corpus
    scores, folds = scores_by_folds(run, corpus, None if data.dev is None else data.dev.corpus)
    base, sharpness = deviation_of(corpus, corpus.base), settings.sharpness or LEARNING_SHARPNESS
    symbols, by_fold = SymbolTable(), [list[tuple[BracketColumns, np.ndarray]]() for _ in range(FOLDS)]

    def add(_: int, number: int, brackets: ListBrackets) -> None:
        """Take over the brackets of a list, with symbols that all lists have in common."""
        columns, texts, right = brackets
        ids = np.array([one if isinstance(one, int) else symbols.intern(one) for one in texts], np.int32)
        by_fold[folds[number]].append((columns._replace(symbols=ids[columns.symbols]), right))

    visitor = Visitor(training, add, partial(brackets_of, base, sharpness), [scores])
    visit_lists(data, data.recipe.data.training, [visitor])
    every = [*chain.from_iterable(by_fold)]
    run.brackets = fit_brackets(every, symbols, base)
    numbers = sum(right.size for _, right in every)
    log.info("learned fusion: %s brackets of %s lists", f"{numbers:,}", f"{len(every):,}")
    if settings.threshold is not None:
        run.fusion_point = settings.threshold, 0.0
        return
    try:
        rest = ([*chain.from_iterable(by_fold[:fold] + by_fold[fold + 1 :])] for fold in range(FOLDS))
        models = [fit_brackets(lists, symbols, base) for lists in rest]
    except RecipeError:
        log.warning("learned fusion: too few lists to choose a threshold by folds; it is %g", DEFAULT_THRESHOLD)
        run.fusion_point = DEFAULT_THRESHOLD, 0.0
        return
    points = Points(1.0, np.array([sharpness]), BRACKET_THRESHOLDS, BRACKET_SLACKS)
    sweep = Sweep("learned", points, scores, training, data.metric, models, folds=[folds])
    visit_lists(data, data.recipe.data.training, [sweep.visitor])
    run.fusion_point = best_fusion(sweep, corpus, data.metric)
