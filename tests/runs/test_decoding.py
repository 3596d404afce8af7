"""Decoding in a run: tuned on dev by exact scores, evaluated and tested as the other predictors are."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small

import rerank
from rerank.base.errors import RecipeError
from rerank.recipes.loading import read_settings
from rerank.runs import experiment
from rerank.runs.compared import Compared
from rerank.runs.decoding import SHARPNESS, THRESHOLDS, check_decoding
from rerank.storage.streams import Inputs


def test_results_of_decoding_are_those_of_other_predictors(small_run: Path) -> None:
    metrics = small.results(small_run)
    for run in metrics["runs"]:
        assert {"mbr", "fuse"} <= set(run["splits"]["test"])
        assert {"mbr_vs_base", "fuse_vs_base"} <= set(run["significance"]["test"])
        tuned = run["training"]["decode"]
        scores = {"": tuned["best"], "mbr": tuned["mbr"]["dev"], "fuse": tuned["fuse"]["dev"]}
        assert scores[tuned["use"]] == max(scores.values())
    use = metrics["training"]["decode"]["use"]
    assert metrics["predictor"] == (use or metrics["ranked_by"])
    assert json.loads((small_run / "model" / "model.json").read_text())["about"]["decision"] == metrics["decision"]
    rows = Compared.of_run(small_run, "test").rows
    assert {"mbr", "fuse"} <= set(rows)


def test_the_point_with_the_best_score_on_dev_is_taken(small_data: Path, workspace: Path) -> None:
    """Every point of the grid, decoded by a model that was told to, has a score of at most the one that was tuned."""
    recipe = small.recipe(small_data, training={"epochs": 1, "vote": False})
    experiment.run(recipe, workspace / "tuned")
    tuned = small.results(workspace / "tuned")["training"]["decode"]
    lists = rerank.read(small_data / "dev.nbest.gz", format="charniak", references=small_data / "dev.gold.gz")
    model = rerank.load(workspace / "tuned" / "model")
    for kind in ("mbr", "fuse"):
        best = rerank.evaluate(model, lists, decode=kind).score
        assert best == pytest.approx(tuned[kind]["dev"], abs=1e-12)
        assert tuned[kind]["sharpness"] in SHARPNESS
        for sharpness in SHARPNESS[::9].tolist():
            for threshold in THRESHOLDS[: 1 if kind == "mbr" else None : 4].tolist():
                model.model.about["decodings"][kind] |= {"sharpness": sharpness, "threshold": threshold}
                assert rerank.evaluate(model, lists, decode=kind).score <= best + 1e-12


@pytest.mark.parametrize(
    ("decode", "data", "message"),
    [
        ({"use": "fuse", "kinds": ["mbr"]}, {}, "'fuse' is not among decode.kinds"),
        ({"use": "mbr", "kinds": ["fuse"]}, {}, r"'mbr' is not among decode.kinds \(fuse\); set decode.kinds: \[fuse"),
        ({"gains": "nowhere:gains"}, {}, "cannot import gain function"),
        ({"threshold": 0.4}, {}, "decode.threshold: found 0.4; expected one from 0.5"),
        ({"kinds": ["fuse", "learned"], "threshold": 0.4}, {}, "decode.kinds without fuse"),
    ],
)
def test_decoding_that_cannot_be(small_data: Path, decode: dict[str, Any], data: dict[str, Any], message: str) -> None:
    with Inputs() as inputs, pytest.raises(RecipeError, match=message):
        experiment.check(small.recipe(small_data, decode=decode, data=data), inputs)


def test_what_a_ranking_lacks_is_a_way_to_decode() -> None:
    settings = {"name": "x", "task": "ranking", "data": {"dev": None}, "decode": {"use": "mbr", "sharpness": 1}}
    recipe = read_settings(settings)
    with pytest.raises(RecipeError, match=r"'mbr' is not among decode.kinds \(none\); set decode.kinds: \[mbr\]"):
        check_decoding(recipe)
    check_decoding(recipe.change({"decode.kinds": "mbr"}))


def test_what_is_learned_may_be_kept_below_one_half(small_data: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn fits the trees")
    with Inputs() as inputs:
        experiment.check(small.recipe(small_data, decode={"kinds": ["mbr", "learned"], "threshold": 0.4}), inputs)


def test_without_dev_decoding_is_as_the_recipe_says(small_data: Path, workspace: Path) -> None:
    decode = {"kinds": "fuse", "use": "fuse", "sharpness": 2.0, "threshold": 0.5}
    changes: dict[str, Any] = {
        "data": {"root": str(small_data), "dev": None},
        "learner": {"name": "perceptron", "base": 1},
    }
    experiment.run(
        small.recipe(small_data, decode=decode, training={"epochs": 1}, **changes), workspace / "undeveloped"
    )
    tuned = small.results(workspace / "undeveloped")["training"]["decode"]
    assert (tuned["use"], tuned["fuse"]["sharpness"], tuned["fuse"]["dev"]) == ("fuse", 2.0, None)
    assert np.isfinite(tuned["fuse"]["deviation"])


def answered(lists: int, seed: int) -> list[dict[str, Any]]:
    """Lists whose right answer has more candidates than any other, and no better scores."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(lists):
        right = rng.random(8) < rng.uniform(0.2, 0.9)
        candidates = [
            {"text": f"so {0 if each else rng.integers(1, 9)}", "score": rng.normal() + 0.1 * each, "gain": float(each)}
            for each in right
        ]
        found.append({"id": i, "candidates": candidates})
    return found


