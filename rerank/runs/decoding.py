"""Decoding in a run: tuned on dev, evaluated on the test splits, for all runs in one pass over the files of a split."""

import logging
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus, offsets
from rerank.extraction.extraction import Extracted
from rerank.learn.base_weight import AUTO
from rerank.metrics import bracket_model
from rerank.metrics.gain import ColumnMetric, Gain
from rerank.metrics.metric import Metric, chosen_rows, measures_orders
from rerank.metrics.oracle import scored_rows
from rerank.metrics.parseval import Parseval
from rerank.metrics.wer import Match
from rerank.models.decoding import gain_functions, require_trees
from rerank.models.provenance import LEAST, Decoding, Kind
from rerank.readers.base import ScoreColumns
from rerank.readers.lists import numbered
from rerank.recipes.recipe import DECODERS, ListRecipe
from rerank.runs.combination import deviation_of, spread
from rerank.runs.corpora import Data, last_lists, shared_lists
from rerank.runs.run import Run, weight_counts
from rerank.runs.second_pass import (
    MEANT,
    GainSweep,
    Points,
    RereadList,
    Sweep,
    Visitor,
    learn_brackets,
    make_sweep,
    run_scores,
    visit_lists,
)
from rerank.runs.training import NOT_BEATEN, base_alone

log = logging.getLogger("rerank")
SHARPNESS = 2.0 ** (np.arange(-12, 25) / 4)  # in deviations of the scores
THRESHOLDS = np.array([0.5, 0.55, 0.6, 0.65, 0.7])
COVERAGES = 200  # points of the curve of coverage
EQUAL = 1e-9  # scores that differ by less, which is rounding, are the same


class Answered(Visitor):
    """A reading of the lists of a split for ``baselines``: their answers and their columns, and no gains."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self._seen = list[tuple[int, np.ndarray, np.ndarray]]()  # of a list: its first candidate, answers, columns

    def see(self, again: RereadList) -> None:
        nbest = again.pair.nbest.named()
        columns = nbest.scores[:, [nbest.names.index(name) for name in self.names]].T
        self._seen.append((again.number, numbered(nbest), columns))

    def choices(self, lists: np.ndarray) -> dict[str, np.ndarray]:
        """int64 [L] by way: the candidates that are chosen of the lists lists[i]..lists[i + 1] (int64 [L + 1]), -1 of
        those that were passed over; nothing where no list has an answer, or by a column that says nothing."""
        from rerank.runs.vote import ListSource, baselines

        if not self._seen or all(answers.max(initial=-1) < 0 for _, answers, _ in self._seen):
            return {}
        numbers, answers, columns = zip(*self._seen, strict=True)
        first = offsets([each.size for each in answers])
        values, nothing = np.concatenate(columns, axis=1), np.zeros(first[-1])
        varying = np.flatnonzero((values != values[:, :1]).any(axis=1))
        names = tuple(self.names[k] for k in varying.tolist())
        every = ListSource(
            first, np.concatenate(answers), names, values[varying], nothing, first[:-1] * 0, Gain(), nothing[:, None],
            nothing[:, None], nothing,
        )  # fmt: skip
        chosen, own = dict[str, np.ndarray](), np.array(numbers)
        for name, way in baselines(every).items():
            places = np.full(lists.size - 1, -1)
            places[own] = lists[:-1][own] + way(every) - first[:-1]
            chosen[name] = places
        return chosen


def check_decoding(recipe: ListRecipe) -> None:
    """Refuse decoding that a recipe's lists do not allow, or that is used but never tuned."""
    settings, kinds = recipe.decode, recipe.decoders
    measured = recipe.metric.get("name")
    if (kinds or recipe.training.vote) and measures_orders(measured):
        asked = "decode" if settings.kinds or settings.margin else "data.answer"
        message = f"{measured} is of the order of all candidates, which neither decoding nor votes give; leave them out"
        raise RecipeError(message, key=asked if kinds else "training.vote")
    if "fuse" in kinds and settings.threshold is not None and settings.threshold < LEAST:
        message = f"found {settings.threshold:g}; expected one from {LEAST} to below 1, or decode.kinds without fuse"
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


