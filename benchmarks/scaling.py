"""Wall seconds of extraction and of training by mixing with one process and with several, on the same lists.

    python benchmarks/scaling.py --root ../shared/data/parse/gum [--workers 1 2] [--engine processes] [--epochs 5]

Every number of workers extracts the same shards and trains the same weights; whether that is so is printed too.
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

import numpy as np

from rerank.data.shards import Lists, parts
from rerank.engines.settings import Engine, EngineSettings, open_engine
from rerank.extraction.cache import CorpusCache
from rerank.extraction.extraction import extract_training
from rerank.learn.mixing.mixing import Mixing, train_mixed
from rerank.learn.rules.vrda import VotedRDA
from rerank.metrics.oracle import oracle
from rerank.recipes.recipe import Recipe

LEARNER = VotedRDA(loss="hinge", eta=1.0, base=0.2)


def main() -> None:
    """Measure every number of workers in turn; what compiles or starts is done before the clock."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="../shared/data/parse/gum")
    parser.add_argument("--split", default="train")
    parser.add_argument("--set", default="cj2005")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="1: this process")
    parser.add_argument("--engine", default="processes", help="of several workers")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--sections", type=int, default=4, help="into how many sections mixing divides the lists")
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
    best = {workers: fastest(rounds, workers) for workers in arguments.workers}
    first = best[arguments.workers[0]]
    ratios = {
        workers: {key: round(first[key] / found[key], 2) for key in ("extract_seconds", "train_seconds")}
        for workers, found in best.items()
    }
    same = {key: len({found[key] for found in rounds}) == 1 for key in ("shards", "weights")}
    print(json.dumps({"cores": os.cpu_count(), "rounds": rounds, "times_as_fast": ratios, "same": same}, indent=1))


def recipe_of(templates: str, root: str, split: str, shard_size: float) -> Recipe:
    """The recipe of the lists at ``root``."""
    data = {"root": root, "train": split, "shard_size": shard_size}
    return Recipe.model_validate({"name": "benchmark", "data": data, "features": {"set": templates}})


def engine_of(name: str, workers: int) -> Engine:
    """One worker is this process."""
    settings = {"name": "local"} if workers == 1 else {"name": name, "workers": workers}
    return open_engine(EngineSettings.model_validate(settings))


def fastest(rounds: list[dict[str, Any]], workers: int) -> dict[str, float]:
    """The least seconds of every stage."""
    own = [found for found in rounds if found["workers"] == workers]
    return {key: min(found[key] for found in own) for key in ("extract_seconds", "train_seconds")}


def load_kernels(recipe: Recipe) -> int:
    """A task that loads what extraction and training need; returns the process."""
    corpus = extract_training(recipe)[0].corpus
    train(corpus, targets_of(corpus), 1, 2, None)
    return os.getpid()


def targets_of(lists: Lists) -> np.ndarray:
    """int64 [L]: the oracles, as candidates of all lists."""
    found = [np.zeros(0, np.int64)]
    for place, part in parts(lists):
        chosen = oracle(part.lists, part.gain, part.base)
        found.append(np.where(chosen >= 0, chosen + place.candidates, -1))
    return np.concatenate(found)


def train(lists: Lists, targets: np.ndarray, epochs: int, sections: int, engine: Engine | None) -> np.ndarray:
    """The averaged weights."""
    trained = train_mixed(
        LEARNER, lists, targets, mixing=Mixing(sections), engine=engine, epochs=epochs, seed=1, predictor="average"
    )
    return trained.weights["average"].w


def measure(
    engine: Engine, workers: int, recipe: Recipe, warm: Recipe, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Seconds of extraction to shards on disk, and of training on them."""
    with engine, TemporaryDirectory(dir=arguments.scratch) as directory:
        processes = set(engine.map(load_kernels, [warm] * (4 * workers)))
        start = time.perf_counter()
        extracted, table, _ = CorpusCache(Path(directory)).training(recipe, engine)
        middle = time.perf_counter()
        targets = targets_of(extracted.corpus)
        begun = time.perf_counter()
        weights = train(extracted.corpus, targets, arguments.epochs, arguments.sections, engine)
        end = time.perf_counter()
        return {
            "workers": workers,
            "processes": len(processes),
            "extract_seconds": round(middle - start, 2),
            "train_seconds": round(end - begun, 2),
            "cpu_seconds_of_extraction": round(extracted.about["seconds"], 2),
            "lists": extracted.corpus.list_count,
            "nonzeros": extracted.corpus.nonzeros,
            "columns": table.width,
            "parts": extracted.corpus.count if hasattr(extracted.corpus, "count") else 1,
            "shards": digest(file.read_bytes() for file in sorted(Path(directory, "corpus").rglob("*.npy"))),
            "weights": digest([weights.tobytes()]),
        }


def digest(contents: Iterator[bytes] | list[bytes]) -> str:
    """A digest of some bytes."""
    found = hashlib.sha256()
    for content in contents:
        found.update(content)
    return found.hexdigest()[:16]


if __name__ == "__main__":
    main()
