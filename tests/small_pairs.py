"""A few lists of parses and of translations with what they belong to, and recipes over them."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import small
import small_texts
from strategies_damage import Files

from rerank.recipes.recipe import ListRecipe

COUNT = 4
KINDS: dict[str, list[dict[str, Any]]] = {  # changes to recipes of each kind
    "parses": [{"features": {"min_lists": 1, **features}} for features in ({}, {"set": "extended", "templates": []})],
    "texts": [
        {"metric": {"name": metric}, "features": {"min_lists": 1, "set": features}}
        for metric, features in (("bleu", "dptm"), ("chrf", "translation"), ("ter", "text"), ("wer", "speech"))
    ],
}


@cache
def files_of(kind: str) -> Files:
    """Lists of parses with their gold trees, or of texts with their sources and references."""
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        if kind == "parses":
            small.write_slices(root, {"train": COUNT})
            found = {"lists": small.lists_of(root / "train.nbest.gz"), "gold": small.golds_of(root / "train.gold.gz")}
            return {
                name: ("\n\n" if name == "lists" else "\n").join([*texts, ""]).encode() for name, texts in found.items()
            }
        small_texts.write_task(root)
        parts = {"lists": ("nbest", 6 * COUNT), "sources": ("src", COUNT), "references": ("ref", COUNT)}
        lines = {name: small_texts.lines_of(root / f"train.{end}.gz")[:count] for name, (end, count) in parts.items()}
        return {name: "\n".join([*texts, ""]).encode() for name, texts in lines.items()}


def recipe_of(kind: str, root: Path, data: dict[str, Any] | None = None, **changes: Any) -> ListRecipe:
    """A recipe over such lists in ``root``, which are training and dev split at once."""
    own: dict[str, Any] = {"nbest": "{root}/lists", "dev": "train", "tests": [], **(data or {})}
    changes = {"training": {"epochs": 1}, **changes}
    if kind == "parses":
        return small.recipe(root, data={"gold": "{root}/gold", **own}, **changes)
    return small_texts.recipe(
        root, data={"sources": "{root}/sources", "references": "{root}/references", **own}, **changes
    )
