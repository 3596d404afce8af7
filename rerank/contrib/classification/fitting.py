"""Fits: a run trained on a training part and tried on a test part, with every seed, on every fold; and its tuning.

The best of many settings on a few held-out examples is also the one that suits their noise best. So the settings of the
recipe are kept unless others are better by one standard error of the mean difference, fold by fold (Breiman et al.
1984, 3.4.3, choose among trees by it). On one split there is no standard error: there the lowest error wins.
"""

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import build, nearest
from rerank.contrib.classification.recipe import Spec
from rerank.contrib.classification.results import Fit, Result
from rerank.contrib.classification.sets import Draw, draw_folds
from rerank.data.corpus import Corpus
from rerank.data.labelled import Labelled
from rerank.learn.folds import sections as sections_of
from rerank.learn.learner import Learner, Weights, learners
from rerank.learn.predictor import predictor_view
from rerank.learn.rules.gaussian import Gaussian
from rerank.learn.scoring import choices
from rerank.learn.train import ListProblem, Training, score_on, train
from rerank.pool import Engine
from rerank.recipes.settings import Settings, grid_points

BASELINES: dict[str, tuple[str, str, Settings]] = {  # by name: the module, the class and its usual parameters
    "naive-bayes": ("naive_bayes", "MultinomialNB", {}),
    "maxent": ("linear_model", "LogisticRegression", {"max_iter": 1000, "random_state": 0}),
    "svm": ("svm", "LinearSVC", {"max_iter": 1000, "random_state": 0, "tol": 0.01}),
}
# What tuning finds, as in metrics.json, beside the settings of a point of the grid.
TUNING_KEYS = ("epochs", "held_out_error", "default_error", "standard_error")


def make_baseline(settings: Settings, key: str) -> Any:
    """The classifier of scikit-learn that ``settings``, its name and its own parameters, describe."""
    name, parameters = settings.get("name"), {key: value for key, value in settings.items() if key != "name"}
    if not isinstance(name, str) or name not in BASELINES:
        raise RecipeError(f"found {name!r}; {nearest(str(name), BASELINES)}", key=f"{key}.name")
    module, class_name, usual = BASELINES[name]
    try:
        classifier = getattr(import_module(f"sklearn.{module}"), class_name)(**usual)
    except ImportError as error:
        message = f"needs scikit-learn ({error}); install it with pip install 'rerank-nbest[classification]'"
        raise RecipeError(message, key=key) from None
    for parameter in parameters.keys() - classifier.get_params().keys():
        message = f"{class_name} has no {parameter!r} here; {nearest(parameter, classifier.get_params())}"
        raise RecipeError(message, key=key)
    return classifier.set_params(**parameters)


def matrix_of(examples: Labelled) -> scipy.sparse.csr_matrix:
    """The features as scipy's CSR matrix [n, D], float64."""
    values, shape = np.asarray(examples.values, np.float64), (examples.size, examples.width)
    return scipy.sparse.csr_matrix((values, np.array(examples.columns), np.array(examples.rows)), shape=shape)


def fit_baseline(settings: Settings, part: Labelled) -> Callable[[Labelled], np.ndarray]:
    """The classes that the classifier, fitted to examples, gives to others, as indices into theirs: int64 [n]."""
    classifier = make_baseline(settings, "baseline")
    if settings["name"] == "maxent" and "solver" not in settings and len(part.classes) == 2:
        # For two classes only, but on wide sparse rows many times faster than the solver that serves all.
        faster = {"solver": "liblinear", "dual": True, "tol": 0.01}
        classifier.set_params(**faster | {key: value for key, value in settings.items() if key != "name"})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that iterations ended: the settings are the recipe's
            classifier.fit(matrix_of(part), part.label, sample_weight=part.weight)
    except (ValueError, TypeError) as error:
        raise DataError(f"{settings['name']} cannot be fitted to the training examples: {error}") from None
    return lambda examples: np.asarray(classifier.predict(matrix_of(examples)), np.int64)


