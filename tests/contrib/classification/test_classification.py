"""The commands over recipes of classification, as a user meets them."""

import json
from pathlib import Path

import pytest
import small_classes
import yaml
from commands import Command, refused

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
    shown = rerank("inspect", tmp_path / "out" / "model", "--top", 2)
    assert shown.code == 0, shown.err
    assert "perceptron, average: " in shown.out


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
    options = ("--set", files[0], "--set", files[1], "--set", "training.vote=true")
    for name in ("perceptron", "pa"):
        done = rerank("run", RECIPE, *options, "--set", f"learner.name={name}", "-o", tmp_path / name)
        assert done.code == 0, done.err
    result = rerank("compare", tmp_path / "perceptron", tmp_path / "pa", "--test", "mcnemar", "--predictor", "voted")
    assert result.code == 0, result.err
    means = [json.loads((tmp_path / name / "metrics.json").read_text())["runs"][0] for name in ("perceptron", "pa")]
    for run in means:
        assert f"{100 * run['splits']['test']['voted']['error']:.2f}" in result.out


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
