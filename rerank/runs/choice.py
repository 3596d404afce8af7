"""The settings that a run takes: the best on dev or, with training lists set apart, the simplest of those that are
nearly as good on them as the best.

Nearly as good is within one standard error of the difference (after Breiman et al. 1984, section 3.4.3): from lists
drawn with replacement, the same for both, and from the seeds. Simplest are the fewest weights other than zero.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rerank.data.shards import reference_rows
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


def choose(recipe: ListRecipe, runs: Sequence[Run], data: Data, metric: Metric) -> tuple[Run, dict[str, Any]]:
    """The run that is served, and the entry ``choice`` of metrics.json; empty without lists set apart.

    Of the seeds of the chosen settings, it is the one with the best dev score.
    """
    if recipe.data.holdout is None:
        return best_on_dev(runs, metric), {}
    corpus, seeds = data.others[HOLDOUT].corpus, len(recipe.run_seeds)
    reference, sign = reference_rows(corpus), -1.0 if metric.lower_is_better else 1.0
    groups = [runs[first : first + seeds] for first in range(0, len(runs), seeds)]
    rows = [
        np.stack([weighed_rows(corpus, run.weights[run.recipe.predictor], metric) for run in group]) for group in groups
    ]  # float64 [S, L, K], what each seed selects
    total = reference.sum(axis=0)
    scores = [np.array([float(metric.scores(own.sum(axis=0), total)) for own in each]) for each in rows]
    best = max(range(len(groups)), key=lambda k: sign * float(scores[k].mean()))
    how: dict[str, Any] = {"samples": SAMPLES, "seed": recipe.seed, "confidence": ONE_ERROR}
    points = list[dict[str, Any]]()
    for k, group in enumerate(groups):
        mean, score = rows[k].mean(axis=0), float(scores[k].mean())
        width, behind = _joined(score_interval(metric, mean, reference, **how), scores[k]), 0.0
        if k != best:
            apart = score_interval(metric, mean, reference, rows[best].mean(axis=0), **how)
            behind = _joined(apart, scores[k] - scores[best])
        devs = [run.dev_score for run in group if run.dev_score is not None]
        points.append(
            {
                "name": group[0].name,
                "seeds": len(group),
                "score": score,
                "interval": [score - WIDE * width, score + WIDE * width],
                "difference": float((scores[k] - scores[best]).mean()),
                "error": behind,
                "dev": float(np.mean(devs)) if devs else None,
                "nonzero_weights": float(np.mean([run.training["nonzero_weights"] for run in group])),
                "report": metric.report(mean.sum(axis=0), total),
            }
        )
    near = [k for k, point in enumerate(points) if sign * point["difference"] >= -point["error"]]
    taken = min(near, key=lambda k: (points[k]["nonzero_weights"], -sign * points[k]["score"]))
    run, point = recipe.points()[taken]
    line = {
        "split": HOLDOUT,
        "lists": corpus.list_count,
        "best": groups[best][0].name,
        "chosen": groups[taken][0].name,
        "settings": {**run.set, **point},
        "points": [{**entry, "near": k in near} for k, entry in enumerate(points)],
    }
    log.info("best on %s: %s; simplest within one standard error: %s", HOLDOUT, line["best"], line["chosen"])
    return best_on_dev(groups[taken], metric), line


def best_on_dev(runs: Sequence[Run], metric: Metric) -> Run:
    """The run with the best dev score, the first of equals."""
    sign = -1.0 if metric.lower_is_better else 1.0
    return max(runs, key=lambda each: -np.inf if each.dev_score is None else sign * each.dev_score)


def chosen_recipe(recipe: ListRecipe, choice: Mapping[str, Any]) -> ListRecipe:
    """A recipe with the chosen settings alone, for one look at the test splits; it trains on all lists unless those set
    apart are its dev split."""
    alone = recipe.changed({"runs": (), "grid": {}, "reported": None, **choice["settings"]})
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


def _joined(interval: tuple[float, float], by_seed: np.ndarray) -> float:
    """The standard error from that over lists, half an ``interval``, and that of a mean over seeds."""
    over_seeds = float(by_seed.var(ddof=1)) / by_seed.size if by_seed.size > 1 else 0.0
    return float(np.hypot((interval[1] - interval[0]) / 2, np.sqrt(over_seeds)))
