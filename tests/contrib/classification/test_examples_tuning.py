"""Tuning picks the best point and epoch, the first of equals, from training labels alone, and only if it is better."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_classes
from small_classes import examples_of

from rerank.contrib.classification import fitting
from rerank.contrib.classification.fitting import Tuned, point_of, points_of, tune
from rerank.contrib.classification.recipe import Spec
from rerank.data.labelled import Labelled

EXAMPLES = examples_of(np.eye(20), np.arange(20) % 2)


def spec_of(**tune_settings: Any) -> Spec:
    learner = {"name": "pa", "variant": "1"}
    settings = {"held_out": 0.2, **tune_settings}
    return small_classes.recipe(Path("."), learner=learner, tune=settings).expand()[0]


def with_errors(monkeypatch: pytest.MonkeyPatch, errors: dict[float, list[float]]) -> None:
    """Held-out errors by C, epoch for epoch."""

    def known(spec: Spec, train_part: Labelled, test_part: Labelled) -> list[float]:
        assert (train_part.size, test_part.size) == (16, 4)
        return errors[spec.recipe.learner["C"]]

    monkeypatch.setattr(fitting, "_errors", known)


def test_of_equals_the_first_point_and_the_fewest_epochs_win(monkeypatch: pytest.MonkeyPatch) -> None:
    with_errors(monkeypatch, {1: [0.5, 0.2, 0.2], 2: [0.2, 0.2, 0.2]})
    found = tune(spec_of(grid={"learner.C": [1, 2]}), EXAMPLES, EXAMPLES)
    assert found == {"learner.C": 1, "epochs": 2, "held_out_error": 0.2}


# Five folds: C of the recipe is .5, its epochs are 2. Errors by C, fold and epoch.
USUAL = [[0.5, 0.30], [0.5, 0.20], [0.5, 0.25], [0.5, 0.25], [0.5, 0.25]]


def over_folds(monkeypatch: pytest.MonkeyPatch, errors: dict[float, list[list[float]]], **settings: Any) -> Tuned:
    """What is chosen where these are the errors; every fold judges once."""
    judged: dict[float, list[int]] = {}

    def known(spec: Spec, train_part: Labelled, test_part: Labelled) -> list[float]:
        assert (train_part.size, test_part.size) == (16, 4)
        own = judged.setdefault(spec.recipe.learner["C"], [])
        own.append(int(test_part.columns.sum()))
        return errors[spec.recipe.learner["C"]][len(own) - 1]

    monkeypatch.setattr(fitting, "_errors", known)
    learner = {"name": "pa", "variant": "1", "C": 0.5}
    spec = small_classes.recipe(Path("."), learner=learner, tune=settings).expand()[0]
    found = tune(spec, EXAMPLES, EXAMPLES)
    assert all(sum(own) == EXAMPLES.columns.sum() for own in judged.values())
    return found


def test_the_recipe_is_kept_unless_another_point_is_better_by_a_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Differences of .05, -.05, .1, 0, 0: the mean .02 is less than their standard error, .0255."""
    noisy = [[0.5, 0.25], [0.5, 0.25], [0.5, 0.15], [0.5, 0.25], [0.5, 0.25]]
    found = over_folds(monkeypatch, {0.5: USUAL, 1: noisy}, grid={"learner.C": [1]})
    assert (point_of(found), found["epochs"], found["held_out_error"]) == ({}, 2, pytest.approx(0.25))
    assert found["standard_error"] == pytest.approx(np.std([0.05, -0.05, 0.1, 0, 0], ddof=1) / np.sqrt(5))
    better = [[0.5, 0.28], [0.5, 0.18], [0.5, 0.23], [0.5, 0.23], [0.5, 0.23]]  # by .02 in every fold
    found = over_folds(monkeypatch, {0.5: USUAL, 1: better}, grid={"learner.C": [1]})
    assert (point_of(found), found["epochs"]) == ({"learner.C": 1}, 2)
    assert (found["held_out_error"], found["default_error"]) == (pytest.approx(0.23), pytest.approx(0.25))


def test_one_split_is_chosen_by_the_lowest_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the papers: no matter by how little, and the recipe's settings are not among the points."""
    with_errors(monkeypatch, {1: [0.2500], 2: [0.2499]})
    found = tune(spec_of(grid={"learner.C": [1, 2]}), EXAMPLES, EXAMPLES)
    assert found == {"learner.C": 2, "epochs": 1, "held_out_error": 0.2499}


def test_learners_and_baselines_have_grids_of_their_own() -> None:
    grid = {"learner.C": [1, 2], "baseline.C": [3]}
    spec = spec_of(grid=grid)
    assert points_of(spec) == [{"learner.C": 1}, {"learner.C": 2}]
    assert points_of(replace(spec, baseline={"name": "svm"})) == [{"baseline.C": 3}]


def test_held_out_labels_are_noisy_or_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def look(_: Spec, train_part: Labelled, test_part: Labelled) -> list[float]:
        seen.append((train_part.label.tolist(), test_part.label.tolist()))
        return [0.5]

    monkeypatch.setattr(fitting, "_errors", look)
    other = examples_of(np.eye(20), np.arange(20) % 2).flip(1.0, 1)
    for clean in (False, True):
        tune(spec_of(clean=clean), other, EXAMPLES)
    noisy, clean_labels = seen
    assert noisy[0] == clean_labels[0]
    assert noisy[1] == [1 - label for label in clean_labels[1]]
