"""Metrics of an order, learned by LambdaMART, and fusions of runs."""

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

import rerank
from rerank import fit, load
from rerank.base.errors import DataError, ModelError, RecipeError
from rerank.base.registry import build
from rerank.contrib.search.fuse import fuse_runs
from rerank.contrib.search.lambdamart import LambdaMart
from rerank.contrib.search.order import OrderMetric
from rerank.contrib.sklearn import ListRanker
from rerank.data.corpus import Corpus, free_values
from rerank.learn.mert import ErrorSurface
from rerank.learn.scoring import Weights, scores
from rerank.metrics.metric import metrics, rows_of_scores
from rerank.recipes.loading import read_settings
from rerank.runs import experiment
from rerank.runs.list_kind import check_single

KINDS: dict[str, dict[str, Any]] = {
    "ndcg_cut_5": {"name": "ndcg", "k": 5, "form": "linear"},
    "ndcg": {"name": "ndcg", "form": "linear"},
    "map": {"name": "map"},
    "map_cut_5": {"name": "map", "k": 5},
    "recip_rank": {"name": "mrr"},
    "recall_5": {"name": "recall", "k": 5},
    "P_5": {"name": "precision", "k": 5},
    "exp2": {"name": "ndcg", "k": 5},
}


def made(kind: str, **changes: Any) -> OrderMetric:
    metric = build(metrics, KINDS[kind] | changes, "metric")
    return metric


