"""Results of a run on one set at one noise level with one seed: errors by fold, and their mean and spread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rerank.recipes.example_recipe import Spec
from rerank.recipes.settings import Settings
from rerank.runs.report.spread import Spread


@dataclass
class Result:
    """A run on one set, at one noise level, with one seed.

    errors: by predictor, one per fold; predictions: by predictor, the class of every tested example (int64 [n]).
    margins: float64 [n], see ``Fit``; NaN for baselines.
    """

    set: str
    noise: float
    spec: Spec
    seed: int
    errors: dict[str, list[float]]
    train_errors: list[float]
    seconds: list[float]
    updates: list[int]
    mistakes: list[list[int]]
    predictions: dict[str, np.ndarray]
    size: int  # training examples of the first fold
    tuned: Settings = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    margins: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def predictor(self) -> str:
        """The predictor whose error counts."""
        return self.spec.recipe.training.predictor

    @property
    def predicted(self) -> np.ndarray:
        """int64 [n]: the class of every tested example by that predictor."""
        return self.predictions[self.predictor]

    def values(self, measure: str) -> list[float]:
        """A measure on every fold: error, accuracy, train_error or train_accuracy."""
        errors = self.train_errors if measure.startswith("train_") else self.errors[self.predictor]
        return [1 - value for value in errors] if measure.endswith("accuracy") else list(errors)

    def splits(self) -> dict[str, dict[str, float]]:
        """Means over the folds, by predictor."""
        means = {name: float(np.mean(errors)) for name, errors in self.errors.items()}
        return {name: {"error": error, "accuracy": 1 - error} for name, error in means.items()}

    def entry(self) -> dict[str, Any]:
        """The entry in metrics.json."""
        mean, sd, se, _ = Spread.of(self.errors[self.predictor])
        return {
            "name": self.spec.name,
            "set": self.set,
            "noise": self.noise,
            "seed": self.seed,
            "learner": self.spec.recipe.learner if self.spec.baseline is None else self.spec.baseline,
            "predictor": self.predictor,
            "point": self.spec.point,
            "tuned": self.tuned,
            "errors": self.errors,
            "mean": mean,
            "sd": sd,
            "se": se,
            "splits": {"test": self.splits()},
            "train_error": float(np.mean(self.train_errors)),
            "training": {
                "epochs": len(self.mistakes[0]),
                "updates": self.updates,
                "mistakes": self.mistakes,
                "seconds": [round(each, 4) for each in self.seconds],
                "examples": self.size,
            },
        }
