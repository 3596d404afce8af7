"""A made-up translation task: lists in Moses' format with sources and references, and recipes over them.

Every source word has a right and a wrong translation. The decoder scores at random, with a liking for the wrong
ones: the phrase pairs tell the difference, the dense scores a part of it.
"""

from pathlib import Path
from typing import Any

import numpy as np
from small import extended, lines_of, write_lines

from rerank.recipes.recipe import TextRecipe

__all__ = ["lines_of", "write_lines"]

SIZES = {"train": 40, "tune": 15, "dev": 15, "test": 20}
WORDS = 12
EMPTY = {"test": 7}  # a list of the split without candidates


def write_task(root: Path) -> None:
    """All splits in ``root``: {split}.nbest.gz, {split}.src.gz, and {split}.ref.gz and .ref2.gz."""
    for number, (split, size) in enumerate(SIZES.items()):
        rng = np.random.default_rng(number)
        nbest, sources, references, others = [], [], [], []
        for i in range(size):
            source = rng.integers(0, WORDS, rng.integers(4, 8)).tolist()
            sources.append(" ".join(f"quell{word}" for word in source))
            references.append(" ".join(f"good{word}" for word in source))
            others.append(" ".join(f"good{word}" for word in source[::-1]))
            if EMPTY.get(split) != i:
                nbest += [_candidate(i, source, rng) for _ in range(6)]
        for ending, lines in (("nbest", nbest), ("src", sources), ("ref", references), ("ref2", others)):
            write_lines(root / f"{split}.{ending}.gz", lines)


def _candidate(i: int, source: list[int], rng: np.random.Generator) -> str:
    good = rng.random(len(source)) < 0.5
    text = " ".join(f"{'good' if right else 'bad'}{word}" for word, right in zip(source, good, strict=True))
    spans = " ".join(f"{p}={p}" for p in range(len(source)))
    lm = 0.5 * good.sum() + 0.5 * rng.normal()
    total = 0.5 * rng.normal() - 0.2 * good.sum()
    return f"{i} ||| {text} ||| LM0= {lm:.4f} TM0= {rng.normal():.4f} {-len(source)} ||| {total:.4f} ||| {spans}"


def settings(root: Path, **changes: Any) -> dict[str, Any]:
    """A recipe over the task in ``root``; ``changes`` replace or, where both are mappings, extend its sections."""
    made: dict[str, Any] = {
        "name": "small-texts",
        "task": "translation",
        "data": {"root": str(root), "reader": {"name": "moses", "scores": "score"}},  # the base is worse than chance
        "features": {"set": "dptm", "min_lists": 2},
        "learner": {"name": "vrda", "loss": "hinge"},
        "training": {"epochs": 3, "vote": True},
        "significance": {"samples": 200},
        "examples": 3,
    }
    return extended(made, changes)


def recipe(root: Path, **changes: Any) -> TextRecipe:
    """``settings`` as a recipe."""
    return TextRecipe.model_validate(settings(root, **changes))
