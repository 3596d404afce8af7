"""The engine dask (two local workers) beside two processes: extraction, the same work on both.

    python benchmarks/engines.py --root ../shared/data/parse/gum [--split dev] [--repeats 3]

Engines take turns. Their start and the kernels' compilation are not counted; what travels is.
"""

import argparse
import json
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from rerank.extraction.extraction import CorpusCache
from rerank.pool import open_engine
from rerank.recipes.recipe import Recipe

NAMES = ("processes", "dask")


def main() -> None:
    """Measure on the lists of --split at --root."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="../shared/data/parse/gum")
    parser.add_argument("--split", default="train")
    parser.add_argument("--set", default="cj2005")
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
    """Extraction on both engines, in turn."""
    times: dict[str, list[float]] = {name: [] for name in NAMES}
    with ExitStack() as opened:
        engines = {name: opened.enter_context(open_engine(name, arguments.workers)) for name in NAMES}
        for repeat in range(arguments.repeats + 1):  # the first time does not count
            for name, engine in engines.items():
                start = time.perf_counter()
                CorpusCache(directory / f"{name}{repeat}").training(recipe, engine)
                if repeat:
                    times[name].append(round(time.perf_counter() - start, 3))
    overhead = round(median(times["dask"]) / median(times["processes"]) - 1, 3)
    return {"workers": arguments.workers, "seconds": times, "overhead": overhead}


if __name__ == "__main__":
    main()
