"""``rerank fuse`` beside fusions by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rerank.contrib.search.fuse import fused


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
        (place / name).write_text(json.dumps(run))
    (place / "qrels").write_text(json.dumps(grades))
    return [str(place / "a.run"), str(place / "b.run")], grades, runs


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
    Path(paths[1]).write_text(json.dumps(worst))
    table = fused(paths, str(tmp_path / "qrels"), {"name": "ndcg", "k": 10})
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
