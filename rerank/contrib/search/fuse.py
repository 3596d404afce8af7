"""The worth of several runs of a search engine, each alone and fused, and the weights to fuse by."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rerank.base.errors import RecipeError
from rerank.cli.evaluating import shown_names
from rerank.metrics.metric import measures_orders, scored_rows
from rerank.readers.memory.reading import read
from rerank.readers.reader import MINMAX
from rerank.runs.report.table import TextTable
from rerank.runs.vote import SourceTable
from rerank.runs.weigh import BASE, COMBSUM, MAXENT, ORACLE, WEIGHED, table_of_weights
from rerank.storage.documents import as_json

RRF = "RRF"
ROWS = {BASE: RRF, COMBSUM: COMBSUM, MAXENT: f"learned: {MAXENT}", WEIGHED: f"learned: {WEIGHED}", ORACLE: ORACLE}


@dataclass(frozen=True)
class FusedRuns(SourceTable):
    """The worth of runs and their fusions; weights: of the better learned row, by run."""

    weights: dict[str, float]

    def as_data(self) -> dict[str, Any]:
        return super().as_data() | {"weights": self.weights}

    def tables(self) -> tuple[TextTable, ...]:
        """The worth of runs and their fusions, and the weights."""
        note = f"Learned weights are cross-validated over queries in {self.folds} folds."
        rows = [{"run": name, "weight": f"{weight:.3f}"} for name, weight in self.weights.items()]
        return self.table(note), TextTable.of("Weights of all queries", rows)

    @property
    def pipeline(self) -> dict[str, Any] | None:
        """A search pipeline of OpenSearch with these weights; None where an engine does not take them."""
        if min(self.weights.values()) < 0:
            return None
        weights = [round(weight, 3) for weight in self.weights.values()]
        last = round(1 - sum(weights[:-1]), 3)
        combination = {"technique": "arithmetic_mean", "parameters": {"weights": [*weights[:-1], last]}}
        processor = {"normalization": {"technique": "min_max"}, "combination": combination}
        return {"phase_results_processors": [{"normalization-processor": processor}]}

    @property
    def advice(self) -> str:
        """A sentence on how to use the weights."""
        if self.pipeline is None:
            worst = min(self.weights, key=lambda name: self.weights[name])
            return f"{worst} has a negative weight, which search engines do not take: fuse the others alone."
        return (
            f"OpenSearch (weights in the order of the queries): PUT /_search/pipeline/fused\n{as_json(self.pipeline)}"
        )


def fuse_runs(runs: list[str], qrels: str, metric: dict[str, Any]) -> FusedRuns:
    """Runs of TREC and their fusions, by a ``metric`` of the order.

    Raises DataError: files that cannot be read, or too few queries. RecipeError: a metric of another kind.
    """
    if not measures_orders(metric["name"]):
        raise RecipeError(f"found {metric['name']}; expected a measure of the order, such as ndcg@10", key="--metric")
    lists = read(runs[0], {"name": "trec", "qrels": qrels, "others": runs[1:], "scores": "score"})
    columns, rrf = ([f"{kind}{k}" for k in range(1, len(runs) + 1)] for kind in (MINMAX, "rrf_"))
    table = table_of_weights(lists, metric, use=columns)
    names, source = shown_names(runs), table.source
    values = np.array([[candidate.columns[name] for nbest in lists for candidate in nbest.candidates] for name in rrf])
    corpus = source.corpus
    rows = {  # reciprocal ranks are 0 for documents that a run has not found
        name: scored_rows(replace(corpus, stats=corpus.stats * (ranks > 0)[:, None]), source.metric, ranks)
        for name, ranks in zip(names, values, strict=True)
    } | {name: table.results.rows[key] for key, name in ROWS.items()}
    results = replace(table.results, rows=rows, against=RRF)
    weights = {name: table.learned_weights.get(column, 0.0) for name, column in zip(names, columns, strict=True)}
    total = sum(map(abs, weights.values()))
    return FusedRuns(results, source, table.folds, {name: weight / total for name, weight in weights.items()})
