"""What a command compiles where no kernel is kept: compilations, their CPU seconds, and the kernels that take most; and
how long one waits for it the first time, with kernels compiled ahead by another process, and the second.

    python benchmarks/compiling.py [--beside CHECKOUT] [--top 10] [COMMAND ...]

The command runs in a process of its own, with an empty directory for kernels; CHECKOUT is another checkout of this
program, in which the same command runs after it. By default it is `run recipes/quickstart.yaml`. Features that a run
below the same directory has left are taken from there, so give a new one with --output.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]


def child(found: Path, words: list[str]) -> None:
    """Run a command, and write what it has compiled: [name, CPU seconds with what it calls, of whom] in order."""
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            self.running: list[float] = []
            self.seen: list[tuple[str, float, int]] = []

        def on_start(self, _: Any) -> None:
            self.running.append(time.process_time())

        def on_end(self, happened: Any) -> None:
            seconds, function = time.process_time() - self.running.pop(), happened.data["dispatcher"].py_func
            self.seen.append((f"{function.__module__}.{function.__qualname__}", seconds, len(self.running)))

    from rerank.cli.application import main as command

    sys.argv = ["rerank", *words]
    with event.install_listener("numba:compile", Listener()) as listener:  # type: ignore[attr-defined]
        try:
            command()
        finally:
            found.write_text(json.dumps({"cpu_seconds": time.process_time(), "compiled": listener.seen}))


def measure(checkout: Path, words: list[str], top: int) -> dict[str, Any]:
    """What a command of a checkout compiles."""
    with tempfile.TemporaryDirectory() as place:
        found = Path(place, "found.json")
        environment = os.environ | {"NUMBA_CACHE_DIR": place, "PYTHONPATH": str(checkout)}
        alone = environment | {"NUMBA_NUM_THREADS": "1"}  # nothing is compiled ahead
        words = words or ["run", str(HERE / "recipes" / "quickstart.yaml"), "--output", f"{place}/runs/quickstart"]
        command = [sys.executable, "-P", __file__, "--child", str(found), *words]
        subprocess.run(command, env=alone, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        waits = []
        for _ in ("first", "second"):
            shutil.rmtree(Path(place, "runs"), ignore_errors=True)
            begun, command = time.monotonic(), [sys.executable, "-P", "-m", "rerank", *words]
            environment["NUMBA_CACHE_DIR"] = f"{place}/kernels"
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            waits.append(round(time.monotonic() - begun, 1))
        told = json.loads(found.read_text())
    called = [(round(seconds, 2), name) for name, seconds, depth in told["compiled"] if not depth]
    return {
        "checkout": checkout.name,
        "cpu_seconds": round(told["cpu_seconds"], 1),
        "compiling": round(sum(seconds for seconds, _ in called), 1),
        "first_and_second_run_seconds": waits,
        "compilations": len(told["compiled"]),
        "largest": sorted(called, reverse=True)[:top],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--top", type=int, default=10)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("words", nargs=argparse.REMAINDER, help="a command and its options")
    given = parser.parse_args()
    if given.child:
        child(given.child, given.words)
        return
    for checkout in [HERE, *([given.beside.resolve()] if given.beside else [])]:
        print(json.dumps(measure(checkout, given.words, given.top), indent=1))


if __name__ == "__main__":
    main()
