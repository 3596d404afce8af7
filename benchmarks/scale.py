"""Extraction of JSON lines of growing numbers of lists: CPU seconds and peaks of memory by stage, and who reads them.

    python benchmarks/scale.py [--lists 2500] [--times 1 4 16] [--candidates 100] [--features 12] [--workers 2]
        [--block 2097152]

Every size is a process of its own. ``read``: the lists are planned here, read, parsed and counted by blocks; ``count``:
the counts of blocks become a table; ``write``: the corpus, in parts. Lists have dense columns, and features some of
which recur. Printed are CPU seconds by stage, those of this process and of the workers, walls, peaks, and the slopes of
straight lines through the logarithms: 1 is proportional to the data. With workers: the wall beside that of one process.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from rerank.extraction import blocks
from rerank.extraction.extraction import Extraction
from rerank.pool import open_engine
from rerank.recipes.recipe import TextRecipe
from rerank.storage.streams import Inputs

STAGES = "read", "count", "write"


def write_lists(place: Path, lists: int, candidates: int, features: int) -> None:
    """JSON lines of random lists; features are drawn as words are, from a vocabulary that grows with the lists."""
    rng = np.random.default_rng(lists)
    with place.open("w") as out:
        for i in range(lists):
            named = rng.zipf(1.3, (candidates, features)) % (100 * lists)
            scores = rng.normal(size=(candidates, 3)).round(4)
            entries = [
                {"text": f"c {y}", "score": row[0], "lm": row[1], "gain": row[2], "features": {f"f{w}": 1 for w in own}}
                for y, (row, own) in enumerate(zip(scores.tolist(), named.tolist(), strict=True))
            ]
            out.write(json.dumps({"id": f"l{i}", "candidates": entries}) + "\n")


def recipe_of(path: Path) -> TextRecipe:
    """A recipe over the lists of a file."""
    data = {
        "nbest": str(path),
        "reader": {"name": "jsonl", "dense": ["lm", "gain"]},
        "dev": None,
        "tests": [],
        "references": None,
        "sources": None,
    }
    features = {"set": None, "templates": ["Dense", "Given"], "min_lists": 5}
    return TextRecipe.model_validate({"name": "scale", "task": "ranking", "data": data, "features": features})


def seconds() -> tuple[float, float, float]:
    """CPU seconds of this process and of the children that have ended, and the clock."""
    of = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return *(use.ru_utime + use.ru_stime for use in of), time.perf_counter()  # type: ignore[return-value]


def peak() -> float:
    """The peak of this process in MB since the last call."""
    status = Path("/proc/self/status").read_text().splitlines()
    found = int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1e3
    Path("/proc/self/clear_refs").write_text("5")
    return found


def extract(path: Path, place: Path, workers: int) -> dict[str, Any]:
    """One extraction, by stages."""
    spool, found = place / "spool", {}
    spool.mkdir(parents=True)
    (place / "corpus").mkdir()
    begun = seconds()
    with open_engine("local" if workers < 2 else "processes", workers) as engine, Inputs() as inputs:
        extraction = Extraction(recipe_of(path), "train", place / "corpus", spool, engine, inputs)
        table: Any = None
        for stage in STAGES:
            before, _ = seconds(), peak()
            if stage == "read":
                extraction.read()
            elif stage == "count":
                table = extraction.table()
            else:
                extraction.corpus(table)
            after = seconds()
            found[stage] = {"cpu": after[0] - before[0], "wall": after[2] - before[2], "peak": peak()}
    ended = seconds()
    return {**found, "workers": ended[1] - begun[1], "wall": ended[2] - begun[2]}


def slope(sizes: list[int], values: list[float]) -> float:
    """That of a straight line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0]) if len(sizes) > 1 else 1.0


def main() -> None:
    """Every size in a process of its own, after a small one for the kernels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", type=int, default=2500)
    parser.add_argument("--times", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--candidates", type=int, default=100)
    parser.add_argument("--features", type=int, default=12)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--block", type=int, default=blocks.BLOCK_BYTES, help="bytes of a block: few make many blocks")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    blocks.BLOCK_BYTES = options.block
    if options.one:
        print(json.dumps(extract(Path(options.one[0]), Path(options.one[1]), int(options.one[2]))))
        return
    found = list[dict[str, Any]]()
    with tempfile.TemporaryDirectory() as folder:
        for times in (0, *options.times):
            write_lists(path := Path(folder) / f"{times}.jsonl", options.lists * times or 50, options.candidates,
                        options.features)  # fmt: skip
            for workers in {1: None, options.workers: None}:
                command = [sys.executable, __file__, "--block", str(options.block), "--one", path,
                           f"{folder}/{times}-{workers}", str(workers)]  # fmt: skip
                one = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                if not times:
                    continue
                said = [f"{options.lists * times:,} lists, {path.stat().st_size / 1e6:.0f} MB, {workers} at work"]
                said += [f"{key} {one[key]['cpu']:.2f} s, {one[key]['peak']:.0f} MB" for key in STAGES]
                print("; ".join([*said, f"workers {one['workers']:.2f} s; wall {one['wall']:.2f} s"]), flush=True)
                found += [one] if workers == 1 else []
    for key in STAGES:
        print(f"{key}: CPU {slope(options.times, [one[key]['cpu'] for one in found]):.2f}, "
              f"memory {slope(options.times, [one[key]['peak'] for one in found]):.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
