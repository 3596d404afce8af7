"""Parts of scikit-learn by name, and a clear message where it is not installed."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

from rerank.base.errors import RecipeError
from rerank.base.registry import nearest
from rerank.recipes.settings import Settings


class ScikitPart(NamedTuple):
    """A class of scikit-learn: its module, its name, and settings that a recipe may override."""

    module: str
    name: str
    usual: Mapping[str, Any] = {}


def scikit(module: str, key: str) -> Any:
    """A module of scikit-learn, which only some settings need; ``key`` names the setting.

    Raises
    ------
    RecipeError: it is not installed.
    """
    try:
        return import_module(f"sklearn.{module}")
    except ImportError as error:
        message = f"needs scikit-learn ({error}); install it with pip install 'rerank-nbest[classification]'"
        raise RecipeError(message, key=key) from None


def part_named(parts: Mapping[str, ScikitPart], settings: Settings, key: str, refused: tuple[str, ...] = ()) -> Any:
    """The part that ``settings``, its name and scikit-learn's own parameters except those ``refused``, describe.

    Raises
    ------
    RecipeError: an unknown name or parameter, or no scikit-learn.
    """
    name = settings.get("name")
    if not isinstance(name, str) or name not in parts:
        raise RecipeError(f"found {name!r}; {nearest(str(name), parts)}", key=f"{key}.name")
    module, cls, usual = parts[name]
    made = getattr(scikit(module, key), cls)(**usual)
    own, known = own_settings(settings), set(made.get_params()) - set(refused)
    for each in own:
        if each not in known:
            raise RecipeError(f"{cls} has no {each!r} here; {nearest(each, known)}", key=key)
    return made.set_params(**own)


def own_settings(settings: Settings) -> Settings:
    """The settings of a part without its name."""
    return {each: value for each, value in settings.items() if each != "name"}
