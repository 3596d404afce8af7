"""Kills runs at random moments, resumes them, compares what they leave with an uninterrupted run, and counts the cost.

    python benchmarks/faults.py --root ../shared/data/parse/gum [--kills 20] [--set training.epochs=5]

Every run is a process of its own with a cache of its own, so that moments fall into all stages in proportion to the
time that they take. The cost of a kill is the time of the killed and the resumed run together less that of an
uninterrupted one (the median of several, done in between): the start of another process, and what is done again. Half
of the resumed runs are killed too.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from rerank.runs.experiment import stage_lines

CLOCK = ("seconds", "cpu_seconds", "peak_memory_bytes", "nonzeros_per_second", "voting_seconds", "stages", "date")


def main() -> None:
    """Measure on the lists at --root."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default="../shared/data/parse/gum")
    parser.add_argument("--recipe", default=str(Path(__file__).parents[1] / "recipes" / "parse.yaml"))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--workspace", type=Path, help="where runs go; a temporary directory by default")
    arguments = parser.parse_args()
    if not Path(arguments.root).exists():
        raise SystemExit(f"{arguments.root} is not here: nothing measured")
    sets = [f"data.root={Path(arguments.root).absolute()}", "training.vote=true", *arguments.set]
    command = [sys.executable, "-m", "rerank", "--quiet", "run", arguments.recipe]
    command += [word for each in sets for word in ("--set", each)]
    with tempfile.TemporaryDirectory(dir=arguments.workspace) as place:
        print(json.dumps(measure(command, Path(place), arguments.kills, random.Random(arguments.seed)), indent=1))


def measure(command: list[str], place: Path, kills: int, rng: random.Random) -> dict[str, Any]:
    """Kill, resume, compare."""
    finish(command, place / "warm" / "out")  # compiles kernels, and brings the files into memory
    wholes = [finish(command, place / "whole" / "out")]
    expected = determined(place / "whole" / "out")
    spans, different, kept = list[tuple[str, float, int]](), [], 0
    for number in range(kills):
        whole, output = statistics.median(wholes), place / str(number) / "out"
        spent, stage = kill(command, output, rng.uniform(0, whole))
        moments = 1
        if number % 2:
            further, _ = kill([*command, "--resume"], output, rng.uniform(0, whole))
            spent, moments = spent + further, 2
        spent += finish([*command, "--resume"], output)
        spans.append((stage, spent, moments))
        if determined(output) != expected:
            different.append(number)
        kept += moments
        shutil.rmtree(output.parent)
        if number % 4 == 3:
            wholes.append(finish(command, place / "again" / "out"))
            shutil.rmtree(place / "again")
    whole, costs = statistics.median(wholes), defaultdict[str, list[float]](list)
    for stage, spent, moments in spans:
        costs[stage].append((spent - whole) / moments)
    every = [cost for found in costs.values() for cost in found]
    return {
        "seconds_uninterrupted": [round(seconds, 2) for seconds in wholes],
        "kills": kept,
        "runs_with_other_results": different,
        "cost_of_a_kill": {"mean_share": share(every, whole), "largest_share": round(max(every) / whole, 3)},
        "mean_share_by_stage_of_the_first_kill": {stage: share(found, whole) for stage, found in costs.items()},
        "stages": {
            line["stage"]: line["seconds"]
            for line in stage_lines(place / "whole" / "out" / "history.jsonl")
            if line["event"] == "end"
        },
    }


def share(seconds: list[float], whole: float) -> float:
    """The mean as a share of the uninterrupted run."""
    return round(statistics.mean(seconds) / whole, 3)


def finish(command: list[str], output: Path) -> float:
    """Run to the end; returns the seconds that it took."""
    start = time.perf_counter()
    subprocess.run([*command, "--output", str(output)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def kill(command: list[str], output: Path, seconds: float) -> tuple[float, str]:
    """kill -9 after some seconds; returns those it had, and the stage that it was in."""
    start = time.perf_counter()
    with subprocess.Popen([*command, "--output", str(output)], stdout=subprocess.DEVNULL) as running:
        try:
            running.wait(seconds)
        except subprocess.TimeoutExpired:
            running.kill()
    lines = stage_lines(output / "history.jsonl")
    return time.perf_counter() - start, lines[-1]["stage"] if lines else "start"


def determined(output: Path) -> dict[str, Any]:
    """What the recipe determines of the results."""
    files = [*output.rglob("*.gz"), *output.rglob("*.npy"), *output.rglob("*.npz"), output / "recipe.yaml"]
    found: dict[str, Any] = {os.path.relpath(path, output): path.read_bytes() for path in files}
    found["metrics"] = steady(json.loads((output / "metrics.json").read_text()))
    found["history"] = steady(
        [line for line in map(json.loads, (output / "history.jsonl").open()) if "stage" not in line]
    )
    return found


def steady(value: Any) -> Any:
    """``value`` without what depends on the clock."""
    if isinstance(value, dict):
        return {key: steady(entry) for key, entry in value.items() if key not in CLOCK}
    return [steady(entry) for entry in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
