"""Recipes of classification, and tables of their results: folds, seeds, ranks, the papers' numbers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_classes
import yaml
from browser import assert_nothing_overflows, look, needs_browser
from commands import Command, refused
from small_classes import examples_of
from strategies import random_corpus, targets

import rerank.contrib.classification.results as classification
from rerank.base.errors import RecipeError
from rerank.base.registry import build
from rerank.contrib.classification.fitting import combine, divide, require_rule
from rerank.contrib.classification.kind import tables_of
from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.contrib.classification.results import Fit, Result, as_data
from rerank.learn.learner import learners
from rerank.learn.train import ListProblem, Training, epoch_order, train
from rerank.metrics.metric import chosen_rows, corpus_oracle, list_statistics, oracles
from rerank.recipes.loading import load_recipe
from rerank.runs import experiment
from rerank.runs.report.table import Spread

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
        ("task: classification\ndata: {sets: {a: {drawm: 3}}}", "data.sets.a.drawm: unknown setting; did you mean dra"),
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
        ({"path": "a", "test": "b"}, "a test file goes with train"),
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


def test_a_quick_run_says_so_beside_its_table(tmp_path: Path, rerank: Command) -> None:
    path, quick = tmp_path / "r.yaml", {"training.epochs": 1, "data.generator.dimension": 10}
    settings = {"task": "classification", "data": {"generator": {"name": "winnow"}}, "quick": quick}
    path.write_text(yaml.safe_dump(settings))
    done = rerank("run", path, "--quick", "-o", tmp_path / "out")
    assert "A quick run, with data.generator.dimension 10, training.epochs 1: these are not" in done.out


def test_folds_of_a_file_with_learners_by_name_are_compared(
    rerank: Command, files: tuple[str, str], tmp_path: Path
) -> None:
    options, runs = ("--set", files[0], "--set", files[1]), []
    for name in ("perceptron", "pa"):
        done = rerank("run", RECIPE, *options, "--set", f"learner.name={name}", "-o", tmp_path / name)
        assert done.code == 0, done.err
        (run,) = json.loads((tmp_path / name / "metrics.json").read_text())["runs"]
        runs.append(run)
        assert run["learner"] == {"name": name}
        for part in (
            f"{100 * run['mean']:.2f} ±{100 * run['se']:.2f}",
            "mean ± standard error over folds",
            str(tmp_path / name / "report.html"),
        ):
            assert part in done.out
    result = rerank("compare", tmp_path / "perceptron", tmp_path / "pa", "--test", "mcnemar", "--predictor", "last")
    assert result.code == 0, result.err
    for run in runs:
        assert f"{100 * run['splits']['test']['last']['error']:.2f}" in result.out


def test_what_is_not_there_is_said(rerank: Command, files: tuple[str, str], tmp_path: Path) -> None:
    refused(rerank("run", RECIPE), "data: found no examples", "--set data.path=FILE")
    extraction = "run", RECIPE, "--until", "extract", "--set", files[0]
    refused(rerank(*extraction, "--workers", 2), "only lists are read by workers")
    refused(rerank("run", RECIPE, "--set", "data.sets=[books]"), "books.svm.gz", "--set data.root=DIR")
    refused(rerank("run", RECIPE, "--set", files[0], "--set", "data.flods=x"), "data.flods", "did you mean folds")
    bad = tmp_path / "bad.svm"
    bad.write_text("+1 1:1\n-1 2:x\n")
    refused(rerank("run", RECIPE, "--set", f"data.path={bad}", "-o", tmp_path / "o"), "bad.svm:2")


METRIC = classification.Classification()


def test_it_is_the_metric_of_a_classification_corpus() -> None:
    corpus = examples_of(np.eye(4), [0, 1, 1, 2]).corpus()
    best = oracles(corpus)
    assert METRIC.gain(corpus.stats, np.ones_like(corpus.stats)).tolist() == corpus.gain.tolist()
    assert not chosen_rows(corpus.stats, best).any()
    assert corpus_oracle(corpus, METRIC).tolist() == best.tolist()
    found = list_statistics(corpus, METRIC)
    assert found["oracle"]["error"] == 0.0
    assert found["base"]["error"] == 0.75
    assert found["anti_oracle"]["error"] == 1.0
    assert found["random"]["error"] == pytest.approx(2 / 3)


RUNS = [{"name": "A"}, {"name": "B"}, {"name": "C"}]


def recipe_of(**changes: Any) -> ClassificationRecipe:
    return small_classes.recipe(Path("."), **({"runs": RUNS} | changes))


def results_of(recipe: ClassificationRecipe, errors: dict[tuple[str, float, str, int], list[float]]) -> list[Result]:
    """Results with given fold errors by set, noise, run (with its point) and seed."""
    specs = {spec.name: spec for spec in recipe.expand()}
    return [
        Result(
            spec=small_classes.placed(specs[run], name, noise),
            seed=seed,
            fits=[Fit(np.arange(0), {}, {"average": error, "last": 1.0}, 0.0, 0.5, 100) for error in folds],
        )
        for (name, noise, run, seed), folds in errors.items()
    ]


def test_folds_of_one_seed_or_means_of_several() -> None:
    recipe = recipe_of()
    one = results_of(recipe, {("s", 0, "A", 1): [0.1, 0.3]})
    assert as_data(recipe, one, {})["results"][0]["values"] == Spread.of([0.1, 0.3]).values
    two = results_of(recipe, {("s", 0, "A", 1): [0.1, 0.3], ("s", 0, "A", 2): [0.3, 0.5]})
    assert as_data(recipe, two, {})["results"][0]["se"] == Spread.of([0.2, 0.4]).error
    assert as_data(recipe.change({"measure": "accuracy"}), two, {})["results"][0]["mean"] == pytest.approx(0.7)


def test_ranks_share_equals_and_average_over_sets() -> None:
    recipe = recipe_of()
    errors = {("s", 0.0): (0.1, 0.2, 0.2), ("t", 0.0): (0.3, 0.1, 0.2), ("s", 0.1): (0.5, 0.4, 0.3)}
    folds = {(*place, "ABC"[i], 1): [error] for place, own in errors.items() for i, error in enumerate(own)}
    found = results_of(recipe, folds)
    expected = [
        {"noise": 0.0, "ranks": {"A": (1 + 3) / 2, "B": (2.5 + 1) / 2, "C": (2.5 + 2) / 2}},
        {"noise": 0.1, "ranks": {"A": 3, "B": 2, "C": 1}},
    ]
    assert as_data(recipe, found, {})["ranks"] == expected
    assert as_data(recipe.change({"measure": "accuracy"}), found, {})["ranks"] == expected


def test_the_papers_numbers_stand_behind_ours_and_the_best_stands_out() -> None:
    reported = {"source": "P", "values": {"s": {"A": 16.9}}, "ranks": {0: {"B": 2.5}}, "seconds": {"s": {"B": 3}}}
    recipe = recipe_of(reported=reported)
    data = as_data(recipe, results_of(recipe, {("s", 0, "A", 1): [0.1, 0.3], ("s", 0, "B", 1): [0.1, 0.1]}), {})
    table = tables_of(recipe, data)[0]
    assert table.headings == ["set", "A", "B"]
    assert table.rows == [["s", "20.00 ±10.00 / 16.9", "10.00 ±0.00"]]
    assert table.best == {(0, 2)}
    assert "P" in table.note
    seconds, *others = tables_of(recipe.change({"tables": ["seconds", "ranks"]}), data)
    assert seconds.rows == [["s", "0.500", "0.500 / 3"]]
    assert others == []  # there are no ranks on a single set
    assert data["results"][0]["reported"] == pytest.approx(0.169)


def test_noise_levels_are_rows_and_the_papers_numbers_are_of_none() -> None:
    recipe = recipe_of(reported={"source": "P", "values": {"s": {"A": 5}}, "ranks": {0.1: {"A": 1.5}}})
    errors = {(name, noise, run, 1): [0.1] for name in "st" for noise in (0.0, 0.1) for run in "AB"}
    data = as_data(recipe, results_of(recipe, errors), {})
    table = tables_of(recipe, data)[0]
    assert table.headings[:2] == ["set", "noise"]
    assert [row[:3] for row in table.rows[:2]] == [["s", "0", "10.00 / 5"], ["s", "0.1", "10.00"]]
    ranks = tables_of(recipe, data)[1]
    assert ranks.rows == [["0", "1.50", "1.50"], ["0.1", "1.50 / 1.5", "1.50"]]


def test_the_best_point_of_a_grid() -> None:
    grid = {"learner.C": [1, 2]}
    learner = {"name": "pa", "variant": "1"}
    recipe = recipe_of(learner=learner, runs=[{"name": "A", "grid": grid}], best_of_grid=True)
    errors = {("s", 0, "A C=1", 1): [0.2], ("s", 0, "A C=2", 1): [0.1], ("t", 0, "A C=1", 1): [0.1]}
    found = results_of(recipe, errors | {("t", 0, "A C=2", 1): [0.3]})
    entries = as_data(recipe, found, {})["results"]
    assert [(entry["set"], entry["run"], entry["point"]["learner.C"]) for entry in entries] == [
        ("s", "A", 2),
        ("t", "A", 1),
    ]
    assert len(as_data(recipe.change({"best_of_grid": False}), found, {})["results"]) == 4


def test_results_that_differ_from_every_baseline_are_marked() -> None:
    recipe = recipe_of(significance={"against": ["B", "C"]})
    errors = {(name, 0, run, 1): [0.1] for name in "stu" for run in "ABC"}
    tests = {
        "s": {"A_vs_B": {"p": 0.0001}, "A_vs_C": {"p": 0.02}, "B_vs_C": {"p": 0.0001}},
        "t": {"A_vs_B": {"p": 0.0001}, "A_vs_C": {"p": 0.0005}},
        "u": {"A_vs_B": {"p": 0.0001}, "A_vs_C": {"p": 0.06}},
    }
    table = tables_of(recipe, as_data(recipe, results_of(recipe, errors), tests))[0]
    assert [row[1:] for row in table.rows] == [
        ["10.00★", "10.00", "10.00"], ["10.00†", "10.00", "10.00"], ["10.00", "10.00", "10.00"],
    ]  # fmt: skip
    assert "differs from each of B, C: ★ p < 0.05, * p < 0.01, † p < 0.001" in table.note


def test_unknown_baselines_are_refused() -> None:
    with pytest.raises(RecipeError, match="no run is named 'D'; the runs are A, B, C"):
        recipe_of(significance={"against": ["D"]}).expand()
    with pytest.raises(RecipeError, match="a baseline with a grid has a result for each point"):
        recipe_of(significance={"against": ["B"]}, grid={"training.epochs": [1, 2]}).expand()


TWO = [{"name": "perceptron"}, {"name": "PA", "set": {"learner": {"name": "pa", "variant": "1"}}}]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_classes.write_set(tmp_path_factory.mktemp("sets"))


def page_of(root: Path, directory: Path, **changes: Any) -> tuple[str, dict[str, Any]]:
    metrics = experiment.run(small_classes.recipe(root, **changes), directory)
    return (directory / "report.html").read_text(), metrics


def test_a_single_run(root: Path, tmp_path: Path) -> None:
    page, metrics = page_of(root, tmp_path / "out")
    error = 100 * metrics["runs"][0]["mean"]
    name = metrics["runs"][0]["name"]
    assert f"On marked, {name} errs on {error:.2f} % of the test examples (mean of 4 folds ±" in page
    assert "; always -1 in 50.00 %." in page
    assert f"against {name}." in page
    assert '<td class="n">–</td>' not in page


@pytest.mark.parametrize("measure", ["error", "accuracy"])
def test_the_best_run_is_that_of_the_table(measure: str, root: Path, tmp_path: Path) -> None:
    """Over all seeds, whatever the first of them says."""
    settings = {"runs": TWO, "seeds": [10, 7, 8], "training": {"epochs": 1}, "measure": measure}
    page, metrics = page_of(root, tmp_path / "out", **settings)
    pairs = [(entry["run"], entry["mean"]) for entry in metrics["tables"]["results"]]
    name, error = min(((run, mean if measure == "error" else 1 - mean) for run, mean in pairs), key=lambda one: one[1])
    first = [run for run in metrics["runs"] if run["seed"] == 10]
    assert min(first, key=lambda run: run["mean"])["name"] != name
    assert f"On marked, {name} errs on {100 * error:.2f} % of the test examples (mean of 3 seeds" in page
    assert f"against {name}." in page


@needs_browser
def test_nothing_overflows(tmp_path: Path) -> None:
    (tmp_path / "sets").mkdir()
    root = small_classes.write_set(tmp_path / "sets", classes=("a", "b", "c"))
    page, _ = page_of(root, tmp_path / "out", runs=TWO)
    assert_nothing_overflows(look(page, tmp_path))


CORPUS = random_corpus(4, lists=31)


def trainings(name: str, count: int, epochs: int = 3) -> list[Training]:
    learner = build(learners, {"name": name}, "learner")
    parts = [(CORPUS.take(place), seed) for place, seed in divide(CORPUS.list_count, count, 5)]
    return [train(learner, ListProblem(part, targets(part), seed), epochs=epochs) for part, seed in parts]


@pytest.mark.parametrize(("name", "rule"), [("perceptron", "mean"), ("rda", "mean"), ("arow", "kl"), ("cw", "kl")])
def test_epochs_by_hand(name: str, rule: str) -> None:
    """Three sections, epoch after epoch, each from its own state."""
    learner: Any = build(learners, {"name": name}, "learner")
    sections = [(CORPUS.take(place), seed) for place, seed in divide(CORPUS.list_count, 3, 5)]
    assert [part.list_count for part, _ in sections] == [10, 10, 11]
    states = [learner.init(CORPUS.width) for _ in sections]
    for epoch in range(3):
        for (part, seed), state in zip(sections, states, strict=True):
            learner.epoch(part, targets(part), epoch_order(part.list_count, seed, epoch, True), state)
    last = np.mean([learner.last(state).w for state in states], axis=0)
    if rule == "kl":
        precisions = [1.0 / learner.variances(state) for state in states]
        last = sum(p * learner.last(state).w for p, state in zip(precisions, states, strict=True)) / sum(precisions)
    average = sum(len_ * learner.average(s).w for len_, s in zip((10, 10, 11), states, strict=True)) / 31
    found = combine(trainings(name, 3), rule)
    np.testing.assert_allclose(found["last"].w, last, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found["average"].w, average, rtol=1e-12, atol=1e-15)


def test_one_section_is_plain_training_in_another_order_of_examples() -> None:
    ((place, seed),) = divide(CORPUS.list_count, 1, 5)
    assert (sorted(place.tolist()), seed) == (list(range(31)), 5)
    (alone,) = trainings("perceptron", 1)
    np.testing.assert_array_equal(combine([alone], "mean")["last"].w, alone.weights["last"].w)
    assert len(divide(3, 50, 1)) == 3


@pytest.mark.parametrize(("name", "rule", "message"), [
    ("perceptron", "kl", "keeps no variance of each weight; take mean"), ("maxent", "mean", "finds one optimum")
])  # fmt: skip
def test_learners_that_cannot_be_combined_are_refused(name: str, rule: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        require_rule(build(learners, {"name": name}, "learner"), rule)
