"""The features that a model is asked to have, where lists are a data frame: columns of it, and templates."""

import dataclasses
import difflib
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from rerank.base.errors import RecipeError
from rerank.features.sets import SETS
from rerank.features.template import templates
from rerank.readers.given.frames import FrameLists

log = logging.getLogger("rerank")


def frame_features(features: Any, lists: FrameLists) -> tuple[Any, FrameLists]:
    """What ``features`` say besides columns of a data frame, and the lists with these columns."""
    every = [features] if isinstance(features, str) else [] if features is None else features
    if not isinstance(every, Iterable) or isinstance(every, Mapping):
        return features, lists
    every, roles = list(every), {name: key for key, name in lists.names.items() if key != "columns"}
    own = [name for name in every if isinstance(name, str) and name in lists.frame.columns]
    if twice := [name for name in own if name in SETS and name not in roles]:
        message = f"{twice[0]!r} is a column and a set of templates; name columns in columns=[...], or rename it"
        raise RecipeError(message, key="features")
    own = [name for name in own if name not in SETS]
    if taken := [name for name in own if name in roles]:
        message = f"the column {taken[0]!r} is the {roles[taken[0]]}; leave it out of what to learn from"
        raise RecipeError(message, key="features")
    names = list(dict.fromkeys([*lists.names.get("columns", ()), *own]))
    rest = [each for each in every if each not in own]
    for each in rest:
        near = difflib.get_close_matches(each, lists.frame.columns, n=1) if isinstance(each, str) else []
        if near and each not in SETS and each.partition("(")[0] not in templates:
            message = f"no column and no template is called {each!r}; did you mean the column {near[0]!r}?"
            raise RecipeError(message, key="features")
    if not names and (unused := lists.unused()):
        log.warning("no column is learned from: features=[...] may name %s", ", ".join(map(repr, unused)))
    if own and not any(each == "Dense" or "Dense" in SETS.get(each, ()) for each in rest if isinstance(each, str)):
        rest = [*rest, "Dense"] if rest else ["dense"]
    return None if features is None else rest, dataclasses.replace(
        lists, names={**lists.names, "columns": names} if names else lists.names
    )
