"""A recipe of classification carried out: the files, the numbers in them, and that they are the same again."""

import json
import logging
import xml.dom.minidom
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_classes

from rerank.base.errors import DataError, RecipeError
from rerank.contrib.classification.figures import trace
from rerank.contrib.classification.fitting import fit, fit_baseline, run_spec
from rerank.contrib.classification.sets import Sets
from rerank.contrib.classification.steps import check_parts
from rerank.data.labelled import from_csr
from rerank.models.inspection import shares
from rerank.models.model import Model
from rerank.runs import pipeline
from rerank.runs.pipeline import epoch_lines


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_classes.write_set(tmp_path_factory.mktemp("sets"))


def carried_out(root: Path, directory: Path, **changes: Any) -> dict[str, Any]:
    return pipeline.run(small_classes.recipe(root, **changes), directory)


TWO = [
    {"name": "perceptron"},
    {"name": "PA", "set": {"learner": {"name": "pa", "variant": "1"}, "tune.grid": {"learner.C": [0.01, 1]}}},
]


def test_what_a_single_run_leaves(root: Path, tmp_path: Path) -> None:
    found = carried_out(root, tmp_path / "out")
    assert found == json.loads((tmp_path / "out" / "metrics.json").read_text())
    names = {".rerank-run", "recipe.yaml", "metrics.json", "history.jsonl", "log.txt", "report.html", "predictions"}
    names |= {"model"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    assert (found["schema"], found["task"], found["metric"]) == (1, "classification", "error|v:1")
    (run,) = found["runs"]
    assert set(run["errors"]) == {"last", "average", "voted"}
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
    lines = epoch_lines(tmp_path / "out" / "history.jsonl")
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
    assert not (tmp_path / "model").exists()


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
    model = Model.load(tmp_path / "out" / "model")
    strongest = {share.template: share.strongest[0] for share in shares(model, "average", 1)}
    assert sorted(strongest) == ["a", "b", "c"]
    assert [strongest[name][0] for name in "abc"] == ["a|1", "b|2", "c|3"]
    assert all(weight > 0 for _, weight in strongest.values())


def test_training_alone_leaves_the_model_of_the_whole_set(root: Path, tmp_path: Path) -> None:
    recipe = small_classes.recipe(root)
    pipeline.run(recipe, tmp_path / "both")
    pipeline.run(recipe, tmp_path / "train", tests=False)
    assert not (tmp_path / "train" / "report.html").exists()
    both, alone = (Model.load(tmp_path / name / "model") for name in ("both", "train"))
    assert np.array_equal(both.weights["average"].w, alone.weights["average"].w)
    with pytest.raises(RecipeError, match="a model is of one set, one noise level and one run"):
        pipeline.run(small_classes.recipe(root, runs=TWO), tmp_path / "two", tests=False)


def test_generated_sets_with_seeds_as_draws_and_a_grid(tmp_path: Path) -> None:
    sets = {"small": {"generator": {"name": "winnow", "dimension": 20}}}
    figure = {"name": "over-C", "kind": "parameter", "x": "learner.C", "inverse": True}
    found = carried_out(
        tmp_path,
        tmp_path / "out",
        data={"sets": sets, "bias": 1},
        learner={"name": "pa", "variant": "1"},
        runs=[{"name": "PA", "grid": {"learner.C": [0.001, 0.1]}}, {"name": "flat"}],
        seeds=[1, 2, 3],
        figures=[figure],
        measure="accuracy",
    )
    assert len(found["runs"]) == 3 * 3
    cells = {(cell["run"]): cell for cell in found["tables"]["results"]}
    assert set(cells) == {"PA C=0.001", "PA C=0.1", "flat"}
    means = [1 - run["mean"] for run in found["runs"] if run["name"] == "flat"]
    assert cells["flat"]["mean"] == pytest.approx(np.mean(means))
    assert cells["flat"]["sd"] == pytest.approx(np.std(means, ddof=1))
    svg = (tmp_path / "out" / "figures" / "over-C.svg").read_text()
    xml.dom.minidom.parseString(svg)
    assert "var(" not in svg
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<svg" in page
    assert "flat" in page


def test_figures_of_a_single_pass_and_of_two_runs(root: Path, tmp_path: Path) -> None:
    figures = [
        {"name": "passing", "kind": "online", "every": 30},
        {"name": "learning", "kind": "stream", "every": 30},
        {"name": "both", "kind": "scatter", "x": "perceptron", "y": "PA", "measure": "train_accuracy"},
    ]
    carried_out(root, tmp_path, runs=TWO, data={"noise": [0, 0.2]}, figures=figures)
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    drawn = {f"{name}-noise{level}.svg" for name in ("passing-marked", "learning-marked", "both") for level in (0, 0.2)}
    assert names == drawn


def test_the_curve_over_epochs_ends_where_the_tuned_runs_end(root: Path, tmp_path: Path) -> None:
    figures = [{"name": "epochs", "kind": "epochs", "measure": "error", "runs": ["PA"]}]
    grid = {"tune": {"epochs": 3, "held_out": 0.2}, "training": {"predictor": "last"}}
    found = carried_out(root, tmp_path, runs=TWO, figures=figures, **grid)
    (run,) = (run for run in found["runs"] if run["name"] == "PA")
    ((line,),) = (figure["lines"] for figure in found["figures"])
    assert (line["name"], line["x"]) == ("PA", [1, 2, 3])
    assert line["y"][run["tuned"]["epochs"] - 1] == pytest.approx(100 * run["mean"])
    assert line["spread"][run["tuned"]["epochs"] - 1] == pytest.approx(100 * run["se"])


@pytest.mark.parametrize("kind", ["online", "stream"])
def test_a_single_pass_of_a_tuned_run_has_what_was_tuned(root: Path, tmp_path: Path, kind: str) -> None:
    figures = [{"name": "one", "kind": kind, "every": 30, "measure": "error"}]
    tuned = {"epochs": 1, "held_out": 0.2, "grid": {"learner.C": [0.0625]}}
    set_apart = carried_out(root, tmp_path / "tuned", learner={"name": "pa"}, figures=figures, tune=tuned)
    fixed = carried_out(root, tmp_path / "fixed", learner={"name": "pa", "C": 0.0625}, figures=figures)
    assert set_apart["figures"][0]["lines"] == fixed["figures"][0]["lines"]


def test_online_mistakes_are_those_by_the_true_labels(root: Path) -> None:
    recipe = small_classes.recipe(root, data={"noise": 0.3})
    part = Sets(recipe).draw("marked", 1).split(0, 0.3, 1)
    (spec,) = recipe.expand()
    found = trace(spec, part, seed=1, every=40, test=True)
    # The slow twin: a perceptron on dense vectors, in the same order; a tie is a mistake by the label it is given.
    X = np.zeros((part.train.size, part.train.width))
    for i in range(part.train.size):
        a, b = part.train.rows[i], part.train.rows[i + 1]
        X[i, part.train.columns[a:b]] = part.train.values[a:b]
    given = 2 * part.train.label - 1
    w, mistakes, expected = np.zeros(part.train.width), 0, []
    order = np.random.default_rng([1, 0]).permutation(part.train.size)
    for seen, i in enumerate(order, start=1):
        wrong = given[i] * (w @ X[i]) <= 0
        mistakes += (not wrong) if part.flipped[i] else wrong
        if wrong:
            w += given[i] * X[i]
        if seen % 40 == 0 or seen == order.size:
            expected.append(mistakes)
    assert found.mistakes == expected
    assert found.samples == [40, 80, 90]
    assert len(found.errors) == 3


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
        ({"figures": [{"name": "f", "kind": "parameter", "x": "learner.C"}]}, "no run has a grid over 'learner.C'"),
        ({"figures": [{"name": "f", "kind": "scatter", "x": "a", "y": "b"}]}, "figures.0: found 'a'"),
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
        fit_baseline({"name": "naive-bayes"}, from_csr(np.array([[-1.0], [1.0]]), [0, 1]))


@pytest.mark.parametrize(("bias", "warned"), [(None, True), (1.0, True), (-1.0, False)])
def test_positive_weights_without_a_threshold_are_warned_of(
    root: Path, caplog: pytest.LogCaptureFixture, bias: float | None, warned: bool
) -> None:
    how: dict[str, Any] = {"data": {"bias": bias}, "training": {"vote": False}}
    recipe = small_classes.recipe(root, learner={"name": "uwin", "balanced": False}, **how)
    with caplog.at_level(logging.WARNING, logger="rerank"):
        check_parts(recipe)
    assert ("positive weights have no threshold; set data.bias: -1" in caplog.text) == warned
