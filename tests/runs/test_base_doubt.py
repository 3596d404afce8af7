"""A base that chooses worse than chance is doubted; what teaches nothing, or twice, is said."""

import json
import logging
import os
import threading
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import pytest
import yaml

import rerank
from rerank.runs.compared import doubt_of_base
from rerank.runs.report.results import unbeaten
from rerank.runs.vote import table_of_votes
from rerank.runs.weigh import table_of_weights

WORDS = ["the", "ship", "left", "harbour", "before", "dawn", "with", "twelve", "old", "men", "on", "board"]


def write_costs(path: Path, count: int, seed: int) -> Path:
    """Transcripts with costs, of which the lowest is the best, in four of five lists in the order of these."""
    rng, lines = np.random.default_rng(seed), []
    for i in range(count):
        said = [str(word) for word in rng.choice(WORDS, 8, replace=False)]
        wrong = [said[: 8 - k] + ["x"] * int(rng.random() < 0.9) for k in range(5)]
        wrong[0] = said if rng.random() < 0.8 else wrong[0]
        rows = [{"text": " ".join(each), "score": 20 + k + rng.random()} for k, each in enumerate(wrong)]
        if i % 5 == 4:
            rng.shuffle(rows)
        lines.append(json.dumps({"id": f"{seed}-{i}", "reference": " ".join(said), "candidates": rows}))
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("seed", range(30))
def test_the_doubt_is_that_of_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 4, 12)
    lists, shift = np.concatenate([[0], np.cumsum(sizes)]), rng.normal(scale=0.5)
    gain = rng.random(lists[-1])
    base = shift * gain + rng.normal(scale=0.1, size=gain.size)
    gain[lists[:-1][sizes > 0]] += rng.random() / 4
    found = list[list[float]]([[], []])
    for first, last in pairwise(lists):
        if first < last:
            chosen = max(range(first, last), key=lambda y: (base[y], -y))
            found[0].append(gain[first] - gain[chosen])
            found[1].append(mean(gain[first:last]) - gain[chosen])
    found = [apart + apart for apart in found]  # the pieces are all lists, twice
    worse = [mean(apart) > 2 * stdev(apart) / len(apart) ** 0.5 for apart in found]
    said = doubt_of_base("am", [(lists, gain, base)] * 2)
    assert ("the first candidate" in said, "a random one" in said) == (worse[0], worse[1])
    assert ("'am'" in said) == any(worse)


@pytest.mark.parametrize("count", [8, 60])
def test_weighing_and_votes(tmp_path: Path, count: int, rerank: Any) -> None:
    """Nothing is said to help until the user says what the column is; with ``-q`` as without."""
    path = write_costs(tmp_path / "lists.jsonl", count, 1)
    few = ("--metric", "wer", "--samples", "200")
    found = rerank("--quiet", "weigh", path, *few, "--resamples", "2", "--restarts", "0")
    assert "The best is " not in found.out
    assert found.out.index(" base ") < found.out.index(" first ")
    for told in (found.out, rerank("vote", path, *few).out):
        assert -1 < told.find("scores: cost") < told.find(f"{count} lists"), told
    for role, words in (("score", "The best is "), ("cost", "Nothing is better")):
        how = ("--reader", f"{{name: jsonl, scores: {role}}}")
        told = rerank("weigh", path, *few, "--resamples", "2", "--restarts", "0", *how).out
        assert ("scores: cost" in told, words in told) == (False, True), told
        assert ("first" in told) == (role == "score" or count == 60)


def test_lists_without_a_score_have_no_base_to_doubt(caplog: pytest.LogCaptureFixture) -> None:
    """The first candidate is the base there, and may well be worse than a random one; it has no row of its own."""
    rows = [{"text": text, "gain": gain} for text, gain in zip("abc", (0, 1, 1), strict=True)]
    given = [{"candidates": [row | {"x": row["gain"] + i % 3} for row in rows]} for i in range(10)]
    assert table_of_votes(list(rerank.read(given)), samples=20).source.doubt == ""
    table = table_of_weights(list(rerank.read(given)), samples=20, resamples=2, restarts=0)
    assert (table.source.doubt, "first" in table.rows) == ("", False)
    with caplog.at_level(logging.WARNING, "rerank"):
        rerank.fit(rerank.read(given), features="dense")
    assert "nothing is claimed" not in caplog.text


