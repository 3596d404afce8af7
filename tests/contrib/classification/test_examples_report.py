"""The report of a classification recipe: headline, confusions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_classes
from browser import assert_nothing_overflows, look, needs_browser

from rerank.contrib.classification.page import CLASSES, confusion_table
from rerank.contrib.classification.results import Result
from rerank.runs import pipeline

TWO = [{"name": "perceptron"}, {"name": "PA", "set": {"learner": {"name": "pa", "variant": "1"}}}]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_classes.write_set(tmp_path_factory.mktemp("sets"))


def page_of(root: Path, directory: Path, **changes: Any) -> tuple[str, dict[str, Any]]:
    metrics = pipeline.run(small_classes.recipe(root, **changes), directory)
    return (directory / "report.html").read_text(), metrics


def result(label: np.ndarray, predicted: np.ndarray, mistakes: list[list[int]], errors: list[float]) -> Result:
    recipe = small_classes.recipe(Path("unused"))
    (spec,) = recipe.expand()
    by = {"average": errors}
    return Result(spec, 1, by, errors, [0.1], [1], mistakes, {"average": predicted}, label.size)


def test_a_single_run(root: Path, tmp_path: Path) -> None:
    page, metrics = page_of(root, tmp_path / "out")
    error = 100 * metrics["runs"][0]["mean"]
    name = metrics["runs"][0]["name"]
    assert f"On marked, {name} errs on {error:.2f} % of the test examples (mean of 4 folds ±" in page
    assert "to say -1 always would be wrong in 50.00 %." in page
    assert "Confusion matrix" in page
    assert '<td class="n">–</td>' not in page


def test_two_runs_are_compared(root: Path, tmp_path: Path) -> None:
    page, metrics = page_of(root, tmp_path / "out", runs=TWO)
    best, second = sorted(metrics["runs"], key=lambda run: run["mean"])
    assert f"Next is {second['name']} with {100 * second['mean']:.2f} %: the first is " in page
    assert f"On marked, {best['name']} errs on" in page


def test_confusions() -> None:
    label, predicted = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 1, 1, 1, 0, 2])
    table = confusion_table(result(label, predicted, [[1]], [0.5]), label, ["a", "b", "c"])
    assert table.headings == ["true class", "as a", "as b", "as c", "right"]
    assert table.rows[0] == ["a", "1", "2", "0", "33.3 %"]
    assert table.best == {(0, 1), (1, 2), (2, 3)}


def test_many_classes_show_their_commonest_confusions() -> None:
    k = CLASSES + 3
    label = np.repeat(np.arange(k), 4)
    predicted = label.copy()
    predicted[:3], predicted[4] = 7, 9
    table = confusion_table(result(label, predicted, [[1]], [0.5]), label, [f"c{i}" for i in range(k)])
    assert table.rows == [["c0", "c7", "3", "75.0 %"], ["c1", "c9", "1", "25.0 %"]]


@needs_browser
def test_nothing_overflows(tmp_path: Path) -> None:
    (tmp_path / "sets").mkdir()
    root = small_classes.write_set(tmp_path / "sets", classes=("a", "b", "c"))
    page, _ = page_of(root, tmp_path / "out", runs=TWO)
    assert_nothing_overflows(look(page, tmp_path))
