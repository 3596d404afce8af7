"""Kinds of recipes: what a task's settings are, what runs them, and how results are shown.

What a task names is imported when a recipe is of it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from rerank.base.errors import RecipeError
from rerank.base.registry import Registry, nearest, own_parts


class Task(NamedTuple):
    """A kind of recipe, by import paths ``module:name``.

    recipe: its settings, a ``TaskRecipe``; steps: what runs it, ``Steps``; sizes: a table of the entry ``corpora`` of
    metrics.json; tables: of a recipe and metrics.json, the tables of its results, if it has others than lists; use:
    what its recipes are about, for `rerank list recipes`; lists: whether `rerank.fit` and `rerank tune` know it.
    """

    recipe: str
    steps: str
    use: str
    sizes: str = ""
    tables: str = ""
    lists: bool = False


LISTS = "rerank.runs.list_steps:ListSteps"
TEXTS = "rerank.recipes.text_recipe:TextRecipe"
PARSE = Task("rerank.recipes.recipe:Recipe", LISTS, "parses", lists=True)
TRANSLATION = Task(TEXTS, LISTS, "translations", lists=True)
SPEECH = Task(TEXTS, LISTS, "transcripts", lists=True)
RANKING = Task(TEXTS, LISTS, "samples", lists=True)
tasks = Registry[Task]("task")


def task_named(name: Any, path: str | None = None) -> Task:
    """The task of a recipe.

    Raises
    ------
    RecipeError: there is none of this name.
    """
    if not isinstance(name, str) or name not in tasks:
        raise RecipeError(f"found {name!r}; {nearest(str(name), tasks.names())}", key="task", path=path)
    return tasks.get(name)


def uses() -> Iterator[str]:
    """What recipes are about, by task; those of others come last."""
    own = own_parts()["task"]
    return iter(dict.fromkeys(tasks.get(name).use for name in [*own, *tasks.names()]))
