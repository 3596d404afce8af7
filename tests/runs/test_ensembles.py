"""Ensembles, and the line of dense columns."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
import small_rankings
from rich.console import Console

import rerank
from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus, free_values
from rerank.extraction.extraction import extract_split, extract_training
from rerank.learn import folds
from rerank.learn.scoring import choices, scores
from rerank.metrics.gain import Gain
from rerank.models.model import Model
from rerank.runs import experiment, list_kind
from rerank.runs.combination import DENSE_LINE, dense_line, members, train_ensemble
from rerank.runs.compared import Compared, compare_runs
from rerank.runs.corpora import Data
from rerank.runs.report.results import results_table
from rerank.runs.report.table import plain_text
from rerank.runs.training import RunTask, train_run
from rerank.storage.streams import Inputs

LEARNERS = [{"name": "perceptron", "base": 0.5}, {"name": "vrda", "base": 2.0}]


def with_ensemble(root: Path, learner: Any = None, **settings: Any) -> Any:
    training = {"epochs": 2, "vote": False, "ensemble": settings}
    return small.recipe(root, training=training, learner=learner or LEARNERS[0])


@pytest.fixture(scope="module")
def corpora(small_data: Path) -> tuple[Corpus, Corpus]:
    recipe = small.recipe(small_data)
    training, table = extract_training(recipe)
    return training.corpus, extract_split(recipe, "dev", table).corpus


def test_weights_are_summed_in_units_of_their_scores(small_data: Path, corpora: tuple[Corpus, Corpus]) -> None:
    train, dev = corpora
    recipe = with_ensemble(small_data, seeds=2)
    every = members(recipe)
    assert [each.seed for each in every] == [1, 1001]
    found = train_ensemble(RunTask("all", recipe, train, dev))
    lists = dev
    for kind in ("last", "average"):
        w, base = np.zeros(train.width), 0.0
        for single in every:
            own = train_run(RunTask("one", single, train, dev)).weights[kind]
            own_scores = scores(lists, own)
            apart = [part - part.mean() for part in np.split(own_scores, lists.lists[1:-1])]
            deviation = np.sqrt(np.mean(np.concatenate(apart) ** 2))
            w, base = w + own.w / deviation, base + own.base / deviation
        np.testing.assert_allclose(found.weights[kind].w, w, rtol=1e-9, atol=1e-12)
        assert found.weights[kind].base == pytest.approx(base, rel=1e-9)
    assert len(found.training["ensemble"]["members"]) == 2


def test_an_ensemble_of_one_is_that_one(small_data: Path, corpora: tuple[Corpus, Corpus]) -> None:
    train, dev = corpora
    for learner in (LEARNERS[1], {"name": "perceptron"}):
        alone = train_run(RunTask("one", small.recipe(small_data, training={"epochs": 2}, learner=learner), train, dev))
        found = train_ensemble(RunTask("all", with_ensemble(small_data, learner, seeds=1), train, dev))
        assert choices(dev, found.weights["average"]).tolist() == choices(dev, alone.weights["average"]).tolist()
        assert found.dev_score == pytest.approx(alone.dev_score, abs=1e-12)


def test_all_members_see_the_same_share_of_the_lists(small_data: Path, corpora: tuple[Corpus, Corpus]) -> None:
    train, dev = corpora
    recipe = with_ensemble(small_data, seeds=2)
    found = train_ensemble(RunTask("all", recipe.change({"training.share": 0.25}), train, dev))
    expected = train_ensemble(RunTask("all", recipe, train.take_share(0.25, recipe.seed), dev))
    for kind, weights in expected.weights.items():
        assert found.weights[kind].w.tobytes() == weights.w.tobytes()
    assert found.training["lists"] == expected.training["lists"]


def test_the_strongest_contributions_stay(small_data: Path, corpora: tuple[Corpus, Corpus]) -> None:
    train, dev = corpora
    dense = train_ensemble(RunTask("all", with_ensemble(small_data, seeds=2), train, dev)).weights["average"].w
    found = train_ensemble(RunTask("all", with_ensemble(small_data, seeds=2, keep=25), train, dev))
    corpus = train
    norms = np.sqrt(np.bincount(corpus.columns, weights=np.square(corpus.values, dtype=float), minlength=train.width))
    size = np.abs(dense) * norms
    kept = np.flatnonzero(found.weights["average"].w)
    assert kept.size == 25 == found.training["nonzero_weights"]
    assert size[kept].min() >= np.sort(size)[-25] - 1e-12
    np.testing.assert_array_equal(found.weights["average"].w[kept], dense[kept])


def test_the_model_of_an_ensemble_is_one_vector(small_data: Path, workspace: Path) -> None:
    recipe = with_ensemble(small_data, {"name": "perceptron"}, seeds=2, keep=0.5)
    experiment.run(recipe, workspace / "ensemble")
    metrics = small.results(workspace / "ensemble")
    model = Model.load(workspace / "ensemble" / "model")
    assert np.count_nonzero(model.weights["average"].w) == metrics["training"]["nonzero_weights"]
    assert model.about["dev"]["score"] == metrics["training"]["ensemble"]["dev"] == metrics["runs"][0]["dev"]
    lists = rerank.read(small_data / "test.nbest.gz", format="charniak", references=small_data / "test.gold.gz")
    found = rerank.evaluate(rerank.load(workspace / "ensemble" / "model"), lists)
    assert found.score == pytest.approx(metrics["splits"]["test"][metrics["predictor"]]["f1"], abs=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": {"dev": None}, "learner": {"name": "perceptron", "base": 1}}, r"training\.ensemble: .* name data"),
        ({"training": {"vote": True}}, r"training\.vote: an ensemble has no such training"),
    ],
)
def test_ensembles_that_cannot_be(small_data: Path, changes: dict[str, Any], message: str) -> None:
    training = {"vote": False, "ensemble": {"seeds": 2}} | changes.pop("training", {})
    with Inputs() as inputs, pytest.raises(RecipeError, match=message):
        experiment.check(small.recipe(small_data, training=training, **changes), inputs)


METRIC = Gain()


def loaded(root: Path, workspace: Path, **changes: object) -> Data:
    return Data.load(small_rankings.recipe(root, **changes), workspace / "rankings" / "any", ("test",))


def test_a_run_shows_the_line(texts_data: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs and two seeds: fitted once, shown once, in the table, the report, and what compare takes."""
    fits = []
    monkeypatch.setattr(list_kind, "dense_line", lambda *given: fits.append(1) or dense_line(*given))
    runs = [{"name": "vrda"}, {"name": "perceptron", "set": {"learner": {"name": "perceptron"}}}]
    directory = workspace / "rankings" / "shown"
    found = experiment.run(small_rankings.recipe(texts_data, runs=runs, seeds=[1, 2]), directory)
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
    ((_, same, _),) = compare_runs(directory, directory, "logistic", test="paired_bootstrap", samples=100, seed=1)
    assert same.reports()["A"]["gain"] == pytest.approx(own["gain"])
    console = Console(width=80)
    with console.capture() as captured:
        console.print(results_table(found, "test", narrow=True).rich(narrow=True))
    assert "…" not in captured.get()


