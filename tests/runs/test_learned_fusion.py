"""Learned fusion in a run: trained on lists that models had not seen, tuned on dev, saved, used, refused."""

import logging
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import small
from commands import Command
from strategies import corpus_of

from rerank import evaluate, load, read
from rerank.base.errors import ModelError, RecipeError
from rerank.metrics.parseval import Parseval
from rerank.models.model import Model
from rerank.runs import combination, decoding, experiment
from rerank.runs.decoding import BRACKET_SLACKS, BRACKET_THRESHOLDS, best_fusion, fit_brackets
from rerank.runs.run import Run
from rerank.runs.training import RunTask, train_run
from rerank.storage.streams import Inputs

pytest.importorskip("sklearn", reason="scikit-learn fits the trees")
DECODE = {"kinds": ["fuse", "learned"], "use": "learned"}


@pytest.fixture(scope="module")
def small_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fewer lists than elsewhere: trees are fitted to the brackets of all of them."""
    root = tmp_path_factory.mktemp("fewer")
    small.write_slices(root, {"train": 40, "dev": 15, "test": 15})
    return root


@pytest.fixture(scope="module")
def learned_run(small_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose model decodes by what it has learned of brackets."""
    place = tmp_path_factory.mktemp("learned") / "run"
    experiment.run(small.recipe(small_data, training={"epochs": 1, "vote": False}, decode=DECODE), place)
    return place


def test_what_is_tuned_is_what_the_model_does(learned_run: Path, small_data: Path, rerank: Command) -> None:
    metrics, tests = small.results(learned_run), small_data / "test.nbest.gz"
    tuned = metrics["training"]["decode"]
    assert metrics["predictor"] == tuned["use"] == "learned"
    assert tuned["learned"]["threshold"] in BRACKET_THRESHOLDS
    assert tuned["learned"]["slack"] in BRACKET_SLACKS
    model = load(learned_run / "model")
    for split, score in (("dev", tuned["learned"]["dev"]), ("test", metrics["splits"]["test"]["learned"]["f1"])):
        files = small_data / f"{split}.nbest.gz", small_data / f"{split}.gold.gz"
        lists = read(files[0], format="charniak", references=files[1])
        assert evaluate(model, lists, decode="learned").score == pytest.approx(score, abs=1e-12)
    found = rerank("rank", learned_run / "model", tests)
    answers = small.lines_of(learned_run / "predictions" / "test.decoded.gz")
    assert found.out.splitlines() == answers


class Seen:
    """A sweep that has the statistics that it is given."""

    def __init__(self, sums: np.ndarray) -> None:
        self.sums = sums
        self.points = SimpleNamespace(thresholds=np.array([0.3, 0.4, 0.5]), slacks=np.array([0.0, 0.1, 0.2]))


def test_threshold_and_slack_are_the_best_of_lists_judged_without_their_fold() -> None:
    """A slack may not cost any of the score that there is without."""
    metric = Parseval()
    reference = np.zeros((4, len(metric.reference_columns)))
    reference[:, 0] = 10.0
    reference[:, metric.reference_columns.index("sentences")] = 1.0
    sums = np.zeros((2, 9, len(metric.columns)))
    for fold, matched in enumerate(([10, 20, 5], [5, 18, 20])):  # together 15, 38, 25 of 40
        sums[fold, :, metric.columns.index("matched")] = np.repeat(matched, 3)
        sums[fold, :, metric.columns.index("test")] = 20.0
        sums[fold, :, metric.columns.index("exact")] = np.tile([1, 2, 3], 3)
    sums[1, 5, metric.columns.index("matched")] = 17
    lists = replace(corpus_of([[({}, 0.0, 0.0)]] * 4), reference=reference)
    assert best_fusion(Seen(sums.sum(axis=0)), lists, metric) == (0.4, 0.1)
    sums[1, 5, metric.columns.index("matched")] = 18
    assert best_fusion(Seen(sums.sum(axis=0)), lists, metric) == (0.4, 0.2)


@pytest.mark.parametrize("slack", [0.0, 1e6])
def test_with_slack_the_candidate_that_is_worth_most_takes_the_place_of_the_fused_tree(
    learned_run: Path, small_data: Path, slack: float
) -> None:
    model, known = load(learned_run / "model"), set()
    model.model.about["decodings"]["learned"]["slack"] = slack
    lists = read(small_data / "test.nbest.gz", "charniak", references=small_data / "test.gold.gz")
    for nbest in lists:
        known.add(model.decode(nbest, how="learned").place is None)
    assert known == ({True, False} if slack == 0 else {False})