def tune_decoding(recipe: ListRecipe, data: Data, runs: list[Run], metric: Metric) -> None:
    """Find out on dev how every run decodes best, and whether that is better than its best candidates; without dev, on
    the training lists that were held out when the run was trained.

    The result goes to ``training["decode"]`` of the runs: for every kind the settings and the score, ``best``, the
    score of the best candidates, and ``use``, the kind that is used, empty for none. Every point of a grid is scored
    exactly; of equally good ones the smallest sharpness and threshold are taken, and the simplest way: the best
    candidate, mbr, fuse, learned.
    """
    kinds, settings, dev = recipe.decoders, recipe.decode, recipe.data.dev
    split = recipe.data.training if dev is None else dev
    tried = list[tuple[Run, Extracted, np.ndarray, dict[str, Sweep]]]()
    for run in runs if kinds else ():
        learned = (0.0, 0.0)
        if "learned" in kinds:
            assert isinstance(metric, Parseval)
            run.brackets, learned = learn_brackets(recipe, data, run, metric)
        seen = _tuned_on(recipe, data, run)
        if seen is None and settings.margin > 0:
            message = f"found {settings.margin:g}, but no lists were held out in training that tell what scores mean"
            raise RecipeError(f"{message}; name data.dev, or decode.sharpness", key="decode.margin")
        if seen is None:
            log.info("decoding is not tuned: no lists were held out in training; name data.dev, or decode.sharpness")
            continue
        extracted, scores = seen
        deviation, sweeps = deviation_of(extracted.corpus, scores), dict[str, Sweep]()
        for kind in kinds:
            points = Points(scores, deviation, *_grid(recipe, kind, *learned))
            sweeps[kind] = make_sweep(kind, points, extracted.corpus.list_count, metric, run.brackets)
        tried.append((run, extracted, scores, sweeps))
    for group in [tried] if dev is not None else [[one] for one in tried]:  # without dev, runs may have different lists
        every = [sweep for *_, sweeps in group for sweep in sweeps.values()]
        if any(sweep.points.sharpness.size * sweep.points.thresholds.size > 1 for sweep in every):
            extracted = group[0][1]
            visit_lists(recipe, data, split, extracted, every)
    again = list[Run]()
    for run, extracted, scores, sweeps in tried:
        best = metric.score(scored_rows(extracted.corpus, metric, scores), extracted.corpus.reference)
        tuned = {kind: _best_point(recipe, kind, sweep, extracted.corpus, metric) for kind, sweep in sweeps.items()}
        base, scored = run.training["base"], [best, *(entry["dev"] for entry in tuned.values())]
        left_open = base["beaten"] is False and base["setting"] == AUTO and not base["kept"] and dev is None
        if left_open and max(metric.sign * score for score in scored if score is not None) <= EQUAL + (
            metric.sign
            * metric.score(scored_rows(extracted.corpus, metric, extracted.corpus.base), extracted.corpus.reference)
        ):
            log.warning(NOT_BEATEN)
            run.weights, tuned = base_alone(run.weights, run.training, data.training.corpus), {}
            run.training["base"]["kept"] = True
            run.training |= weight_counts(run.weights, run.recipe.training.predictor)
            again += [run] if settings.margin > 0 else []
        elif dev is None:  # scores of trainings on fewer lists are on another scale
            final = spread(data.training.corpus, run.weights[recipe.predictor])
            tuned = {kind: entry | {"deviation": final} for kind, entry in tuned.items()}
        run.training["decode"] = {"use": _used(recipe, tuned, best, metric), "best": best, **tuned}
    if again:  # a margin of the base's scores
        tune_decoding(recipe, data, again, metric)


def _tuned_on(recipe: ListRecipe, data: Data, run: Run) -> tuple[Extracted, np.ndarray] | None:
    """The lists that decoding is tuned on and the scores of their candidates (float64 [N]) by a training without them;
    None if there are none. Where nothing is tuned, or the model is the base itself, all training lists."""
    if recipe.data.dev is not None:
        extracted = data.others[recipe.data.dev]
        return extracted, run_scores(run, extracted.corpus)
    training = shared_lists(data.training, run.recipe.training.share, run.recipe.seed)
    if recipe.decode.sharpness is not None or run.training["base"]["kept"]:
        return training, run_scores(run, training.corpus)
    return (last_lists(training, run.held.size), run.held) if run.held.size else None


def _grid(recipe: ListRecipe, kind: str, threshold: float, slack: float) -> tuple[np.ndarray, ...]:
    """The sharpnesses, thresholds and slacks (float64) that are tried; threshold, slack: what was learned."""
    sharpness = np.array([MEANT]) if kind == "learned" else SHARPNESS
    if recipe.decode.sharpness is not None:
        sharpness = np.array([recipe.decode.sharpness])
    fixed = recipe.decode.threshold if kind != "learned" else threshold
    slacks = np.array([slack if kind == "learned" else 0.0])
    return sharpness, THRESHOLDS if fixed is None else np.array([fixed]), slacks


def _best_point(recipe: ListRecipe, kind: str, sweep: Sweep, corpus: Corpus, metric: Metric) -> dict[str, Any]:
    """The settings of the point with the best score, and that score (None where nothing was to be tuned)."""
    points, score, a, h = sweep.points, None, 0, 0
    if sweep.texts:
        total = corpus.reference.sum(axis=0)
        scores = metric.scores(sums := sweep.sums(corpus), np.broadcast_to(total, (sums.shape[0], total.size)))
        at = int(np.argmax(metric.sign * scores))
        score, (a, h) = float(scores[at]), divmod(at, points.thresholds.size if kind != "mbr" else 1)
    settings = {"kind": kind, "sharpness": float(points.sharpness[a]), "deviation": points.deviation}
    settings |= {"threshold": float(points.thresholds[h]), "slack": float(points.slacks[0])} if kind != "mbr" else {}
    settings |= {key: getattr(recipe.decode, key) for key in ("most", "gains", "margin", "below")}
    return Decoding.model_validate(settings).model_dump() | {"dev": score}


