"""The line of dense columns alone: which recipes have it, what it holds, and that it is fitted once a recipe."""

import json
from pathlib import Path

import numpy as np
import pytest
import small_rankings
from rich.console import Console

from rerank.base import usage
from rerank.base.errors import RecipeError
from rerank.data.corpus import free_values
from rerank.learn import folds
from rerank.learn.scoring import choices
from rerank.metrics.gain import Gain
from rerank.runs import experiment, list_kind
from rerank.runs.combination import dense_line
from rerank.runs.compared import Compared, compare_runs
from rerank.runs.corpora import Data
from rerank.runs.report.results import results_table
from rerank.runs.report.table import plain_text

METRIC = Gain()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_rankings.write_task(tmp_path_factory.mktemp("rankings"))


def loaded(root: Path, workspace: Path, **changes: object) -> Data:
    return Data.load(small_rankings.recipe(root, **changes), workspace / "rankings" / "any", ("test",))


def test_a_run_shows_the_line(root: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs and two seeds: fitted once, shown once, in the table, the report, and what compare takes."""
    fits = []
    monkeypatch.setattr(list_kind, "dense_line", lambda *given: fits.append(1) or dense_line(*given))
    runs = [{"name": "vrda"}, {"name": "perceptron", "set": {"learner": {"name": "perceptron"}}}]
    directory = workspace / "rankings" / "shown"
    found = experiment.run(small_rankings.recipe(root, runs=runs, seeds=[1, 2]), directory)
    assert fits == [1]
    own = found["splits"]["test"]["logistic"]
    assert found["splits"]["test"]["base"]["gain"] < own["gain"] <= found["splits"]["test"]["oracle"]["gain"]
    assert found["significance"]["test"]["logistic_vs_base"]["difference"] > 0
    assert set(found["logistic"]["weights"]) == {"base", "Dense|reward", "Dense|length"}
    assert found["logistic"]["weights"]["Dense|reward"] > 0
    table = plain_text(results_table(found, "test").rich())
    assert table.count("dense columns alone") == 1
    assert "dense columns alone" in (directory / "report.html").read_text()
    stored = Compared.of_run(directory, "test")
    assert stored.rows["logistic"].sum() / stored.reference.sum() == pytest.approx(own["gain"])
    ((_, same, _),) = compare_runs(directory, directory, "logistic", "paired_bootstrap", 100, 1)
    assert same.reports()["A"]["gain"] == pytest.approx(own["gain"])
    console = Console(width=80)
    with console.capture() as captured:
        console.print(results_table(found, "test", narrow=True).rich(narrow=True))
    assert "…" not in captured.get()


def test_it_takes_the_last_lists(root: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as are enough: those before them change nothing."""
    monkeypatch.setattr(folds, "ENOUGH", 40)
    for size in (100.0, 0.01):
        data = loaded(root, workspace, data={"shard_size": size})
        line = dense_line(data.training.corpus, data.table, METRIC)
        alone = dense_line(data.training.corpus.slice(80, 120), data.table, METRIC)
        np.testing.assert_array_equal(line[0].w, alone[0].w)
        assert line[1] == alone[1]
        assert line[1]["lists"] == 40


@pytest.mark.parametrize(
    ("learner", "tests", "said"),
    [
        ({"name": "vrda"}, True, "features.templates: the regression on dense columns alone takes"),
        ({"name": "lambdamart"}, False, "training.share: lambdamart with 960 candidates at once takes"),
        ({"name": "maxent"}, False, "training.share: maxent with 960 candidates at once takes"),
    ],
)
def test_what_cannot_fit_is_refused_before_it_starts(
    learner: dict[str, str], tests: bool, said: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = small_rankings.recipe(root, learner=learner, features={"templates": ["Dense", "TargetNGram"]})
    monkeypatch.setattr(usage, "allowed", lambda: 1000)
    with pytest.raises(RecipeError, match=f"^{said}"):
        experiment.run(made, tmp_path / "run", tests=tests)


def test_in_parts_and_in_one_part_it_is_the_same(root: Path, workspace: Path) -> None:
    one, several = (loaded(root, workspace, data={"shard_size": size}) for size in (100.0, 0.01))
    found = [dense_line(data.training.corpus, data.table, METRIC) for data in (one, several)]
    assert several.training.corpus.cuts.size > 2
    for each in found:
        np.testing.assert_allclose(each[0].w, found[0][0].w, rtol=1e-6)
    chosen = choices(one.others["test"].corpus, found[0][0])
    assert np.array_equal(chosen, choices(several.others["test"].corpus, found[1][0]))


def test_with_text_features_it_sees_only_dense_columns(root: Path, workspace: Path) -> None:
    data = loaded(root, workspace, features={"set": "text", "templates": []})
    found = dense_line(data.training.corpus, data.table, METRIC)
    assert np.count_nonzero(found[0].w) == data.training.corpus.free == 3 < data.training.corpus.width
    part = data.others["test"].corpus
    scores = found[0].base * part.base + free_values(part) @ found[0].w[:3]
    best = [int(a + np.argmax(scores[a:b])) for a, b in zip(part.lists[:-1], part.lists[1:], strict=True)]
    assert choices(part, found[0]).tolist() == best


def test_without_dense_columns_there_is_no_line(tmp_path: Path, workspace: Path, small_run: Path) -> None:
    root = small_rankings.write_task(tmp_path, dense=False)
    words = {"set": None, "templates": ["TargetNGram"]}
    found = experiment.run(small_rankings.recipe(root, features=words), workspace / "rankings" / "none")
    assert found["logistic"] is None
    assert "logistic" not in found["splits"]["test"]
    assert "dense columns alone" not in plain_text(results_table(found, "test").rich())
    assert "logistic" not in json.loads((small_run / "metrics.json").read_text())["splits"]["test"]
