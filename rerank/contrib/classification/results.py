"""Results of a single run with one seed: errors by fold, kept on disk; and what they come to over seeds and sets."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from rerank.base.encoding import file_name
from rerank.contrib.classification.recipe import ClassificationRecipe, Spec
from rerank.metrics.metric import Metric
from rerank.recipes.settings import Settings
from rerank.runs.compared import Compared
from rerank.runs.report.table import Spread
from rerank.storage.files import write_text
from rerank.storage.outputs import Work, output_file

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

    index: int64 [n], the test examples in their set; predictions: the class of each by predictor (int64 [n]); errors:
    the share of wrong ones by predictor; train_error: of the predictor whose error counts; seconds:
    of training; mistakes: by epoch.
    """

    index: np.ndarray
    predictions: dict[str, np.ndarray]
    errors: dict[str, float]
    train_error: float
    seconds: float
    size: int
    updates: int = 0
    mistakes: list[int] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Result:
    """A single run, on one set at one noise level, with one seed: its fits, one per fold; tuned: what was chosen."""

    spec: Spec
    seed: int
    fits: list[Fit]
    tuned: Settings = field(default_factory=dict)

    @property
    def errors(self) -> dict[str, list[float]]:
        """By predictor, one per fold."""
        return {name: [fit.errors[name] for fit in self.fits] for name in self.fits[0].errors}

    @property
    def predictions(self) -> dict[str, np.ndarray]:
        """By predictor, the class of every tested example (int64 [n])."""
        order = np.argsort(np.concatenate([fit.index for fit in self.fits]))
        names = self.fits[0].predictions
        return {name: np.concatenate([fit.predictions[name] for fit in self.fits])[order] for name in names}

    @property
    def place(self) -> tuple[str, float]:
        """The set and the noise level."""
        return self.spec.set, self.spec.noise

    @property
    def predicted(self) -> np.ndarray:
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
            "predictor": recipe.training.predictor, "point": self.spec.point, "tuned": self.tuned,
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


PLAIN = [known.name for known in fields(Fit) if known.name not in ("index", "predictions")]


def save_results(work: Work, results: list[Result]) -> None:
    """Keep the results of a single run."""
    header, arrays = list[dict[str, Any]](), dict[str, np.ndarray]()
    for result in results:
        fits = [{name: getattr(fit, name) for name in PLAIN} for fit in result.fits]
        for k, fit in enumerate(result.fits):
            arrays |= {f"{len(header)}/{k}/{name}": array for name, array in fit.predictions.items()}
            arrays[f"{len(header)}/{k}/"] = fit.index
        header.append({"seed": result.seed, "tuned": result.tuned, "fits": fits})
    work.save({"results": header}, arrays)


def load_results(work: Work, spec: Spec) -> list[Result] | None:
    """The results that ``save_results`` kept; None where there is nothing that can be read."""
    if (stored := work.load()) is None:
        return None
    header, arrays = stored
    by_fit = dict[str, dict[str, np.ndarray]]()
    for key, array in arrays.items():
        number, fold, name = key.split("/")
        by_fit.setdefault(f"{number}/{fold}", {})[name] = array
    return [
        Result(spec, entry["seed"], [
            Fit(by_fit[f"{i}/{k}"].pop(""), by_fit[f"{i}/{k}"], **plain) for k, plain in enumerate(entry["fits"])
        ], entry["tuned"])
        for i, entry in enumerate(header["results"])
    ]  # fmt: skip


def best_of(results: Sequence[Result]) -> Result:
    """The result with the lowest error, the first of equals."""
    return min(results, key=lambda result: result.error)


def grouped(members: Iterable[M], key: Callable[[M], K]) -> dict[K, list[M]]:
    """The members by their keys, both in order."""
    groups: dict[K, list[M]] = {}
    for member in members:
        groups.setdefault(key(member), []).append(member)
    return groups


def first_seeds(results: Sequence[Result]) -> dict[tuple[str, float], list[Result]]:
    """The results of the first seed, by set and noise level."""
    return grouped((one for one in results if one.seed == results[0].seed), lambda one: one.place)


# Over seeds and sets


@dataclass(frozen=True)
class Cell:
    """A run on a set at a noise level: the results of all its seeds, at one point of its grid."""

    set: str
    noise: float
    run: str
    results: tuple[Result, ...]

    def spread(self, measure: str) -> Spread:
        """The spread of error or accuracy over the seeds' means where there are several seeds, else over the folds."""
        first, *more = self.results
        errors = [result.error for result in self.results] if more else first.own_errors
        return Spread.of([1 - error for error in errors] if measure == "accuracy" else errors)


def cells_of(recipe: ClassificationRecipe, results: Sequence[Result]) -> list[Cell]:
    """A cell for every set, noise level and run; with ``best_of_grid`` the best point of every run."""
    groups = grouped(results, lambda result: (*result.place, result.spec.run, result.spec.name))
    if not recipe.best_of_grid:
        return [Cell(name, noise, shown, tuple(alike)) for (name, noise, _, shown), alike in groups.items()]
    points = [Cell(name, noise, run, tuple(alike)) for (name, noise, run, _), alike in groups.items()]
    alike = grouped(points, lambda cell: (cell.set, cell.noise, cell.run)).values()
    return [min(cells, key=lambda cell: cell.spread("error").mean) for cells in alike]