def test_explain_shows_the_probability_of_brackets(learned_run: Path, small_data: Path, rerank: Command) -> None:
    model = load(learned_run / "model")
    lists = read(small_data / "test.nbest.gz", "charniak", references=small_data / "test.gold.gz")
    nbest = next(each for each in lists if len(each) > 1)
    learned, fused = model.decode(nbest), model.decode(nbest, how="fuse")
    assert learned.place in (None, *range(len(nbest)))
    assert all(0 <= vote.weight < 1 for vote in learned.votes)
    one, other = (
        {(vote.label, vote.start, vote.end, tuple(vote.candidates)): vote.weight for vote in answer.votes}
        for answer in (learned, fused)
    )
    assert set(one) == set(other)
    assert one != other
    shown = rerank("explain", learned_run / "model", small_data / "test.nbest.gz", "--list", nbest.id)
    assert (shown.code, "brackets in question" in shown.out) == (0, True)


def test_nothing_is_learned_of_lists_outside_the_share(
    small_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sizes = list[int]()

    def counted(task: RunTask, *arguments: Any) -> Run:
        sizes.append(round(task.corpus.list_count * task.recipe.training.share))
        return train_run(task, *arguments)

    monkeypatch.setattr(combination, "train_run", counted)
    settings = {"epochs": 1, "vote": False, "share": 0.5}
    with caplog.at_level(logging.INFO, "rerank"):
        experiment.run(small.recipe(small_data, training=settings, decode=DECODE), tmp_path / "run")
    lists = small.results(tmp_path / "run")["corpora"]["train"]["lists"]
    found = re.search(r"brackets of (\d+) lists", caplog.text)
    assert 0 < int(found[1]) <= round(lists / 2)
    assert max(sizes) <= round(lists / 2)


def test_an_interrupted_run_keeps_the_trainings_it_has_finished(
    learned_run: Path, small_data: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"epochs": 1, "vote": False}
    recipe, trained = small.recipe(small_data, training=settings, decode=DECODE), list[str]()

    def interrupted(task: RunTask, *arguments: Any) -> Run:
        if len(trained) == 3:
            trained.append("interrupted")
            raise KeyboardInterrupt
        trained.append(task.name)
        return train_run(task, *arguments)

    monkeypatch.setattr(combination, "train_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        experiment.run(recipe, workspace / "resumed")
    experiment.run(recipe, workspace / "resumed", resume=True)
    assert len(trained) == 3 + 1 + 3  # the run itself, and five parts
    one, other = Model.load(learned_run / "model").brackets, Model.load(workspace / "resumed" / "model").brackets
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name])


def test_a_model_with_half_of_it_is_refused(learned_run: Path, workspace: Path) -> None:
    model = Model.load(learned_run / "model")
    model.brackets.clear()
    model.save(workspace / "half")
    with pytest.raises(ModelError, match="names it without having one"):
        Model.load(workspace / "half")


def test_without_scikit_learn_it_says_what_to_install(small_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with Inputs() as inputs, pytest.raises(RecipeError, match="pip install 'rerank-nbest"):
        experiment.check(small.recipe(small_data, decode=DECODE), inputs)


def test_a_model_to_continue_from_has_seen_the_lists(small_data: Path) -> None:
    recipe = small.recipe(small_data, decode=DECODE, training={"start": "somewhere"})
    with Inputs() as inputs, pytest.raises(RecipeError, match="has not seen"):
        experiment.check(recipe, inputs)


def test_too_few_lists_for_folds_leave_the_threshold_at_one_half(
    small_data: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As where the brackets of all folds but one are all right."""
    calls = list[int]()

    def fit(lists: Sequence[Any], *about: Any) -> Any:
        calls.append(len(lists))
        if len(calls) > 1:
            raise RecipeError("found 3 brackets to learn from, all of them right or none", key="decode.kinds")
        return fit_brackets(lists, *about)

    monkeypatch.setattr(decoding, "fit_brackets", fit)
    recipe = small.recipe(small_data, training={"epochs": 1, "vote": False}, decode=DECODE)
    with caplog.at_level(logging.WARNING, logger="rerank"):
        experiment.run(recipe, workspace / "few")
    assert "too few lists to choose a threshold by folds; it is 0.5" in caplog.text
    assert small.results(workspace / "few")["training"]["decode"]["learned"]["threshold"] == 0.5
