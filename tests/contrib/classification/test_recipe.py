"""Recipes of classification: sources, runs, grids, errors, the commands over them, and their metric."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_classes
import yaml
from commands import Command, refused
from hypothesis import given
from hypothesis import strategies as st
from small_classes import examples_of

import rerank.contrib.classification.results as classification
from rerank.base.errors import RecipeError
from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.metrics.metric import chosen_rows
from rerank.metrics.oracle import ListStatistics, corpus_oracle, oracle
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


RECIPE = Path(__file__).parents[3] / "recipes" / "classification.yaml"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """--set options that name a file and its folds."""
    small_classes.write_set(tmp_path)
    return f"data.path={tmp_path / 'marked.svm.gz'}", f"data.folds={tmp_path / 'marked.folds.txt'}"


def test_folds_of_a_file_with_a_learner_by_name(rerank: Command, files: tuple[str, str], tmp_path: Path) -> None:
    path, folds = files
    options = ("--set", path, "--set", folds, "--set", "learner.name=perceptron", "-o", tmp_path / "out")
    result = rerank("run", RECIPE, *options)
    assert result.code == 0, result.err
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    run = metrics["runs"][0]
    assert run["learner"] == {"name": "perceptron"}
    assert f"{100 * run['mean']:.2f} ±{100 * run['se']:.2f}" in result.out
    assert "mean ± standard error over folds" in result.out
    assert str(tmp_path / "out" / "report.html") in result.out


def test_several_runs_and_ranks(rerank: Command, tmp_path: Path) -> None:
    for name in ("one", "two"):
        small_classes.write_set(tmp_path, name, seed=len(name))
    settings = small_classes.settings(
        tmp_path, runs=[{"name": "plain"}, {"name": "more", "set": {"training.epochs": 4}}]
    )
    settings["data"] = {"root": str(tmp_path), "sets": ["one", "two"]}
    path = tmp_path / "several.yaml"
    path.write_text(yaml.safe_dump(settings))
    result = rerank("run", path, "-o", tmp_path / "out")
    assert result.code == 0, result.err
    for part in ("Test error (%)", "Mean rank by noise", "plain", "more", "one", "two"):
        assert part in result.out
    again = rerank("run", path, "-o", tmp_path / "out", "--resume")
    assert (again.code, again.out) == (0, result.out), "what is finished is shown, and not done again"


def test_two_runs_are_compared(rerank: Command, files: tuple[str, str], tmp_path: Path) -> None:
    options = ("--set", files[0], "--set", files[1])
    for name in ("perceptron", "pa"):
        done = rerank("run", RECIPE, *options, "--set", f"learner.name={name}", "-o", tmp_path / name)
        assert done.code == 0, done.err
    result = rerank("compare", tmp_path / "perceptron", tmp_path / "pa", "--test", "mcnemar", "--predictor", "last")
    assert result.code == 0, result.err
    means = [json.loads((tmp_path / name / "metrics.json").read_text())["runs"][0] for name in ("perceptron", "pa")]
    for run in means:
        assert f"{100 * run['splits']['test']['last']['error']:.2f}" in result.out


def test_what_is_not_there_is_said(rerank: Command, files: tuple[str, str], tmp_path: Path) -> None:
    refused(rerank("run", RECIPE), "data: found no examples", "--set data.path=FILE")
    extraction = "run", RECIPE, "--until", "extract", "--set", files[0]
    refused(rerank(*extraction, "--workers", 2), "only lists are read by workers")
    refused(rerank("run", RECIPE, "--set", "data.path=absent.svm"), "absent.svm")
    refused(rerank("run", RECIPE, "--set", "data.sets=[books]"), "books.svm.gz", "--set data.root=DIR")
    refused(rerank("run", RECIPE, "--set", files[0], "--set", "data.flods=x"), "data.flods", "did you mean folds")
    bad = tmp_path / "bad.svm"
    bad.write_text("+1 1:1\n-1 2:x\n")
    refused(rerank("run", RECIPE, "--set", f"data.path={bad}", "-o", tmp_path / "o"), "bad.svm:2")


METRIC = classification.Classification()


def rows(wrong: list[bool]) -> np.ndarray:
    return np.array(wrong, float)[:, np.newaxis]


@given(st.lists(st.booleans(), min_size=1, max_size=20))
def test_error_is_the_share_of_the_wrong(wrong) -> None:
    stats, reference = rows(wrong), np.ones((len(wrong), 1))
    report = METRIC.report(stats.sum(axis=0), reference.sum(axis=0))
    assert report["error"] == pytest.approx(np.mean(wrong))
    assert report["accuracy"] == pytest.approx(1 - np.mean(wrong))
    assert METRIC.gain(stats, reference).tolist() == [float(not w) for w in wrong]
    assert METRIC.perfect(stats, reference).tolist() == [not w for w in wrong]


def test_it_is_the_metric_of_a_classification_corpus() -> None:
    corpus = examples_of(np.eye(4), [0, 1, 1, 2]).corpus()
    best = oracle(corpus.lists, corpus.gain, corpus.base)
    assert METRIC.gain(corpus.stats, np.ones_like(corpus.stats)).tolist() == corpus.gain.tolist()
    assert not chosen_rows(corpus.stats, best).any()
    assert corpus_oracle(corpus, METRIC).tolist() == best.tolist()
    found = ListStatistics.of(corpus, METRIC)
    assert found.oracle["error"] == 0.0
    assert found.base["error"] == 0.75
    assert found.anti_oracle["error"] == 1.0
    assert found.random["error"] == pytest.approx(2 / 3)
