"""The figures that a recipe over lists asks for, a paper's numbers beside ours, and runs that take a fraction."""

import json
from pathlib import Path
from typing import Any

import pytest
import small
import yaml
from commands import Command

from rerank.base.errors import RecipeError
from rerank.models.model import Model
from rerank.recipes.loading import load_recipe
from rerank.runs import pipeline
from rerank.runs.pipeline import epoch_lines
from rerank.runs.report.list_parts import check_figures, reported_table

RUNS = [
    {"name": "perceptron", "set": {"learner": {"name": "perceptron"}}, "grid": {}},
    {"name": "RDA", "set": {"learner": {"name": "vrda"}}},
]
FIGURES = [
    {"name": "errors", "kind": "course", "measure": "mistakes", "runs": ["perceptron", "RDA l1=0.1"]},
    {"name": "weights", "kind": "course", "measure": "nonzero_weights", "runs": ["RDA"], "paper": "smaller"},
    {"name": "sizes", "kind": "size"},
    {"name": "spread", "kind": "epochs", "title": "Over epochs"},
]
REPORTED = {
    "source": "a paper",
    "columns": 2000,
    "rows": {
        "base": {"f1": 0.9},
        "RDA l1=0.1": {"f1": 0.92, "nonzero_weights": 500},
        "RDA l1=7": {"f1": 0.91, "nonzero_weights": 100},
        "perceptron": {"test.f1": "91.3", "seconds": "long"},
    },
}
SETTINGS: dict[str, Any] = {"runs": RUNS, "grid": {"learner.l1": [0.0, 0.1]}, "figures": FIGURES, "reported": REPORTED}


@pytest.fixture(scope="module")
def drawn(small_data: Path, workspace: Path) -> Path:
    """The output of a recipe with figures: three runs with two seeds each."""
    recipe = small.recipe(small_data, training={"epochs": 2, "share": 0.5}, seeds=[1, 2], **SETTINGS)
    pipeline.run(recipe, workspace / "drawn")
    return workspace / "drawn"


@pytest.fixture(scope="module")
def found(drawn: Path) -> dict[str, Any]:
    """metrics.json of that output."""
    return json.loads((drawn / "metrics.json").read_text())


def lines_of(found: dict[str, Any], name: str) -> dict[str, dict[str, Any]]:
    """The lines of a figure by their names."""
    return {line["name"]: line for figure in found["figures"] if figure["name"] == name for line in figure["lines"]}


def runs_of(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The entries of a run, seed by seed."""
    return [run for run in found["runs"] if run["name"] == name]


def test_a_course_ends_with_the_counts_of_the_training(found: dict[str, Any]) -> None:
    errors = lines_of(found, "errors")
    assert list(errors) == ["perceptron", "RDA l1=0.1"]
    for name, line in errors.items():
        totals = [sum(run["training"]["mistakes"]) for run in runs_of(found, name)]
        assert line["y"][-1] == pytest.approx(sum(totals) / 2)
        assert line["spread"][-1] == pytest.approx(abs(totals[0] - totals[1]) / 2**0.5)
        assert line["x"][-1] == 2 * runs_of(found, name)[0]["training"]["lists"]
    assert list(lines_of(found, "weights")) == ["RDA l1=0.0", "RDA l1=0.1"]


def test_quality_against_size_with_the_points_of_a_paper(found: dict[str, Any]) -> None:
    sizes = lines_of(found, "sizes")
    assert list(sizes) == ["perceptron", "RDA", "RDA, paper"]
    assert sizes["RDA, paper"]["x"] == pytest.approx([5, 25])
    assert sizes["RDA, paper"]["y"] == pytest.approx([1, 2])
    base, columns = found["splits"]["test"]["base"]["f1"], found["corpora"]["train"]["columns"]
    own = []
    for name in ("RDA l1=0.0", "RDA l1=0.1"):
        weights, scores = zip(
            *(
                (run["training"]["nonzero_weights"], run["splits"]["test"]["average"]["f1"])
                for run in runs_of(found, name)
            ),
            strict=True,
        )
        own.append((100 * sum(weights) / 2 / columns, 100 * (sum(scores) / 2 - base)))
    assert list(zip(sizes["RDA"]["x"], sizes["RDA"]["y"], strict=True)) == [pytest.approx(pair) for pair in sorted(own)]


def test_the_spread_over_epochs_is_that_of_the_history(drawn: Path, found: dict[str, Any]) -> None:
    history = epoch_lines(drawn / "history.jsonl")
    for name, line in lines_of(found, "spread").items():
        scores = [100 * each["dev"] for each in history if each["run"] == name]
        assert len(scores) == 4
        mean = sum(scores) / 4
        assert line["y"] == [pytest.approx(mean)]
        assert line["spread"] == [pytest.approx((sum((score - mean) ** 2 for score in scores) / 3) ** 0.5)]


def test_figures_are_files_and_on_the_page(drawn: Path) -> None:
    assert {path.name for path in (drawn / "figures").iterdir()} == {f"{each['name']}.svg" for each in FIGURES}
    page = (drawn / "report.html").read_text()
    assert "weights: nonzero weights over the lists processed in training" in page
    assert "The paper: smaller" in page
    assert "Over epochs: F (%) on dev after every epoch" in page
    assert "a paper" in page


def test_ours_stand_beside_the_papers(found: dict[str, Any]) -> None:
    table = reported_table(found)
    assert table is not None
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


def test_a_share_of_the_training_lists(drawn: Path, found: dict[str, Any]) -> None:
    """A model that goes on with other lists than its own has to adopt them, so it knows the share."""
    assert Model.load(drawn / "model").about["training_data"].endswith(f" 0.5 {found['seed']}")
    assert {run["training"]["lists"] for run in found["runs"]} == {small.SIZES["train"] // 2}


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ([{"name": "f", "kind": "size", "runs": ["RDA l1=0.2"]}], r"figures\.0\.runs: found 'RDA l1=0.2'; runs: "),
        ([{"name": "f", "kind": "size", "split": "dev"}], r"figures\.0\.split: found 'dev'; test splits: test"),
        ([{"name": "f", "kind": "size"}, {"name": "f", "kind": "epochs"}], "two figures have the same name"),
    ],
)
def test_figures_name_what_there_is(small_data: Path, figures: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        check_figures(small.recipe(small_data, **{**SETTINGS, "figures": figures}))


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
