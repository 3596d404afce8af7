"""Metrics of an order: against naive definitions, trec_eval, and along lines."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import small_rankings

import rerank
from rerank.base.errors import DataError, RecipeError
from rerank.base.registry import build
from rerank.contrib.search.order import OrderMetric
from rerank.learn.error_surface import ErrorSurface
from rerank.metrics.metric import metrics
from rerank.metrics.oracle import rows_of_scores
from rerank.runs import experiment

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
    assert isinstance(metric, OrderMetric)
    return metric


def naive(kind: str, grades: list[float], ideal: list[float]) -> float:
    """A list's value by the definition; ``grades`` best first, ``ideal``: those of all documents, sorted."""
    relevant = sum(g >= 1 for g in ideal)
    cut = 5 if kind[-1] in "52" else len(ideal)
    top = grades[:cut]
    hits = [g >= 1 for g in top]
    if not relevant:
        return 0.0
    if "ndcg" in kind or kind == "exp2":
        gain = (lambda g: 2**g - 1) if kind == "exp2" else (lambda g: g)
        dcg = [sum(gain(g) / math.log2(r + 2) for r, g in enumerate(x)) for x in (top, ideal[:cut])]
        return dcg[0] / dcg[1]
    if kind == "recip_rank":
        return next((1 / (r + 1) for r, hit in enumerate(hits) if hit), 0.0)
    if kind.startswith("map"):
        return sum(sum(hits[: r + 1]) / (r + 1) for r, hit in enumerate(hits) if hit) / relevant
    return sum(hits) / (5 if kind == "P_5" else relevant)


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
def test_values_are_those_of_the_definition(kind: str) -> None:
    metric = made(kind)
    lists, scores, ties, grades, stats, reference = drawn(metric)
    expected = []
    for a, b in pairwise(lists):
        order = sorted(range(a, b), key=lambda y: (-scores[y], -ties[y], y))
        expected.append(naive(kind, [grades[y] for y in order], sorted(grades[a:b], reverse=True)))
    rows = rows_of_scores(metric, lists, scores, ties, stats, reference)
    np.testing.assert_allclose(rows[:, 0], expected, atol=1e-14)
    assert float(metric.scores(rows.sum(0), reference.sum(0))) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "exp2"])
def test_values_are_those_of_trec_eval(kind: str) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    metric = made(kind)
    lists, scores, ties, grades, stats, reference = drawn(metric, ties=False)
    queries = {i: range(a, b) for i, (a, b) in enumerate(pairwise(lists)) if b > a}
    judged = {str(i): {str(y): int(grades[y]) for y in span} for i, span in queries.items()}
    run = {str(i): {str(y): float(scores[y]) for y in span} for i, span in queries.items()}
    found = pytrec_eval.RelevanceEvaluator(judged, {kind}).evaluate(run)
    rows = rows_of_scores(metric, lists, scores, ties, stats, reference)
    np.testing.assert_allclose(rows[list(queries), 0], [found[str(i)][kind] for i in queries], atol=1e-12)


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


def test_a_recipe_is_measured_by_an_order(tmp_path: Any) -> None:
    changes = {"metric": "ndcg@3", "significance": {"samples": 100}}
    recipe = small_rankings.recipe(small_rankings.write_task(tmp_path), **changes)
    results = experiment.run(recipe, tmp_path / "run")
    scores = {name: report["ndcg@3"] for name, report in results["splits"]["test"].items()}
    assert scores["base"] < scores["average"] < scores["oracle"] < 1  # some lists have nothing right
    assert results["metric"].startswith("ndcg@3|gain:exp2|")
    lists = rerank.read(tmp_path / "test.jsonl.gz", {"name": "jsonl", "base": "logprob"})
    measured = rerank.evaluate(rerank.load(tmp_path / "run" / "model"), lists)
    assert measured.score == pytest.approx(scores["average"], abs=1e-12)
    assert measured.scores["base"]["ndcg@3"] == pytest.approx(scores["base"], abs=1e-12)


def test_what_gives_no_order_is_refused(tmp_path: Any) -> None:
    for key, changes in {
        "decode": {"decode": {"kinds": ["mbr"]}},
        "training.vote": {"training": {"vote": True}},
    }.items():
        recipe = small_rankings.recipe(small_rankings.write_task(tmp_path), metric="map", **changes)
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
    assert "is not one of parseval, bleu" in " ".join(rerank("oracle", path, "--metric", "mr").err.split())