def test_it_takes_the_last_lists(texts_data: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as are enough: those before them change nothing."""
    monkeypatch.setattr(folds, "MAX_LISTS_FOR_FOLDS", 40)
    for size in (100.0, 0.01):
        data = loaded(texts_data, workspace, data={"shard_size": size})
        line = dense_line(data.training.corpus, data.table, METRIC)
        alone = dense_line(data.training.corpus.slice(80, 120), data.table, METRIC)
        np.testing.assert_array_equal(line[0][DENSE_LINE].w, alone[0][DENSE_LINE].w)
        assert line[1] == alone[1]
        assert line[1]["lists"] == 40


def test_with_text_features_it_sees_only_dense_columns(texts_data: Path, workspace: Path) -> None:
    data = loaded(texts_data, workspace, features={"set": "text", "templates": []})
    found = dense_line(data.training.corpus, data.table, METRIC)
    assert np.count_nonzero(found[0][DENSE_LINE].w) == data.training.corpus.free == 3 < data.training.corpus.width
    part = data.others["test"].corpus
    scores = found[0][DENSE_LINE].base * part.base + free_values(part) @ found[0][DENSE_LINE].w[:3]
    best = [int(a + np.argmax(scores[a:b])) for a, b in zip(part.lists[:-1], part.lists[1:], strict=True)]
    assert choices(part, found[0][DENSE_LINE]).tolist() == best


def test_without_dense_columns_there_is_no_line(tmp_path: Path, workspace: Path, small_run: Path) -> None:
    root = small_rankings.write_task(tmp_path, dense=False)
    words = {"set": None, "templates": ["TargetNGram"]}
    found = experiment.run(small_rankings.recipe(root, features=words), workspace / "rankings" / "none")
    assert found["logistic"] is None
    assert "logistic" not in found["splits"]["test"]
    assert "dense columns alone" not in plain_text(results_table(found, "test").rich())
    assert "logistic" not in json.loads((small_run / "metrics.json").read_text())["splits"]["test"]
