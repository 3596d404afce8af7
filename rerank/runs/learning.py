"""How results depend on the number of training lists: the chosen run, trained on shares of them."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.metrics.base import Metric
from rerank.models.predictions import choices
from rerank.recipes.recipe import ListRecipe
from rerank.runs.corpora import Data
from rerank.runs.evaluation import Selections
from rerank.runs.report.data import LearningCurve
from rerank.runs.report.measures import Measure
from rerank.runs.report.verdict import LEVEL, verdict
from rerank.runs.run import Run

log = logging.getLogger("rerank")
Trained = TypeVar("Trained")
FULL, PART = "full", "part"


def learning_curve(
    chosen: Run, data: Data, metric: Metric, tests: tuple[str, ...], train: Callable[[ListRecipe], Run]
) -> dict[str, Any]:
    """The entry ``curve`` of metrics.json: scores by share of the training lists, their slope, a test of the last step.

    train: from a recipe with a ``training.share`` to its run. The slope is that on the first of ``tests``; the test
    compares the chosen run with that of the largest smaller share.
    """
    recipe = chosen.recipe
    whole, predictor = recipe.training.share, recipe.predictor
    shares = sorted({share for share in recipe.training.curve if share < whole})
    if not shares or not tests:
        return {}
    found = dict(at_shares(shares, lambda share: train(recipe.changed({"training.share": share}))))
    if not found:
        return {}
    runs = [*found.values(), chosen]
    points = []
    for share, each in zip([*found, whole], runs, strict=True):
        scores = {split: _selected(each, data, metric, split, predictor)[1] for split in tests}
        points.append({"share": share, "lists": each.training["lists"], "dev": each.dev_score, "splits": scores})
    first = tests[0]
    rows = {
        name: _selected(each, data, metric, first, predictor)[0] for name, each in ((FULL, chosen), (PART, runs[-2]))
    }
    reference = chosen.selections[first].reference
    both = Selections(chosen.selections[first].ids, metric.signature, reference, rows)
    settings = recipe.significance
    tested = both.significance(metric, [(FULL, PART)], settings.test, settings.samples, recipe.seed)
    return curve_of(first, points, "lists", tested[f"{FULL}_vs_{PART}"])


def at_shares(shares: Iterable[float], train: Callable[[float], Trained]) -> Iterator[tuple[float, Trained]]:
    """Every share with what ``train`` makes of it; shares too small to be trained on are left out, with a warning."""
    for share in shares:
        try:
            yield share, train(share)
        except (DataError, RecipeError) as error:
            log.warning("training.curve: a share of %g cannot be trained on, and is left out: %s", share, error)


def curve_of(split: str, points: Sequence[dict[str, Any]], unit: str, last: dict[str, object]) -> dict[str, Any]:
    """An entry ``curve``: ``points`` by size, the slope of their scores on ``split``, and the test of the last step.

    unit: what is trained on, the key of the sizes. The slope is the least-squares one over their base-2 logarithms:
    what doubling them brings.
    """
    sizes = np.log2([point[unit] for point in points])
    slope = float(np.polyfit(sizes, [point["splits"][split] for point in points], 1)[0]) if np.ptp(sizes) else 0.0
    return {"split": split, "points": points, "slope": slope, "last": last}


def _selected(run: Run, data: Data, metric: Metric, split: str, predictor: str) -> tuple[np.ndarray, float]:
    """The statistics of what a run selects from a split (float64 [L, K]), and their score."""
    extracted = data.others[split]
    chosen = choices(extracted.corpus, run.weights[predictor])
    found = Selections.of(extracted.corpus, extracted.ids, metric, {predictor: chosen})
    return found.rows[predictor], found.reports(metric)[predictor][metric.primary]


def shown_curve(
    found: dict[str, Any], measure: Measure, dev: str | None = None, unit: str = "lists"
) -> LearningCurve | None:
    """The learning curve as the report shows it; None for an empty entry.

    dev: the name of the dev split, if there is one; unit: what was trained on, as in ``curve_of``.
    """
    if not found:
        return None
    points = found["points"]
    scores = {name: [point["splits"][name] for point in points] for name in points[0]["splits"]}
    if dev is not None and all(point["dev"] is not None for point in points) and dev not in scores:
        scores[dev] = [point["dev"] for point in points]
    return LearningCurve([point[unit] for point in points], scores, _says(found, measure, unit), unit)


def _says(found: dict[str, Any], measure: Measure, unit: str) -> str:
    """Whether more lists, or examples, would help."""
    (before, last), test = found["points"][-2:], found["last"]
    step = last["splits"][found["split"]] - before["splits"][found["split"]]
    doublings = math.log2(last[unit] / before[unit]) if last[unit] > before[unit] else 1.0
    said = verdict(test, lower_is_better=measure.lower_is_better)
    helps = test["p"] < LEVEL and measure.better(step) > 0
    changes = f"Doubling the training {unit} changes {measure.heading} on {found['split']} by"
    rate = "" if abs(doublings - 1) < 0.05 else f", {measure.signed(step / doublings)} per doubling"
    return (
        f"{changes} {measure.signed(found['slope'])} (least squares over {len(found['points'])} sizes). The last step, "
        f"from {before[unit]:,} to {last[unit]:,} {unit}, brought {measure.signed(step)}{rate}: {said}. "
        f"More {unit} {'are likely to' if helps else 'may not'} help."
    )
