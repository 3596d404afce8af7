"""A model of weights that are known: those of a table of weights."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rerank.learn.base import Weights
from rerank.models.reranker import Reranker
from rerank.runs.fitting import fit
from rerank.runs.gathered import WORDS
from rerank.runs.ways import PENALTY
from rerank.runs.weigh import WeightTable

DENSE, COUNTED = "Dense|", "Length(binned=False)"  # the second is the template of WORDS


def weighed_model(lists: Any, metric: Mapping[str, Any], table: WeightTable) -> Reranker:
    """The model that scores candidates by the weights of ``table``, which was made of ``lists``."""
    alone = [line.column for line in table.weights] == [table.base]  # of which no template makes a column
    counted = [COUNTED] if any(line.column == WORDS for line in table.weights) else []
    features = {"set": "base"} if alone else {"set": None, "templates": ["Dense", *counted], "min_lists": 1}
    model = fit(lists, metric=metric, features=features, learner={"name": "maxent", "l2": PENALTY}).model
    known = {line.column: line.weight for line in table.weights}
    prefix = re.compile(rf"{re.escape(DENSE)}|{re.escape(COUNTED)}\|")
    names = [prefix.sub("", model.table.name(j)) for j in range(model.table.width)]
    w = np.array([known.get(name, 0.0) for name in names])
    weights = Weights(w, known.get(table.base or "", 0.0))
    same = dict.fromkeys(("last", "average"), weights)
    return Reranker(replace(model, weights=same, state={}, votes={}, brackets={}))
