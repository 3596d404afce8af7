"""One model from several trainings: the sum of their weights, each in units of the deviation of its scores."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rerank.data.corpus import Corpus
from rerank.learn.base import Weights
from rerank.learn.base_weight import AUTO, BaseSearch, base_squares
from rerank.learn.scoring import corpus_score, scores
from rerank.metrics.metric import Metric
from rerank.recipes.recipe import ListRecipe
from rerank.runs.run import Run, beside, weight_counts
from rerank.runs.training import RunTask, column_norms, largest, trained_on, trained_once

log = logging.getLogger("rerank")
APART = 1000  # seeds of members: runs with neighbouring seeds share none


def members(recipe: ListRecipe) -> list[ListRecipe]:
    """The recipes of all members of an ensemble, all of which see the same share of the lists."""
    settings = recipe.training.ensemble
    assert settings is not None
    plain = {"training.ensemble": None, "training.vote": False, "training.share": 1.0}
    return [
        recipe.changed({**plain, "learner": learner, "seed": recipe.seed + APART * number})
        for learner in settings.learners or (recipe.learner,)
        for number in range(settings.seeds)
    ]


def train_ensemble(task: RunTask) -> Run:
    """Train all members and sum up their weights.

    Members that an interrupted call has finished are kept beside the place of the run. The history is that of the first
    member.
    """
    recipe, dev, metric = task.recipe, task.dev, task.metric
    assert dev is not None
    corpus = task.corpus.shared(recipe.training.share, recipe.seed)
    digests = trained_on(task.digests[0], recipe), *task.digests[1:]
    runs = list[Run]()
    for number, single in enumerate(every := members(recipe)):
        log.info("member %d of %d: %s, seed %d", number + 1, len(every), single.learner["name"], single.seed)
        place = None if task.place is None else beside(task.place, f"member-{number}")
        member = replace(task, recipe=single, corpus=corpus, digests=digests, place=place)
        runs.append(trained_once(member))
    first, predictor, settings = runs[0], recipe.training.predictor, recipe.training.ensemble
    assert settings is not None
    weights = {kind: summed([run.weights[kind] for run in runs], dev) for kind in ("last", "average")}
    columns = np.ones(corpus.width, np.bool_)
    if settings.keep is not None:
        size = np.abs(weights[predictor].w) * column_norms(corpus)
        columns = largest(size, corpus.free, settings.keep)
    search = BaseSearch(dev, metric)
    for kind, summed_weights in weights.items():
        summed_weights.w[~columns] = 0.0
        if recipe.learner.get("base") == AUTO:
            weights[kind] = search(summed_weights)[0]
    about = first.training | {"ensemble": _about(runs, dev, weights, recipe, metric)}
    about |= weight_counts(weights, predictor) | {"base": _base(first, weights, about["ensemble"]["dev"], search)}
    if about["base"]["kept"]:
        weights = {kind: Weights(np.zeros_like(summed_weights.w), 1.0) for kind, summed_weights in weights.items()}
        about |= weight_counts(weights, predictor)
    return Run(task.name, recipe, weights, {}, {}, None, about, first.history, task.digests, np.zeros(0))


def summed(weights: Sequence[Weights], dev: Corpus) -> Weights:
    """The sum of weights, each divided by the deviation of its scores on ``dev``."""
    w, base = np.zeros_like(weights[0].w), 0.0
    for predictor in weights:
        deviation = spread(dev, predictor)
        w, base = w + predictor.w / deviation, base + predictor.base / deviation
    return Weights(w, base)


def spread(lists: Corpus, weights: Weights) -> float:
    """``deviation_of`` the scores that ``weights`` give."""
    return deviation_of(lists, scores(lists, weights))


def deviation_of(lists: Corpus, scored: np.ndarray) -> float:
    """The standard deviation of scores (float64 [N]) from the means of their lists; 1 where all are alike."""
    deviation = float(np.sqrt(base_squares(lists.lists, scored) / max(lists.candidate_count, 1)))
    return deviation if deviation > 0 and np.isfinite(deviation) else 1.0


def _about(
    runs: Sequence[Run], dev: Corpus, weights: dict[str, Weights], recipe: ListRecipe, metric: Metric
) -> dict[str, Any]:
    """The entry of metrics.json on an ensemble: its members with their dev scores, and its own."""
    members = [
        {
            "learner": run.recipe.learner,
            "seed": run.recipe.seed,
            "dev": run.dev_score,
            "deviation": spread(dev, run.weights[recipe.training.predictor]),
            "seconds": run.training["seconds"],
        }
        for run in runs
    ]
    score = corpus_score(dev, weights[recipe.training.predictor], metric)
    log.info("ensemble of %d: dev %s", len(runs), metric.text(score))
    return {"members": members, "dev": score}


def _base(first: Run, weights: dict[str, Weights], score: float, search: BaseSearch) -> dict[str, Any]:
    """The entry of metrics.json on the base score; as that of a training does."""
    base = search.metric.sign * search.base_score
    beaten = search.metric.sign * score > search.base_score
    base_weights = {kind: predictor.base for kind, predictor in weights.items()}
    setting = first.training["base"]["setting"]
    entry: dict[str, Any] = {**first.training["base"], "weights": base_weights, "dev": base, "beaten": beaten}
    return entry | {"kept": not beaten and setting == AUTO}