def predict_classes(corpus: Corpus, weights: Weights) -> np.ndarray:
    """int64 [n]: the class that a predictor gives to every example."""
    return np.asarray(choices(corpus, weights) - corpus.lists[:-1])


def error_of(classes: np.ndarray, label: np.ndarray) -> float:
    """The share of wrong classes."""
    return float(np.mean(classes != label))


def fit(spec: Spec, train_part: Labelled, test_part: Labelled, *, seed: int) -> Fit:
    """Train ``spec`` for its number of epochs and predict ``test_part``, whose indices in a set are left open.

    With sections there is a training for each, and the errors are of their combination, or the means of theirs.
    """
    settings = spec.recipe.training
    if spec.baseline is not None:
        start = time.perf_counter()
        classify = fit_baseline(spec.baseline, train_part)
        seconds = time.perf_counter() - start
        wrong = error_of(classify(train_part), train_part.label)
        classes, name = classify(test_part), settings.predictor
        errors: dict[str, float] = {name: error_of(classes, test_part.label)}
        return Fit([], {name: classes.tolist()}, errors, wrong, seconds, train_part.size)
    full, test, sections = train_part.corpus(), test_part.corpus(), settings.sections
    parts = [(full, train_part.label, seed)]
    if sections is not None:
        divisions = divide(train_part.size, sections.count, seed)
        parts = [((part := train_part.take(indices)).corpus(), part.label, own) for indices, own in divisions]
    trainings = [train_on(spec, corpus, label, epochs=settings.epochs, seed=own) for corpus, label, own in parts]
    models = [training.weights for training in trainings]
    if sections is not None and sections.rule != "alone":
        models = [combine(trainings, sections.rule)]
    predictions = [{name: predict_classes(test, weights) for name, weights in model.items()} for model in models]
    wrongs = [error_of(predict_classes(full, model[settings.predictor]), train_part.label) for model in models]
    lines = [line for training in trainings for line in training.history]
    errors = {
        name: float(np.mean([error_of(own[name], test_part.label) for own in predictions])) for name in predictions[0]
    }
    return Fit(
        [],
        {name: classes.tolist() for name, classes in predictions[0].items()},
        errors,
        train_error=float(np.mean(wrongs)),
        seconds=sum(line["seconds"] for line in lines),
        size=train_part.size,
        updates=sum(line["updates"] for line in lines),
        mistakes=np.sum([[line["mistakes"] for line in training.history] for training in trainings], axis=0).tolist(),
        history=lines if sections is None else [],
    )


def train_on(spec: Spec, corpus: Corpus, label: np.ndarray, *, epochs: int, seed: int, **more: Any) -> Training:
    """Train the learner of ``spec``; ``more`` goes to ``rerank.learn.train.train``."""
    problem = ListProblem(corpus, corpus.lists[:-1] + label, seed, spec.recipe.training.shuffle)
    return train(build(learners, spec.recipe.learner, "learner"), problem, epochs=epochs, **more)


def points_of(spec: Spec) -> list[Settings]:
    """The points of the grid of ``spec.recipe.tune``, with folds {} first, the settings of the recipe; learners and
    baselines ignore each other's keys."""
    settings, baseline = spec.tune, spec.baseline is not None
    points = grid_points(
        {key: values for key, values in settings.grid.items() if key.startswith("baseline.") == baseline}
    )
    return points if settings.held_out is not None or {} in points else [{}, *points]


