"""The settings that a run takes: the best on dev or, with training lists set apart, the simplest of those that are
nearly as good on them as the best.

Nearly as good is within one standard error of the difference (after Breiman et al. 1984, section 3.4.3): from lists
drawn with replacement, the same for both, and from the seeds. Simplest are the fewest weights other than zero.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rerank.data.shards import Corpora, reference_rows
from rerank.learn.base_weight import AUTO
from rerank.learn.scoring import weighed_rows
from rerank.metrics.base import Metric
from rerank.metrics.significance import score_interval
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.sections import HOLDOUT
from rerank.runs.corpora import Data
from rerank.runs.run import Run

log = logging.getLogger("rerank")
ONE_ERROR, WIDE = 0.6827, 1.96  # the middle of a normal distribution within ±1 deviation; 95 % of it, in deviations
SAMPLES = 1000


class Tried(NamedTuple):
    """The runs with the same settings, one for every seed, and what they select.

    rows: float64 [S, L, K], the statistics of what each seed selects; scores: float64 [S].
    """

    runs: Sequence[Run]
    rows: np.ndarray
    scores: np.ndarray

    @property
    def weights(self) -> float:
        """The mean number of weights other than zero over seeds."""
        return float(np.mean([run.training["nonzero_weights"] for run in self.runs]))


def choose(recipe: ListRecipe, runs: Sequence[Run], data: Data, metric: Metric) -> tuple[Run, dict[str, Any]]:
    """The run that is served, and the entry ``choice`` of metrics.json; empty without lists set apart.

    Of the seeds of the chosen settings, it is the one with the best dev score.
    """
    if recipe.data.holdout is None:
        return best_on_dev(runs, metric), {}
    corpus, seeds = data.others[HOLDOUT].corpus, len(recipe.run_seeds)
    points = [_point(runs[first : first + seeds], corpus, metric) for first in range(0, len(runs), seeds)]
    sign = -1.0 if metric.lower_is_better else 1.0
    best = max(points, key=lambda point: sign * float(point.scores.mean()))
    entries = [_entry(point, best, corpus, metric, recipe.seed) for point in points]
    near = [k for k, entry in enumerate(entries) if sign * entry["difference"] >= -entry["error"]]
    taken = min(near, key=lambda k: (points[k].weights, -sign * entries[k]["score"]))
    line = {
        "split": HOLDOUT,
        "lists": corpus.list_count,
        "best": best.runs[0].name,
        "chosen": points[taken].runs[0].name,
        "settings": settings_of(recipe, taken),
        "points": [{**entry, "near": k in near} for k, entry in enumerate(entries)],
    }
    log.info("best on %s: %s; simplest within one standard error: %s", HOLDOUT, line["best"], line["chosen"])
    return best_on_dev(points[taken].runs, metric), line


def best_on_dev(runs: Sequence[Run], metric: Metric) -> Run:
    """The run with the best dev score, the first of equals."""
    sign = -1.0 if metric.lower_is_better else 1.0
    return max(runs, key=lambda each: -np.inf if each.dev_score is None else sign * each.dev_score)


def settings_of(recipe: ListRecipe, number: int) -> dict[str, Any]:
    """The settings of one of a recipe's ``points``, by dotted key."""
    run, point = recipe.points()[number]
    return {**run.set, **point}


def chosen_recipe(recipe: ListRecipe, choice: Mapping[str, Any]) -> ListRecipe:
    """A recipe with the chosen settings alone, for one look at the test splits; it trains on all lists unless those set
    apart are its dev split."""
    alone = recipe.changed({"runs": (), "grid": {}, "figures": (), "reported": None, **choice["settings"]})
    return alone if recipe.data.is_holdout(recipe.data.dev) else alone.changed({"data.holdout": None})


def blind(recipe: ListRecipe, choice: Mapping[str, Any]) -> dict[str, Any]:
    """The entry ``blind`` of metrics.json: what was chosen on which split, and the test splits that are none of them
    and none of whose files those splits have."""
    data = recipe.data
    on: dict[str, list[str]] = {data.training: ["weights"]}
    if data.dev is not None:
        weighed = any(single.recipe.learner.get("base") == AUTO for single in recipe.expand())
        kinds = {"epochs": True, "base weight": weighed, "decoding": recipe.decoders, "seed": len(recipe.run_seeds) > 1}
        on.setdefault(data.dev, []).extend(kind for kind, there in kinds.items() if there)
    if len(recipe.points()) > 1:
        on.setdefault(HOLDOUT if choice else data.dev or data.training, []).append("settings")
    if (mert := getattr(recipe, "mert", None)) is not None:
        on.setdefault(mert.split, []).append("MERT")
    known = {path for split in on for path in data.files(split).get("nbest", ())}
    tests = [split for split in data.tests if split not in on and known.isdisjoint(data.files(split).get("nbest", ()))]
    return {"splits": tests, "chosen_on": on}


def _point(runs: Sequence[Run], corpus: Corpora, metric: Metric) -> Tried:
    rows = np.stack([weighed_rows(corpus, run.weights[run.recipe.predictor], metric) for run in runs])
    total = reference_rows(corpus).sum(axis=0)
    scores = np.array([float(metric.scores(sample.sum(axis=0), total)) for sample in rows])
    return Tried(runs, rows, scores)


def _entry(point: Tried, best: Tried, corpus: Corpora, metric: Metric, seed: int) -> dict[str, Any]:
    """The entry of metrics.json on one point, its difference from the best, and the standard error of that."""
    reference = reference_rows(corpus)
    how: dict[str, Any] = {"samples": SAMPLES, "seed": seed, "confidence": ONE_ERROR}
    mean, other = point.rows.mean(axis=0), best.rows.mean(axis=0)
    score, behind = float(point.scores.mean()), 0.0
    width = _joined(score_interval(metric, mean, reference, **how), point.scores)
    if point is not best:
        behind = _joined(score_interval(metric, mean, reference, other, **how), point.scores - best.scores)
    devs = [run.dev_score for run in point.runs if run.dev_score is not None]
    return {
        "name": point.runs[0].name,
        "seeds": len(point.runs),
        "score": score,
        "interval": [score - WIDE * width, score + WIDE * width],
        "difference": float((point.scores - best.scores).mean()),
        "error": behind,
        "dev": float(np.mean(devs)) if devs else None,
        "nonzero_weights": point.weights,
        "report": metric.report(mean.sum(axis=0), reference.sum(axis=0)),
    }


def _joined(interval: tuple[float, float], by_seed: np.ndarray) -> float:
    """The standard error from that over lists, half an ``interval``, and that of a mean over seeds."""
    over_seeds = float(by_seed.var(ddof=1)) / by_seed.size if by_seed.size > 1 else 0.0
    return float(np.hypot((interval[1] - interval[0]) / 2, np.sqrt(over_seeds)))
