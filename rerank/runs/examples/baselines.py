"""Batch classifiers to compare with, from scikit-learn."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse

from rerank.base.errors import DataError
from rerank.data.labelled import Labelled
from rerank.recipes.settings import Settings
from rerank.runs.examples.scikit import ScikitPart, own_settings, part_named

BASELINES = {
    "naive-bayes": ScikitPart("naive_bayes", "MultinomialNB"),
    "maxent": ScikitPart("linear_model", "LogisticRegression", {"max_iter": 1000, "random_state": 0}),
    "svm": ScikitPart("svm", "LinearSVC", {"max_iter": 1000, "random_state": 0, "tol": 0.01}),
}


def make_baseline(settings: Settings, key: str = "baseline") -> Any:
    """The classifier that ``settings`` (name and scikit-learn's own parameters) describe; see ``part_named``."""
    return part_named(BASELINES, settings, key)


def matrix_of(examples: Labelled) -> scipy.sparse.csr_matrix:
    """The features as scipy's CSR matrix [n, D], float64."""
    values = np.asarray(examples.values, dtype=np.float64)
    shape = (examples.size, examples.width)
    return scipy.sparse.csr_matrix((values, np.array(examples.columns), np.array(examples.rows)), shape=shape)


def fit_baseline(settings: Settings, train: Labelled, key: str = "baseline") -> Any:
    """The classifier fitted to ``train``; its classes are indices into those of ``train``.

    Raises
    ------
    DataError: examples that it cannot be fitted to.
    """
    made = make_baseline(settings, key)
    if settings["name"] == "maxent" and "solver" not in settings and len(train.classes) == 2:
        # For two classes only, but on wide sparse rows many times faster than the solver that serves all.
        made.set_params(**{"solver": "liblinear", "dual": True, "tol": 0.01} | own_settings(settings))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that iterations ended: the settings are the recipe's
            return made.fit(matrix_of(train), train.label, sample_weight=train.weight)
    except (ValueError, TypeError) as error:
        raise DataError(f"{settings['name']} cannot be fitted to the training examples: {error}") from None


def predict_baseline(fitted: Any, examples: Labelled) -> np.ndarray:
    """int64 [n]: the class of every example."""
    return np.asarray(fitted.predict(matrix_of(examples)), dtype=np.int64)
