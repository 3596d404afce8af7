"""A whole run of a recipe, by stage: seconds, CPU seconds and memory, where nothing is extracted yet.

    python benchmarks/recipe.py --root DIR [--recipe recipes/parse.yaml] [--beside CHECKOUT] [--rounds 2]

Every run is a process of its own, with a directory of its own for results and corpora; the first one of each checkout,
which compiles, is not counted. CHECKOUT is another checkout of this program, which runs in turn with this one.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]


def run(checkout: Path, recipe: Path, settings: list[str]) -> dict[str, Any]:
    """One run: its seconds from start to end, the CPU seconds of it and its workers, and what it says of its stages."""
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as place:
        output = Path(place, "run")
        words = ["run", str(recipe), "--output", str(output), *(word for own in settings for word in ("--set", own))]
        start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-P", "-m", "rerank", *words],
            env=usual | {"PYTHONPATH": str(checkout)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
        )  # fmt: skip
        seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        stages = json.loads((output / "metrics.json").read_text())["stages"]
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "own_memory_mb": round(max(own["peak_memory_bytes"] for own in stages.values()) / 1e6),
        "stages": {name: [round(own["seconds"], 1), round(own["cpu_seconds"], 1)] for name, own in stages.items()},
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default="../shared/data/parse/gum")
    parser.add_argument("--recipe", type=Path, default=HERE / "recipes" / "parse.yaml")
    parser.add_argument("--set", action="append", default=[], help="a setting, as for `rerank run`")
    parser.add_argument("--beside", type=Path, help="another checkout")
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    root = Path(arguments.root).resolve()
    if not root.exists():
        raise SystemExit(f"{root} is not here: nothing measured")
    places = {"this": HERE} | ({"beside": arguments.beside.resolve()} if arguments.beside else {})
    for number in range(arguments.rounds + 1):
        for place, checkout in places.items():
            found = run(checkout, arguments.recipe.resolve(), [f"data.root={root}", *arguments.set])
            if number > 0:
                print(json.dumps({"checkout": place, **found}), flush=True)


if __name__ == "__main__":
    main()
