"""Reading, features and PARSEVAL of whole lists: CPU seconds and peak memory, in a process of its own.

python benchmarks/extraction.py --root ../shared/data/parse/gum [--split train] [--set cj2005]
"""

import argparse
import json
import resource
import time
from pathlib import Path

from rerank.extraction.extraction import extract_training
from rerank.recipes.recipe import Recipe


def main() -> None:
    """Extract a split twice: the first time on one small split to load the compiled kernels, then measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="../shared/data/parse/gum")
    parser.add_argument("--split", default="train")
    parser.add_argument("--set", default="cj2005")
    parser.add_argument("--warm", default="data/quickstart", help="lists that load the kernels before the clock starts")
    arguments = parser.parse_args()
    if not Path(arguments.root).exists():
        raise SystemExit(f"{arguments.root} is not here: nothing measured")
    settings = {"name": "benchmark", "features": {"set": arguments.set, "min_lists": 5}}
    extract_training(Recipe.model_validate({**settings, "data": {"root": arguments.warm, "train": "dev"}}))
    recipe = Recipe.model_validate({**settings, "data": {"root": arguments.root, "train": arguments.split}})
    start, wall = time.process_time(), time.monotonic()
    extracted, table = extract_training(recipe)
    seconds = time.process_time() - start
    corpus = extracted.corpus
    print(
        json.dumps(
            {
                "split": arguments.split,
                "lists": corpus.list_count,
                "candidates": corpus.candidate_count,
                "nonzeros": corpus.nonzeros,
                "columns": table.width,
                "cpu_seconds": round(seconds, 2),
                "wall_seconds": round(time.monotonic() - wall, 2),
                "candidates_per_cpu_second": round(corpus.candidate_count / seconds),
                "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
