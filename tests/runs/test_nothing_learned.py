"""What teaches nothing, or twice, is said: gains that are all alike, steps of no size, repeated candidates."""

import logging
from typing import Any

import pytest

import rerank
from rerank.runs.report.results import unbeaten


def lists(gains: list[float], texts: tuple[str, ...] = ("a", "b", "b"), count: int = 12) -> list[Any]:
    numbers = [{"reward": 0.1}, {"reward": 0.5}, {"reward": 0.5}]
    candidates = [
        {"text": text, "score": 0.5 * k, "columns": own}
        for k, (text, own) in enumerate(zip(texts, numbers, strict=True))
    ]
    return [rerank.NBest(id=f"list {i}", candidates=candidates, gains=gains) for i in range(count)]


def test_gains_that_are_all_alike_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="rerank"):
        rerank.fit(lists([0.0, 0.0, 0.0]))
    assert "nothing to learn from 12 training lists: in each, all candidates are equally good" in caplog.text


def test_weights_of_no_size_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="rerank"):
        rerank.fit(
            lists([1.0, 0.0, 0.0]), learner={"name": "vrda", "eta": 1e300, "base": 1.0}, features="dense", epochs=1
        )
        assert "nothing was learned: all weights are 0" in caplog.text
        caplog.clear()
        rerank.fit(lists([1.0, 0.0, 0.0]), learner={"name": "vrda", "base": 1.0}, features="dense", epochs=1)
        assert "nothing was learned" not in caplog.text


def test_repeated_candidates_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """But rows of numbers without a text repeat nothing."""
    with caplog.at_level(logging.WARNING, logger="rerank"):
        rerank.fit(lists([1.0, 0.0, 0.0]), features="dense")
        assert "train: 12 of 36 candidates repeat another of their list" in caplog.text
        caplog.clear()
        rerank.fit(lists([1.0, 0.0, 0.0], texts=("", "", "")), features="dense")
        assert "repeat another" not in caplog.text


def test_the_last_line_says_what_the_base_was_compared_on() -> None:
    folds = {"lists": 40, "base": 0.5}
    said = {
        kept: unbeaten({"training": {"base": {"beaten": False, "kept": kept}, "columns": folds}})
        for kept in (True, False)
    }
    assert (
        said[True]
        == "Nothing beat the base on 40 training lists held out in turn (F 50.00): the model is the base itself."
    )
    assert "may be no better than the base" in said[False]


def test_ties_of_the_base_are_broken_by_what_was_learned(caplog: pytest.LogCaptureFixture) -> None:
    """Though no list held out was chosen from better than by the base: where that differs, it decides."""

    def candidate(base: float, reward: float) -> dict[str, Any]:
        return {"text": f"{base} {reward}", "score": base, "columns": {"reward": reward}}

    every = [
        rerank.NBest(
            id=str(i), candidates=[candidate(1, 0.6 + 0.01 * (i % 7)), candidate(1, 0.5), candidate(0, 0.1)],
            gains=[1.0, 1.0, 0.0],
        )
        for i in range(40)
    ]  # fmt: skip
    with caplog.at_level(logging.WARNING, logger="rerank"):
        model = rerank.fit(every, features="dense")
    assert "nothing that was learned beats the base score" in caplog.text
    assert model.rank([candidate(1, 0.1), candidate(1, 0.9)]).text == "1 0.9"
    assert model.rank([candidate(0, 0.9), candidate(1, 0.1)]).text == "1 0.1"
