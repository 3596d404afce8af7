"""``rerank weigh`` beside a grid of weights, folds by hand, and from the command line."""

import json
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rerank
from rerank.base.errors import DataError, RecipeError
from rerank.models.reranker import load
from rerank.runs.vote import ListSource, load_source
from rerank.runs.weigh import BASE, MAXENT, ORACLE, SUM, WEIGHED, fitted, pairs, rows_by, standardised
from rerank.runs.weigh import table_of_weights as weigh

FAST: dict[str, Any] = {"folds": 3, "resamples": 2, "restarts": 1, "samples": 20}


def lists_of(count: int = 30, seed: int = 0) -> list[dict[str, Any]]:
    """Lists whose gain is known by two columns together, in other units than the base score's."""
    rng, lists = np.random.default_rng(seed), list[dict[str, Any]]()
    for i in range(count):
        given = list[dict[str, Any]]()
        for _ in range(int(rng.integers(1, 6))):
            gain = float(rng.integers(0, 4))
            score, cost = float(rng.normal()), float(rng.normal())
            given.append({"text": "a", "gain": gain, "score": score, "cost": 50 * (score - 0.4 * gain + 0.2 * cost)})
        lists.append({"id": f"q{i}", "candidates": given})
    return lists


def best_of(found: ListSource, scores: np.ndarray) -> list[int]:
    """The first best candidate of every list."""
    first = found.first
    return [a + int(np.argmax(scores[a:b])) for a, b in pairwise(first)]


def score_by(source: ListSource, w: np.ndarray) -> float:
    """What the choices of weights are worth."""
    return source.metric.score(rows_by(source, w @ source.columns), source.reference)


def test_no_grid_of_weights_is_better() -> None:
    for seed in range(3):
        for metric in ("gain", "ndcg@3"):
            found, _ = standardised(load_source(list(rerank.read(lists_of(12, seed))), metric, None, 3, 1))
            turns = np.linspace(0, 2 * np.pi, 721)
            every = [score_by(found, w) for w in np.c_[np.cos(turns), np.sin(turns)]]
            weighed = fitted(found, 5, 1).weighed
            assert score_by(found, weighed) >= max(every) - 1e-12
            assert np.abs(weighed).sum() == pytest.approx(1)


def test_a_list_is_chosen_from_by_what_others_teach() -> None:
    lists = lists_of()
    table = weigh(lists, **FAST)
    found, spread = standardised(load_source(list(rerank.read(lists)), None, None, 3, 1))
    gains, fold = found.gain, found.fold
    chosen = np.empty(len(lists), np.int64)
    for held in range(3):
        w = fitted(found.lists(np.flatnonzero(fold != held)), 1, 1).weighed
        chosen[fold == held] = np.array(best_of(found, w @ found.columns))[fold == held]
    assert table.rows[WEIGHED][0] == pytest.approx(gains[chosen].mean())
    assert table.rows[BASE][0] == pytest.approx(gains[best_of(found, found.scores)].mean())
    assert table.rows[ORACLE][0] == pytest.approx(gains[best_of(found, gains)].mean())
    assert table.rows[WEIGHED][0] > table.rows[BASE][0] + 0.3
    costs, both = ([[c["cost"] + k * c["score"] for c in x["candidates"]] for x in lists] for k in (0, 1))
    for name, scores in (("cost alone", costs), (SUM, both)):
        own = [x["candidates"][int(np.argmax(each))]["gain"] for x, each in zip(lists, scores, strict=True)]
        assert table.rows[name][0] == pytest.approx(np.mean(own))
    assert [w.weight for w in table.weights] == pytest.approx(fitted(found, 1, 1).weighed / spread)
    assert all(w.interval[0] <= w.interval[1] for w in table.weights)
    assert f"The best is {table.learned}, +" in str(table)
    assert weigh(lists, **FAST).as_data() == table.as_data()


