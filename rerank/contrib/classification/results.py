"""Results of a single run with one seed: errors by fold, their mean and spread; kept on disk."""

import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np

from rerank.contrib.classification.recipe import Spec
from rerank.contrib.classification.sets import ExampleSet
from rerank.recipes.settings import Settings
from rerank.runs.report.numbers import Spread
from rerank.storage.work import Work, key_of

M = TypeVar("M")
K = TypeVar("K", bound=Hashable)


@dataclass
class Result:
    """A single run, on one set at one noise level, with one seed.

    errors: by predictor, one per fold; predictions: by predictor, the class of every tested example (int64 [n]).
    margins: float64 [n], see ``Fit``; NaN for baselines.
    """

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
    def set(self) -> str:
        """The name of the set."""
        return self.spec.set

    @property
    def noise(self) -> float:
        """The noise level."""
        return self.spec.noise

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
        recipe, baseline = self.spec.recipe, self.spec.baseline
        return {
            "name": self.spec.name,
            **self._place,
            "learner": recipe.learner if baseline is None else baseline,
            "predictor": self.predictor,
            "point": self.spec.point,
            "tuned": self.tuned,
            "errors": self.errors,
            **{"mean": mean, "sd": sd, "se": se},
            "splits": {"test": self.splits()},
            "train_error": float(np.mean(self.train_errors)),
            "training": {
                "epochs": len(self.mistakes[0]),
                "updates": self.updates,
                "mistakes": self.mistakes,
                "seconds": [round(seconds, 4) for seconds in self.seconds],
                "examples": self.size,
            },
        }

    @property
    def _place(self) -> Settings:
        return {"set": self.set, "noise": self.noise, "seed": self.seed}

    def lines(self) -> Iterator[dict[str, Any]]:
        """The epochs of training, for the history."""
        return ({"run": self.spec.name, **self._place, **line} for line in self.history)


PLAIN = [known.name for known in fields(Result) if known.name not in ("spec", "predictions", "margins")]


def key_of_results(examples: ExampleSet, spec: Spec, code: str) -> str:
    """The key of results, as a short text: the run, the examples themselves, and the code."""
    parts = [examples.examples, *([examples.test] if examples.test is not None else [])]
    arrays = [array for part in parts for array in (part.rows, part.columns, part.label, part.values)]
    arrays += [examples.folds] if examples.folds is not None else []
    # One number that all values share (stride 0) is read once.
    sums = [zlib.crc32(np.ascontiguousarray(a if a.strides != (0,) else a[:1]).data) for a in arrays]
    return key_of(code, [spec.run, spec.point, spec.recipe.model_dump(mode="json"), spec.baseline], sums)[:24]


def save_results(work: Work, results: list[Result]) -> None:
    """Keep the results of a single run."""
    entries = [{name: getattr(result, name) for name in PLAIN} for result in results]
    arrays = {f"margins-{i}": result.margins for i, result in enumerate(results)}
    for i, result in enumerate(results):
        arrays |= {f"{i}-{name}": classes for name, classes in result.predictions.items()}
    work.save({"results": entries}, arrays)


def load_results(work: Work, spec: Spec) -> list[Result] | None:
    """The results that ``save_results`` kept; None where there is nothing that can be read."""
    stored = work.load()
    if stored is None:
        return None
    header, arrays = stored
    results = []
    for i, entry in enumerate(header["results"]):
        predictions = {name.partition("-")[2]: array for name, array in arrays.items() if name.startswith(f"{i}-")}
        results.append(Result(spec=spec, predictions=predictions, margins=arrays[f"margins-{i}"], **entry))
    return results


def mean_error(result: Result) -> float:
    """The mean error over the folds."""
    return float(np.mean(result.values("error")))


def best_of(results: Sequence[Result]) -> Result:
    """The result with the lowest error, the first of equals."""
    return min(results, key=mean_error)


def grouped(members: Iterable[M], key: Callable[[M], K]) -> dict[K, list[M]]:
    """The members by their keys, both in order."""
    groups: dict[K, list[M]] = {}
    for member in members:
        groups.setdefault(key(member), []).append(member)
    return groups


def first_seeds(results: Sequence[Result]) -> dict[tuple[str, float], list[Result]]:
    """The results of the first seed, by set and noise level."""
    return grouped((one for one in results if one.seed == results[0].seed), lambda one: (one.set, one.noise))


def groups_of(results: Sequence[Result]) -> dict[str, list[Result]]:
    """The results of the first seed and the lowest noise, by set."""
    return {name: alike for (name, noise), alike in first_seeds(results).items() if noise == results[0].noise}
