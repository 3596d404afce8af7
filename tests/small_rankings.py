"""A made-up ranking task: eight samples a prompt, several of them right, scored by dense columns that know a part."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
from small import extended

from rerank.recipes.recipe import TextRecipe

SIZES = {"train": 120, "dev": 60, "test": 60}
COLUMNS = ("logprob", "reward", "length")


def draw(rng: np.random.Generator, prompts: int, size: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """COLUMNS (float64 [prompts, size, 3]) and which samples are right (float64 [prompts, size]).

    Prompts differ in difficulty and in the level of all their scores; of some every sample is wrong.
    """
    right = rng.random((prompts, size)) < 1 / (1 + np.exp(-rng.normal(0, 1.5, (prompts, 1))))
    level = rng.normal(size=(prompts, 1))
    length = rng.normal(5 - 0.3 * right, 0.5)
    reward = right + level + rng.normal(size=right.shape)
    logprob = 0.5 * right - length + level + rng.normal(size=right.shape)
    return np.stack([logprob, reward, length], -1), right.astype(float)


def write_task(root: Path, *, dense: bool = True, sizes: dict[str, int] = SIZES) -> Path:
    """All splits in ``root`` as JSON lines; without ``dense`` the base score is the only one."""
    for number, (split, size) in enumerate(sizes.items()):
        x, right = draw(np.random.default_rng(number), size)
        lines = []
        for i in range(size):
            names = COLUMNS if dense else COLUMNS[:1]
            scores = [dict(zip(names, map(float, row), strict=False)) for row in x[i]]
            texts = [f"answer {y}" if right[i, y] else f"guess {y}" for y in range(len(scores))]
            candidates = [
                {"text": text, **own, "gain": float(gain)}
                for text, own, gain in zip(texts, scores, right[i], strict=True)
            ]
            lines.append(json.dumps({"id": f"{split}-{i}", "candidates": candidates}))
        (root / f"{split}.jsonl.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    return root


def settings(root: Path, **changes: Any) -> dict[str, Any]:
    """A recipe over the task in ``root``; ``changes`` replace or, where both are mappings, extend its sections."""
    made: dict[str, Any] = {
        "name": "small-rankings",
        "task": "ranking",
        "data": {
            "root": str(root),
            "nbest": "{root}/{split}.jsonl.gz",
            "sources": None,
            "references": None,
            "reader": {"name": "jsonl", "base": "logprob"},
        },
        "features": {"set": None, "templates": ["Dense"], "min_lists": 2},
        "learner": {"name": "vrda", "loss": "hinge"},
        "training": {"epochs": 3},
        "significance": {"samples": 200},
        "examples": 0,
    }
    return extended(made, changes)


def recipe(root: Path, **changes: Any) -> TextRecipe:
    """``settings`` as a recipe."""
    return TextRecipe.model_validate(settings(root, **changes))
