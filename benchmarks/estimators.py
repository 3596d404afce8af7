"""The classifiers beside scikit-learn's SGDClassifier, in turn in one process: batches of few rows, and whole fits.

    python benchmarks/estimators.py [--only batches | fit] [--rounds 5] [--rows 500000]

batches: CPU milliseconds of ``partial_fit`` on 100 rows of 80 nonzeros, by the number of columns; medians and least of
many batches, since what interrupts the process makes one of them several times as long. fit: CPU seconds of a fit of
one epoch on 80 nonzeros a row and 100 columns, and how much the process grows, as a multiple of the bytes of the CSR
arrays, which include the input itself.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import SGDClassifier

from rerank.contrib import sklearn as estimators

warnings.filterwarnings("ignore")
NONZEROS, BATCH, BATCHES, WARM = 80, 100, 100, 20
FITTED = ("PerceptronClassifier", "PassiveAggressiveClassifier", "AROWClassifier", "SGDClassifier")
PEER: dict[str, Any] = {"loss": "hinge", "max_iter": 1, "tol": None, "random_state": 0}


def rows(n: int, columns: int, dtype: Any, seed: int = 0) -> tuple[sparse.csr_array, np.ndarray]:
    """n rows of NONZEROS values in columns drawn without replacement, and classes that a linear model can tell."""
    random = np.random.default_rng(seed)
    if columns > 100 * NONZEROS:  # a draw from each of as many ranges
        width = columns // NONZEROS
        found = random.integers(0, width, (n, NONZEROS)) + np.arange(NONZEROS) * width
    else:  # a random start and steps of 1, with the rest left out
        found = np.sort((random.integers(0, columns, (n, 1)) + np.arange(NONZEROS)) % columns, axis=1)
    indices = found.astype(np.int32).ravel()
    data = random.standard_normal(n * NONZEROS, np.float32).astype(dtype)
    data[data == 0] = 1.0  # no stored zeros
    X = sparse.csr_array((data, indices, np.arange(n + 1, dtype=np.int32) * NONZEROS), shape=(n, columns))
    scores = X @ random.standard_normal((columns, 2)).astype(dtype)
    return X, scores.argmax(axis=1)


def seconds(function: Callable[[], Any]) -> float:
    """CPU seconds of a call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def batches() -> None:
    """Milliseconds a batch by classifier and number of columns, in turn with the peer, ten batches each at a time."""
    for columns in (2**12, 2**20):
        given = [rows(BATCH, columns, np.float64, seed) for seed in range(BATCHES)]
        peer = started(SGDClassifier(**PEER), given)
        for name in estimators.__all__:
            if name in ("ListRanker", "SequenceTagger"):
                continue
            for average in ("last", "average"):
                own = started(getattr(estimators, name)(average=average, random_state=0), given)
                taken: dict[Any, list[float]] = {peer: [], own: []}
                for first in range(WARM, BATCHES, 10):
                    for model, times in taken.items():
                        times += [
                            1e3 * seconds(partial(model.partial_fit, *each)) for each in given[first : first + 10]
                        ]
                found: dict[str, Any] = {"columns": columns}
                for side, model in (("ms", own), ("peer_ms", peer)):
                    found |= {
                        side: round(statistics.median(taken[model]), 2),
                        f"least_{side}": round(min(taken[model]), 2),
                    }
                print(f"{name}, {average}: {json.dumps(found)}", flush=True)


def started(model: Any, given: list[Any]) -> Any:
    """A model after some batches, which compile and touch memory for the first time."""
    for X, y in given[:WARM]:
        model.partial_fit(X, y, classes=[0, 1])
    return model


def fits(count: int, rounds: int) -> None:
    """Seconds of a fit, both sides in turn."""
    for dtype in (np.float32, np.float64):
        X, y = rows(count, 100, dtype)
        own, other = {name: [] for name in FITTED}, []  # type: ignore[var-annotated]
        for name in FITTED:
            getattr(estimators, name)(epochs=1).fit(X[:1000], y[:1000])  # compiles
        for _ in range(rounds):
            other.append(seconds(partial(SGDClassifier(**PEER).fit, X, y)))
            for name, times in own.items():
                model = getattr(estimators, name)(epochs=1, average="last", random_state=0)
                times.append(seconds(partial(model.fit, X, y)))
        for name, times in {"sklearn SGDClassifier": other, **own}.items():
            ratio = statistics.median(a / b for a, b in zip(times, other, strict=True))
            found = {"dtype": np.dtype(dtype).name, "median_s": round(statistics.median(times), 3)}
            print(
                f"{name}: {json.dumps(found | {'least_s': round(min(times), 3), 'of_peer': round(ratio, 2)})}",
                flush=True,
            )


def growth(name: str, dtype: str, count: int) -> None:
    """One process of ``memory``: by how much its peak rises in a fit, beside the bytes of the input."""
    X, y = rows(count, 100, np.dtype(dtype))
    own = SGDClassifier(**PEER) if name == "sklearn" else getattr(estimators, name)(epochs=1, random_state=0)
    own.fit(X[:1000], y[:1000])
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")  # the peak starts again from what is in memory
    before = _status("VmRSS")
    own.fit(X, y)
    found = {"dtype": dtype, "input_mb": round(size / 1e6), "with_input": 1 + (_status("VmHWM") - before) / size}
    print(f"{name}: {json.dumps(found)}", flush=True)


def _status(field: str) -> int:
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def memory(count: int) -> None:
    """Growth in a fit, every measurement in a process of its own."""
    for dtype in ("float32", "float64"):
        for name in ("sklearn", *FITTED[:1], *FITTED[2:]):
            command = [sys.executable, __file__, "--rows", str(count), "--growth", name, dtype]
            print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["batches", "fit"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--growth", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.growth:
        growth(*arguments.growth, arguments.rows)
        return
    if arguments.only in (None, "batches"):
        batches()
    if arguments.only in (None, "fit"):
        fits(arguments.rows, arguments.rounds)
        memory(arguments.rows)


if __name__ == "__main__":
    main()
