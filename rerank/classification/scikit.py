"""scikit-learn where it is needed, and a clear message where it is not installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rerank.base.errors import RecipeError


def scikit(module: str, key: str) -> Any:
    """A module of scikit-learn, which only some settings need; ``key`` names the setting.

    Raises
    ------
    RecipeError: it is not installed.
    """
    try:
        return import_module(f"sklearn.{module}")
    except ImportError as error:
        message = f"needs scikit-learn ({error}); install it with pip install 'rerank[classification]'"
        raise RecipeError(message, key=key) from None
