"""ListRanker on a large matrix: seconds, and memory beside that of the matrix, by kind of input.

    python benchmarks/arrays.py [--rows 100000 1000000] [--columns 20] [--kinds dense csr pandas] [--epochs 3]

Lists have eight rows of random numbers (of a CSR matrix a tenth is not 0) and a gain that three columns know a part of.
Every measurement is a process of its own that has loaded its kernels before; memory is the most that a fit allocates.
"""

import argparse
import json
import subprocess
import sys
import time
import tracemalloc
from typing import Any

import numpy as np
from scipy import sparse

from rerank.contrib.sklearn import ListRanker

SIZE = 8
KINDS = "dense", "csr", "pandas"


def main() -> None:
    """Measure every kind and number of rows in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        kind, rows = arguments.one
        print(json.dumps(measure(kind, int(rows), arguments.columns, arguments.epochs)))
        return
    print("| input | rows | values | matrix, MB | fit adds, MB | fit, s | a pass, ns a value | predict, s |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in arguments.kinds:
        for rows in arguments.rows:
            own = ["--columns", str(arguments.columns), "--epochs", str(arguments.epochs), "--one", kind, str(rows)]
            run = subprocess.run([sys.executable, __file__, *own], capture_output=True, check=True, text=True)
            print("| {} | {:,} | {:,} | {:.0f} | {:.0f} | {:.2f} | {:.1f} | {:.2f} |".format(*json.loads(run.stdout)))


def measure(kind: str, rows: int, columns: int, epochs: int) -> list[Any]:
    """A row of the table."""
    ranker = ListRanker(learner="arow", epochs=epochs, random_state=0)
    x, gain, sizes = problem(kind, SIZE * 1000, columns)
    ranker.fit(x, gain, group=sizes)
    x, gain, sizes = problem(kind, rows - rows % SIZE, columns)
    values = x.nnz if kind == "csr" else x.size
    held = x.data.nbytes + x.indices.nbytes + x.indptr.nbytes if kind == "csr" else 8 * x.size
    tracemalloc.start()
    ranker.fit(x, gain, group=sizes)
    more = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    start = time.process_time()
    ranker.fit(x, gain, group=sizes)
    seconds = time.process_time() - start
    start = time.process_time()
    ranker.predict(x)
    predicted = time.process_time() - start
    share = 1e9 * seconds / (values * epochs)
    return [kind, len(gain), int(values), held / 1e6, more / 1e6, seconds, share, predicted]


def problem(kind: str, rows: int, columns: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """A matrix of a kind, gains, and the sizes of lists."""
    rng = np.random.default_rng(0)
    if kind == "csr":
        x: Any = sparse.random_array((rows, columns * 10), density=0.1, format="csr", rng=rng)
        known = np.asarray(x[:, [0, 1, 2]].sum(axis=1)).ravel()
    else:
        x = rng.standard_normal((rows, columns))
        known = x[:, :3].sum(axis=1)
    gain = known + rng.standard_normal(rows)
    if kind == "pandas":
        import pandas

        x = pandas.DataFrame(x, columns=[f"f{j}" for j in range(columns)])
    return x, gain, np.full(rows // SIZE, SIZE)


if __name__ == "__main__":
    main()
