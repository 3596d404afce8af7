"""Learners beside scikit-learn's on the generated zipf set: CPU seconds an epoch in turn, and peak memory.

    python benchmarks/learners.py [--train 500000] [--rounds 5] [--memory | --beside CHECKOUT] [--only NAME ...]

Speed: both sides have their data in memory and make passes over the same examples in a random order, in turn, in this
process; a pass of scikit-learn is the difference of fits with 3 passes and 1, halved, so that checks of its input do
not count. Medians and the median ratio are printed. scikit-learn's learners keep no average by default; ours are
measured with and without. --beside: an epoch in this checkout and in another, in turn, each in a process of its own,
and whether they make the same bits. Memory (--memory): one process a tool reads the set from svmlight text and trains
one pass.
"""

import argparse
import hashlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from rerank.base.registry import build
from rerank.contrib.classification.sets import Zipf, read_svmlight
from rerank.data.corpus import Corpus
from rerank.data.labelled import Labelled
from rerank.learn.learner import learners
from rerank.metrics.metric import oracles

warnings.filterwarnings("ignore")
OURS: dict[str, dict[str, Any]] = {
    "perceptron": {"name": "perceptron"},
    "pa": {"name": "pa", "variant": "1"},
    "cw-var-kl": {"name": "cw"},
    "arow-kl": {"name": "arow"},
    "sgd-log": {"name": "sgd", "loss": "logistic"},
    "vrda": {"name": "vrda"},
    "ftrl": {"name": "ftrl"},
    "arda": {"name": "arda"},
    "rda-log": {"name": "rda", "loss": "logistic"},
    "tg-log": {"name": "tg", "loss": "logistic"},
    "tg-log-l1": {"name": "tg", "loss": "logistic", "l1": 1e-4},
}
THEIRS = {"perceptron": "Perceptron", "pa": "pa1", "cw-var-kl": "pa1", "arow-kl": "pa1", "sgd-log": "log_loss"}
THEIRS |= dict.fromkeys(["ftrl", "arda", "rda-log", "tg-log"], "log_loss")


def peer(name: str, epochs: int) -> Any:
    """scikit-learn's learner of so many passes."""
    from sklearn.linear_model import Perceptron, SGDClassifier

    if name == "Perceptron":
        return Perceptron(max_iter=epochs, tol=None, random_state=0)
    if name == "pa1":
        pa1: dict[str, Any] = {"loss": "hinge", "learning_rate": "pa1", "eta0": 1.0, "penalty": None}
        return SGDClassifier(**pa1, max_iter=epochs, tol=None, random_state=0)
    return SGDClassifier(loss=name, max_iter=epochs, tol=None, random_state=0)


def seconds(function: Callable[[], Any]) -> float:
    """CPU seconds of a call."""
    start = time.process_time()
    function()
    return time.process_time() - start


class Ours:
    """A learner on a corpus, an epoch at a time from a fresh state."""

    def __init__(self, corpus: Corpus, spec: dict[str, Any], averaged: bool) -> None:
        self.corpus, self.learner = corpus, build(learners, spec, "learner")
        self.oracle = oracles(corpus)
        self.averaged, self.passes = averaged, 0
        self.start()
        self.epoch(100)  # compiles
        self.start()

    def start(self) -> None:
        """Begin anew."""
        state = self.learner.init(self.corpus.width, self.corpus.candidate_count)
        self.state = state if self.averaged else self.learner.without_average(state)

    def epoch(self, lists: int | None = None) -> None:
        """A pass in a new random order."""
        self.passes += 1
        order = np.random.default_rng(self.passes).permutation(self.corpus.list_count)[:lists]
        self.learner.epoch(self.corpus, self.oracle, order, self.state)

    def two_epochs(self) -> None:
        """Two passes."""
        self.epoch()
        self.epoch()


def matrix(train: Labelled) -> tuple[sp.csr_matrix, np.ndarray]:
    """The examples as scikit-learn reads them: float64 values."""
    values, columns = np.asarray(train.values, np.float64), np.asarray(train.columns)
    return sp.csr_matrix((values, columns, train.rows.astype(np.int32)), (train.size, train.width)), train.label


