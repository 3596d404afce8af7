"""The contents of the package: recipes, called by their names, and the lists that some of them run on."""

import difflib
import re
from pathlib import Path

from rerank.base.errors import RecipeError

PLACE = "{shipped}"  # in a recipe's data.root: the folder of the lists
_PACKAGE = Path(__file__).parents[1]
# A wheel has them inside the package, a checkout beside it.
HOME = _PACKAGE / "shipped" if (_PACKAGE / "shipped").is_dir() else _PACKAGE.parent


def placed_root(root: str) -> str:
    """The folder that a recipe's ``data.root`` names."""
    return root.replace(PLACE, str(HOME / "data"))


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
