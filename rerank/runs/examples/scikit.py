"""Parts of scikit-learn by name, with a clear message where it is not installed; batch classifiers to compare with."""

import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import nearest
from rerank.data.labelled import Labelled
from rerank.recipes.settings import Settings


class ScikitPart(NamedTuple):
    """A class of scikit-learn: its module, its name, and settings that a recipe may override."""

    module: str
    name: str
    usual: Mapping[str, Any] = {}


BASELINES = {
    "naive-bayes": ScikitPart("naive_bayes", "MultinomialNB"),
    "maxent": ScikitPart("linear_model", "LogisticRegression", {"max_iter": 1000, "random_state": 0}),
    "svm": ScikitPart("svm", "LinearSVC", {"max_iter": 1000, "random_state": 0, "tol": 0.01}),
}


def scikit(module: str, key: str) -> Any:
    """A module of scikit-learn, which only some settings need; ``key`` names the setting."""
    try:
        return import_module(f"sklearn.{module}")
    except ImportError as error:
        message = f"needs scikit-learn ({error}); install it with pip install 'rerank-nbest[classification]'"
        raise RecipeError(message, key=key) from None


def part_named(parts: Mapping[str, ScikitPart], settings: Settings, key: str, refused: tuple[str, ...] = ()) -> Any:
    """The part that ``settings``, its name and scikit-learn's own parameters except those ``refused``, describe."""
    name = settings.get("name")
    if not isinstance(name, str) or name not in parts:
        raise RecipeError(f"found {name!r}; {nearest(str(name), parts)}", key=f"{key}.name")
    module, class_name, usual = parts[name]
    made = getattr(scikit(module, key), class_name)(**usual)
    parameters, known = _parameters(settings), set(made.get_params()) - set(refused)
    for parameter in parameters:
        if parameter not in known:
            raise RecipeError(f"{class_name} has no {parameter!r} here; {nearest(parameter, known)}", key=key)
    return made.set_params(**parameters)


def _parameters(settings: Settings) -> Settings:
    """The settings of a part without its name."""
    return {key: value for key, value in settings.items() if key != "name"}


def make_baseline(settings: Settings, key: str = "baseline") -> Any:
    """The classifier that ``settings`` describe; see ``part_named``."""
    return part_named(BASELINES, settings, key)


def _matrix(examples: Labelled) -> scipy.sparse.csr_matrix:
    """The features as scipy's CSR matrix [n, D], float64."""
    values = np.asarray(examples.values, dtype=np.float64)
    shape = (examples.size, examples.width)
    return scipy.sparse.csr_matrix((values, np.array(examples.columns), np.array(examples.rows)), shape=shape)


def fit_baseline(settings: Settings, train: Labelled, key: str = "baseline") -> Any:
    """The classifier fitted to ``train``; its classes are indices into those of ``train``."""
    made = make_baseline(settings, key)
    if settings["name"] == "maxent" and "solver" not in settings and len(train.classes) == 2:
        # For two classes only, but on wide sparse rows many times faster than the solver that serves all.
        made.set_params(**{"solver": "liblinear", "dual": True, "tol": 0.01} | _parameters(settings))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that iterations ended: the settings are the recipe's
            return made.fit(_matrix(train), train.label, sample_weight=train.weight)
    except (ValueError, TypeError) as error:
        raise DataError(f"{settings['name']} cannot be fitted to the training examples: {error}") from None


def predict_baseline(fitted: Any, examples: Labelled) -> np.ndarray:
    """int64 [n]: the class of every example."""
    return np.asarray(fitted.predict(_matrix(examples)), dtype=np.int64)
