"""A paper's numbers beside ours, and runs that take a fraction."""

import json
from pathlib import Path
from typing import Any

import pytest
import small
import yaml
from commands import Command

from rerank.models.model import Model
from rerank.recipes.loading import load_recipe
from rerank.runs import experiment, results
from rerank.runs.report.results import compare_with_base, reported_table

RUNS = [
    {"name": "perceptron", "set": {"learner": {"name": "perceptron"}}, "grid": {}},
    {"name": "RDA", "set": {"learner": {"name": "vrda"}}},
]
REPORTED = {
    "source": "a paper",
    "rows": {
        "base": {"f1": 0.9},
        "RDA l1=0.1": {"f1": 0.92, "nonzero_weights": 500},
        "RDA l1=7": {"f1": 0.91, "nonzero_weights": 100},
        "perceptron": {"test.f1": "91.3", "seconds": "long"},
    },
}
SETTINGS: dict[str, Any] = {"runs": RUNS, "grid": {"learner.l1": [0.0, 0.1]}, "reported": REPORTED}


@pytest.fixture(scope="module")
def drawn(small_data: Path, workspace: Path) -> Path:
    """The output of a recipe with a paper's numbers: three runs with two seeds each."""
    recipe = small.recipe(small_data, training={"epochs": 2, "share": 0.5}, seeds=[1, 2], **SETTINGS)
    experiment.run(recipe, workspace / "drawn")
    return workspace / "drawn"


@pytest.fixture(scope="module")
def found(drawn: Path) -> dict[str, Any]:
    """metrics.json of that output."""
    return json.loads((drawn / "metrics.json").read_text())


def runs_of(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The entries of a run, seed by seed."""
    return [run for run in found["runs"] if run["name"] == name]


def test_ours_stand_beside_the_papers(found: dict[str, Any]) -> None:
    table = reported_table(found)
    assert table.headings == ["run", "F", "paper", "nonzero weights", "paper", "test F", "paper", "seconds", "paper"]
    rows = {row[0]: list(row[1:]) for row in table.rows}
    base = found["splits"]["test"]["base"]["f1"]
    assert rows["base"] == [f"{100 * base:.2f}", "90.00", "–", "–", f"{100 * base:.2f}", "–", "–", "–"]
    assert rows["RDA l1=7"] == ["–", "91.00", "–", "100", "–", "–", "–", "–"]
    assert rows["RDA l1=0.1"][1:4:2] == ["92.00", "500"]
    assert rows["perceptron"][4] == rows["perceptron"][0]
    assert rows["perceptron"][5:8:2] == ["91.3", "long"]
    weights = [run["training"]["nonzero_weights"] for run in runs_of(found, "RDA l1=0.1")]
    assert rows["RDA l1=0.1"][2] == f"{sum(weights) / 2:,.0f}"


def test_gains_are_drawn_beside_the_papers(found: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the runs that the paper has a figure of, with the interval of the test."""
    monkeypatch.setattr(results.page, "draw", lambda _, lines, *_axes, **_scales: lines)
    ours, paper = results.reported_figure(found)
    test = compare_with_base(runs_of(found, "RDA l1=0.1"), "test", "average")
    ends = [100 * end for end in test["interval"]]
    assert [ours.y[0] - ours.spread[0], ours.y[0] + ours.spread[0]] == pytest.approx(ends)
    assert (paper.x, paper.y) == ([2.1], pytest.approx([2.0]))
    assert results.reported_figure(found | {"reported": None}) is None


def test_a_share_of_the_training_lists(drawn: Path, found: dict[str, Any]) -> None:
    """A model that goes on with other lists than its own has to adopt them, so it knows the share."""
    assert Model.load(drawn / "model").about["training_data"].endswith(f" 0.5 {found['seed']}")
    assert {run["training"]["lists"] for run in found["runs"]} == {small.SIZES["train"] // 2}


def test_a_quick_run(tmp_path: Path, rerank: Command) -> None:
    path = tmp_path / "r.yaml"
    settings: dict[str, Any] = {"seeds": [1, 2, 3], "runs": RUNS, "training": {"epochs": 10}}
    path.write_text(yaml.safe_dump(settings | {"quick": {"training.share": 0.1, "training.epochs": 3, "seeds": [4]}}))
    usual, quick = load_recipe(path), load_recipe(path, ["training.epochs=5"], quick=True)
    assert (usual.training.share, usual.training.epochs, usual.run_seeds) == (1, 10, (1, 2, 3))
    assert (quick.training.share, quick.training.epochs, quick.run_seeds) == (0.1, 5, (4,))
    path.write_text(yaml.safe_dump(settings))
    done = rerank("run", path, "--quick", "--output", tmp_path / "out")
    assert done.code == 2
    assert "quick: the recipe says nothing of a quick run" in done.err
