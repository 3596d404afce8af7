"""Wall seconds of extraction with one process and with several, on the same lists.

    python benchmarks/scaling.py --root ../shared/data/parse/gum [--workers 1 2] [--engine processes]

Every number of workers extracts the same shards; whether that is so is printed too.
"""

import argparse
import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rerank.extraction.extraction import CorpusCache, extract_training
from rerank.pool import Engine, open_engine
from rerank.recipes.recipe import Recipe


def main() -> None:
    """Measure every number of workers in turn; what compiles or starts is done before the clock."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="../shared/data/parse/gum")
    parser.add_argument("--split", default="train")
    parser.add_argument("--set", default="cj2005")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="1: this process")
    parser.add_argument("--engine", default="processes", help="of several workers")
    parser.add_argument("--shard-size", type=float, default=128.0, help="MB")
    parser.add_argument("--rounds", type=int, default=1, help="the best of so many counts")
    parser.add_argument("--scratch", type=Path, help="where corpora go for the time of the measurement")
    parser.add_argument("--warm", default="data/quickstart", help="lists that load the kernels")
    arguments = parser.parse_args()
    if not Path(arguments.root).exists():
        raise SystemExit(f"{arguments.root} is not here: nothing measured")
    recipe = recipe_of(arguments.set, arguments.root, arguments.split, arguments.shard_size)
    warm = recipe_of(arguments.set, arguments.warm, "dev", arguments.shard_size)
    rounds = [
        measure(engine_of(arguments.engine, workers), workers, recipe, warm, arguments)
        for _ in range(arguments.rounds)
        for workers in arguments.workers
    ]
    best = {
        workers: min(found["seconds"] for found in rounds if found["workers"] == workers)
        for workers in arguments.workers
    }
    first = best[arguments.workers[0]]
    ratios = {workers: round(first / seconds, 2) for workers, seconds in best.items()}
    same = len({found["shards"] for found in rounds}) == 1
    print(json.dumps({"cores": os.cpu_count(), "rounds": rounds, "times_as_fast": ratios, "same": same}, indent=1))


def recipe_of(templates: str, root: str, split: str, shard_size: float) -> Recipe:
    """The recipe of the lists at ``root``."""
    data = {"root": root, "train": split, "shard_size": shard_size}
    return Recipe.model_validate({"name": "benchmark", "data": data, "features": {"set": templates}})


def engine_of(name: str, workers: int) -> Engine:
    """One worker is this process."""
    return open_engine("local") if workers == 1 else open_engine(name, workers)


def load_kernels(recipe: Recipe) -> int:
    """A task that loads what extraction needs; returns the process."""
    extract_training(recipe)
    return os.getpid()


def measure(
    engine: Engine, workers: int, recipe: Recipe, warm: Recipe, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Seconds of extraction to shards on disk."""
    with engine, TemporaryDirectory(dir=arguments.scratch) as directory:
        processes = set(engine.map(load_kernels, [warm] * (4 * workers)))
        start = time.perf_counter()
        extracted, table, _ = CorpusCache(Path(directory)).training(recipe, engine)
        seconds = time.perf_counter() - start
        return {
            "workers": workers,
            "processes": len(processes),
            "seconds": round(seconds, 2),
            "cpu_seconds": round(extracted.about["seconds"], 2),
            "lists": extracted.corpus.list_count,
            "nonzeros": extracted.corpus.nonzeros,
            "columns": table.width,
            "parts": extracted.corpus.count if hasattr(extracted.corpus, "count") else 1,
            "shards": digest(file.read_bytes() for file in sorted(Path(directory, "corpus").rglob("*.npy"))),
        }


def digest(contents: Iterator[bytes]) -> str:
    """A digest of some bytes."""
    found = hashlib.sha256()
    for content in contents:
        found.update(content)
    return found.hexdigest()[:16]


if __name__ == "__main__":
    main()
