"""Tasks, which are kinds of recipes, and recipes from files: YAML, changed by --set, becomes the recipe of its task.

What a task names is imported when a recipe is of it.
"""

import difflib
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rerank.base.errors import RecipeError
from rerank.base.registry import Registry, import_object, nearest, own_parts
from rerank.recipes.recipe import ListRecipe, TaskRecipe
from rerank.recipes.settings import Settings, as_settings, assign_all, undone, validate
from rerank.storage.documents import read_yaml, yaml_options
from rerank.storage.places import HOME


class Task(NamedTuple):
    """A kind of recipe, by import paths ``module:name``.

    recipe: its settings, a ``TaskRecipe``; kind: what is done with it, a ``Kind``; use: what its recipes are about, for
    `rerank list recipes`; tables: of a recipe and metrics.json, the tables of its results, if it has others than lists;
    lists: whether `rerank.fit` and `rerank tune` know it; new: of ``TaskFiles``, what they are and then the lines of a
    recipe for them, nothing if they are not its own; tries: commands that use a model, with MODEL and FILE; folds:
    whether its results are cross-validated.
    """

    recipe: str
    kind: str
    use: str
    tables: str = ""
    lists: bool = False
    new: str = ""
    tries: tuple[str, ...] = ()
    folds: bool = False


class TaskFiles(NamedTuple):
    """Files that `rerank new` makes a recipe for: all of them, which is trained on, which is dev and which are tests;
    the names of their splits, the folder that they are in, and what gives the pattern that recipes have of them;
    quote: a text as YAML has it. reader: the format, where it is known."""

    paths: Sequence[str]
    train: str
    dev: str | None
    tests: Sequence[str]
    splits: Mapping[str, str]
    root: str
    pattern: Callable[[], str]
    quote: Callable[[str], str]
    reader: str | None = None


LISTS = "rerank.runs.list_kind:ListKind"
TRIES = "rerank rank MODEL FILE", "rerank inspect MODEL"
TEXTS = "rerank.recipes.recipe:TextRecipe"
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
    """The uses of recipes, by task; those of others come last."""
    own = own_parts()["task"]
    return iter(dict.fromkeys(tasks.get(name).use for name in [*own, *tasks.names()]))


log = logging.getLogger("rerank")
LARGEST_RECIPE = 1 << 20  # bytes of a recipe; a larger file is something else


def load_recipe(path: str | Path, overrides: list[str] | None = None, *, quick: bool = False) -> TaskRecipe:
    """Read a recipe, a file or one that comes with the program, and apply ``key.path=value`` overrides (values are
    YAML); its class is that of its task.

    quick: with the settings that the recipe gives for a fraction of its time.
    """
    path = find_recipe(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST_RECIPE + 1)
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"cannot read the recipe: {error}", path=str(path)) from None
    if len(data) > LARGEST_RECIPE:
        raise RecipeError(
            f"more than {LARGEST_RECIPE >> 20} MiB; expected a recipe, a YAML file of settings", path=str(path)
        )
    try:
        settings = read_yaml(text)
    except ValueError as error:
        raise RecipeError(f"not valid YAML: {error}", path=str(path)) from None
    if not isinstance(settings, dict):
        raise RecipeError("expected a mapping of settings", path=str(path))
    settings.setdefault("name", path.stem)
    if quick:
        faster = settings.pop("quick", None)
        if not isinstance(faster, dict) or not faster:
            message = "the recipe says nothing of a quick run; leave out --quick, or add to it, as "
            raise RecipeError(message + "quick: {training.epochs: 1}", key="quick", path=str(path))
        assign_all(settings, faster)
    changes = yaml_options(overrides or [], "--set key.path=value")
    for words in assign_all(settings, changes):
        log.info("--set %s of the recipe", words)
    recipe = validate(_class_of(settings.get("task", "parse"), str(path)), settings, path=str(path))
    for key in changes:  # what seeds, the grid or every one of the runs would override
        runs = [run.set for run in recipe.runs]
        by = "seeds" if key == "seed" and recipe.seeds else "grid" if undone(key, recipe.grid) else None
        if runs and all(undone(key, run) for run in runs):
            by = "runs"
        if by is not None and by not in changes:
            message = f"--set changes nothing: the recipe's {by} override it; add --set '{by}=...' for others"
            raise RecipeError(message, key=key)
    return recipe


def _class_of(task: Any, path: str) -> type[TaskRecipe]:
    kind: type[TaskRecipe] = import_object(task_named(task, path).recipe)
    return kind


def read_settings(settings: Settings) -> TaskRecipe:
    """The recipe that stored ``settings``, a resolved recipe, describe; its class is that of its task."""
    return validate(_class_of(settings.get("task"), ""), settings)


def measuring_recipe(task: str, metric: Any = None, data: Settings | None = None) -> ListRecipe:
    """The recipe of base scores alone for lists that are measured: by ``metric`` (a name, or settings with one), by
    default that of the task."""
    settings = {"name": "measured", "task": task, "features": {"set": "base"}, "data": data or {}}
    recipe = read_settings(settings if metric is None else settings | {"metric": as_settings(metric)})
    assert isinstance(recipe, ListRecipe)
    return recipe


def shipped_recipes() -> dict[str, Path]:
    """The files of all recipes that come with the program, by name: ``quickstart``, ``papers/vrda-table1``."""
    folder = HOME / "recipes"
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in sorted(folder.rglob("*.yaml"))}


def find_recipe(source: str | Path) -> Path:
    """The file ``source``, or that of the recipe of this name."""
    path, recipes = Path(source), shipped_recipes()
    name = path.as_posix()
    if path.is_file() or (path.exists() and name not in recipes):
        return path
    if name in recipes:
        return recipes[name]
    near = difflib.get_close_matches(path.with_suffix("").as_posix(), recipes, n=1)
    hint = f"did you mean {near[0]}? Recipes that come with the program" if near else "known"
    message = f"cannot read the recipe: no such file, and no recipe of this name; {hint}: {', '.join(sorted(recipes))}"
    raise RecipeError(message, path=str(source))


def about_recipe(path: Path) -> str:
    """The first sentence of a recipe file, which is a comment."""
    head = re.match(r"(?:#[^\n]*\n)*", path.read_text(encoding="utf-8"))
    words = " ".join((head[0] if head else "").replace("#", " ").split())
    return re.split(r"[.:]? rerank run |(?<=\w|\))\.(?: (?=[A-Z])|$)", words)[0]
