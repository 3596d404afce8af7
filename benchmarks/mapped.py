"""Epochs over a corpus that is mapped from disk and larger than memory: in order, by parts, and shuffled as a whole.

    python benchmarks/mapped.py [--gigabytes 2] [--parts 16] [--memory 1] [--orders order parts training]

Each epoch of the perceptron is a process in a memory cgroup of its own (which takes root; ``--memory 0``: in none),
page cache included, and begins with nothing of the corpus in memory. "parts" reads their pages as the lists come,
"training" is what training does: a part is read in one go before its lists come in a random order. Printed are seconds
and peaks of memory. "shuffled" takes minutes.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rerank.data.corpus import Corpus, save_joined
from rerank.learn.rules.additive import Perceptron
from rerank.learn.train import ListProblem
from rerank.metrics.metric import oracles

CANDIDATES, NONZEROS, WIDTH = 20, 80, 1_000_000  # of a list, of a candidate, of all
GROUP = Path("/sys/fs/cgroup/memory") / f"rerank-mapped-{os.getpid()}"
ORDERS = "order", "parts", "training", "shuffled"


def parts(gigabytes: float, count: int) -> Iterator[Corpus]:
    """Parts of lists of random features."""
    lists = int(gigabytes * 1e9 / count / (CANDIDATES * NONZEROS * 8))
    for number in range(count):
        rng, N, step = np.random.default_rng(number), lists * CANDIDATES, WIDTH // NONZEROS
        yield Corpus(
            lists=np.arange(lists + 1) * CANDIDATES, rows=np.arange(N + 1) * NONZEROS,
            columns=(rng.integers(0, step, (N, NONZEROS)) + np.arange(NONZEROS) * step).ravel(),
            values=np.ones(N * NONZEROS, np.float32), base=rng.normal(size=N), gain=rng.random(N),
            stats=np.zeros((N, 1)), reference=np.zeros((lists, 1)), weight=np.ones(lists), width=WIDTH,
        )  # fmt: skip


def epoch(place: Path, kind: str) -> None:
    """One epoch in an order, and what it took."""
    corpus, learner, rng = Corpus.load(place, trusted=True), Perceptron(), np.random.default_rng(1)
    few, state, targets = corpus.slice(0, 10), learner.init(WIDTH), oracles(corpus)
    learner.epoch(few, oracles(few), np.arange(10), state)  # compiled
    order, cuts = np.arange(corpus.list_count), corpus.cuts[1:-1]
    if kind == "shuffled":
        order = rng.permutation(order)
    elif kind == "parts":
        order = np.concatenate([rng.permutation(part) for part in np.split(order, cuts)])
    for path in place.iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    start = time.perf_counter()
    if kind == "training":
        ListProblem(corpus, targets, 1).visit(learner, state, 0, None)
    else:
        learner.epoch(corpus, targets, order, state)
    seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{kind:10} {seconds:7.1f} s   {corpus.nonzeros / seconds / 1e6:5.1f} M nonzeros/s   peak {peak:.2f} GB")


def main() -> None:
    """Write the corpus, and time each order in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--memory", type=float, default=1.0)
    parser.add_argument("--orders", nargs="+", choices=ORDERS, default=ORDERS[:3])
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        epoch(Path(options.run[0]), options.run[1])
        return
    enter = f'echo $$ > {GROUP}/cgroup.procs; exec "$@"' if options.memory else 'exec "$@"'
    with tempfile.TemporaryDirectory() as folder:
        save_joined(place := Path(folder) / "corpus", parts(options.gigabytes, options.parts))
        if options.memory:
            GROUP.mkdir()
            (GROUP / "memory.limit_in_bytes").write_text(str(int(options.memory * 1e9)))
        try:
            for kind in options.orders:
                subprocess.run(["sh", "-c", enter, "sh", sys.executable, __file__, "--run", place, kind], check=True)
        finally:
            if options.memory:
                GROUP.rmdir()


if __name__ == "__main__":
    main()
