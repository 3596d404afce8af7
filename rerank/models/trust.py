"""Which code a model names, and whether its user allows it.

A model holds no code, but its settings can name parts of somebody's own by import path, ``module:Name``, and whoever
ranks with it imports and calls them. Parts of this program and those that an installed package registers, which have
plain names, run anyway.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from rerank.base.errors import ModelError
from rerank.readers.several import reader_names
from rerank.recipes.loading import read_settings
from rerank.recipes.recipe import ListRecipe

Trust = bool | str | Collection[str]  # all code, or none; or that of a module or of several, with what is below them


def require_trusted(settings: Mapping[str, Any], about: Mapping[str, Any], trust: Trust, path: str) -> None:
    """Refuse a model with these ``settings`` and this provenance if it names code that ``trust`` does not allow.

    Raises
    ------
    ModelError: it does; says which, and how to allow it.
    """
    names = [f"{key}: {name}" for key, name in _parts(settings, about) if ":" in name and not _allowed(name, trust)]
    if names:
        message = f"names code by import path ({', '.join(names)}), and none of it was imported"
        how = "allow it with --trust, in Python with trust=True or the names of its modules"
        raise ModelError(f"{message}; if you trust it and whoever made the model, {how}", path=path)


def _allowed(name: str, trust: Trust) -> bool:
    if isinstance(trust, bool):
        return trust
    module = name.partition(":")[0].strip()
    return any(f"{module}.".startswith(f"{each}.") for each in ([trust] if isinstance(trust, str) else trust))


def _parts(settings: Mapping[str, Any], about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The names of all parts that a model uses or was trained with, each with its key."""
    recipe = read_settings(dict(settings)) if settings else None
    if not isinstance(recipe, ListRecipe):
        return  # nothing is ever done by the recipe of such a model
    training, decode = recipe.training, recipe.decode
    for name, path in recipe.features.user.items():
        yield f"features.user.{name}", path
    for spec in recipe.features.templates:
        yield "features.templates", str(next(iter(spec), "") if isinstance(spec, Mapping) else spec).partition("(")[0]
    for name in reader_names(recipe.data.reader):
        yield "data.reader", name
    selected = [] if training.select is None else [training.select.learner]
    summed = [] if training.ensemble is None else training.ensemble.learners
    for spec in (recipe.learner, *selected, *summed):
        yield "learner", str(spec.get("name", ""))
    yield "metric", str(recipe.metric.get("name", ""))
    for how in (decode.gains, *(each.get("gains") for each in about.get("decodings", {}).values())):
        yield "decode.gains", how or ""
