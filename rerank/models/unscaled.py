"""Weights of dense columns: corpora hold the columns standardised, models hold weights for the values as they are.

With x' = scale · x in a corpus, a weight w' of training is the weight w = scale · w' of the values as files have them.
The column of the template BaseScore is the base score, whose one weight is what both are together.
"""

import numpy as np

from rerank.features.table import FeatureTable, Table
from rerank.learn.base import Weights


def raw_weights(weights: Weights, table: Table) -> Weights:
    """Weights of standardised columns folded back: those of the values as they are."""
    return _times(weights, table, 1.0)


def standard_weights(weights: Weights, table: Table) -> Weights:
    """The inverse of ``raw_weights``."""
    return _times(weights, table, -1.0)


def _times(weights: Weights, table: Table, power: float) -> Weights:
    if not isinstance(table, FeatureTable) or table.free == 0:
        return weights
    w = np.array(weights.w)
    w[: table.free] *= table.scale**power
    return Weights(w, weights.base)


def one_base(weights: Weights, table: Table, *, standard: bool = False) -> Weights:
    """The same with the weight of the table's ``base_column`` in that of the base score; ``standard``: weights of
    standardised columns."""
    j = table.base_column
    if j is None or weights.w[j] == 0.0:
        return weights
    w = np.array(weights.w)
    added, w[j] = float(w[j]) * (float(table.scale[j]) if standard else 1.0), 0.0
    return Weights(w, weights.base + added)
