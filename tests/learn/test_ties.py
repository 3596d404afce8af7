"""Which candidates are right: any of the best in rankings and for gains of right or wrong, else the base's choice."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small
import small_rankings
import small_texts

from rerank.data.corpus import Corpus
from rerank.metrics.oracle import two_valued
from rerank.runs.corpora import Data
from rerank.runs.training import RunTask, any_ties, train_run


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_rankings.write_task(tmp_path_factory.mktemp("rankings"))


@pytest.fixture(scope="module")
def data(root: Path, workspace: Path) -> Data:
    recipe = small_rankings.recipe(root, data={"shard_size": 0.01})
    return Data.load(recipe, workspace / "rankings" / "any", ("dev",))


def graded(data: Data) -> Corpus:
    part = next(iter(data.training.corpus.parts()))
    gain = np.where(np.arange(part.gain.size) % 2 == 0, part.gain, 0.5)
    return replace(part, gain=gain, trusted=True)


def test_two_values(data: Data) -> None:
    assert two_valued(data.training.corpus)
    assert not two_valued(graded(data))


def test_auto_is_resolved_by_task_and_gains(root: Path, data: Data) -> None:
    """The two settings that a recipe may write stay what they are."""
    binary, marks = data.training.corpus, graded(data)
    ranking, translation, parse = small_rankings.recipe(root), small_texts.recipe(root), small.recipe(root)
    assert [any_ties(ranking, lists) for lists in (binary, marks)] == [True, True]
    for recipe in (translation, parse):
        assert [any_ties(recipe, lists) for lists in (binary, marks)] == [True, False]
    for recipe in (small_rankings.recipe, small_texts.recipe, small.recipe):
        for ties in ("any", "base"):
            own = recipe(root, oracle={"ties": ties})
            assert [any_ties(own, lists) for lists in (binary, marks)] == [ties == "any"] * 2


def test_the_log_and_the_results_say_which(root: Path, data: Data, caplog: pytest.LogCaptureFixture) -> None:
    """And several right candidates are learned from as such: more of them are chosen than by one of them alone."""
    recipe = small_rankings.recipe(root)
    assert recipe.oracle.ties == "auto"
    with caplog.at_level(logging.INFO, logger="rerank"):
        run = train_run(RunTask("x", recipe, data.training.corpus))
    assert run.training["ties"] == "any"
    assert "oracle.ties: any of the best candidates" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="rerank"):
        base = small_rankings.recipe(root, oracle={"ties": "base"})
        other = train_run(RunTask("x", base, data.training.corpus))
    assert other.training["ties"] == "base"
    assert "oracle.ties" not in caplog.text
    assert sum(run.training["mistakes"]) < sum(other.training["mistakes"])