def speed(train: Labelled, rounds: int, names: list[str]) -> dict[str, Any]:
    """CPU seconds an epoch of ours and of their peers, in turn."""
    corpus, (X, y) = train.corpus(), matrix(train)
    found: dict[str, Any] = {}
    for name in names:
        spec = OURS[name]
        light, averaged = Ours(corpus, spec, False), Ours(corpus, spec, True)
        own: list[float] = []
        with_average: list[float] = []
        other: list[float] = []
        for _ in range(rounds):
            for side, times in ((light, own), (averaged, with_average)):
                side.start()
                side.epoch()  # a first pass makes more updates than those after it; count two of three
                times.append(seconds(side.two_epochs) / 2)
            if name in THEIRS:
                three, one = (seconds(partial(peer(THEIRS[name], passes).fit, X, y)) for passes in (3, 1))
                other.append((three - one) / 2)
        entry: dict[str, Any] = {
            "cpu_seconds": round(statistics.median(own), 3),
            "with_average": round(statistics.median(with_average), 3),
            "million_nonzeros_per_second": round(train.nonzeros / statistics.median(own) / 1e6),
        }
        if other:
            ratio = statistics.median(b / a for a, b in zip(own, other, strict=True))
            entry |= {"peer": f"sklearn {THEIRS[name]}", "peer_cpu_seconds": round(statistics.median(other), 3)}
            entry |= {"times_as_fast": round(ratio, 2)}
        found[name] = entry
        print(f"{name}: {json.dumps(entry)}", flush=True)
    return found


def serve(train: Labelled) -> None:
    """One process of ``beside``: an epoch for every line of input, its CPU seconds and a digest of the weights."""
    corpus = train.corpus()
    for line in sys.stdin:
        name, averaged = json.loads(line)
        side = Ours(corpus, OURS[name], averaged)
        side.epoch()
        taken = seconds(side.two_epochs) / 2
        learner, state = side.learner, side.state
        found = [learner.last(state), *([learner.average(state)] if averaged else [])]
        digest = hashlib.sha256(b"".join(np.append(weights.w, weights.base).tobytes() for weights in found))
        print(json.dumps([taken, digest.hexdigest()]), flush=True)


def beside(checkout: Path, examples: int, rounds: int, names: list[str]) -> None:
    """Print CPU seconds an epoch in both checkouts, and the median of their ratios."""
    pythons = [checkout.absolute() / ".venv/bin/python", Path(sys.executable)]
    command = [__file__, "--train", str(examples), "--serve"]
    sides = [
        subprocess.Popen([python, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for python in pythons
    ]
    for name in names:
        for averaged in (False, True):
            times: list[list[float]] = [[], []]
            digests = set()
            for _ in range(rounds):
                for side, own in zip(sides, times, strict=True):
                    print(json.dumps([name, averaged]), file=side.stdin, flush=True)
                    taken, digest = json.loads(side.stdout.readline())  # type: ignore[union-attr]
                    own.append(taken)
                    digests.add(digest)
            ratio = statistics.median(a / b for a, b in zip(*times, strict=True))
            medians = [round(statistics.median(own), 3) for own in times]
            found = {"other": medians[0], "this": medians[1], "times_as_fast": round(ratio, 2)}
            found |= {"same_bits": len(digests) == 1}
            print(f"{name}, {'with' if averaged else 'without'} average: {json.dumps(found)}", flush=True)
    for side in sides:
        side.communicate()


def memory(examples: int) -> dict[str, Any]:
    """Peak megabytes of a process that reads the set from text and trains one pass."""
    found = {}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "zipf.svm"
        drawn, _ = Zipf(train=examples, test=1).draw(0)
        rows = sp.csr_matrix((drawn.values, drawn.columns, drawn.rows), (drawn.size, drawn.width))
        dump_svmlight_file(rows, 2 * drawn.label - 1, str(path), zero_based=False)
        for tool in ("nothing", "perceptron", "pa", "cw-var-kl", "sklearn Perceptron", "sklearn pa1"):
            command = [sys.executable, __file__, "--read", str(path), "--tool", tool]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found[tool] = json.loads(output)
            print(f"{tool}: {output.strip()}", flush=True)
    return found


def read_and_train(path: str, tool: str) -> None:
    """One process of ``memory``."""
    start = time.process_time()
    if tool.startswith("sklearn"):
        from sklearn.datasets import load_svmlight_file

        X, y = load_svmlight_file(path)
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # it trains on no others
        read = time.process_time() - start
        peer(tool.split()[1], 1).fit(X, y)
    else:
        corpus = read_svmlight(path).corpus()
        read = time.process_time() - start
        if tool != "nothing":
            Ours(corpus, OURS[tool], False).epoch()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps({"peak_mb": round(peak), "reading_cpu_seconds": round(read, 2)}))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT")
    parser.add_argument("--only", nargs="+", choices=list(OURS), default=list(OURS))
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--read", help=argparse.SUPPRESS)
    parser.add_argument("--tool", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        read_and_train(arguments.read, arguments.tool)
    elif arguments.memory:
        memory(arguments.train)
    elif arguments.beside:
        beside(arguments.beside, arguments.train, arguments.rounds, arguments.only)
    elif arguments.serve:
        serve(Zipf(train=arguments.train, test=1).draw(0)[0])
    else:
        speed(Zipf(train=arguments.train, test=1).draw(0)[0], arguments.rounds, arguments.only)


if __name__ == "__main__":
    main()
