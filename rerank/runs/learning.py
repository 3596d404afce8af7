"""The dependence of results on the number of training lists: the chosen run, trained on shares of them."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.data.shards import reference_rows
from rerank.learn.scoring import weighed_rows
from rerank.metrics.base import Metric, TestName
from rerank.metrics.significance import compare
from rerank.recipes.recipe import TaskRecipe
from rerank.runs.corpora import Data
from rerank.runs.run import Run

log = logging.getLogger("rerank")
Trained = TypeVar("Trained")


class CurvePoint(NamedTuple):
    """A model's point on a curve: its entry in ``points``, and the statistics of what it selects on the split by
    which models are compared (float64 [L, K])."""

    entry: dict[str, Any]
    rows: np.ndarray


def learning_curve(
    recipe: TaskRecipe,
    metric: Metric,
    reference: np.ndarray,
    split: str,
    unit: str,
    whole: Trained,
    train: Callable[[float], Trained],
    look: Callable[[Trained], CurvePoint],
) -> dict[str, Any]:
    """An entry ``curve`` of metrics.json: scores by share of the training data, their slope, a test of the last step.

    reference: the statistics that ``metric`` needs in addition to rows. split: the one of slope and test; the slope is
    the least-squares one over base-2 logarithms of sizes: what doubling them brings; the test compares with the largest
    smaller share. unit: what is trained on, the key of the sizes. whole: what was trained on the recipe's own share;
    train: from a smaller share to what is trained on it.
    """
    training, settings = recipe.training, recipe.significance
    shares = sorted({share for share in training.curve if share < training.share})
    by_share: dict[float, CurvePoint] = {}
    for share in shares:
        try:
            trained = train(share)
        except (DataError, RecipeError) as error:
            log.warning("training.curve: a share of %g cannot be trained on, and is left out: %s", share, error)
        else:
            by_share[share] = look(trained)
    if not by_share:
        return {}
    by_share[training.share] = look(whole)
    points = [{"share": share, **point.entry} for share, point in by_share.items()]
    sizes = np.log2([point[unit] for point in points])
    apart = sizes - sizes.mean()
    slope = float((apart * [point["splits"][split] for point in points]).sum() / (np.square(apart).sum() or 1.0))
    *_, part, full = (point.rows for point in by_share.values())
    test: TestName = settings.test or "mcnemar"
    last = compare(metric, full, part, reference, test=test, samples=settings.samples, seed=recipe.seed)
    return {"split": split, "points": points, "slope": slope, "last": last.as_dict()}


def look_at_lists(run: Run, data: Data, metric: Metric, tests: Sequence[str]) -> CurvePoint:
    """A run's points on the curve: its scores on dev and ``tests``, compared on the first of these."""
    rows, scores = [], {}
    for split in tests:
        corpus = data.others[split].corpus
        rows.append(weighed_rows(corpus, run.weights[run.recipe.predictor], metric))
        total = reference_rows(corpus).sum(axis=0)
        scores[split] = metric.report(rows[-1].sum(axis=0), total)[metric.primary]
    return CurvePoint({"lists": run.training["lists"], "dev": run.dev_score, "splits": scores}, rows[0])