def test_runs(tmp_path: Path, rerank: Any) -> None:
    for number, split in enumerate(("train", "dev", "test")):
        write_costs(tmp_path / f"{split}.jsonl", 40, number)
    recipe = {
        "task": "speech", "metric": "wer", "features": {"set": "dense"}, "learner": {"name": "perceptron"},
        "data": {"root": str(tmp_path), "nbest": "{root}/{split}.jsonl"},
    }  # fmt: skip
    for role, doubted in ((None, True), ("score", False)):
        recipe["data"]["reader"] = {} if role is None else {"scores": role}  # type: ignore[index]
        (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
        done = rerank("--quiet", "run", tmp_path / "recipe.yaml", "-o", tmp_path / f"run-{role}")
        assert done.code == 0, done
        assert ("scores: cost" in done.out, "better" in done.out) == (doubted, not doubted), done.out
        assert "first candidate" in done.out
        metrics = json.loads((tmp_path / f"run-{role}" / "metrics.json").read_text())
        assert ("base_doubt" in metrics, any(metrics["significance"].values())) == (doubted, not doubted)
        assert metrics["splits"]["test"]["first"]["wer"] < metrics["splits"]["test"]["base"]["wer"]
        beside = rerank("compare", tmp_path / f"run-{role}", tmp_path / f"run-{role}", "--samples", "100")
        assert ("scores: cost" in beside.out) == doubted
        found = json.loads(rerank("compare", *[tmp_path / f"run-{role}"] * 2, "--samples", "100", "--json").out)
        assert (found["splits"]["test"]["p"] is None) == doubted


def test_training_lists_that_can_be_read_once(tmp_path: Path, rerank: Any) -> None:
    """Doubts look at the texts of lists again: not at those of a pipe."""
    lists = write_costs(tmp_path / "lists.jsonl", 40, 5).read_bytes()
    for split in ("dev", "test"):
        (tmp_path / f"{split}.jsonl").write_bytes(lists)
    os.mkfifo(tmp_path / "train.jsonl")
    writer = threading.Thread(target=(tmp_path / "train.jsonl").write_bytes, args=(lists,), daemon=True)
    writer.start()
    data = {"root": str(tmp_path), "nbest": "{root}/{split}.jsonl", "reader": {"scores": "cost"}}
    recipe = {"task": "speech", "features": {"set": "dense"}, "learner": {"name": "perceptron"}, "data": data}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    done = rerank("run", tmp_path / "recipe.yaml", "-o", tmp_path / "run")
    assert done.code == 0, done
    writer.join()


def test_models_that_are_fitted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_costs(tmp_path / "lists.jsonl", 40, 3)
    for role, doubted in ((None, True), ("score", False), ("cost", False)):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "rerank"):
            how = {"name": "jsonl"} | ({} if role is None else {"scores": role})
            rerank.fit(rerank.read(path, how), metric="wer", features="dense")
        assert ("nothing is claimed" in caplog.text) == doubted


def test_evaluation_has_a_row_of_the_first_candidates(tmp_path: Path) -> None:
    path = write_costs(tmp_path / "lists.jsonl", 40, 4)
    lists = list(rerank.read(path, "jsonl"))
    found = rerank.evaluate([0] * len(lists), lists, "wer", samples=20)
    assert found.scores["first"] == found.scores["choice"] != found.scores["base"]
    assert "first" in str(found)
    in_order = [{"candidates": [{"text": "a", "gain": 1, "score": 1}, {"text": "b", "gain": 0, "score": 0}]}] * 3
    assert "first" not in rerank.evaluate([0] * 3, list(rerank.read(in_order)), samples=20).scores


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
