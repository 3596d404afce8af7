"""A model of the base score alone: what applies to lists that nothing was trained on."""

import numpy as np

from rerank.features.table import FeatureTable
from rerank.learn.base import Weights
from rerank.models.model import Model
from rerank.recipes.recipe import ListRecipe


def base_model(recipe: ListRecipe) -> Model:
    """A model that scores candidates as their lists do; ``recipe`` says what they are and how they are measured."""
    nothing = np.zeros(0, np.uint64)
    table = FeatureTable(nothing, np.zeros(0, np.int32), np.zeros(1, np.int64), nothing, (), {}, {})
    weights = {name: Weights(np.zeros(0), 1.0) for name in ("last", "average")}
    return Model(recipe.model_dump(mode="json"), {}, table, weights)
