"""What the dense columns achieve alone: a logistic regression on them and the base score, in every results table.

Sparse features cost time, memory and care; a run that is no better than this line has gained nothing from them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.data.shards import Lists, parts
from rerank.features.dense import free_values
from rerank.features.table import Table
from rerank.learn.base import Weights
from rerank.learn.logistic import fit_logistic
from rerank.models.unscaled import raw_weights

log = logging.getLogger("rerank")
NAME = "logistic"  # of its choices, among those of the predictors
LARGEST = 1 << 30  # bytes of dense values; where lists have more, only every second, third, ... is taken


class DenseLine(NamedTuple):
    """The regression: weights over a recipe's columns, and what metrics.json says about it."""

    weights: Weights
    about: dict[str, Any]


def dense_line(corpus: Lists, table: Table) -> DenseLine | None:
    """Fit the regression on the training lists ``corpus``; None if there are no dense columns besides the base score.

    Its values are held in memory, LARGEST bytes at most.
    """
    F = corpus.free
    if F == 0:
        return None
    step = -(-8 * (F + 2) * corpus.candidate_count // LARGEST)
    taken = [_dense(part) for part in _every(corpus, step)]
    lists = np.concatenate([[0], np.cumsum(np.concatenate([sizes for sizes, *_ in taken]))]).astype(np.int64)
    x, gain, weight = (np.concatenate([each[k] for each in taken]) for k in (1, 2, 3))
    if step > 1:
        log.warning("logistic regression on dense columns: only one list in %d fits in memory", step)
    found = fit_logistic(lists, x, gain, weight)
    w = np.zeros(corpus.width)
    w[:F] = found[1:]
    weights = Weights(w, float(found[0]))
    raw = raw_weights(weights, table)
    named = {"base": raw.base, **{table.name(j): float(raw.w[j]) for j in range(F)}}
    return DenseLine(weights, {"lists": lists.size - 1, "weights": named})


def _every(corpus: Lists, step: int) -> Iterator[Corpus]:
    """The lists 0, step, 2·step, ... of all parts."""
    for place, part in parts(corpus):
        yield part if step == 1 else part.take(np.arange(-place.lists % step, part.list_count, step))


def _dense(part: Corpus) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sizes of lists, base score and dense columns of candidates (float64 [N, 1 + F]), gains, and weights of lists."""
    x = np.column_stack([np.asarray(part.base, np.float64), free_values(part)])
    return np.diff(part.lists), x, np.array(part.gain), np.array(part.weight)
