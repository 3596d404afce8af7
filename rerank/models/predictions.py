"""Predictions on lists by weights, and the result of the dense columns alone, in every results table.

Sparse features cost time, memory and care; a run that is no better than ``maxent`` on the dense columns and the base
score has gained nothing from them.
"""

from dataclasses import replace
from typing import Any

from rerank.data.corpus import Corpus
from rerank.features.dense import dense_alone
from rerank.features.table import Table
from rerank.learn.base import Weights
from rerank.learn.folds import best_trial, latest, padded, trials, with_base_column
from rerank.learn.rules.maxent import Maxent
from rerank.learn.scoring import weighed_rows
from rerank.metrics.metric import Metric
from rerank.metrics.oracle import oracles
from rerank.models.model import one_base, raw_weights

NAME = "logistic"  # of its choices, among those of the predictors


def corpus_score(lists: Corpus, weights: Weights, metric: Metric) -> float:
    """The metric of what ``weights`` choose."""
    rows = weighed_rows(lists, weights, metric).sum(axis=0)
    return float(metric.scores(rows, lists.reference.sum(axis=0)))


def dense_line(corpus: Corpus, table: Table, metric: Metric) -> tuple[Weights, dict[str, Any]] | None:
    """Fit the regression on the training lists ``corpus``: weights over a recipe's columns, and what metrics.json says
    about it; None if there are no dense columns besides the base score.

    Every candidate with the best gain of its list is right. The dense columns of the last lists, as many as are enough
    to choose among penalties, are held in memory: see ``folds.latest``.
    """
    if corpus.free == 0:
        return None
    lists = dense_alone(latest(corpus))
    learner = with_base_column(Maxent(columns="dense"), lists)
    (tried,) = trials(learner, lists, metric, oracles, any_ties=True).values()
    learner, state = replace(learner, l2=best_trial(tried).l2), learner.init(lists.width)
    learner.solve(lists, oracles(lists), state, any_ties=True)
    weights = padded(learner.last(state), corpus.width)
    raw = one_base(raw_weights(weights, table), table)
    columns = [j for j in range(corpus.free) if j != table.base_column]
    named = {"base": raw.base, **{table.name(j): float(raw.w[j]) for j in columns}}
    return weights, {"lists": lists.list_count, "l2": learner.l2, "weights": named}
