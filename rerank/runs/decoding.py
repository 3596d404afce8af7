"""Decoding in a run: tuned on dev, evaluated on the test splits, for all runs in one pass over the files of a split."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple, Protocol

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.progress import track
from rerank.data.shards import Lists, list_sizes, parts, reference_rows
from rerank.extraction.content import content_of
from rerank.extraction.content.base import Pair
from rerank.extraction.content.trees import Parses
from rerank.extraction.extraction import Extracted
from rerank.learn.scoring import scores
from rerank.metrics.base import Metric
from rerank.metrics.oracle import statistics_of
from rerank.metrics.parseval import Parseval
from rerank.models.decoding import Evidence, best_expected, gain_functions, require_trees
from rerank.models.predictions import corpus_score
from rerank.models.provenance import Decoding
from rerank.readers.base import BadList, SkipCount
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.trees.trees import brackets
from rerank.recipes.recipe import ListRecipe
from rerank.runs.corpora import Data
from rerank.runs.ensembles import spread
from rerank.runs.run import Run

log = logging.getLogger("rerank")
SHARPNESS = 2.0 ** (np.arange(-12, 25) / 4)  # in deviations of the scores
THRESHOLDS = np.array([0.5, 0.55, 0.6, 0.65, 0.7])


class ListAgain(NamedTuple):
    """A list of a corpus, read again: its number, which candidates of the corpus it has, and what these are."""

    number: int
    own: slice
    pair: Pair
    evidence: Evidence


class Points(NamedTuple):
    """What is tried on lists with ``scores`` (float64 [N], of all candidates): A sharpnesses and H thresholds."""

    scores: np.ndarray
    deviation: float
    sharpness: np.ndarray  # float64 [A]
    thresholds: np.ndarray  # float64 [H]


class Sweep(Protocol):
    """One way to decode, tried at all points on one list after the other."""

    points: Points
    texts: list[bytes]  # the answers at the first point

    def see(self, again: ListAgain) -> None:
        """Decode a list."""

    def sums(self, corpus: Lists) -> np.ndarray:
        """float64 [points, K]: the statistics of all answers, by sharpness, then by threshold."""

    def rows(self, corpus: Lists) -> np.ndarray:
        """float64 [L, K]: the statistics of the answers at the first point."""


class GainSweep:
    """By expected gain: ``chosen`` (int64 [A, L]) are candidates of the corpus, -1 for lists without any."""

    def __init__(self, points: Points, corpus: Lists) -> None:
        self.points, self.texts = points, list[bytes]()
        self.chosen = np.full((points.sharpness.size, corpus.list_count), -1, np.int64)

    def see(self, again: ListAgain) -> None:
        """See ``Sweep``."""
        own = self.points.scores[again.own]
        places = best_expected(again.evidence.expected(own, self.points.sharpness, self.points.deviation), own)
        self.chosen[:, again.number] = again.own.start + places
        self.texts.append(again.pair.nbest.texts[int(places[0])])

    def sums(self, corpus: Lists) -> np.ndarray:
        """See ``Sweep``."""
        return np.stack([statistics_of(corpus, chosen).sum(axis=0) for chosen in self.chosen])

    def rows(self, corpus: Lists) -> np.ndarray:
        """See ``Sweep``."""
        return statistics_of(corpus, self.chosen[0])


class FusionSweep:
    """Fused trees. A list of failed parses alone is decoded by its best candidate."""

    def __init__(self, points: Points, corpus: Lists, metric: Parseval) -> None:
        self.points, self.texts, self._metric = points, list[bytes](), metric
        K = len(metric.columns)
        self._rows = np.zeros((corpus.list_count, K))
        self._sums = np.zeros((points.sharpness.size * points.thresholds.size, K))

    def see(self, again: ListAgain) -> None:
        """See ``Sweep``."""
        own, parses = self.points.scores[again.own], again.pair.content
        assert isinstance(parses, Parses)
        if again.evidence.fusion.used.any():
            trees = again.evidence.fused(own, *self.points[2:], self.points.deviation)
            _, rows = self._metric.stats(again.pair.gold, trees, parses.symbols)
            self.texts.append(brackets(trees, 0, parses.symbols).encode("utf-8", "surrogateescape"))
        else:
            best = int(np.argmax(own))
            rows = self._metric.stats(again.pair.gold, parses.trees, parses.symbols)[1][best : best + 1]
            self.texts.append(again.pair.nbest.texts[best])
        self._sums += rows
        self._rows[again.number] = rows[0]

    def sums(self, corpus: Lists) -> np.ndarray:  # noqa: ARG002
        """See ``Sweep``."""
        return self._sums

    def rows(self, corpus: Lists) -> np.ndarray:  # noqa: ARG002
        """See ``Sweep``."""
        return self._rows


def check_decoding(recipe: ListRecipe) -> None:
    """Refuse decoding that a recipe's lists do not allow, or that is used but never tuned.

    Raises
    ------
    RecipeError: names the setting, and what is expected.
    """
    settings, kinds = recipe.decode, recipe.decoders
    if "fuse" in (*kinds, settings.use):
        require_trees(recipe.task == "parse")
    if settings.gains is not None:
        gain_functions.get(settings.gains)
    if settings.use not in ("auto", "best", *kinds):
        message = f"{settings.use!r} is not among decode.kinds ({', '.join(kinds) or 'none'})"
        if not kinds and recipe.data.dev is None:
            message = "without a dev split nothing is tuned; name data.dev, or give decode.sharpness"
        raise RecipeError(message, key="decode.use")


def tune_decoding(recipe: ListRecipe, data: Data, runs: list[Run], metric: Metric) -> None:
    """Find out on dev how every run decodes best, and whether that is better than its best candidates.

    What is found goes to ``training["decode"]`` of the runs: for every kind the settings and the score, ``best``, the
    score of the best candidates, and ``use``, the kind that is used, empty for none. Every point of a grid is scored
    exactly; the first of equally good ones is taken, the smallest sharpness and threshold.
    """
    kinds, settings, dev = recipe.decoders, recipe.decode, recipe.data.dev
    if not kinds:
        return
    split = recipe.data.training if dev is None else dev
    extracted = data.others[dev] if dev is not None else data.training
    sharpness = SHARPNESS if settings.sharpness is None else np.array([settings.sharpness])
    thresholds = THRESHOLDS if settings.threshold is None else np.array([settings.threshold])
    tried: list[dict[str, Sweep]] = []
    for run in runs:
        own = run_scores(run, extracted.corpus)
        points = Points(own, spread(extracted.corpus, run.weights[recipe.predictor]), sharpness, thresholds)
        tried.append({kind: make_sweep(kind, points, extracted.corpus, metric) for kind in kinds})
    if sharpness.size * thresholds.size > 1:
        see_again(recipe, data, split, extracted, [sweep for found in tried for sweep in found.values()])
    for run, found in zip(runs, tried, strict=True):
        best = corpus_score(extracted.corpus, run.weights[recipe.predictor], metric)
        tuned = {kind: _best_point(recipe, kind, sweep, extracted.corpus, metric) for kind, sweep in found.items()}
        run.training["decode"] = {"use": _used(recipe, tuned, best, metric), "best": best, **tuned}


def _best_point(recipe: ListRecipe, kind: str, sweep: Sweep, corpus: Lists, metric: Metric) -> dict[str, Any]:
    """The settings of the point with the best score, and that score (None where nothing was to be tuned)."""
    points, score, a, h = sweep.points, None, 0, 0
    if sweep.texts:
        sign, total = -1.0 if metric.lower_is_better else 1.0, reference_rows(corpus).sum(axis=0)
        found = metric.scores(sums := sweep.sums(corpus), np.broadcast_to(total, (sums.shape[0], total.size)))
        at = int(np.argmax(sign * found))
        score, (a, h) = float(found[at]), divmod(at, points.thresholds.size if kind == "fuse" else 1)
    settings = {"kind": kind, "sharpness": float(points.sharpness[a]), "deviation": points.deviation}
    settings |= {"threshold": float(points.thresholds[h])} if kind == "fuse" else {}
    settings |= {"most": recipe.decode.most, "gains": recipe.decode.gains}
    return Decoding.model_validate(settings).model_dump() | {"dev": score}


def _used(recipe: ListRecipe, tuned: dict[str, dict[str, Any]], best: float, metric: Metric) -> str:
    """The kind that is used: the one that the recipe names, or the best on dev if it is better than candidates are."""
    if recipe.decode.use != "auto":
        return "" if recipe.decode.use == "best" else recipe.decode.use
    sign = -1.0 if metric.lower_is_better else 1.0
    scored: dict[str, float] = {"": sign * best}
    scored |= {kind: sign * own["dev"] for kind, own in tuned.items() if own["dev"] is not None}
    return max(scored, key=lambda kind: scored[kind])


def decodings(run: Run) -> dict[str, Decoding]:
    """How a tuned run decodes, by kind."""
    found = run.training.get("decode", {})
    own = {kind: found[kind] for kind in ("mbr", "fuse") if kind in found}
    return {kind: Decoding(**{key: each[key] for key in Decoding.model_fields}) for kind, each in own.items()}


def evaluate_decoding(
    recipe: ListRecipe, data: Data, runs: list[Run], chosen: Run, split: str, metric: Metric
) -> list[bytes] | None:
    """Evaluate how all runs decode a split; the answers of ``chosen`` if it uses any of them, empty ones for lists that
    are not in the corpus."""
    extracted = data.others[split]
    tried: list[dict[str, Sweep]] = []
    for run in runs:
        own, sweeps = run_scores(run, extracted.corpus), dict[str, Sweep]()
        for kind, how in decodings(run).items():
            points = Points(own, how.deviation, np.array([how.sharpness]), np.array([how.threshold]))
            sweeps[kind] = make_sweep(kind, points, extracted.corpus, metric)
        tried.append(sweeps)
    every = [sweep for found in tried for sweep in found.values()]
    if not every:
        return None
    see_again(recipe, data, split, extracted, every)
    answers = None
    for run, found in zip(runs, tried, strict=True):
        for kind, sweep in found.items():
            choice = sweep.chosen[0] if isinstance(sweep, GainSweep) else None
            run.add_selection(split, kind, sweep.rows(extracted.corpus), metric, choice)
        if run is chosen and (use := run.training["decode"]["use"]):
            answers = found[use].texts
    return answers


def see_again(recipe: ListRecipe, data: Data, split: str, extracted: Extracted, sweeps: list[Sweep]) -> None:
    """Read all lists of a split again and decode them; the answers to those that cannot be decoded are empty."""
    content = content_of(recipe, columns=ScoreColumns.of_table(data.table.about))
    gains = None if recipe.decode.gains is None else gain_functions.get(recipe.decode.gains)
    sizes, long = list_sizes(extracted.corpus), 0
    ends = np.cumsum(sizes)
    lists = content.read_again(recipe.data, split, extracted.ids, sizes)
    for number, raw in track(lists, f"decode {split}", total=sizes.size):
        usable = number >= 0 and not isinstance(raw.nbest, BadList) and sizes[number] > 0
        pair = content.pair(raw, SkipCount("skip")) if usable else None
        if pair is None:
            for sweep in sweeps:
                sweep.texts.append(b"")
            continue
        evidence = Evidence(content, pair.nbest, pair.content, recipe.decode.most, gains)
        long += len(pair.nbest) > recipe.decode.most
        again = ListAgain(number, slice(int(ends[number] - sizes[number]), int(ends[number])), pair, evidence)
        for sweep in sweeps:
            sweep.see(again)
    if long and any(isinstance(sweep, GainSweep) for sweep in sweeps):
        message = "%s: of %d lists only the %d candidates with the best scores were compared with each other"
        log.warning(f"{message} (decode.most)", split, long, recipe.decode.most)


def make_sweep(kind: str, points: Points, corpus: Lists, metric: Metric) -> Sweep:
    """One way to decode."""
    if kind == "mbr":
        return GainSweep(points, corpus)
    assert isinstance(metric, Parseval)
    return FusionSweep(points, corpus, metric)


def run_scores(run: Run, corpus: Lists) -> np.ndarray:
    """float64 [N]: the scores of all candidates by the run's predictor."""
    weights = run.weights[run.recipe.predictor]
    return np.concatenate([scores(part, weights) for _, part in parts(corpus)])
