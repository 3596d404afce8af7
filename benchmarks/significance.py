"""Paired tests on corpus BLEU: CPU seconds of 10,000 samples, beside a loop in numpy and beside sacrebleu.

    python benchmarks/significance.py [--nbest FILE --references FILE] [--lists 1000 3000] [--rounds 3]

System A takes the first candidate of every list and system B the second; lists are drawn with replacement until there
are enough. Without files (Moses lists and one reference a line, gz) the lists are random words. All sides draw from the
same statistics in turn in this process, and medians are printed. The numpy loop sums rows[draw] and scores the sum, a
sample at a time; sacrebleu's time is the difference of its paired bootstraps with ``--peer-samples`` and 1 samples,
which leaves its own counting of n-grams out, per sample.
"""

import argparse
import gzip
import json
import statistics
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from rerank.metrics.ngrams import Bleu
from rerank.metrics.significance import compare

SAMPLES = 10_000
Texts = list[tuple[str, str, str]]  # A's, B's, the reference


def seconds(function: Callable[[], Any]) -> float:
    """CPU seconds of a call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def read(nbest: Path, references: Path) -> Texts:
    """The first two candidates of every list that has two, and its reference."""
    with gzip.open(references, "rt", encoding="utf-8") as lines, gzip.open(nbest, "rt", encoding="utf-8") as entries:
        expected, found = [line.strip() for line in lines], []
        for number, group in groupby((entry.split(" ||| ") for entry in entries), key=lambda parts: int(parts[0])):
            texts = [parts[1].strip() for parts in group]
            if len(texts) > 1:
                found.append((texts[0], texts[1], expected[number]))
    return found


def invented(lists: int) -> Texts:
    """Random sentences and two copies of each in which some words are others."""
    random = np.random.default_rng(0)

    def sentence(words: np.ndarray, share: float) -> str:
        other = random.integers(1000, size=words.size)
        return " ".join(map(str, np.where(random.random(words.size) < share, other, words)))

    drawn = [random.integers(1000, size=random.integers(5, 25)) for _ in range(lists)]
    return [(sentence(words, 0.3), sentence(words, 0.32), sentence(words, 0.0)) for words in drawn]


def loop(metric: Bleu, a: np.ndarray, b: np.ndarray, reference: np.ndarray, samples: int) -> np.ndarray:
    """The bootstrap as one writes it in numpy."""
    random, differences = np.random.default_rng(1), np.empty(samples)
    for k in range(samples):
        draw = random.integers(a.shape[0], size=a.shape[0])
        total = reference[draw].sum(axis=0)
        differences[k] = metric.scores(a[draw].sum(axis=0), total) - metric.scores(b[draw].sum(axis=0), total)
    return differences


def peer(texts: Texts, samples: int) -> Any:
    """sacrebleu's paired bootstrap."""
    systems = [("A", [a for a, _, _ in texts]), ("B", [b for _, b, _ in texts])]
    scorers = {"BLEU": BLEU(tokenize="none", force=True)}
    return PairedTest(systems, scorers, [[r for _, _, r in texts]], test_type="bs", n_samples=samples)()


def measure(texts: Texts, rounds: int, loop_samples: int, peer_samples: int) -> dict[str, Any]:
    """Medians over the rounds; the slower sides draw fewer samples, and their time is per sample."""
    metric = Bleu()
    rows = [metric.stats([a.encode(), b.encode()], [r.encode()]) for a, b, r in texts]
    reference = np.stack([row for row, _ in rows])
    a, b = (np.stack([stats[k] for _, stats in rows]) for k in range(2))
    tests = ("approximate_randomization", "paired_bootstrap", "paired_t")
    results = {test: compare(metric, a, b, reference, test=test, samples=SAMPLES) for test in tests}
    times: dict[str, list[float]] = {name: [] for name in (*tests, "loop", "sacrebleu")}
    for _ in range(rounds):
        for test in tests:
            times[test].append(seconds(lambda test=test: compare(metric, a, b, reference, test=test, samples=SAMPLES)))
        times["loop"].append(seconds(lambda: loop(metric, a, b, reference, loop_samples)) / loop_samples)
        once, many = seconds(lambda: peer(texts, 1)), seconds(lambda: peer(texts, peer_samples))
        times["sacrebleu"].append((many - once) / (peer_samples - 1))
    middle = {name: statistics.median(values) for name, values in times.items()}
    ours = middle["paired_bootstrap"] / SAMPLES
    return {
        "lists": len(texts),
        "samples": SAMPLES,
        "cpu_seconds": {test: round(middle[test], 3) for test in tests},
        "times_as_fast_as_numpy_loop": round(middle["loop"] / ours, 1),
        "times_as_fast_as_sacrebleu": round(middle["sacrebleu"] / ours, 1),
        "p": {test: results[test].p for test in tests},
    }


def main() -> None:
    """Print a JSON object for every number of lists."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    directory = Path("../shared/data/translation/multi30k")
    parser.add_argument("--nbest", type=Path, default=directory / "dev.nbest.gz")
    parser.add_argument("--references", type=Path, default=directory / "dev.ref.gz")
    parser.add_argument("--lists", type=int, nargs="+", default=[1000, 3000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loop-samples", type=int, default=500)
    parser.add_argument("--peer-samples", type=int, default=201)
    arguments = parser.parse_args()
    here = arguments.nbest.exists() and arguments.references.exists()
    texts = read(arguments.nbest, arguments.references) if here else invented(500)
    for lists in arguments.lists:
        draw = np.random.default_rng(lists).integers(len(texts), size=lists)
        result = measure([texts[i] for i in draw], arguments.rounds, arguments.loop_samples, arguments.peer_samples)
        print(json.dumps({"text": arguments.nbest.name if here else "random words", **result}, indent=1))


if __name__ == "__main__":
    main()