def drawn(metric: OrderMetric, seed: int = 1, lists: int = 12, *, ties: bool = True) -> tuple[np.ndarray, ...]:
    """(lists, scores, ties, grades, stats, reference) of lists of 0 to 11 candidates, some without a relevant one."""
    rng = np.random.default_rng(seed)
    sizes = np.arange(lists)
    first = np.concatenate([[0], np.cumsum(sizes)])
    N = int(first[-1])
    grades = rng.integers(0, 4, N) * np.repeat(rng.random(lists) < 0.8, sizes).astype(float)
    scores = rng.integers(0, 4, N).astype(float) if ties else rng.normal(size=N)
    ideal = [metric.ideal(metric.useful(grades[a:b])) for a, b in pairwise(first)]
    reference = np.column_stack([np.ones(lists), ideal])
    return (
        first,
        scores,
        rng.integers(0, 2, N) * 1.0,
        grades,
        np.column_stack([grades, metric.useful(grades)]),
        reference,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_trec_eval(kind: str) -> None:
    """Of equal scores the higher tie, then the first candidate is ahead; grades of 2^g - 1 gain linearly."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    metric = made(kind)
    lists, scores, ties, grades, stats, reference = drawn(metric)
    worth, measure = (2**grades - 1, "ndcg_cut_5") if kind == "exp2" else (grades, kind)
    judged, run, expected = dict[str, Any](), dict[str, Any](), np.zeros(lists.size - 1)
    for i, (a, b) in enumerate(pairwise(lists)):
        order = sorted(range(a, b), key=lambda y: (-scores[y], -ties[y], y))
        judged[str(i)] = {str(y): int(worth[y]) for y in order}
        run[str(i)] = {str(y): -float(rank) for rank, y in enumerate(order)}
    for query, found in pytrec_eval.RelevanceEvaluator(judged, {measure}).evaluate(run).items():
        expected[int(query)] = found[measure]
    rows = rows_of_scores(metric, lists, scores, ties, stats, reference)
    np.testing.assert_allclose(rows[:, 0], expected, atol=1e-12)
    assert float(metric.scores(rows.sum(0), reference.sum(0))) == pytest.approx(np.mean(expected))


def test_a_list_without_a_relevant_document_counts_zero() -> None:
    lists = [rerank.NBest("q", [("a", 2.0), ("b", 1.0)], gains=gains) for gains in ([1, 0], [0, 0])]
    assert rerank.evaluate([[2, 1], [2, 1]], lists, "ndcg").score == 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_the_value_along_a_line_is_that_of_its_points(kind: str) -> None:
    metric = made(kind)
    lists, intercept, ties, _, stats, reference = drawn(metric, seed=3, ties=False)
    slope = np.random.default_rng(7).integers(-3, 3, intercept.size).astype(float)
    surface = ErrorSurface.of(lists, slope[:, None], stats, reference, metric, intercept, ties)
    line = surface.line(intercept, slope)
    middles = [line.edges[0] - 1, *(line.edges[1:] + line.edges[:-1]) / 2, line.edges[-1] + 1]
    np.testing.assert_allclose([surface.score(np.array([m])) for m in middles], line.scores, atol=1e-12)
    points = np.linspace(-5, 5, 1001)
    at_points = [surface.score(np.array([m])) for m in points]
    np.testing.assert_allclose(at_points, line.scores[np.searchsorted(line.edges, points)], atol=1e-12)


def test_a_recipe_is_measured_by_an_order(tmp_path: Path, texts_data: Path) -> None:
    changes = {"metric": "ndcg@3", "significance": {"samples": 100}}
    recipe = small_rankings.recipe(texts_data, **changes)
    results = experiment.run(recipe, tmp_path / "run")
    scores = {name: report["ndcg@3"] for name, report in results["splits"]["test"].items()}
    assert scores["base"] < scores["average"] < scores["oracle"] < 1  # some lists have nothing right
    assert results["metric"].startswith("ndcg@3|gain:exp2|")
    lists = rerank.read(texts_data / "test.jsonl.gz", {"name": "jsonl", "base": "logprob"})
    measured = rerank.evaluate(rerank.load(tmp_path / "run" / "model"), lists)
    assert measured.score == pytest.approx(scores["average"], abs=1e-12)
    assert measured.scores["base"]["ndcg@3"] == pytest.approx(scores["base"], abs=1e-12)


def test_what_gives_no_order_is_refused(tmp_path: Path, texts_data: Path) -> None:
    for key, changes in {
        "decode": {"decode": {"kinds": ["mbr"]}},
        "training.vote": {"training": {"vote": True}},
    }.items():
        recipe = small_rankings.recipe(texts_data, metric="map", **changes)
        with pytest.raises(RecipeError, match="order of all candidates") as error:
            experiment.run(recipe, tmp_path / "run")
        assert error.value.key == key
    lists = [rerank.NBest("q", [("a", 2.0), ("b", 1.0)], gains=[1, 0])]
    with pytest.raises(DataError, match="finite score for every one"):
        rerank.evaluate([0], lists, "ndcg@10")
    with pytest.raises(DataError, match="too high"):
        rerank.evaluate([[1, 2]], [rerank.NBest("q", [("a", 2.0), ("b", 1.0)], gains=[99, 0])], "ndcg")


def test_commands_take_the_name_with_its_cut(tmp_path: Any, rerank: Any) -> None:
    path = tmp_path / "found.letor"
    path.write_text("0 qid:1 1:1\n1 qid:1 1:2\n")
    made = rerank("oracle", path, "--reader", "letor", "--metric", "mrr@1", "--json")
    assert (made.code, "mrr@1|" in made.out) == (0, True), made
    assert "gain has no setting 'k'" in rerank("oracle", path, "--reader", "letor", "--metric", "gain@3").err
    assert "unknown metric 'mr'; did you mean mrr?" in rerank("oracle", path, "--metric", "mr").err


SMALL: dict[str, Any] = {"trees": 12, "leaves": 5, "min_leaf": 3}
LEARNER = {"name": "lambdamart", **SMALL}


def grown(corpus: Corpus, **more: Any) -> Weights:
    return LambdaMart(**SMALL | more, base=0.0).grow(corpus, None, 1).weights["average"]


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


def write_runs(place: Path, queries: int = 40) -> tuple[list[str], dict[str, dict[str, int]], list[dict[str, Any]]]:
    """The paths of two runs and, beside them, of qrels: what is relevant, and the scores of each run by query."""
    rng = np.random.default_rng(3)
    grades = {f"q{i}": {f"d{k}": int(rng.random() < 0.2) for k in range(20)} for i in range(queries)}
    runs = [
        {query: dict([*{d: unit * (g + rng.normal() * noise) for d, g in own.items()}.items()][start : start + 15])
         for query, own in grades.items()}
        for start, noise, unit in ((0, 0.4, 7.0), (5, 0.8, 0.1))
    ]  # fmt: skip
    for name, run in zip(("a.run", "b.run"), runs, strict=True):
        (place / name).write_text(lines_of_run(run))
    (place / "qrels").write_text("".join(f"{q} 0 {d} {g}\n" for q, own in grades.items() for d, g in own.items()))
    return [str(place / "a.run"), str(place / "b.run")], grades, runs


def lines_of_run(run: dict[str, Any]) -> str:
    return "".join(f"{query} Q0 {d} 0 {float(score)!r} x\n" for query, own in run.items() for d, score in own.items())


def reciprocal_rank(grades: dict[str, int], scores: dict[str, float]) -> float:
    order = sorted(scores, key=lambda document: -scores[document])
    return next((1 / rank for rank, document in enumerate(order, start=1) if grades[document]), 0.0)


def rrf(scores: dict[str, float]) -> dict[str, float]:
    return {d: 1 / (60 + rank) for rank, d in enumerate(sorted(scores, key=lambda d: -scores[d]), start=1)}


def from_0_to_1(scores: dict[str, float]) -> dict[str, float]:
    low, high = min(scores.values()), max(scores.values())
    return {d: (score - low) / (high - low) for d, score in scores.items()}


def summed(*scores: dict[str, float]) -> dict[str, float]:
    return {d: sum(own.get(d, 0.0) for own in scores) for d in {d: 0 for own in scores for d in own}}


def test_rows_are_those_of_fusions_by_hand(tmp_path: Path, rerank: Any) -> None:
    paths, grades, (a, b) = write_runs(tmp_path)
    found = rerank("fuse", *paths, "--qrels", tmp_path / "qrels", "--metric", "mrr", "--json")
    assert found.code == 0, found
    data = json.loads(found.out)
    scores = {row["name"]: row["score"] for row in data["rows"]}
    by_hand = {
        "a.run": lambda q: a[q],
        "b.run": lambda q: b[q],
        "RRF": lambda q: summed(rrf(a[q]), rrf(b[q])),
        "CombSUM": lambda q: summed(from_0_to_1(a[q]), from_0_to_1(b[q])),
    }
    for name, fusion in by_hand.items():
        expected = np.mean([reciprocal_rank(grades[q], fusion(q)) for q in grades])
        assert scores[name] == pytest.approx(expected), name
    assert [row["p"] is None for row in data["rows"]] == [False, False, True, False, False, False, True]
    assert max(scores["learned: maxent"], scores["learned: weighed"]) > scores["b.run"]
    weights = data["weights"]
    assert sum(map(abs, weights.values())) == pytest.approx(1)
    assert weights["a.run"] > weights["b.run"] > 0
    (processor,) = data["pipeline"]["phase_results_processors"]
    assert processor["normalization-processor"]["combination"]["parameters"]["weights"] == pytest.approx(
        list(weights.values()), abs=1e-3
    )


def test_a_run_that_is_wrong_has_a_weight_that_no_engine_takes(tmp_path: Path) -> None:
    paths, _, (_, b) = write_runs(tmp_path)
    worst = {query: {document: -score for document, score in scores.items()} for query, scores in b.items()}
    Path(paths[1]).write_text(lines_of_run(worst))
    table = fuse_runs(paths, str(tmp_path / "qrels"), {"name": "ndcg", "k": 10})
    assert (table.pipeline, table.weights["b.run"] < 0) == (None, True)
    assert table.advice.startswith("b.run has a negative weight")


def test_what_cannot_be_fused(tmp_path: Path, rerank: Any) -> None:
    paths, *_ = write_runs(tmp_path, 4)
    qrels = ("--qrels", tmp_path / "qrels")
    for arguments, message in (
        ((paths[0], *qrels), "found one run; expected two or more"),
        ((*paths, *qrels, "--metric", "gain"), "expected a measure of the order"),
        ((*paths, "--qrels", tmp_path / "none"), "none: no such file"),
        ((*paths, *qrels), "found 4 lists with candidates; expected 5 or more"),
    ):
        refused = rerank("fuse", *arguments)
        assert (refused.code, message in " ".join(refused.err.split())) == (2, True), refused
