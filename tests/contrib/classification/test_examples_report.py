"""The report of a classification recipe."""

from pathlib import Path
from typing import Any

import pytest
import small_classes
from browser import assert_nothing_overflows, look, needs_browser

from rerank.runs import experiment

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
