"""Kinds of recipes: what a task's settings are, what runs them, and how results are shown.

What a task names is imported when a recipe is of it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rerank.base.errors import RecipeError
from rerank.base.registry import Registry, nearest, own_parts

SIZES = "rerank.runs.report.results:corpora_table"


class Task(NamedTuple):
    """A kind of recipe, by import paths ``module:name``.

    recipe: its settings, a ``TaskRecipe``; kind: what is done with it, a ``Kind``; sizes: a table of the entry
    ``corpora`` of metrics.json; tables: of a recipe and metrics.json, the tables of its results, if it has others
    than lists; use: what its recipes are about, for `rerank list recipes`; lists: whether `rerank.fit` and `rerank
    tune` know it; new: of ``TaskFiles``, what they are and then the lines of a recipe for them, nothing if they are
    not its own; tries: commands that use a model, with MODEL and FILE; folds: whether its results are
    cross-validated.
    """

    recipe: str
    kind: str
    use: str
    sizes: str = SIZES
    tables: str = ""
    lists: bool = False
    new: str = ""
    tries: tuple[str, ...] = ()
    folds: bool = False


class TaskFiles(NamedTuple):
    """Files that `rerank new` makes a recipe for: all of them, which is trained on, which is dev and which are tests;
    the names of their splits, the folder that they are in, and what gives the pattern that recipes have of them;
    quoted: a text as YAML has it. reader: the format, where it is known."""

    paths: Sequence[str]
    train: str
    dev: str | None
    tests: Sequence[str]
    splits: Mapping[str, str]
    root: str
    pattern: Callable[[], str]
    quoted: Callable[[str], str]
    reader: str | None = None


LISTS = "rerank.runs.list_kind:ListKind"
TRIES = "rerank rank MODEL FILE", "rerank inspect MODEL"
TEXTS = "rerank.recipes.text_recipe:TextRecipe"
PARSE = Task("rerank.recipes.recipe:Recipe", LISTS, "parses", lists=True, tries=TRIES)
TRANSLATION = Task(TEXTS, LISTS, "translations", lists=True, tries=TRIES)
SPEECH = Task(TEXTS, LISTS, "transcripts", lists=True, tries=TRIES)
RANKING = Task(TEXTS, LISTS, "samples", lists=True, tries=TRIES)
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
