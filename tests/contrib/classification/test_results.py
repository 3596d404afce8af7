"""Tables from results: arithmetic of folds and seeds, ranks, the paper's numbers; sections and the report."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_classes
from browser import assert_nothing_overflows, look, needs_browser
from strategies import random_corpus, targets

from rerank.base.errors import RecipeError
from rerank.base.registry import build
from rerank.contrib.classification.fitting import combined, divided, require_rule
from rerank.contrib.classification.recipe import ClassificationRecipe
from rerank.contrib.classification.results import Fit, Result, as_data, cells_of, mean_ranks
from rerank.contrib.classification.steps import tables_of
from rerank.learn.base import learners
from rerank.learn.train import ListProblem, Training, epoch_order, train
from rerank.runs import experiment
from rerank.runs.report.table import Spread

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
    assert cells_of(recipe, one)[0].spread("error") == Spread.of([0.1, 0.3])
    two = results_of(recipe, {("s", 0, "A", 1): [0.1, 0.3], ("s", 0, "A", 2): [0.3, 0.5]})
    assert cells_of(recipe, two)[0].spread("error") == Spread.of([0.2, 0.4])
    assert cells_of(recipe, two)[0].spread("accuracy").mean == pytest.approx(0.7)


def test_ranks_share_equals_and_average_over_sets() -> None:
    recipe = recipe_of()
    errors = {("s", 0.0): (0.1, 0.2, 0.2), ("t", 0.0): (0.3, 0.1, 0.2), ("s", 0.1): (0.5, 0.4, 0.3)}
    folds = {(*place, "ABC"[i], 1): [error] for place, own in errors.items() for i, error in enumerate(own)}
    found = results_of(recipe, folds)
    ranks = mean_ranks(cells_of(recipe, found))
    assert ranks[0.0] == {"A": (1 + 3) / 2, "B": (2.5 + 1) / 2, "C": (2.5 + 2) / 2}
    assert ranks[0.1] == {"A": 3, "B": 2, "C": 1}


def test_the_papers_numbers_stand_behind_ours_and_the_best_stands_out() -> None:
    reported = {"source": "P", "values": {"s": {"A": 16.9}}, "ranks": {0: {"B": 2.5}}, "seconds": {"s": {"B": 3}}}
    recipe = recipe_of(reported=reported)
    data = as_data(recipe, results_of(recipe, {("s", 0, "A", 1): [0.1, 0.3], ("s", 0, "B", 1): [0.1, 0.1]}), {})
    table = tables_of(recipe, data)[0]
    assert table.headings == ["set", "A", "B"]
    assert table.rows == [["s", "20.00 ±10.00 / 16.9", "10.00 ±0.00"]]
    assert table.best == {(0, 2)}
    assert "P" in table.note
    seconds, *others = tables_of(recipe.changed({"tables": ["seconds", "ranks"]}), data)
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
    cells = cells_of(recipe, found)
    assert [(cell.set, cell.run, cell.results[0].spec.point["learner.C"]) for cell in cells] == [
        ("s", "A", 2),
        ("t", "A", 1),
    ]
    assert len(cells_of(recipe.model_copy(update={"best_of_grid": False}), found)) == 4


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


@needs_browser
def test_nothing_overflows(tmp_path: Path) -> None:
    (tmp_path / "sets").mkdir()
    root = small_classes.write_set(tmp_path / "sets", classes=("a", "b", "c"))
    page, _ = page_of(root, tmp_path / "out", runs=TWO)
    assert_nothing_overflows(look(page, tmp_path))


CORPUS = random_corpus(4, lists=31)


def trainings(name: str, count: int, epochs: int = 3) -> list[Training]:
    learner = build(learners, {"name": name}, "learner")
    parts = [(CORPUS.take(place), seed) for place, seed in divided(CORPUS.list_count, count, 5)]
    return [train(learner, ListProblem(part, targets(part), seed), epochs=epochs) for part, seed in parts]


@pytest.mark.parametrize(("name", "rule"), [("perceptron", "mean"), ("rda", "mean"), ("arow", "kl"), ("cw", "kl")])
def test_epochs_by_hand(name: str, rule: str) -> None:
    """Three sections, epoch after epoch, each from its own state."""
    learner: Any = build(learners, {"name": name}, "learner")
    sections = [(CORPUS.take(place), seed) for place, seed in divided(CORPUS.list_count, 3, 5)]
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
    found = combined(trainings(name, 3), rule)
    np.testing.assert_allclose(found["last"].w, last, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found["average"].w, average, rtol=1e-12, atol=1e-15)


def test_one_section_is_plain_training_in_another_order_of_examples() -> None:
    ((place, seed),) = divided(CORPUS.list_count, 1, 5)
    assert (sorted(place.tolist()), seed) == (list(range(31)), 5)
    (alone,) = trainings("perceptron", 1)
    np.testing.assert_array_equal(combined([alone], "mean")["last"].w, alone.weights["last"].w)
    assert len(divided(3, 50, 1)) == 3


@pytest.mark.parametrize(("name", "rule", "message"), [
    ("perceptron", "kl", "keeps no variance of each weight; take mean"), ("maxent", "mean", "finds one optimum")
])  # fmt: skip
def test_learners_that_cannot_be_combined_are_refused(name: str, rule: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        require_rule(build(learners, {"name": name}, "learner"), rule)
