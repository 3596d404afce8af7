"""Start of commands: processor seconds to the help, to the version, and to the first list of `rerank rank`.

    python benchmarks/start.py [--model DIR --lists FILE] [--beside CHECKOUT] [--rounds 5]

Every call is a process of its own; the least of all rounds counts. CHECKOUT is another checkout of this program, whose
calls are measured in turn with those of this one, each after one that is not counted (for kernels to be compiled).
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]


def seconds(checkout: Path, words: list[str]) -> float:
    """Processor seconds of one command of a checkout, until it ends."""
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "rerank", *words],
        env=usual | {"PYTHONPATH": str(checkout)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _, _, used = os.wait4(process.pid, 0)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a model, for the first list of `rerank rank`")
    parser.add_argument("--lists", help="a file with one list in the format of the model's")
    parser.add_argument("--beside", type=Path, help="another checkout")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    calls = {"--help": ["--help"], "--version": ["--version"], "run --help": ["run", "--help"]}
    if arguments.model and arguments.lists:
        calls["rank, one list"] = ["rank", arguments.model, arguments.lists]
    places = {"this": HERE} | ({"beside": arguments.beside.resolve()} if arguments.beside else {})
    for name, words in calls.items():
        found: dict[str, list[float]] = {place: [] for place in places}
        for _ in range(arguments.rounds + 1):
            for place, checkout in places.items():
                found[place].append(seconds(checkout, words))
        print(
            json.dumps(
                {"command": name, **{f"cpu_seconds_{place}": round(min(all_[1:]), 3) for place, all_ in found.items()}}
            )
        )


if __name__ == "__main__":
    main()
