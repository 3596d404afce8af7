"""A recipe of classification carried out: the files, the numbers in them, and that they are the same again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_classes
from small_classes import examples_of

from rerank.base.errors import DataError, RecipeError
from rerank.contrib.classification.fitting import fit, fit_baseline, run_spec
from rerank.contrib.classification.sets import Sets
from rerank.runs import experiment


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_classes.write_set(tmp_path_factory.mktemp("sets"))


def carried_out(root: Path, directory: Path, **changes: Any) -> dict[str, Any]:
    return experiment.run(small_classes.recipe(root, **changes), directory)


TWO = [
    {"name": "perceptron"},
    {"name": "PA", "set": {"learner": {"name": "pa", "variant": "1"}, "tune.grid": {"learner.C": [0.01, 1]}}},
]


def test_what_a_single_run_leaves(root: Path, tmp_path: Path) -> None:
    found = carried_out(root, tmp_path / "out")
    assert found == json.loads((tmp_path / "out" / "metrics.json").read_text())
    names = {".rerank-run", "recipe.yaml", "metrics.json", "history.jsonl", "log.txt", "report.html", "predictions"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    assert (found["schema"], found["task"], found["metric"]) == (1, "classification", "error|v:1")
    (run,) = found["runs"]
    assert set(run["errors"]) == {"last", "average"}
    assert all(len(errors) == small_classes.FOLDS for errors in run["errors"].values())
    for name, errors in run["errors"].items():
        report = found["splits"]["test"][name]
        assert report["error"] == pytest.approx(np.mean(errors))
        assert report["accuracy"] == pytest.approx(1 - report["error"])
    assert run["mean"] == pytest.approx(np.mean(run["errors"]["average"]))
    assert run["se"] == pytest.approx(np.std(run["errors"]["average"], ddof=1) / 2)
    assert run["mean"] < 0.3
    counts = found["corpora"]["marked"]
    assert (counts["examples"], counts["classes"], counts["splits"]) == (120, {"-1": 60, "1": 60}, 4)
    lines = small.epoch_lines(tmp_path / "out" / "history.jsonl")
    assert [(line["fold"], line["epoch"]) for line in lines] == [(f, e) for f in range(4) for e in (1, 2)]


def test_errors_are_those_of_the_predictions(root: Path, tmp_path: Path) -> None:
    found = carried_out(root, tmp_path, runs=TWO, tune={"epochs": 2, "held_out": 0.2})
    lines = [line.split("\t") for line in (tmp_path / "predictions" / "marked.tsv").read_text().splitlines()]
    assert lines[0] == ["example", "fold", "label", "perceptron", "PA"]
    rows = np.array(lines[1:])
    for run, column in zip(found["runs"], (3, 4), strict=True):
        folds = [float(np.mean((rows[:, 2] != rows[:, column])[rows[:, 1] == str(k)])) for k in range(4)]
        assert run["errors"]["average"] == pytest.approx(folds)
    test = found["significance"]["marked"]["perceptron_vs_PA"]
    right = [rows[:, 2] == rows[:, column] for column in (3, 4)]
    assert test["test"] == "mcnemar"
    assert test["difference"] == pytest.approx((np.sum(right[0]) - np.sum(right[1])) / len(rows))
    assert found["runs"][1]["tuned"]["learner.C"] in (0.01, 1)
    assert found["splits"] == {}


def test_a_fold_is_a_fit_of_the_rest(root: Path) -> None:
    recipe = small_classes.recipe(root, data={"noise": 0.2})
    examples = Sets(recipe).draw("marked", 1)
    (spec,) = recipe.expand()
    (result,) = run_spec(spec, lambda _: examples)
    folds = np.arange(120) // 2 % 4
    noisy = examples.examples.flip(0.2, 1)
    for number in range(4):
        held = np.flatnonzero(folds == number)
        done = fit(spec, noisy.take(np.flatnonzero(folds != number)), examples.examples.take(held), seed=1)
        assert np.array_equal(result.predicted[held], done.predictions["average"])


@pytest.mark.parametrize("change", [{"data": {"noise": [0, 0.2]}, "seeds": [1, 2]}, {"tune": {"epochs": 2}}])
def test_the_same_seed_gives_the_same_bits(root: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    one, two = (carried_out(root, tmp_path / name, runs=TWO, **change) for name in ("one", "two"))
    assert small_classes.steady(one) == small_classes.steady(two)
    other = carried_out(root, tmp_path / "seed", runs=TWO, **(change | {"seed": 5, "seeds": []}))
    assert small_classes.steady(other["runs"]) != small_classes.steady(one["runs"])


def test_three_classes(tmp_path: Path) -> None:
    root = small_classes.write_set(tmp_path, classes=("a", "b", "c"))
    found = carried_out(root, tmp_path / "out", training={"epochs": 4})
    assert found["runs"][0]["mean"] < 0.4
    assert found["corpora"]["marked"]["classes"] == {"a": 40, "b": 40, "c": 40}


def test_training_alone_leaves_nothing_and_is_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="leaves results and no model; run its tests too"):
        experiment.run(small_classes.recipe(root), tmp_path / "two", tests=False)


def test_generated_sets_with_seeds_as_draws_and_a_grid(tmp_path: Path) -> None:
    sets = {"small": {"generator": {"name": "winnow", "dimension": 20}}}
    found = carried_out(
        tmp_path,
        tmp_path / "out",
        data={"sets": sets, "bias": 1},
        learner={"name": "pa", "variant": "1"},
        runs=[{"name": "PA", "grid": {"learner.C": [0.001, 0.1]}}, {"name": "flat"}],
        seeds=[1, 2, 3],
        measure="accuracy",
    )
    assert len(found["runs"]) == 3 * 3
    cells = {(cell["run"]): cell for cell in found["tables"]["results"]}
    assert set(cells) == {"PA C=0.001", "PA C=0.1", "flat"}
    means = [1 - run["mean"] for run in found["runs"] if run["name"] == "flat"]
    assert cells["flat"]["mean"] == pytest.approx(np.mean(means))
    assert cells["flat"]["sd"] == pytest.approx(np.std(means, ddof=1))
    assert "flat" in (tmp_path / "out" / "report.html").read_text()


def test_baselines(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    tune = {"grid": {"baseline.C": [0.1, 1]}, "held_out": 0.2}
    runs = [
        {"name": "nb", "baseline": {"name": "naive-bayes"}},
        {"name": "me", "baseline": {"name": "maxent"}, "set": {"tune": tune}},
        {"name": "svm", "baseline": {"name": "svm", "C": 0.5}},
    ]
    found = carried_out(root, tmp_path, runs=runs)
    assert all(run["mean"] < 0.2 for run in found["runs"])
    assert found["runs"][1]["tuned"]["baseline.C"] in (0.1, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learner": {"name": "perceptrn"}}, "learner.name: unknown learner 'perceptrn'"),
        ({"learner": {"name": "pa", "D": 1}}, "learner: learner pa has no setting 'D'"),
        ({"metric": {"name": "parseval"}}, "metric: found"),
        ({"runs": [{"name": "x", "baseline": {"name": "tree"}}]}, "runs.x.baseline.name: found 'tree'"),
        ({"tune": {"grid": {"learner.z": [1]}}}, "has no setting 'z'"),
    ],
)
def test_a_wrong_recipe_is_refused_before_anything_is_written(
    root: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(RecipeError) as raised:
        carried_out(root, tmp_path / "out", **change)
    assert message in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_a_baseline_that_cannot_be_fitted_says_so() -> None:
    pytest.importorskip("sklearn")
    with pytest.raises(DataError, match="naive-bayes cannot be fitted"):
        fit_baseline({"name": "naive-bayes"}, examples_of(np.array([[-1.0], [1.0]]), [0, 1]))
