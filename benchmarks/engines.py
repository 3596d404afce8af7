"""The engine dask (two local workers) beside two processes: extraction and training by mixing, the same work on both.

    python benchmarks/engines.py --root ../shared/data/parse/gum [--split dev] [--epochs 3] [--repeats 3]

Engines take turns. Their start, the kernels' compilation and the reading of the cache are not counted; what travels is.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median

from rerank.engines.settings import Engine, EngineSettings, open_engine
from rerank.extraction.cache import CorpusCache
from rerank.learn.mixing.mixing import Mixing, train_mixed
from rerank.learn.rules.arow import AROW
from rerank.metrics.oracle import oracles
from rerank.recipes.recipe import Recipe

NAMES = ("processes", "dask")


def main() -> None:
    """Measure on the lists of --split at --root."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="../shared/data/parse/gum")
    parser.add_argument("--split", default="train")
    parser.add_argument("--set", default="cj2005")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    if not Path(arguments.root).exists():
        raise SystemExit(f"{arguments.root} is not here: nothing measured")
    recipe = Recipe.model_validate(
        {
            "name": "benchmark",
            "data": {"root": arguments.root, "train": arguments.split, "dev": None, "tests": []},
            "features": {"set": arguments.set},
        }
    )
    with tempfile.TemporaryDirectory() as directory:
        print(json.dumps(measure(recipe, Path(directory), arguments), indent=1))


def measure(recipe: Recipe, directory: Path, arguments: argparse.Namespace) -> dict[str, object]:
    """Both kinds of work on both engines, in turn."""
    engines: dict[str, Engine] = {}
    times: dict[str, dict[str, list[float]]] = {kind: {name: [] for name in NAMES} for kind in ("extraction", "mixing")}
    try:
        for name in NAMES:
            engines[name] = open_engine(EngineSettings(name=name, workers=arguments.workers))
        for repeat in range(arguments.repeats + 1):  # the first time does not count
            for name, engine in engines.items():
                seconds = once(recipe, directory / f"{name}{repeat}", engine, arguments)
                for kind, taken in seconds.items() if repeat else ():
                    times[kind][name].append(taken)
    except BaseException:
        for engine in engines.values():
            engine.stop()
        raise
    for engine in engines.values():
        engine.close()
    found: dict[str, object] = {"workers": arguments.workers, "seconds": times}
    for kind, by_engine in times.items():
        found[f"{kind}_overhead"] = round(median(by_engine["dask"]) / median(by_engine["processes"]) - 1, 3)
    return found


def once(recipe: Recipe, directory: Path, engine: Engine, arguments: argparse.Namespace) -> dict[str, float]:
    """Seconds of an extraction, and of a training on what it gives."""
    start = time.perf_counter()
    extracted, _, _ = CorpusCache(directory / "cache").training(recipe, engine)
    extraction = time.perf_counter() - start
    corpus = extracted.corpus
    targets, mixing = oracles(corpus), Mixing(arguments.shards)
    start = time.perf_counter()
    train_mixed(
        AROW(), corpus, targets, mixing=mixing, engine=engine, workspace=directory / "work",
        epochs=arguments.epochs, seed=1,
    )  # fmt: skip
    return {"extraction": round(extraction, 3), "mixing": round(time.perf_counter() - start, 3)}


if __name__ == "__main__":
    main()