def test_a_margin_is_never_ignored() -> None:
    lists = [
        {"id": i, "candidates": [{"text": "a", "score": 2.0, "gain": 1.0}, {"text": "b", "score": 1.0, "gain": 0.0}]}
        for i in range(30)
    ]
    model = rerank.fit(lists, recipe={"decode": {"margin": 0.1, "below": "base"}})  # nothing beats the base
    assert (model.predictor, model.model.settings["decode"]["margin"]) == ("mbr", 0.1)
    assert model.rank(next(iter(rerank.read(lists)))).margin > 0.1
    with pytest.raises(RecipeError, match=r"decode.margin: found 0.1, but no lists were held out"):
        rerank.fit(lists[:1], features="base", recipe={"decode": {"margin": 0.1}})
    with pytest.raises(RecipeError, match=r"decode.margin: found 0.1, but nothing is decoded by mbr"):
        rerank.fit(lists, recipe={"decode": {"margin": 0.1, "kinds": []}})


def test_answers_are_voted_on_and_may_be_held_back(workspace: Path) -> None:
    train, tests = answered(60, 1), answered(40, 2)
    model = rerank.fit(train, answer="last-number", features="base")  # tuned on lists held out
    assert model.predictor == "mbr"
    assert rerank.evaluate(model, tests).score > rerank.evaluate(model, tests, decode="best").score
    folder = workspace / "answers"
    for split, lists in (("train", train), ("dev", tests[:20]), ("test", tests[20:])):
        folder.mkdir(exist_ok=True)
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lists))
    data = {"root": str(folder), "nbest": "{root}/{split}.jsonl", "answer": "last-number"}
    settings = {"name": "answers", "task": "ranking", "data": data, "decode": {"margin": 0.4}}
    recipe = read_settings({**settings, "features": "base"})
    metrics = experiment.run(recipe, workspace / "run")
    held_back = rerank.load(workspace / "run" / "model")
    rankings = list(held_back.rank_many(folder / "test.jsonl"))
    given = [each for each in rankings if each.place is not None]
    assert [each.margin >= 0.4 for each in rankings] == [each.best is not None for each in rankings]
    assert 0 < len(given) < len(rankings)
    right = sum(each.best.text == "so 0" for each in given) / len(rankings)
    assert metrics["splits"]["test"]["mbr"]["gain"] == pytest.approx(right)
    assert rerank.evaluate(held_back, rerank.read(folder / "test.jsonl", "jsonl")).score == pytest.approx(right)
    votes = [Counter(each["text"] for each in item["candidates"]).most_common() for item in tests[20:]]
    sure = [winners for winners in votes if len(winners) < 2 or winners[0][1] > winners[1][1]]
    least = sum(winners[0][0] == "so 0" for winners in sure) / len(votes)
    systems = metrics["splits"]["test"]
    assert least <= systems["majority vote"]["gain"] <= least + 1 - len(sure) / len(votes)
    assert systems["first"]["gain"] == np.mean([item["candidates"][0]["gain"] for item in tests[20:]])
    best = [max(item["candidates"], key=lambda each: each["score"])["gain"] for item in tests[20:]]
    assert systems["best score"]["gain"] == pytest.approx(np.mean(best))
    assert "best gain" not in systems


@pytest.mark.parametrize(("metric", "dev"), [("gain", None), ("ndcg@2", "dev")])
def test_votes_stand_beside_a_model_that_is_the_base(metric: str, dev: str | None, tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        lists = [
            {"id": f"{split}{i}", "candidates": [{"text": "a", "answer": y, "gain": int(y == 0)} for y in (0, 0, 1)]}
            for i in range(20)
        ]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lists))
    data = {"root": str(tmp_path), "nbest": "{root}/{split}.jsonl", "dev": dev}
    recipe = read_settings({"name": "x", "task": "ranking", "data": data, "features": "base", "metric": metric})
    rows = experiment.run(recipe, tmp_path / "run")["splits"]["test"]
    assert ("majority vote" in rows, "mbr" in rows) == (metric == "gain", False)