def best_point(spec: Spec, curves: Iterable[list[list[float]]]) -> Settings:
    """The point and epoch with the lowest mean error, if it is better than the recipe's settings by a standard error.

    Among equals, the first point, then the fewest epochs. ``curves``: for every point of ``points_of``, one line for
    each division of the examples, with the errors after every epoch. What is found has the number of epochs (0 for a
    baseline) and the mean error on the held-out examples; with folds, also the error of the recipe's own settings there
    (``default_error``), and the standard error of the mean difference between these and the best others.
    """
    settings = spec.tune
    errors = [np.array(lines) for lines in curves]
    means = [lines.mean(axis=0) for lines in errors]
    first = int(np.argmin([mean.min() for mean in means]))
    epoch = int(np.argmin(means[first]))

    def choice(point: int, epoch: int) -> Settings:
        """The settings of a point and an epoch, counted from the first."""
        epochs = 0 if spec.baseline is not None else epoch + 1
        return points_of(spec)[point] | {"epochs": epochs, "held_out_error": float(means[point][epoch])}

    if settings.held_out is not None:
        return choice(first, epoch)
    usual = min(spec.recipe.training.epochs, means[0].size) - 1
    gains = errors[0][:, usual] - errors[first][:, epoch]
    error = float(np.std(gains, ddof=1) / np.sqrt(gains.size))
    better = choice(first, epoch) if gains.mean() > error else choice(0, usual)
    return better | {"default_error": float(means[0][usual]), "standard_error": error}


def held_out_errors(spec: Spec, noisy: Labelled, clean: Labelled) -> list[list[float]]:
    """The errors of ``spec``, a point of a grid, on held-out examples after every epoch; one line for each division.

    noisy, clean: the examples that may train, with their labels as training sees them and without noise.
    """
    settings = spec.tune
    judge = clean if settings.clean else noisy
    divisions = divisions_of(noisy.label, settings.held_out, settings.folds, settings.seed)
    return [_errors(spec, noisy.take(first), judge.take(second)) for first, second in divisions]


def _errors(spec: Spec, train_part: Labelled, test_part: Labelled) -> list[float]:
    """Held-out error after every epoch."""
    if spec.baseline is not None:
        return [error_of(fit_baseline(spec.baseline, train_part)(test_part), test_part.label)]
    test = test_part.corpus()
    training = train_on(
        spec, train_part.corpus(), train_part.label, epochs=spec.tune.epochs, seed=spec.tune.seed,
        predictor=spec.recipe.training.predictor,
        observers=[score_on(lambda weights: float(np.mean(predict_classes(test, weights) == test_part.label)))],
    )  # fmt: skip
    return [1.0 - line["dev"] for line in training.history]


