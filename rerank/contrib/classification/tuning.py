"""Parameters and number of epochs by the error on held-out examples: of folds, or of one random split as in papers.

The best of many settings on a few held-out examples is also the one that suits their noise best. So the settings of the
recipe are kept unless others are better by one standard error of the mean difference, fold by fold (Breiman et al.
1984, 3.4.3, choose among trees by it). On one split there is no standard error: there the lowest error wins.
"""

from collections.abc import Iterable

import numpy as np

from rerank.base.errors import DataError
from rerank.contrib.classification.fitting import error_of, predicted, train_on
from rerank.contrib.classification.recipe import Spec
from rerank.contrib.classification.scikit import fit_baseline, predict_baseline
from rerank.contrib.classification.sets import draw_folds
from rerank.data.labelled import Labelled
from rerank.learn.base import Weights
from rerank.recipes.settings import Settings, grid_points

Tuned = Settings  # what was chosen, as in metrics.json: the settings of a point of the grid, and these
FOUND = ("epochs", "held_out_error", "default_error", "standard_error")


def point_of(tuned: Tuned) -> Settings:
    """The chosen point of the grid."""
    return {key: value for key, value in tuned.items() if key not in FOUND}


def applied(spec: Spec, tuned: Tuned) -> Spec:
    """``spec`` with what was chosen, if anything was."""
    return spec.at(point_of(tuned) | ({"training.epochs": tuned["epochs"]} if tuned.get("epochs") else {}))


def points_of(spec: Spec) -> list[Settings]:
    """The points of the grid of ``spec.recipe.tune``, with folds {} first, the settings of the recipe; learners and
    baselines ignore each other's keys."""
    settings = spec.recipe.tune
    assert settings is not None
    baseline = spec.baseline is not None
    points = grid_points(
        {key: values for key, values in settings.grid.items() if key.startswith("baseline.") == baseline}
    )
    return points if settings.held_out is not None or {} in points else [{}, *points]


def tune(spec: Spec, noisy: Labelled, clean: Labelled) -> Tuned:
    """The best point of the grid of ``spec`` and its number of epochs, or the recipe's own settings; ``noisy``,
    ``clean``: the examples that may train, with their labels as training sees them and without noise."""
    return best_point(spec, [held_out_errors(spec.at(point), noisy, clean) for point in points_of(spec)])


def best_point(spec: Spec, curves: Iterable[list[list[float]]]) -> Tuned:
    """The point and epoch with the lowest mean error, if it is better than the recipe's settings by a standard error.

    Among equals, the first point, then the fewest epochs. ``curves``: for every point of ``points_of``, one line for
    each division of the examples, with the errors after every epoch. What is found has the number of epochs (0 for a
    baseline) and the mean error on the held-out examples; with folds, also the error of the recipe's own settings there
    (``default_error``), and the standard error of the mean difference between these and the best others.
    """
    settings = spec.recipe.tune
    assert settings is not None
    known = [np.array(lines) for lines in curves]
    means = [lines.mean(axis=0) for lines in known]
    first = int(np.argmin([mean.min() for mean in means]))
    epoch = int(np.argmin(means[first]))

    def chosen(point: int, epoch: int) -> Tuned:
        """The choice of this point and epoch, counted from the first."""
        epochs = 0 if spec.baseline is not None else epoch + 1
        return points_of(spec)[point] | {"epochs": epochs, "held_out_error": float(means[point][epoch])}

    if settings.held_out is not None:
        return chosen(first, epoch)
    usual = min(spec.recipe.training.epochs, means[0].size) - 1
    gains = known[0][:, usual] - known[first][:, epoch]
    error = float(np.std(gains, ddof=1) / np.sqrt(gains.size))
    kept = not gains.mean() > error
    found = chosen(0, usual) if kept else chosen(first, epoch)
    return found | {"default_error": float(means[0][usual]), "standard_error": error}


def held_out_errors(spec: Spec, noisy: Labelled, clean: Labelled) -> list[list[float]]:
    """The errors of ``spec``, a point of a grid, on held-out examples after every epoch; one line for each division."""
    settings = spec.recipe.tune
    assert settings is not None
    noisy, clean = (part.shared(spec.recipe.training.share, settings.seed) for part in (noisy, clean))
    judged = clean if settings.clean else noisy
    divisions = divided(noisy.label, settings.held_out, settings.folds, settings.seed)
    return [_errors(spec, noisy.take(first), judged.take(second)) for first, second in divisions]


def _errors(spec: Spec, train_part: Labelled, test_part: Labelled) -> list[float]:
    """Held-out error after every epoch; of the average where the predictor votes."""
    assert spec.recipe.tune is not None
    if spec.baseline is not None:
        return [error_of(predict_baseline(fit_baseline(spec.baseline, train_part), test_part), test_part.label)]
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


def divided(label: np.ndarray, share: float | None, folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The divisions of examples for tuning, as indices that train and indices that judge: by ``folds``, each example
    one where there are fewer, or once by ``share``."""
    if share is not None or label.size < 2:
        return [held_out(label, share or 0.5, seed)]
    drawn = draw_folds(label, min(folds, label.size), seed)
    return [(np.flatnonzero(drawn != k), np.flatnonzero(drawn == k)) for k in range(int(drawn.max()) + 1)]


def held_out(label: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices (ascending) of a part to train on and of one to test on, with ``share`` of every class."""
    if label.size < 2:
        raise DataError(f"{label.size} training examples leave nothing to hold out for tuning; give more examples")
    rng = np.random.default_rng(seed)
    taken = np.zeros(label.size, np.bool_)
    for members in (np.flatnonzero(label == number) for number in np.unique(label)):
        taken[rng.permutation(members)[: round(share * members.size)]] = True
    if not taken.any() or taken.all():  # classes too small to be divided class by class
        order = rng.permutation(label.size)
        taken[:] = False
        taken[order[: min(max(1, round(share * label.size)), label.size - 1)]] = True
    return np.flatnonzero(~taken), np.flatnonzero(taken)