def _used(recipe: ListRecipe, tuned: dict[str, dict[str, Any]], best: float, metric: Metric) -> str:
    """The kind that is used: the one that the recipe names, or the best on dev if it is better than candidates are."""
    if recipe.decode.use != "auto":
        return "" if recipe.decode.use == "best" else recipe.decode.use
    if recipe.decode.margin > 0 and "mbr" in tuned:
        return "mbr"
    scored = {"": metric.sign * best}
    for kind in get_args(Kind):  # the simplest first
        if tuned.get(kind, {}).get("dev") is not None:
            scored[kind] = metric.sign * tuned[kind]["dev"]
    most = max(scored.values())
    return next(kind for kind, score in scored.items() if score >= most - EQUAL)


def decodings(run: Run) -> dict[str, Decoding]:
    """The decodings of a tuned run, by kind."""
    entries = run.training.get("decode", {})
    kept = {kind: entries[kind] for kind in get_args(Kind) if kind in entries}
    return {kind: Decoding(**{key: entry[key] for key in Decoding.model_fields}) for kind, entry in kept.items()}


def evaluate_decoding(
    recipe: ListRecipe,
    data: Data,
    runs: list[Run],
    chosen: Run,
    split: str,
    metric: Metric,
) -> list[bytes] | None:
    """Evaluate how all runs decode a split; the answers of ``chosen`` if it uses any of them, empty ones
    for lists that are not in the corpus."""
    extracted = data.others[split]
    tried: list[dict[str, Sweep]] = []
    for run in runs:
        scores, sweeps = run_scores(run, extracted.corpus), dict[str, Sweep]()
        for kind, how in decodings(run).items():
            one = (np.array([each]) for each in (how.sharpness, how.threshold, how.slack))
            points = Points(scores, how.deviation, *one)
            sweeps[kind] = make_sweep(kind, points, extracted.corpus.list_count, metric, run.brackets, how)
        tried.append(sweeps)
    every = [sweep for sweeps_of_run in tried for sweep in sweeps_of_run.values()]
    sizes, columns = np.diff(extracted.corpus.lists), ScoreColumns.of_table(data.table.about)
    votes = None
    if recipe.decoders and isinstance(metric, ColumnMetric | Match) and not metric.ordered and columns:
        votes = Answered(columns.without(metric.measured).names)
    visitors: list[Visitor] = [*every, *([] if votes is None else [votes])]
    if not visitors:
        return None
    visit_lists(recipe, data, split, extracted, visitors)
    answers, others = None, {} if votes is None else votes.choices(offsets(sizes))
    for name, places in others.items():
        chosen.add_selection(split, name, chosen_rows(extracted.corpus.stats, places), places)
    if others:
        chosen.training.setdefault("votes", {})[split] = list(others)
    for run, sweeps_of_run in zip(runs, tried, strict=True):
        for kind, sweep in sweeps_of_run.items():
            choice = sweep.candidates if isinstance(sweep, GainSweep) and sweep.decided else None
            run.add_selection(split, kind, sweep.rows(extracted.corpus), choice)
            if run is chosen and isinstance(sweep, GainSweep) and isinstance(metric, Gain):
                curve = _coverage(sweep, extracted.corpus, metric)
                run.training["decode"].setdefault("coverage", {})[split] = curve
        if run is chosen and (use := run.training.get("decode", {}).get("use")):
            answers, run.answers[split] = sweeps_of_run[use].texts, sweeps_of_run[use].candidates
    return answers


def _coverage(sweep: GainSweep, lists: Corpus, metric: Gain) -> dict[str, Any]:
    """The gain on the lists with the largest margins, at up to COVERAGES shares of all lists; ``aurc`` is the
    area under the curve of what is lost there (Geifman & El-Yaniv 2017), the mean over all shares."""
    order = np.argsort(-sweep.margins, kind="stable")
    rows, reference = chosen_rows(lists.stats, sweep.chosen[0])[order], lists.reference[order]
    scores = metric.scores(np.cumsum(rows, axis=0), np.cumsum(reference, axis=0))
    points = np.unique(np.linspace(0, scores.size - 1, min(scores.size, COVERAGES)).astype(int))
    return {
        "aurc": float(np.mean(metric.best - scores)),
        "coverage": ((points + 1) / scores.size).tolist(),
        "margin": sweep.margins[order][points].tolist(),
        "score": scores[points].tolist(),
    }