def divisions_of(label: np.ndarray, share: float | None, folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The divisions of examples for tuning, as indices that train and indices that judge: by ``folds``, each example
    one where there are fewer, or once by ``share``."""
    if share is not None or label.size < 2:
        return [hold_out(label, share or 0.5, seed)]
    numbers = draw_folds(label, min(folds, label.size), seed)
    return [(np.flatnonzero(numbers != k), np.flatnonzero(numbers == k)) for k in range(int(numbers.max()) + 1)]


def hold_out(label: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices (ascending) of a part to train on and of one to test on, with ``share`` of every class."""
    if label.size < 2:
        raise DataError(f"{label.size} training examples leave nothing to hold out for tuning; give more examples")
    rng = np.random.default_rng(seed)
    mask = np.zeros(label.size, np.bool_)
    for members in (np.flatnonzero(label == number) for number in np.unique(label)):
        mask[rng.permutation(members)[: round(share * members.size)]] = True
    if not mask.any() or mask.all():  # classes too small to be divided class by class
        order = rng.permutation(label.size)
        mask[:] = False
        mask[order[: min(max(1, round(share * label.size)), label.size - 1)]] = True
    return np.flatnonzero(~mask), np.flatnonzero(mask)


class FoldJob(NamedTuple):
    """A fold with a seed, or a point of tuning, as a task: see ``fit_fold`` and ``errors_of``."""

    spec: Spec
    draw: Draw
    seed: int
    fold: int = 0

    def __str__(self) -> str:
        return f"fold {self.fold + 1} with seed {self.seed}"


_COMPILED = set[str]()  # the recipes of single runs whose kernels this process has


def fit_fold(job: FoldJob) -> Fit:
    """Fit one fold with one seed."""
    train, test, index = job.draw(job.seed).split(job.fold, job.spec.noise, job.seed)
    key = job.spec.recipe.model_dump_json()
    if job.spec.baseline is None and key not in _COMPILED:  # so that no fold's time includes compilation
        few, some = (side.take(np.arange(min(4, side.size))) for side in (train, test))
        fit(job.spec.at({"training.epochs": 1}), few, some, seed=job.seed)
        _COMPILED.add(key)
    return replace(fit(job.spec, train, test, seed=job.seed), index=index.tolist())


def errors_of(job: FoldJob) -> list[list[float]]:
    """The held-out errors of a point of tuning."""
    examples = job.draw(job.seed)
    return held_out_errors(job.spec, examples.noisy(job.spec.noise, job.seed), examples.examples)


def run_spec(spec: Spec, draw: Draw, engine: Engine | None = None) -> list[Result]:
    """The results of a single run by seed; tuned once, with the first seed.

    Folds, and points of tuning, are tasks of ``engine``.
    """
    engine, seeds, single, choice = engine or Engine(), spec.recipe.run_seeds, spec, Settings()
    if spec.recipe.tune is not None:
        points = [FoldJob(spec.at(point), draw, seeds[0]) for point in points_of(spec)]
        choice = best_point(spec, engine.map(errors_of, points))
        epochs = {"training.epochs": choice["epochs"]} if choice["epochs"] else {}
        single = spec.at(epochs | {key: value for key, value in choice.items() if key not in TUNING_KEYS})
    jobs = [FoldJob(single, draw, seed, fold) for seed in seeds for fold in range(draw(seeds[0]).splits)]
    fits = list(zip(jobs, engine.map(fit_fold, jobs), strict=True))
    return [Result(spec, seed, [fit for job, fit in fits if job.seed == seed], choice) for seed in seeds]


def require_rule(learner: Learner, rule: str) -> None:
    """Refuse learners without epochs, and KL for those without variances of single weights."""
    if learner.batch:
        raise RecipeError(f"{learner.name} finds one optimum, in one go; leave it out", key="training.sections")
    if rule == "kl" and (not isinstance(learner, Gaussian) or learner.full):
        message = f"{learner.name} keeps no variance of each weight; take mean"
        raise RecipeError(message, key="training.sections.rule")


def divide(examples: int, count: int, seed: int) -> list[tuple[np.ndarray, int]]:
    """``count`` sections (int64, examples in a random order) whose sizes differ by one at most, each with a seed of its
    own; one of every example where these are fewer, and a single one with the seed itself."""
    order, count = np.random.default_rng([seed, examples]).permutation(examples), max(1, min(count, examples))
    seeds = [int(np.random.SeedSequence([seed, number]).generate_state(1)[0]) for number in range(count)]
    seeds = seeds if count > 1 else [seed]
    return [(order[first:last], own) for (first, last), own in zip(sections_of(examples, count), seeds, strict=True)]


def combine(trainings: Sequence[Training], rule: str) -> dict[str, Weights]:
    """The predictors of all sections as one of each kind; the average is that over all predictors of all sections, each
    weighted by the examples that it survived."""
    weights = {name: np.array([training.weights[name].w for training in trainings]) for name in ("last", "average")}
    counts = np.array([predictor_view(training.state).counts.seen for training in trainings], np.float64)
    last = weights["last"].mean(axis=0)
    if rule == "kl":
        learner = trainings[0].learner
        assert isinstance(learner, Gaussian)
        certainty = 1.0 / np.array([learner.variances(training.state) for training in trainings])
        last = (certainty * weights["last"]).sum(axis=0) / certainty.sum(axis=0)
    average = (counts[:, np.newaxis] * weights["average"]).sum(axis=0) / counts.sum()
    base = trainings[0].learner.base
    return {"last": Weights(last, base), "average": Weights(average, base)}
