"""Training lists that are set apart, and the choice of settings on them."""

import json
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import small
import yaml
from commands import Command, failed

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.extraction.kinds import metric_of
from rerank.learn.scoring import corpus_score
from rerank.metrics.metric import chosen_rows
from rerank.recipes.loading import load_recipe
from rerank.recipes.settings import validate
from rerank.runs import experiment
from rerank.runs.corpora import Data
from rerank.runs.report.results import blind_note, choice_table
from rerank.runs.run import choose
from rerank.runs.training import RunTask, train_run

GRID = {"grid": {"learner.l1": [0.0, 0.02, 0.3]}, "learner": {"name": "vrda"}, "seeds": [1, 2]}
APART = 0.3


def recipe(root: Path, **changes: Any) -> Any:
    return validate(type(small.recipe(root)), small.settings(root, **changes))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"holdout": 1}, "below 1"),
        ({"holdout": 0.2, "tests": ["holdout"]}, "another name"),
        ({"holdout": 0.2, "train": ["holdout", "web"]}, "another name"),
    ],
)
def test_lists_that_cannot_be_set_apart_are_refused(small_data: Path, data: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        recipe(small_data, data=data)


def test_lists_set_apart_are_those_of_the_training_split(small_data: Path, workspace: Path) -> None:
    plain = Data.load(recipe(small_data), workspace / "plain", ())
    data = Data.load(recipe(small_data, data={"holdout": APART}), workspace / "apart", ("holdout",))
    kept, held = data.training, data.others["holdout"]
    assert sorted(kept.ids + held.ids) == sorted(plain.training.ids)
    assert (len(kept.ids), len(held.ids)) == (105, 45)
    for part in (kept, held):
        places = [plain.training.ids.index(name) for name in part.ids]
        same = plain.training.corpus.take(places)
        assert all(np.array_equal(getattr(part.corpus, key), getattr(same, key)) for key in ("lists", "columns"))
    assert len({plain.training.key, kept.key, held.key}) == 3


def test_everything_can_be_chosen_on_the_lists_set_apart(small_data: Path, workspace: Path) -> None:
    settings = recipe(small_data, data={"holdout": APART, "dev": "holdout"}, learner={"name": "perceptron"})
    found = experiment.run(settings, workspace / "all-apart")
    assert found["dev_split"] == "holdout"
    assert found["blind"]["chosen_on"] == {"train": ["weights"], "holdout": ["epochs", "base weight", "decoding"]}
    assert found["blind"]["splits"] == ["test"]
    data = Data.load(settings, workspace / "all-apart", ("holdout",))
    run = SimpleNamespace(**found["training"])
    best = run.decode["best"]
    assert found["training"]["lists"] == data.training.corpus.list_count
    assert max(best, *(run.decode[kind]["dev"] for kind in ("mbr", "fuse"))) <= 1
    report = (workspace / "all-apart" / "report.html").read_text()
    assert "Blind figures: the chosen settings on test." in report


def test_dev_is_not_blind_as_a_test_split(small_data: Path, workspace: Path) -> None:
    found = experiment.run(recipe(small_data, data={"tests": ["dev"]}), workspace / "dev-seen")
    assert found["blind"]["splits"] == []
    assert "No figure is blind" in blind_note(found)
    assert found["choice"] == {}


@pytest.fixture(scope="module")
def tuned(small_data: Path, workspace: Path) -> tuple[Path, dict[str, Any]]:
    """A choice among three strengths of a penalty; tests do not change it."""
    directory = workspace / "tuned-grid"
    return directory, experiment.run(recipe(small_data, data={"holdout": APART}, **GRID), directory, tests=False)


def test_settings_are_compared_on_lists_set_apart(tuned: tuple[Path, dict[str, Any]], small_data: Path) -> None:
    directory, found = tuned
    settings = recipe(small_data, data={"holdout": APART}, **GRID)
    data, metric = Data.load(settings, directory, ("dev", "holdout")), metric_of(settings)
    assert "test" not in found["corpora"]
    points = found["choice"]["points"]
    assert [point["seeds"] for point in points] == [2, 2, 2]
    assert found["choice"]["lists"] == data.others["holdout"].corpus.list_count
    best = max(points, key=lambda point: point["score"])
    assert found["choice"]["best"] == best["name"]
    for point in points:
        assert point["difference"] == pytest.approx(point["score"] - best["score"])
        assert point["near"] == (point["difference"] >= -point["error"])
        assert point["interval"][0] < point["score"] < point["interval"][1]
    near = [point for point in points if point["near"]]
    fewest = min(point["nonzero_weights"] for point in near)
    (chosen,) = [point for point in points if point["name"] == found["choice"]["chosen"]]
    assert (chosen["nonzero_weights"], chosen["near"]) == (fewest, True)
    assert found["chosen"]["name"] == chosen["name"]
    on_dev = ["epochs", "base weight", "decoding", "seed"]
    assert found["blind"]["chosen_on"] == {"train": ["weights"], "dev": on_dev, "holdout": ["settings"]}
    own = [run for run in found["runs"] if run["name"] == chosen["name"]]
    assert found["chosen"]["seed"] == max(own, key=lambda run: run["dev"])["seed"]
    single = [each.recipe for each in settings.expand() if each.name == chosen["name"]]
    trained = [train_run(RunTask("", each, data.training.corpus, data.others["dev"].corpus)) for each in single]
    scores = [corpus_score(data.others["holdout"].corpus, run.weights["average"], metric) for run in trained]
    assert chosen["score"] == pytest.approx(float(np.mean(scores)), abs=1e-12)


def fake(name: str, choice: np.ndarray, weights: int, dev: float) -> Any:
    def scores(corpus: Corpus) -> np.ndarray:
        return np.isin(np.arange(corpus.candidate_count), choice).astype(np.float64)

    return SimpleNamespace(name=name, scores=scores, training={"nonzero_weights": weights}, dev_score=dev)


def test_the_simplest_within_an_error_is_taken(small_data: Path, workspace: Path) -> None:
    settings = recipe(small_data, data={"holdout": APART}, grid={"learner.base": [1, 2, 3]}, seeds=[1])
    data, metric = Data.load(settings, workspace / "rule", ("holdout",)), metric_of(settings)
    corpus = data.others["holdout"].corpus
    by_gain = [np.argsort(corpus.gain[a:b], kind="stable") + a for a, b in pairwise(corpus.lists)]
    best, worst = np.array([each[-1] for each in by_gain]), np.array([each[0] for each in by_gain])
    nearly = best.copy()
    unlike = np.flatnonzero(corpus.gain[best] > corpus.gain[worst])
    nearly[unlike[0]] = worst[unlike[0]]  # one list: its error is as large as the difference
    runs = [fake("best", best, 300, 0.1), fake("nearly", nearly, 200, 0.0), fake("worst", worst, 1, 0.9)]
    chosen, found = choose(settings, runs, corpus, metric)
    assert (found["best"], found["chosen"], chosen.name) == ("best", "nearly", "nearly")
    assert [point["near"] for point in found["points"]] == [True, True, False]
    assert found["settings"] == {"learner.base": 2}
    sums = chosen_rows(corpus.stats, worst).sum(axis=0)
    assert found["points"][2]["score"] == float(metric.scores(sums, corpus.reference.sum(axis=0)))
    text = choice_table({"choice": found, "measure": "f1"})
    assert [row[1] for row in text.rows] == ["yes", "yes", ""]
    assert "Chosen: nearly" in text.note


def test_tune_leaves_the_chosen_recipe(rerank: Command, small_data: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    settings = small.settings(small_data, grid={"learner.eta": [0.1, 1.0]}, learner={"name": "vrda"})
    path.write_text(yaml.safe_dump(settings | {"training": {"epochs": 1}}))
    found = rerank("tune", path, "--output", tmp_path / "out", "--holdout", 0.3)
    assert found.code == 0, found.err
    assert "Settings on 45 training lists set apart" in found.out
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert "test" not in metrics["corpora"]
    assert [point["seeds"] for point in metrics["choice"]["points"]] == [3, 3]
    chosen = load_recipe(tmp_path / "out" / "chosen.yaml")
    assert (chosen.grid, chosen.seeds, chosen.data.holdout) == ({}, (1, 2, 3), None)
    assert chosen.learner["eta"] == metrics["choice"]["settings"]["learner.eta"]
    again = rerank("tune", path, "--output", tmp_path / "out", "--holdout", 0.3, "--resume")
    assert (again.code, again.out) == (0, found.out)


def test_tune_refuses_a_single_setting(rerank: Command, small_data: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(small.settings(small_data)))
    failed(rerank("tune", path, "--output", tmp_path / "out"), 2, "nothing to choose", "grid")
    assert not (tmp_path / "out").exists()
