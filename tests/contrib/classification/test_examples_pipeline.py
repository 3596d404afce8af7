"""A recipe of classification carried out and tuned: its files, its numbers, and that they are the same again."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_classes
from small_classes import examples_of

from rerank.base.errors import DataError, RecipeError
from rerank.contrib.classification import fitting
from rerank.contrib.classification.fitting import best_point, fit, fit_baseline, held_out_errors, points_of, run_spec
from rerank.contrib.classification.recipe import Spec
from rerank.contrib.classification.sets import Sets
from rerank.data.labelled import Labelled
from rerank.recipes.settings import Settings
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
        assert np.array_equal(result.classes[held], done.predictions["average"])


@pytest.mark.parametrize("change", [{"data": {"noise": [0, 0.2]}, "seeds": [1, 2]}, {"tune": {"epochs": 2}}])
def test_the_same_seed_gives_the_same_bits(root: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    one, two = (carried_out(root, tmp_path / name, runs=TWO, **change) for name in ("one", "two"))
    assert small_classes.steady(one) == small_classes.steady(two)
    other = carried_out(root, tmp_path / "seed", runs=TWO, **(change | {"seed": 5, "seeds": []}))
    assert small_classes.steady(other["runs"]) != small_classes.steady(one["runs"])


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
def test_a_wrong_recipe_is_refused_first(root: Path, tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError) as raised:
        carried_out(root, tmp_path / "out", **change)
    assert message in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_a_baseline_that_cannot_be_fitted_says_so() -> None:
    pytest.importorskip("sklearn")
    with pytest.raises(DataError, match="naive-bayes cannot be fitted"):
        fit_baseline({"name": "naive-bayes"}, examples_of(np.array([[-1.0], [1.0]]), [0, 1]))


EXAMPLES = examples_of(np.eye(20), np.arange(20) % 2)


def spec_of(**tune_settings: Any) -> Spec:
    learner = {"name": "pa", "variant": "1"}
    settings = {"held_out": 0.2, **tune_settings}
    return small_classes.recipe(Path("."), learner=learner, tune=settings).expand()[0]


def tune(spec: Spec, noisy: Labelled, clean: Labelled) -> Settings:
    return best_point(spec, [held_out_errors(spec.at(point), noisy, clean) for point in points_of(spec)])


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


def over_folds(monkeypatch: pytest.MonkeyPatch, errors: dict[float, list[list[float]]], **settings: Any) -> Settings:
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
    assert (found["epochs"], found["held_out_error"]) == (2, pytest.approx(0.25))
    assert found.keys() == set(fitting.TUNING_KEYS)  # no point
    assert found["standard_error"] == pytest.approx(np.std([0.05, -0.05, 0.1, 0, 0], ddof=1) / np.sqrt(5))
    better = [[0.5, 0.28], [0.5, 0.18], [0.5, 0.23], [0.5, 0.23], [0.5, 0.23]]  # by .02 in every fold
    found = over_folds(monkeypatch, {0.5: USUAL, 1: better}, grid={"learner.C": [1]})
    assert (found["learner.C"], found["epochs"]) == (1, 2)
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