def mean_ranks(cells: Sequence[Cell]) -> dict[float, dict[str, float]]:
    """By noise level and run: the rank of its mean error among the runs (1: the lowest, equals share), averaged over
    the sets."""
    from scipy.stats import rankdata  # it takes a second to load

    runs = list(dict.fromkeys(cell.run for cell in cells))
    by_noise: dict[float, dict[str, float]] = {}
    for noise, at_noise in grouped(cells, lambda cell: cell.noise).items():
        by_set = grouped(at_noise, lambda cell: cell.set).values()
        errors = [{cell.run: cell.spread("error").mean for cell in own} for own in by_set]
        table = [[of[run] for run in runs] for of in errors if len(of) == len(runs)]
        if table:
            ranks = rankdata(np.round(table, 12), axis=1).mean(axis=0)
            by_noise[noise] = dict(zip(runs, ranks.tolist(), strict=True))
    return by_noise


def paper_of(recipe: ClassificationRecipe, what: Literal["values", "seconds"], name: str, run: str) -> float | None:
    """The paper's number for a run on a set."""
    return getattr(recipe.reported, what).get(name, {}).get(run) if recipe.reported else None


def as_data(recipe: ClassificationRecipe, results: Sequence[Result], tests: Mapping[str, Data]) -> dict[str, Any]:
    """The tables as numbers, for metrics.json; tests: of significance, by ``name_of`` set and noise."""
    cells, baselines, entries = cells_of(recipe, results), recipe.significance.against, list[dict[str, Any]]()
    for cell in cells:
        mean, sd, se, values = cell.spread(recipe.measure)
        seconds = [fit.seconds for result in cell.results for fit in result.fits]
        paper = None if cell.noise else paper_of(recipe, "values", cell.set, cell.run)
        own, name = tests.get(name_of(cell.set, cell.noise)), cell.results[0].spec.name
        p = [own[f"{name}_vs_{other}"]["p"] for other in baselines if name not in baselines] if own else []
        entries.append(
            {"set": cell.set, "noise": cell.noise, "run": cell.run, "point": cell.results[0].spec.point}
            | {"mean": mean, "sd": sd, "se": se, "values": values}
            | {"reported": None if paper is None else paper / 100, "seconds": float(np.mean(seconds))}
            | ({"p": max(p, default=None)} if baselines else {})
        )
    ranks = [{"noise": noise, "ranks": by_run} for noise, by_run in mean_ranks(cells).items()]
    return {"measure": recipe.measure, "results": entries, "ranks": ranks}


def name_of(name: str, noise: float) -> str:
    """The key of a set at a noise level in tests of significance."""
    return f"{name}, noise {noise:g}" if noise else name


# Of the tested examples


class Tested(NamedTuple):
    """The examples of a set that are in some test part, by the first seed: their classes, as indices of ``classes``
    (``label``, int64 [n]), and folds (int64 [n])."""

    label: np.ndarray
    classes: tuple[str, ...]
    folds: np.ndarray


def write_predictions(directory: Path, name: str, tested: Tested, results: Sequence[Result]) -> None:
    """One file in ``predictions`` per noise level of a set: example (from 1), fold, label, and what each run predicts
    with the first seed, separated by tabs."""
    label, classes, folds = tested
    for (_, noise), alike in first_seeds(results).items():
        lines = ["\t".join(["example", "fold", "label", *(result.spec.name for result in alike)])]
        for i in range(label.size):
            predicted = (classes[result.predicted[i]] for result in alike)
            lines.append("\t".join([str(i + 1), str(folds[i]), classes[label[i]], *predicted]))
        level = f"-noise{noise:g}" if noise else ""
        target = output_file(directory, "predictions", f"{file_name(name)}{level}.tsv")
        write_text(target, "\n".join(lines) + "\n")


def selections_of(predictions: dict[str, np.ndarray], label: np.ndarray, **how: Any) -> Compared:
    """The tested examples, with classes ``label`` (int64 [n]), that each of ``predictions`` gets wrong."""
    rows = {name: (classes != label).astype(np.float64)[:, np.newaxis] for name, classes in predictions.items()}
    ids = [str(i + 1) for i in range(label.size)]
    return Compared(Classification(), np.ones((label.size, 1)), rows, oracles=(), ids=ids, **how)


def compared_of(
    recipe: ClassificationRecipe, tested: Mapping[str, Tested], results: Sequence[Result]
) -> dict[str, Compared]:
    """By set (and noise level) what the runs get wrong of the test examples of all folds together, with the first
    seed, beside the largest class as the answer to all; tests are against the best run."""
    tables = dict[str, Compared]()
    for (name, noise), alike in first_seeds(results).items() if recipe.significance.test is not None else ():
        label, classes, _ = tested[name]
        usual = np.bincount(label, minlength=len(classes)).argmax()
        predictions = {f"always {classes[usual]}": np.full_like(label, usual)}
        predictions |= {result.spec.name: result.predicted for result in alike}
        how = {"against": best_of(alike).spec.name, **recipe.testing}
        tables[name_of(name, noise)] = selections_of(predictions, label, **how)
    return tables