def test_the_command(tmp_path: Path, rerank: Any) -> None:
    lists, place = lists_of(), tmp_path / "a.jsonl"
    place.write_text("".join(f"{json.dumps(line)}\n" for line in lists))
    how = ("--folds", 3, "--resamples", 2, "--restarts", 1, "--samples", 20)
    shown = rerank("weigh", place, *how)
    assert (shown.code, "30 lists" in shown.out) == (0, True), shown
    found = json.loads(rerank("weigh", place, *how, "--save", tmp_path / "model", "--json").out)
    weights = {line["column"]: line["weight"] for line in found["weights"]}
    assert weights["score"] > 0 > weights["cost"]
    ranked = rerank("rank", tmp_path / "model", place, "--n-best", 1).out  # as the weights in the file's unit say
    chosen = [json.loads(line)["candidates"][0] for line in ranked.splitlines()]
    best = [max(line["candidates"], key=lambda one: sum(w * one[c] for c, w in weights.items())) for line in lists]
    assert [one["cost"] for one in chosen] == [one["cost"] for one in best]
    order = json.loads(rerank("weigh", place, *how, "--metric", "ndcg@3", "--columns", "cost", "--json").out)
    assert [line["column"] for line in order["weights"]] == ["cost"]
    texts = [{"candidates": [{"text": t, "score": s} for t, s in (("a", 1.0), ("a b", 0.5))]}] * 6
    place.write_text("".join(f"{json.dumps(line)}\n" for line in texts))
    (tmp_path / "ref").write_text("a b\n" * 6)
    asked = ("weigh", place, tmp_path / "ref", "--metric", "wer", *how, "--json", "--save", tmp_path / "counting")
    words = json.loads(rerank(*asked).out)
    assert [row["score"] for row in words["rows"]] == [0.5, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert [row["name"] for row in words["rows"]][1] == "words alone"  # how many there are is a column of transcripts
    ranked = rerank("rank", tmp_path / "counting", place, "--n-best", 1).out
    assert [json.loads(line)["candidates"][0]["text"] for line in ranked.splitlines()] == ["a b"] * 6
    for wrong in (("--columns", "costs"), ("--folds", "1"), ("--metric", "nonsense"), ("--metric", "wer")):
        assert rerank("weigh", place, *wrong).code == 2


def test_columns_that_others_determine_have_no_weight_and_the_better_row_is_saved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rerank: Any
) -> None:
    lists = lists_of()
    for one in (one for line in lists for one in line["candidates"]):
        one |= {"both": one["score"] + one["cost"], "same": 3.0}
    monkeypatch.setattr("rerank.runs.weigh.searched", lambda _, starts, *__: -starts[0])
    table = weigh(lists, **FAST)
    assert ([line.column for line in table.weights], table.without) == (["score", "cost"], ("both", "same"))
    assert "Others determine these, which have none: both, same." in str(table)
    assert table.learned == MAXENT
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lists))
    shown = rerank("weigh", tmp_path / "a.jsonl", "--folds", 3, "--resamples", 2, "--save", tmp_path / "model").out
    assert "a model with the weights of the row maxent" in " ".join(shown.split())
    none = {"text": "a"} | dict.fromkeys(("score", "cost", "both", "same"), 0.0)
    for line in table.weights:
        ranking = load(tmp_path / "model").rank([none, none | {line.column: 1.0}])
        apart = float(ranking.scores[0] - ranking.scores[1]) * (1 if ranking.order[0] == 1 else -1)
        assert apart == pytest.approx(line.maxent)


def test_what_cannot_be_weighed() -> None:
    alike = [{"candidates": [{"text": "a", "score": 1.0, "gain": g} for g in (0.0, 1.0)]}] * 4
    with pytest.raises(DataError, match=r"no score differs within a list \(columns: score\)"):
        weigh(alike, **FAST)
    many = [{"candidates": [{"text": "a", "gain": 1.0} | {f"c{k}": float(k) for k in range(60)}]}] * 4
    with pytest.raises(RecipeError, match="columns: found 60; expected 50 or fewer"):
        weigh(many, **FAST)
    with pytest.raises(RecipeError, match="folds: found 1; expected 2 or more"):
        weigh(alike, folds=1)


def test_pairs_are_those_with_the_largest_differences_in_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    found = load_source(list(rerank.read(lists_of(30))), None, None, 3, 1)
    monkeypatch.setattr("rerank.runs.weigh.PAIRS", 4)
    two, first, gain = pairs(found), found.first, found.gain
    at = 0
    for a, b in pairwise(first.tolist()):
        every = sorted((abs(gain[y] - gain[z]) for y, z in combinations(range(a, b), 2)), reverse=True)
        expected = [apart for apart in every[:4] if apart > 0]
        own = two.gain[2 * at : 2 * (at + len(expected))]
        assert (own[::2] - own[1::2]).tolist() == pytest.approx(expected)
        at += len(expected)
    assert two.first.tolist() == list(range(0, 2 * at + 1, 2))
    alike = found._replace(gain=np.ones(gain.size))
    assert pairs(alike).gain.size == 0


@pytest.mark.parametrize("named", [False, True])
def test_a_gain_is_no_column_unless_it_is_named(named: bool, tmp_path: Path) -> None:
    lists = [
        {"reference": "a b", "candidates": [{"text": text, "lm": k * i % 3, "gain": text == "a b"}
                                            for k, text in enumerate(("a c", "a b", "b"))]}
        for i in range(12)
    ]  # fmt: skip
    path = tmp_path / "lists.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lists))
    format = {"name": "jsonl", "dense": ["lm", "gain"]} if named else "jsonl"
    more = ["gain"] if named else []
    assert [weight.column for weight in weigh(rerank.read(path, format), "wer", **FAST).weights] == [
        "lm",
        *more,
        "words",
    ]
    assert rerank.fit(rerank.read(path, format), metric="wer", features="dense").columns == ("score", "lm", *more)
