"""The base score in a run: how it is weighed where there is no dev split, and whether training beats the base."""

import logging
from typing import Any

import numpy as np

from rerank.base.errors import RecipeError
from rerank.data.shards import Lists, section
from rerank.learn.base import Weights
from rerank.learn.base_weight import AUTO, START, start_weight
from rerank.learn.trainer import Training
from rerank.metrics.base import Metric
from rerank.models.model import Model
from rerank.recipes.recipe import ListRecipe

log = logging.getLogger("rerank")
HELD_OUT = "held-out training lists"  # what stands in for a dev split where there is none


def training_base(warm_start: str | None, corpus: Lists) -> float:
    """The weight of the base score while a learner trains: that of the model it continues from, if there is one."""
    if warm_start is not None:
        return float(Model.load(warm_start, trust=True).about.get("training_base", START))
    return start_weight(corpus)


def held_out(corpus: Lists) -> tuple[Lists, Lists]:
    """All but the last tenth of the training lists, and that tenth, at least one list, to weigh the base score on."""
    lists = corpus.list_count
    if lists < 2:
        message = (
            f"{lists} training list and no dev split: nothing to weigh the base score on; name data.dev or a number"
        )
        raise RecipeError(message, key="learner.base")
    first = lists - max(1, lists // 10)
    log.warning(
        "no dev split: the last %d of %d training lists%s held out to choose epoch and weight of the base score; "
        "name data.dev, or a number as learner.base to train on all of them",
        lists - first, lists, _sources_from(corpus, first),
    )  # fmt: skip
    return section(corpus, 0, first), section(corpus, first, lists)


def _sources_from(corpus: Lists, first: int) -> str:
    """Which sources the lists from ``first`` on are from, for a message; nothing if there is only one source."""
    sources: list[tuple[str, int]] = corpus.about.get("sources", [])
    if sum(lists for _, lists in sources) != corpus.list_count:  # a share of them
        return ""
    ends = np.cumsum([lists for _, lists in sources])
    names = [name for (name, _), end in zip(sources, ends, strict=True) if end > first]
    return f" (from {', '.join(names)})" if names else ""


def judge_base(recipe: ListRecipe, training: Training, split: str | None, metric: Metric) -> dict[str, Any]:
    """What metrics.json says about the base score; where no epoch beats the base, an automatic weight leaves
    only the base score in ``training``.

    setting: the recipe's; training: the weight while the learner trained; votes: the weight at the start of the
    predictors that vote, the last of which is the last predictor; weights: those of the other predictors; dev: the
    base's score on ``split``, on which epochs were chosen; beaten: whether the epoch that was kept scores better there
    or, of a batch learner, on the training lists held out in turn; kept: whether the model is the base itself.
    """
    best = next(line for line in training.history if line["epoch"] == training.epoch)
    setting = recipe.learner.get("base")
    sign = -1.0 if metric.lower_is_better else 1.0
    beaten = None if split is None else sign * best["dev"] > sign * best["dev_base"]
    folds = training.about.get("columns", {})
    if folds.get("lists"):
        beaten = folds["beaten"]
    kept = beaten is False and setting == AUTO
    start = getattr(training.learner, "base", 0.0)
    found = training.weights["last"].base - training.learner.last(training.state).base
    if kept:
        training.weights = {name: Weights(np.zeros_like(own.w), 1.0) for name, own in training.weights.items()}
    return {
        "setting": setting,
        "training": start,
        "votes": max(0.0, start + found),
        "weights": {name: own.base for name, own in training.weights.items()},
        "dev": best.get("dev_base"),
        "split": split,
        "beaten": beaten,
        "kept": kept,
    }
