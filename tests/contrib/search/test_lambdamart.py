"""lambdamart is LightGBM, in every part of the program, and ranks what no weights can."""

import json
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
import small_rankings
from commands import Command, refused
from service import serving
from strategies import random_corpus

from rerank import fit, load
from rerank.base.errors import ModelError, RecipeError
from rerank.contrib.search.lambdamart import LambdaMart
from rerank.contrib.sklearn import ListRanker
from rerank.data.corpus import Corpus
from rerank.features.dense import free_values
from rerank.learn.scoring import Weights, scores
from rerank.recipes.loading import read_settings
from rerank.runs.list_kind import check_single

SMALL: dict[str, Any] = {"trees": 12, "leaves": 5, "min_leaf": 3}
LEARNER = {"name": "lambdamart", **SMALL}


def grown(corpus: Corpus, **more: Any) -> Weights:
    return LambdaMart(**SMALL | more, base=0.0).grown(corpus, None, 1).weights["average"]


def plainly(corpus: Corpus) -> np.ndarray:
    """What LightGBM itself makes of a corpus whose columns are all free."""
    X = np.column_stack([free_values(corpus), corpus.base])
    label, worth = np.zeros(corpus.candidate_count), np.arange(31.0)
    weight = np.zeros(label.size)
    for first, last in pairwise(corpus.lists):
        gain = corpus.gain[first:last]
        label[first:last] = np.round(30 * (gain - gain.min()) / (np.ptp(gain) or 1.0))
        weight[first:last] = np.ptp(gain)
    if set(corpus.gain) <= set(worth):
        label, worth, weight = corpus.gain, 2**worth - 1, np.ones(label.size)
    how = {"objective": "lambdarank", "num_leaves": 5, "min_data_in_leaf": 3, "learning_rate": 0.05, "verbose": -1}
    data = lightgbm.Dataset(X, label, weight=weight / weight.mean(), group=np.diff(corpus.lists))
    return np.asarray(lightgbm.train(how | {"label_gain": worth, "num_threads": 1}, data, 12).predict(X))


@pytest.mark.parametrize("real", [False, True])
def test_is_lightgbm_to_the_bit_whatever_the_threads(real: bool) -> None:
    corpus = random_corpus(5, lists=40, candidates=7, width=6)
    gain = corpus.gain * 3 if real else np.round(corpus.gain * 3)
    corpus = replace(corpus, gain=gain, free=6, weight=np.ones(corpus.list_count))
    one, other = grown(corpus), grown(corpus, threads=2)
    np.testing.assert_array_equal(one.trees.text, other.trees.text)
    found = scores(corpus, one)
    again = lightgbm.Booster(model_str=one.trees.text.tobytes().decode())
    np.testing.assert_array_equal(found, again.predict(np.column_stack([free_values(corpus), corpus.base])))
    np.testing.assert_allclose(found, plainly(corpus), rtol=1e-6, atol=1e-9)
    assert np.ptp(found) > 0


def xor(number: int) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Two columns of 60 lists (float64 [60, 6, 2]), one of which is large where a candidate is right; and the lists."""
    x = np.random.default_rng(number).random((60, 6, 2))
    gains = ((x > 0.5).sum(axis=2) == 1).astype(float)[..., None]
    rows = np.concatenate([x, gains], axis=2).tolist()
    made = [[{"text": str(y), "score": 0.0, "a": a, "b": b, "gain": g} for y, (a, b, g) in enumerate(r)] for r in rows]
    return x, [{"id": str(i), "candidates": candidates} for i, candidates in enumerate(made)]


def test_the_same_trees_rank_everywhere(tmp_path: Path, rerank: Command) -> None:
    """A recipe, its model from disk, fit, the command, the service and ListRanker; better than any weights."""
    for number, split in enumerate(("train", "dev", "test")):
        (tmp_path / f"{split}.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in xor(number)[1]))
    reader = {"reader": {"name": "jsonl", "base": "score"}, "nbest": "{root}/{split}.jsonl"}
    settings = small_rankings.settings(tmp_path, learner=LEARNER, data=reader)
    recipe, model, test = read_settings(settings), tmp_path / "run" / "model", tmp_path / "test.jsonl"
    (tmp_path / "recipe.yaml").write_text(recipe.as_yaml())
    assert rerank("run", tmp_path / "recipe.yaml", "-o", tmp_path / "run").code == 0
    loaded, (x, lists) = load(model), xor(2)
    rankings = list(loaded.rank_many(test))
    assert np.mean([each["candidates"][r.order[0]]["gain"] for each, r in zip(lists, rankings, strict=True)]) > 0.9
    same = [each.model.weights["average"].trees.text for each in (loaded, fit(xor(0)[1], xor(1)[1], recipe=settings))]
    np.testing.assert_array_equal(*same)
    gains = [np.array([c["gain"] for each in xor(k)[1] for c in each["candidates"]]) for k in (0, 1)]
    flat = [(xor(k)[0].reshape(-1, 2), gains[k], np.full(60, 6)) for k in (0, 1)]
    ranker = ListRanker(learner=LEARNER, random_state=1).fit(*flat[0], eval_set=flat[1])
    scored = np.concatenate([ranking.scores[np.argsort(ranking.order)] for ranking in rankings])
    np.testing.assert_allclose(ranker.predict(x.reshape(-1, 2)), scored, rtol=1e-12)
    ranked = rerank("rank", model, test)
    assert ranked.out.split() == [str(ranking.order[0]) for ranking in rankings]
    total, (first, second) = sum(part.amount for part in rankings[0].explain()), rankings[0].scores[:2]
    assert total == pytest.approx(first - second, abs=1e-4)
    with serving(model, tmp_path) as (_, client, _):
        assert client.post("/rank", json=lists[0]).json()["scores"] == rankings[0].scores.tolist()
    refused(rerank("export", model), "its scores are no sum of weights but of trees")
    (model / "trees.txt").write_text((model / "trees.txt").read_text() + " ")
    with pytest.raises(ModelError, match="not the one that was saved"):
        load(model)


def test_what_needs_weights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in {
        "vote": True, "select": {"learner": LEARNER}, "ensemble": {"seeds": 2}
    }.items():  # fmt: skip
        with pytest.raises(RecipeError, match=f"training.{key}: .*lambdamart"):
            check_single(small_rankings.recipe(tmp_path, learner=LEARNER, training={key: value}))
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(RecipeError, match=r"pip install 'rerank-nbest\[trees\]'"):
        check_single(small_rankings.recipe(tmp_path, learner=LEARNER))
