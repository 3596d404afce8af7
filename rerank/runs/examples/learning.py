"""The learning curve of classification: errors of the best run of a set, trained on shares of its examples."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from rerank.metrics.classification import Classification
from rerank.recipes.example_recipe import Spec
from rerank.runs.examples.predictions import selections_of
from rerank.runs.examples.results import Result
from rerank.runs.examples.shown import mean_error
from rerank.runs.examples.tuning import Tuned
from rerank.runs.learning import FULL, PART, at_shares, curve_of
from rerank.runs.report.measures import MEASURES

log = logging.getLogger("rerank")
UNIT = "examples"
ERROR = next(measure for measure in MEASURES if measure.key == Classification.primary)


def learning_curve(chosen: Result, label: np.ndarray, train: Callable[[Spec], list[Result]]) -> dict[str, Any]:
    """The entry of a set in ``curve`` of metrics.json; see ``rerank.runs.learning``.

    label: the true classes of the tested examples (int64 [n]); train: from a run with one seed, and with the parameters
    that were tuned on all examples, to its results.
    """
    spec, recipe = chosen.spec, chosen.spec.recipe
    if chosen.tuned:
        spec = Tuned.from_dict(chosen.tuned).applied(spec)

    def trained(share: float) -> list[Result]:
        log.info("learning curve: %g %% of the training examples of %s", 100 * share, chosen.set)
        return train(spec.at({"tune": None, "training.share": share, "seeds": [chosen.seed]}))

    shares = sorted({share for share in recipe.training.curve if share < recipe.training.share})
    results = [result for _, found in at_shares(shares, trained) for result in found]
    if not results:
        return {}
    points = [
        {"share": each.spec.recipe.training.share, UNIT: each.size, "splits": {chosen.set: mean_error(each)}}
        for each in [*results, chosen]
    ]
    wrong = selections_of({FULL: chosen.predicted, PART: results[-1].predicted}, label)
    settings = recipe.significance
    test = settings.test or "mcnemar"
    tested = wrong.significance(Classification(), [(FULL, PART)], test, settings.samples, recipe.seed)
    return curve_of(chosen.set, points, UNIT, tested[f"{FULL}_vs_{PART}"])
