"""Results of a single run with one seed: errors by fold, kept on disk; and what they come to over seeds and sets."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, TypeVar

import numpy as np

from rerank.contrib.classification.recipe import ClassificationRecipe, Spec
from rerank.metrics.metric import Metric
from rerank.recipes.settings import Settings
from rerank.runs.compared import Compared
from rerank.runs.report.table import Spread

M = TypeVar("M")
K = TypeVar("K", bound=Hashable)
Data = Mapping[str, Any]  # ``as_data``, or one of its results


@dataclass(frozen=True)
class Classification(Metric):
    """Error = wrong / examples; 0 without examples.

    >>> Classification().report(np.array([1.0]), np.array([4.0]))
    {'error': 0.25, 'accuracy': 0.75}

    ``stats``: 1 if the candidate's class is not the example's. ``reference``: 1, the example. The gain of a
    candidate is 1 if it is right and 0 if not.
    """

    name: ClassVar[str] = "error"

    primary = "error"
    columns = ("wrong",)
    reference_columns = ("examples",)
    lower_is_better = True

    def scores(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        return np.asarray(stats[..., 0] / np.maximum(reference[..., 0], 1.0))

    def gain(self, stats: np.ndarray, reference: np.ndarray) -> np.ndarray:
        return np.asarray(1.0 - self.scores(stats, reference))

    def report(self, stats: np.ndarray, reference: np.ndarray) -> dict[str, float]:
        error = float(self.scores(stats, reference))
        return {"error": error, "accuracy": 1.0 - error}

    @property
    def signature(self) -> str:
        return "error|v:1"


@dataclass
class Fit:
    """A run trained on a training part of ``size`` examples and tried on a test part.

    index: the n test examples in their set; predictions: the classes of these by predictor; errors: the share of wrong
    ones by predictor; train_error: of the predictor whose error counts; seconds: of training; mistakes: by epoch.
    """

    index: list[int]
    predictions: dict[str, list[int]]
    errors: dict[str, float]
    train_error: float
    seconds: float
    size: int
    updates: int = 0
    mistakes: list[int] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Result:
    """A single run, on one set at one noise level, with one seed: its fits, one per fold; choice: what was chosen."""

    spec: Spec
    seed: int
    fits: list[Fit]
    choice: Settings = field(default_factory=dict)

    @property
    def errors(self) -> dict[str, list[float]]:
        """By predictor, one per fold."""
        return {name: [fit.errors[name] for fit in self.fits] for name in self.fits[0].errors}

    @property
    def predictions(self) -> dict[str, np.ndarray]:
        """By predictor, the class of every tested example (int64 [n])."""
        order = np.argsort([*chain(*(fit.index for fit in self.fits))])
        names = self.fits[0].predictions
        return {name: np.array([*chain(*(fit.predictions[name] for fit in self.fits))])[order] for name in names}

    @property
    def key(self) -> tuple[str, float]:
        """The set and the noise level."""
        return self.spec.set, self.spec.noise

    @property
    def classes(self) -> np.ndarray:
        """int64 [n]: the class of every tested example by the predictor whose error counts."""
        return self.predictions[self.spec.recipe.training.predictor]

    @property
    def own_errors(self) -> list[float]:
        """The errors of that predictor, one per fold."""
        return self.errors[self.spec.recipe.training.predictor]

    @property
    def error(self) -> float:
        """Their mean."""
        return float(np.mean(self.own_errors))

    def splits(self) -> dict[str, dict[str, float]]:
        """Means over the folds, by predictor."""
        means = {name: float(np.mean(errors)) for name, errors in self.errors.items()}
        return {name: {"error": error, "accuracy": 1 - error} for name, error in means.items()}

    @property
    def _head(self) -> Settings:
        return {"set": self.spec.set, "noise": self.spec.noise, "seed": self.seed}

    def entry(self) -> dict[str, Any]:
        """The entry in metrics.json."""
        mean, sd, se, _ = Spread.of(self.own_errors)
        recipe, baseline = self.spec.recipe, self.spec.baseline
        return {
            "name": self.spec.name, **self._head, "learner": recipe.learner if baseline is None else baseline,
            "predictor": recipe.training.predictor, "point": self.spec.point, "tuned": self.choice,
            "errors": self.errors, "mean": mean, "sd": sd, "se": se, "splits": {"test": self.splits()},
            "train_error": float(np.mean([fit.train_error for fit in self.fits])),
            "training": {
                "epochs": len(self.fits[0].mistakes), "updates": [fit.updates for fit in self.fits],
                "mistakes": [fit.mistakes for fit in self.fits], "examples": self.fits[0].size,
                "seconds": [round(fit.seconds, 4) for fit in self.fits],
            },
        }  # fmt: skip

    def lines(self) -> Iterator[dict[str, Any]]:
        """The epochs of training, for the history."""
        folds = enumerate(fit.history for fit in self.fits)
        return ({"run": self.spec.name, **self._head, "fold": k, **line} for k, lines in folds for line in lines)


def group_by(members: Iterable[M], key: Callable[[M], K]) -> dict[K, list[M]]:
    """The members by their keys, both in order."""
    groups: dict[K, list[M]] = {}
    for member in members:
        groups.setdefault(key(member), []).append(member)
    return groups


def first_seeds(results: Sequence[Result]) -> dict[tuple[str, float], list[Result]]:
    """The results of the first seed, by set and noise level."""
    return group_by((result for result in results if result.seed == results[0].seed), lambda result: result.key)


def as_data(recipe: ClassificationRecipe, results: Sequence[Result], tests: Mapping[str, Data]) -> dict[str, Any]:
    """The tables as numbers, for metrics.json: an entry for every set, noise level and run, at every point of its grid
    or, with ``best_of_grid``, at the best one; and by noise level and run the rank of its mean among the runs (1: the
    best, equals share), averaged over the sets. tests: of significance, by ``name_of`` set and noise."""
    from scipy.stats import rankdata  # it takes a second to load

    sign = -1 if recipe.measure == "accuracy" else 1
    groups = group_by(results, lambda result: (*result.key, result.spec.run, result.spec.name)).values()
    entries = [_entry(recipe, group, tests) for group in groups]
    if recipe.best_of_grid:
        points = group_by(entries, lambda entry: (entry["set"], entry["noise"], entry["run"])).values()
        entries = [min(group, key=lambda entry: sign * entry["mean"]) for group in points]
    runs, ranks = list(dict.fromkeys(entry["run"] for entry in entries)), list[dict[str, Any]]()
    for noise, at_noise in group_by(entries, lambda entry: entry["noise"]).items():
        sets = group_by(at_noise, lambda entry: entry["set"]).values()
        means = [{entry["run"]: sign * entry["mean"] for entry in group} for group in sets]
        if table := [[of[run] for run in runs] for of in means if len(of) == len(runs)]:
            mean = rankdata(np.round(table, 12), axis=1).mean(axis=0)
            ranks.append({"noise": noise, "ranks": dict(zip(runs, mean.tolist(), strict=True))})
    return {"measure": recipe.measure, "results": entries, "ranks": ranks}


def _entry(recipe: ClassificationRecipe, group: Sequence[Result], tests: Mapping[str, Data]) -> dict[str, Any]:
    """The results of all seeds of a run at one point, their spread over the seeds where there are several, else over
    the folds."""
    first, *more = group
    spec, accuracy, baselines = first.spec, recipe.measure == "accuracy", recipe.significance.against
    errors = [result.error for result in group] if more else first.own_errors
    mean, sd, se, values = Spread.of([1 - error for error in errors] if accuracy else errors)
    name, numbers = spec.run if recipe.best_of_grid else spec.name, recipe.reported
    paper = None if spec.noise or numbers is None else numbers.values.get(spec.set, {}).get(name)
    table = tests.get(name_of(*first.key))
    p = [table[f"{spec.name}_vs_{other}"]["p"] for other in baselines if spec.name not in baselines] if table else []
    return {
        "set": spec.set, "noise": spec.noise, "run": name, "point": spec.point,
        "mean": mean, "sd": sd, "se": se, "values": values, "reported": None if paper is None else paper / 100,
        "seconds": float(np.mean([fit.seconds for result in group for fit in result.fits])),
        **({"p": max(p, default=None)} if baselines else {}),
    }  # fmt: skip


def name_of(name: str, noise: float) -> str:
    """The key of a set at a noise level in tests of significance."""
    return f"{name}, noise {noise:g}" if noise else name


def selections_of(predictions: dict[str, np.ndarray], label: np.ndarray, **how: Any) -> Compared:
    """The tested examples, with classes ``label`` (int64 [n]), that each of ``predictions`` gets wrong."""
    rows = {name: (classes != label).astype(np.float64)[:, np.newaxis] for name, classes in predictions.items()}
    ids = [str(i + 1) for i in range(label.size)]
    return Compared(Classification(), np.ones((label.size, 1)), rows, oracles=(), ids=ids, **how)
