"""The files of a recipe's splits, opened before anything is read; what is suggested for those that are missing."""

import logging
from pathlib import Path

from rerank.base.errors import DataError, RecipeError
from rerank.readers.inputs import Inputs
from rerank.recipes.recipe import ListRecipe

log = logging.getLogger("rerank")


def open_files(recipe: ListRecipe, inputs: Inputs) -> None:
    """Open every file of the recipe's splits. For a missing file, no file of another split is suggested; unless the
    split is a test split, none with "test" in its name.
    """
    files = {split: recipe.data.files(split) for split in recipe.splits}
    for split, kinds in files.items():
        others = {Path(path).name for own in files if own != split for paths in files[own].values() for path in paths}
        for kind, paths in kinds.items():
            for path in paths:
                if path == "-":
                    raise RecipeError("a recipe reads its files more than once; name a file", key=f"data.{kind}")
                if split not in recipe.data.tests:
                    others |= {found.name for found in Path(path).parent.glob("*test*")}
                try:
                    inputs.open(path, others=others)
                except DataError as error:
                    hints = _hints(recipe, split) if not Path(path).exists() else []
                    raise DataError("; ".join([error.message, *hints]), path=path) from None
    _warn_of_seen_lists(recipe, {split: kinds["nbest"] for split, kinds in files.items()})


def _warn_of_seen_lists(recipe: ListRecipe, lists: dict[str, list[str]]) -> None:
    """Warn where scores are of lists that the model knows; ``lists`` are the files of every split."""
    data = recipe.data
    known = dict.fromkeys(lists[data.training], "trained")
    for split in (*([data.dev] if data.dev and not data.is_holdout(data.dev) else []), *data.tests):
        for path in [path for path in lists[split] if path in known][:1]:
            message = "%s: the model is %s on its lists (%s): scores on them say little about other lists"
            log.warning(message, split, known[path], path)
        if split == data.dev:
            known = dict.fromkeys(lists[split], "chosen") | known


def _hints(recipe: ListRecipe, split: str) -> list[str]:
    """What to do where there is no file of a split."""
    unnamed = recipe.data.root == type(recipe.data).model_fields["root"].default
    hints = ["name the folder of the lists with --set data.root=DIR"] if unnamed else []
    return [*hints, *(["`data.dev: null` trains without a dev split"] if split == recipe.data.dev else [])]
