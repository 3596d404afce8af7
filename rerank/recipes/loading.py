"""Recipes from files: YAML, changed by --set, becomes the recipe of its task; and those that come with the program."""

import difflib
import logging
import re
from pathlib import Path
from typing import Any

from rerank.base.errors import RecipeError
from rerank.base.registry import imported
from rerank.base.shipped import HOME
from rerank.recipes.recipe import TaskRecipe
from rerank.recipes.settings import Settings, assign_all, undone, validate
from rerank.recipes.tasks import task_named
from rerank.storage.bounded_yaml import read_yaml, yaml_options

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
        _hasten(settings, str(path))
    changes = yaml_options(overrides or [], "--set key.path=value")
    for said in assign_all(settings, changes):
        log.info("--set %s of the recipe", said)
    recipe = validate(_class_of(settings.get("task", "parse"), str(path)), settings, path=str(path))
    _require_heeded(recipe, settings, changes)
    return recipe


def _hasten(settings: Settings, path: str) -> None:
    """Put the values under ``quick`` in their places."""
    quick = settings.pop("quick", None)
    if not isinstance(quick, dict) or not quick:
        message = (
            "the recipe says nothing of a quick run; leave out --quick, or add to it, as quick: {training.epochs: 1}"
        )
        raise RecipeError(message, key="quick", path=path)
    assign_all(settings, quick)


def _require_heeded(recipe: TaskRecipe, settings: Settings, changes: Settings) -> None:
    """Refuse ``changes`` given by --set that the recipe's seeds, its grid or every one of its runs would override."""
    for key in changes:
        runs = [run.get("set") or {} for run in settings.get("runs") or []]
        by = "seeds" if key == "seed" and recipe.seeds else "grid" if undone(key, settings.get("grid") or {}) else None
        if runs and all(undone(key, run) for run in runs):
            by = "runs"
        if by is not None and by not in changes:
            message = f"--set changes nothing: the recipe's {by} override it; add --set '{by}=...' for others"
            raise RecipeError(message, key=key)


def _class_of(task: Any, path: str) -> type[TaskRecipe]:
    kind: type[TaskRecipe] = imported(task_named(task, path).recipe)
    return kind


def read_settings(settings: Settings) -> TaskRecipe:
    """The recipe that stored ``settings``, a resolved recipe, describe; its class is that of its task."""
    return validate(_class_of(settings.get("task"), ""), settings)


def shipped_recipes() -> dict[str, Path]:
    """The files of all recipes that come with the program, by name: ``quickstart``, ``papers/vrda-table1``."""
    folder = HOME / "recipes"
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in sorted(folder.rglob("*.yaml"))}


def find_recipe(named: str | Path) -> Path:
    """The file that ``named`` is, or that of the recipe of this name."""
    path, known = Path(named), shipped_recipes()
    name = path.as_posix()
    if path.is_file() or (path.exists() and name not in known):
        return path
    if name in known:
        return known[name]
    near = difflib.get_close_matches(path.with_suffix("").as_posix(), known, n=1)
    hint = f"did you mean {near[0]}? Recipes that come with the program" if near else "known"
    message = f"cannot read the recipe: no such file, and no recipe of this name; {hint}: {', '.join(sorted(known))}"
    raise RecipeError(message, path=str(named))


def about_recipe(path: Path) -> str:
    """The first sentence of a recipe file, which is a comment."""
    head = re.match(r"(?:#[^\n]*\n)*", path.read_text(encoding="utf-8"))
    words = " ".join((head[0] if head else "").replace("#", " ").split())
    return re.split(r"[.:]? rerank run |(?<=\w|\))\.(?: (?=[A-Z])|$)", words)[0]
