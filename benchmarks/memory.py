"""Peak memory of extraction, training and tests while the corpus grows: once, three and ten times the lists.

    python benchmarks/memory.py --root data/quickstart [--split train] [--times 1 3 10] [--shard-size 8]

Every stage is a process of its own. Its memory is what is its own (`RssAnon` of /proc, with that of its children,
looked at every 10 ms), without memory-mapped files, which the system takes back whenever it needs the room. The
larger corpora hold the same lists again and again, with `min_lists` as many times as large: they have the same columns.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from rerank.data.corpus import Corpus

STAGES = ("extract", "train", "test")


def main() -> None:
    """Measure every size in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="data/quickstart")
    parser.add_argument("--split", default="train", help="what is trained on; it is tested on the split test")
    parser.add_argument("--set", default="cj2005")
    parser.add_argument("--learner", default="vrda")
    parser.add_argument("--vote", action="store_true", help="keep the updates and evaluate the voted predictor")
    parser.add_argument("--min-lists", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--times", type=int, nargs="+", default=[1, 3, 10])
    parser.add_argument("--shard-size", type=float, default=8.0, help="MB: small, for many shards")
    parser.add_argument("--engine", default="local", help="of all sizes; others have the memory of their workers too")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--scratch", type=Path, help="where lists and corpora go for the time of the measurement")
    arguments = parser.parse_args()
    if not Path(arguments.root).exists():
        raise SystemExit(f"{arguments.root} is not here: nothing measured")
    with TemporaryDirectory(dir=arguments.scratch) as directory:
        # The first run compiles, which takes memory that has nothing to do with the corpus.
        measure(arguments, 1, Path(directory, "warm"))
        found = [measure(arguments, times, Path(directory, str(times))) for times in arguments.times]
    growth = {
        stage: round(found[-1]["peak_mb"][stage] / found[0]["peak_mb"][stage], 2)
        for stage in STAGES
        if found[0]["peak_mb"][stage]
    }
    print(json.dumps({"sizes": found, "last_to_first": growth}, indent=1))


def measure(arguments: argparse.Namespace, times: int, directory: Path) -> dict[str, Any]:
    """The peak of every stage on so many times the lists."""
    directory.mkdir()
    for split in (arguments.split, "test"):
        for kind in ("nbest", "gold"):
            content = Path(arguments.root, f"{split}.{kind}.gz").read_bytes()
            with (directory / f"{split}.{kind}.gz").open("wb") as out:
                for _ in range(times):
                    out.write(content)  # archives one behind the other are one archive
    recipe = directory / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(settings(arguments, times, directory)))
    output = directory / "runs" / "memory"
    peaks, seconds = {}, {}
    for stage in STAGES:
        command = [
            sys.executable,
            "-m",
            "rerank",
            "run",
            str(recipe),
            "--output",
            str(output),
            "--resume",
            "--until",
            stage,
        ]
        peaks[stage], seconds[stage] = peak_of(command, directory / f"{stage}.txt")
    corpora = [Corpus.load(path.parent) for path in (directory / "runs" / ".cache").glob("*/corpus/header.json")]
    files = (directory / "runs" / ".cache").glob("*/corpus/*.npy")
    return {
        "times": times,
        "lists": sum(corpus.list_count for corpus in corpora),
        "candidates": sum(corpus.candidate_count for corpus in corpora),
        "nonzeros": sum(corpus.nonzeros for corpus in corpora),
        "columns": corpora[0].width,
        "parts": sum(corpus.cuts.size - 1 for corpus in corpora),
        "corpora_mb": round(sum(path.stat().st_size for path in files) / 1e6),
        "peak_mb": peaks,
        "seconds": seconds,
    }


def settings(arguments: argparse.Namespace, times: int, directory: Path) -> dict[str, Any]:
    """The recipe: one learner over the lists in ``directory``."""
    return {
        "name": "memory",
        "data": {
            "root": str(directory),
            "train": arguments.split,
            "dev": None,
            "tests": ["test"],
            "reader": {"name": "charniak", "ids": "ordinal"},
            "shard_size": arguments.shard_size,
        },
        "features": {"set": arguments.set, "min_lists": arguments.min_lists * times},
        "learner": {"name": arguments.learner},
        "training": {"epochs": arguments.epochs, "vote": arguments.vote},
        "significance": {"samples": 100},
        "engine": {"name": arguments.engine, "workers": arguments.workers},
        "examples": 0,
    }


def peak_of(command: list[str], log: Path) -> tuple[float, float]:
    """The most memory (MB) that a command and its children had at a time, and the seconds it took."""
    start, peak = time.perf_counter(), 0
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process:
        while process.poll() is None:
            peak = max(peak, anonymous(process.pid))
            time.sleep(0.01)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{log.read_text()}")
    return round(peak / 1000, 1), round(time.perf_counter() - start, 1)


def anonymous(process: int) -> int:
    """kB of a process and its descendants that no file stands behind."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        children = [
            int(child)
            for task in Path(f"/proc/{process}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:  # it has just ended
        return 0
    own = next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)
    return own + sum(map(anonymous, children))


if __name__ == "__main__":
    main()
