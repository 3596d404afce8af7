"""Recipes of classification: sources, runs, grids, and the errors that name the key."""

from pathlib import Path
from typing import Any

import pytest

from rerank.base.errors import RecipeError
from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.recipes.loading import load_recipe

PLAIN: dict[str, Any] = {"name": "r", "task": "classification"}


def made(**settings: Any) -> ClassificationRecipe:
    return ClassificationRecipe.model_validate(PLAIN | settings)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "r.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task: clasification", "task: found 'clasification'; did you mean classification"),
        ("task: classification\ndata: {pth: x}", "data.pth: unknown setting; did you mean path"),
        ("task: classification\ndata: {noise: 0.7}", "data.noise.0: found 0.7"),
        ("task: classification\nruns: [{name: a}, {name: a}]", "two runs have the same name"),
        (
            "task: classification\ndata: {sets: {a: {drawm: 3}}}",
            "data.sets.a.drawm: unknown setting; did you mean drawn",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RecipeError) as raised:
        load_recipe(written(tmp_path, text))
    assert message in str(raised.value)
    assert "r.yaml" in str(raised.value)


def test_a_resolved_recipe_is_the_same_recipe(tmp_path: Path) -> None:
    recipe = made(
        data={"sets": ["a", "b"], "noise": 0.1, "bias": 1},
        runs=[{"name": "x", "set": {"learner.r": 2}, "grid": {"learner.r": [1, 2]}}],
        tune={"grid": {"learner.r": [1]}},
        reported={"source": "s", "values": {500: {"x": 1}}},
    )
    assert load_recipe(written(tmp_path, recipe.as_yaml())) == recipe


def test_sets_without_a_source_are_the_usual_files() -> None:
    sets = made(data={"sets": {"a": None, "b": {"folds": None, "drawn": 3}, "c": {"path": "x"}}}).data.sets
    assert (sets["a"].path, sets["a"].folds) == ("{root}/a.svm.gz", "{root}/a.folds.txt")
    assert sets["b"].path == "{root}/b.svm.gz"
    assert (sets["b"].folds, sets["b"].drawn) == (None, 3)
    assert (sets["c"].path, sets["c"].folds) == ("x", None)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "found no examples; expected one of path, train and generator"),
        ({"path": "a", "generator": {"name": "winnow"}}, "found path and generator"),
        ({"path": "a", "sets": ["b"]}, "remove one or the other"),
        ({"train": "a"}, "data.test: is missing"),
        ({"path": "a", "test": "b"}, "it belongs to train"),
        ({"train": "a", "test": "b", "folds": "f"}, "which already has a test part"),
        ({"sets": {"s": {"train": "a"}}}, "data.sets.s.test"),
    ],
)
def test_a_set_has_one_source(data: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError) as raised:
        made(data=data).data.named_sets("r")
    assert message in str(raised.value)


def test_runs_are_expanded_over_their_own_grid_or_the_recipes() -> None:
    recipe = made(
        grid={"learner.C": [1, 2], "training.epochs": [3, 4]},
        learner={"name": "pa", "variant": "1"},
        runs=[
            {"name": "both"},
            {"name": "own", "grid": {"learner.C": [5]}},
            {"name": "none", "set": {"learner": {"name": "perceptron"}}, "grid": {}},
            {"name": "svm", "baseline": {"name": "svm"}, "grid": {"baseline.C": [7]}},
        ],
    )
    specs = recipe.expand()
    assert [spec.name for spec in specs] == [
        *(f"both C={C} epochs={epochs}" for C in (1, 2) for epochs in (3, 4)),
        "own C=5",
        "none",
        "svm C=7",
    ]
    assert [spec.recipe.learner.get("C") for spec in specs] == [1, 1, 2, 2, 5, None, None]
    assert [spec.recipe.training.epochs for spec in specs[:4]] == [3, 4, 3, 4]
    assert specs[-1].baseline == {"name": "svm", "C": 7}
    assert specs[2].at({"learner.C": 9}).recipe.learner["C"] == 9
    assert specs[-1].at({"baseline.C": 9}).baseline == {"name": "svm", "C": 9}


@pytest.mark.parametrize("key", ["data.bias", "seed", "measure", "significance.test"])
def test_a_run_may_not_change_what_is_common(key: str) -> None:
    value: Any = {"data.bias": 1, "seed": 3, "measure": "accuracy", "significance.test": "paired_t"}[key]
    with pytest.raises(RecipeError, match=r"runs\.x\.set"):
        made(runs=[{"name": "x", "set": {key: value}}]).expand()
