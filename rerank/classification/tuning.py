"""Parameters and number of epochs by the error on held-out examples of one random split."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rerank.classification.baselines import fit_baseline, predict_baseline
from rerank.classification.fitting import predicted, train_on
from rerank.classification.recipe import Spec
from rerank.classification.splits import held_out
from rerank.labelled import Labelled
from rerank.learn.base import Weights
from rerank.settings import Settings, grid_points

log = logging.getLogger("rerank")
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


@dataclass(frozen=True)
class Tuned:
    """The best point of a grid, its number of epochs (0 for a baseline), and its error on the held-out examples."""

    point: Settings
    epochs: int
    error: float

    def applied(self, spec: Spec) -> Spec:
        """``spec`` with what was chosen."""
        return spec.at(self.point | ({"training.epochs": self.epochs} if self.epochs else {}))

    def as_dict(self) -> dict[str, Any]:
        """The entry in metrics.json."""
        return {**self.point, "epochs": self.epochs, "held_out_error": self.error}


def points_of(spec: Spec) -> list[Settings]:
    """The points of the grid of ``spec.recipe.tune``; a learner has no use for a baseline's keys, nor the reverse."""
    settings = spec.recipe.tune
    assert settings is not None
    own = {
        key: values
        for key, values in settings.grid.items()
        if key.startswith("baseline.") == (spec.baseline is not None)
    }
    return grid_points(own)


def tune(spec: Spec, noisy: Labelled, clean: Labelled, run_all: Map = map) -> Tuned:
    """The best point of the grid of ``spec`` and its number of epochs.

    ``noisy`` and ``clean`` are the examples that may train, with their labels as they will be and as they were.
    ``run_all`` maps over the points, in order.
    """
    return best_point(spec, run_all(lambda point: held_out_errors(spec.at(point), noisy, clean), points_of(spec)))


def best_point(spec: Spec, curves: Iterable[list[float]]) -> Tuned:
    """The point and epoch with the lowest held-out error; of equals the first point, then the fewest epochs.

    ``curves``: the errors after every epoch, for the points of ``points_of``.
    """
    found: Tuned | None = None
    for point, errors in zip(points_of(spec), curves, strict=True):
        epoch = int(np.argmin(errors))
        if found is None or errors[epoch] < found.error:
            found = Tuned(point, 0 if spec.baseline is not None else epoch + 1, float(errors[epoch]))
    assert found is not None
    return found


def held_out_errors(spec: Spec, noisy: Labelled, clean: Labelled) -> list[float]:
    """The error of ``spec``, a point of a grid, on held-out examples after every epoch."""
    settings = spec.recipe.tune
    assert settings is not None
    first, second = held_out(noisy.label, settings.held_out, settings.seed)
    return _errors(spec, noisy.take(first), (clean if settings.clean else noisy).take(second))


def _errors(spec: Spec, train_part: Labelled, test_part: Labelled) -> list[float]:
    """Held-out error after every epoch; of the average where the predictor votes."""
    assert spec.recipe.tune is not None
    if spec.baseline is not None:
        wrong = predict_baseline(fit_baseline(spec.baseline, train_part), test_part) != test_part.label
        return [float(np.mean(wrong))]
    test = test_part.corpus()

    def accuracy(weights: Weights) -> float:
        return float(np.mean(predicted(test, weights) == test_part.label))

    training = train_on(
        spec,
        train_part.corpus(),
        train_part.label,
        epochs=spec.recipe.tune.epochs,
        seed=spec.recipe.tune.seed,
        predictor="last" if spec.recipe.training.predictor == "last" else "average",
        evaluate_dev=accuracy,
    )
    return [1.0 - line["dev"] for line in training.history]
