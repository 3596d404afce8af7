"""A model of weights that are known: those of a table of weights."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rerank.learn.base import Weights
from rerank.models.reranker import Reranker
from rerank.runs.fitting import fit
from rerank.runs.ways import PENALTY
from rerank.runs.weigh import WeightTable

DENSE = "Dense|"


def weighed_model(lists: Any, metric: Mapping[str, Any], table: WeightTable) -> Reranker:
    """The model that scores candidates by the weights of ``table``, which was made of ``lists``."""
    alone = [line.column for line in table.weights] == [table.base]  # of which no template makes a column
    features = {"set": "base"} if alone else {"set": None, "templates": ["Dense"], "min_lists": 1}
    model = fit(lists, metric=metric, features=features, learner={"name": "maxent", "l2": PENALTY}).model
    known = {line.column: line.weight for line in table.weights}
    names = [model.table.name(j).removeprefix(DENSE) for j in range(model.table.width)]
    w = np.array([known.get(name, 0.0) for name in names])
    weights = Weights(w, known.get(table.base or "", 0.0))
    same = dict.fromkeys(("last", "average"), weights)
    return Reranker(replace(model, weights=same, state={}, votes={}, brackets={}))
