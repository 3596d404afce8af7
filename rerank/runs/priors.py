"""Priors of single columns, by the names of features and templates."""

import numpy as np

from rerank.base.errors import RecipeError
from rerank.features.table import FeatureTable, Table
from rerank.learn.base_weight import make_learner
from rerank.learn.rules.winnow import Multiplicative
from rerank.recipes.recipe import ListRecipe


def priors(recipe: ListRecipe, table: Table) -> np.ndarray | None:
    """The priors of all columns (float64 [D]), where the recipe names some; those of features count more than those of
    their templates.

    Raises
    ------
    RecipeError: there is no such feature or template.
    """
    named = recipe.training.prior
    if not named:
        return None
    if not isinstance(table, FeatureTable):
        raise RecipeError("hashed columns have no names; leave out features.hash_bits or this", key="training.prior")
    learner = make_learner(recipe.learner)
    assert isinstance(learner, Multiplicative), "see checks"
    mu = np.full(table.width, learner.mu)
    features = {name: j for j in range(table.width) if (name := table.name(j)) in named}
    for name in (name for name in named if name not in features):
        if name not in table.templates:
            message = f"no feature or template is named {name!r}; the templates are {', '.join(table.templates)}"
            raise RecipeError(message, key="training.prior")
        mu[table.template == table.templates.index(name)] = named[name]
    for name, j in features.items():
        mu[j] = named[name]
    return mu
