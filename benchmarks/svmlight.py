"""Reading svmlight text beside scikit-learn's reader: seconds, MB/s and peak memory, each in a process of its own.

    python benchmarks/svmlight.py [--examples 500000] [--directory DIR]

The file is that of the generator ``zipf`` (550 bytes an example, all values 1) and, a tenth as long, one with values of
six digits; both are written to a temporary directory and removed. Compilation is not counted.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file

from rerank.contrib.classification.sets import Zipf, read_svmlight
from rerank.data.labelled import Labelled

WARM = "+1 1:1 2:0.5\n-1 2:1\n"


def main() -> None:
    """Write the files and measure both readers on them, or, with --reader, one reader on one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=500_000)
    parser.add_argument("--directory", help="where the files are written; a temporary directory by default")
    parser.add_argument("--root", help="not used: the examples are made here")
    parser.add_argument("--reader", choices=sorted(READERS))
    parser.add_argument("--file", type=Path)
    arguments = parser.parse_args()
    if arguments.reader:
        print(json.dumps(measure(arguments.reader, arguments.file)))
        return
    found: dict[str, Any] = {"examples": arguments.examples}
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        ones, _ = Zipf(arguments.examples, 1).draw(0)
        files = {"ones": ones, "values": with_values(ones.take(np.arange(max(1, arguments.examples // 10))))}
        for name, examples in files.items():
            path = Path(directory) / f"{name}.svm"
            rows = csr_matrix((examples.values, examples.columns, examples.rows), (examples.size, examples.width))
            dump_svmlight_file(rows, 2 * examples.label - 1, str(path), zero_based=False)
            found[name] = {"megabytes": round(path.stat().st_size / 1e6, 1), "nonzeros": examples.nonzeros}
            found[name] |= {reader: in_own_process(reader, path) for reader in READERS}
    print(json.dumps(found, indent=1))


def with_values(examples: Labelled) -> Labelled:
    """The same columns with values of six digits."""
    values = np.round(np.random.default_rng(0).random(examples.nonzeros), 6)
    return replace(examples, values=values)


def in_own_process(reader: str, path: Path) -> dict[str, Any]:
    """What ``measure`` says of a reader, or why it says nothing."""
    command = [sys.executable, __file__, "--reader", reader, "--file", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"not measured": (done.stderr.splitlines() or ["no message"])[-1]}
    return dict(json.loads(done.stdout))


def measure(reader: str, path: Path) -> dict[str, float]:
    """Read ``path`` on the clock, after a small file that compiles or loads what is needed."""
    read = READERS[reader]()
    with tempfile.TemporaryDirectory() as directory:
        warm = Path(directory) / "warm.svm"
        warm.write_text(WARM)
        read(warm)
    before = peak()
    start, cpu = time.perf_counter(), time.process_time()
    kept = read(path)
    seconds, used = time.perf_counter() - start, time.process_time() - cpu
    del kept
    return {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(used, 2),
        "megabytes_per_cpu_second": round(os.path.getsize(path) / 1e6 / max(used, 1e-3)),
        "peak_megabytes": round(peak()),
        "peak_megabytes_before": round(before),
    }


def peak() -> float:
    """Largest resident size of this process so far, in MB (where the system says: not that of the one it came from)."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def rerank_reader() -> Any:
    """This project's reader."""
    return read_svmlight


def sklearn_reader() -> Any:
    """scikit-learn's reader."""
    from sklearn.datasets import load_svmlight_file

    return lambda path: load_svmlight_file(str(path), dtype=np.float32)


READERS = {"rerank": rerank_reader, "scikit-learn": sklearn_reader}


if __name__ == "__main__":
    main()
