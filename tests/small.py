"""Small inputs for tests of the pipeline and the commands: slices of data/quickstart, and recipes over them."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from rerank.recipes.recipe import Recipe

QUICKSTART = Path(__file__).parents[1] / "data" / "quickstart"
SHARED = Path(os.environ.get("RERANK_SHARED") or QUICKSTART.parents[2] / "shared") / "data"
SIZES = {"train": 150, "dev": 40, "test": 40}
TEMPLATES = ["Rule", "Rule(ancestors=1)", "Heads", "Word(k=2)", "RightBranch"]
VOLATILE = ("seconds", "cpu_seconds", "peak_memory_bytes", "nonzeros_per_second", "voting_seconds", "stages")


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip a test without files of ``SHARED``, which are no part of the repository."""
    missing = [str(SHARED / name) for name in names if not (SHARED / name).exists()]
    return pytest.mark.skipif(bool(missing), reason=f"no {', '.join(missing)}; RERANK_SHARED names the folder above")


def lists_of(path: Path) -> list[str]:
    """The lists of a file, each as its text."""
    return gzip.decompress(path.read_bytes()).decode().strip("\n").split("\n\n")


def lines_of(path: Path) -> list[str]:
    """The lines of a file, plain or gz by the name."""
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()


def epoch_lines(history: Path) -> list[dict[str, Any]]:
    """The lines of epochs in a complete history file."""
    return [line for line in map(json.loads, lines_of(history)) if "stage" not in line]


def write_lines(path: Path, lines: list[str]) -> None:
    """The inverse of ``lines_of``."""
    text = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


golds_of, write_golds = lines_of, write_lines  # a tree a line


def write_lists(path: Path, lists: list[str]) -> None:
    """The inverse of ``lists_of``; plain or gz by the name."""
    text = "".join(f"{one}\n\n" for one in lists).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def write_slices(root: Path, sizes: dict[str, int] = SIZES) -> None:
    """The first lists of every split of the quickstart data, with their gold trees."""
    for split, size in sizes.items():
        write_lists(root / f"{split}.nbest.gz", lists_of(QUICKSTART / f"{split}.nbest.gz")[:size])
        write_golds(root / f"{split}.gold.gz", golds_of(QUICKSTART / f"{split}.gold.gz")[:size])


def extended(made: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A recipe whose sections ``changes`` replace or, where both are mappings, extend; a learner is replaced."""
    for key, value in changes.items():
        extends = isinstance(made.get(key), dict) and isinstance(value, dict) and key != "learner"
        made[key] = made[key] | value if extends else value
    return made


def settings(root: Path, **changes: Any) -> dict[str, Any]:
    """A recipe over the slices in ``root``; ``changes`` replace or, where both are mappings, extend its sections."""
    made: dict[str, Any] = {
        "name": "small",
        "data": {"root": str(root)},
        "features": {"set": None, "templates": TEMPLATES, "min_lists": 2},
        "learner": {"name": "perceptron"},
        "training": {"epochs": 2, "vote": True},
        "significance": {"samples": 200},
        "examples": 1,
    }
    return extended(made, changes)


def recipe(root: Path, **changes: Any) -> Recipe:
    """``settings`` as a recipe."""
    return Recipe.model_validate(settings(root, **changes))


def results(directory: Path) -> dict[str, Any]:
    """metrics.json of a run without what depends on the clock."""
    return without_clock(json.loads((directory / "metrics.json").read_text()))


def without_clock(value: Any, keys: tuple[str, ...] = VOLATILE) -> Any:
    """``value`` without times, or without what has other ``keys``."""
    if isinstance(value, dict):
        return {key: without_clock(entry, keys) for key, entry in value.items() if key not in keys}
    return [without_clock(entry, keys) for entry in value] if isinstance(value, list) else value


def files_of(directory: Path) -> dict[str, bytes]:
    """All files below a directory by their relative names."""
    return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()}
