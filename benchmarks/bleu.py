"""Sentence BLEU beside sacrebleu's: microseconds a candidate in the same process, in turn, and their ratio.

    python benchmarks/bleu.py [--root ../shared/data/translation/multi30k] [--split tune] [--rounds 7]

Lists and references are in memory as bytes; ours is ``Bleu.stats`` list by list, all Python around the kernels
included, and with ``Bleu.gain`` of all candidates at once after it. sacrebleu scores a sample of the candidates in two
ways: ``sentence_bleu``, and one BLEU object whose ``sentence_score`` is called, which spares it the set-up. Both sides'
values are compared. Medians of the rounds and the median of the rounds' ratios are printed. Without the lists, random
texts take their place.
"""

import argparse
import gzip
import json
import logging
import statistics
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import sacrebleu

from rerank.metrics.ngrams import Bleu

Lists = list[tuple[list[bytes], list[bytes]]]  # candidates and references


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("../shared/data/translation/multi30k"))
    parser.add_argument("--split", default="tune")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sample", type=int, default=1500, help="candidates that sacrebleu scores in a round")
    arguments = parser.parse_args()
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    path = arguments.root / f"{arguments.split}.nbest.gz"
    lists = read(path, arguments.root / f"{arguments.split}.ref.gz") if path.exists() else random_lists()
    found = {"texts": str(path) if path.exists() else "random", **measure(lists, arguments.sample, arguments.rounds)}
    print(json.dumps(found, indent=1))


def read(nbest: Path, references: Path) -> Lists:
    """Moses lists with a reference a line."""
    with gzip.open(references) as file:
        lines = [line.strip() for line in file]
    with gzip.open(nbest) as file:
        fields = (line.split(b" ||| ", 2)[:2] for line in file)
        return [
            ([text.strip() for _, text in group], [lines[int(number)]])
            for number, group in groupby(fields, key=lambda pair: pair[0])
        ]


def random_lists() -> Lists:
    """500 lists of 100 texts of 13 words on average, each a reference in which words were exchanged."""
    rng = np.random.default_rng(1)
    lists: Lists = []
    for _ in range(500):
        reference = rng.zipf(1.3, size=rng.integers(5, 22)) % 10_000
        texts = [np.where(rng.random(reference.size) < 0.3, rng.zipf(1.3), reference) % 10_000 for _ in range(100)]
        lists.append(([text_of(words) for words in texts], [text_of(reference)]))
    return lists


def text_of(words: np.ndarray) -> bytes:
    """Numbers as words."""
    return " ".join(f"word{w}" for w in words).encode()


def measure(lists: Lists, sample: int, rounds: int) -> dict[str, Any]:
    """Microseconds a candidate of either side."""
    metric = Bleu(smoothing="exp")
    candidates = sum(len(texts) for texts, _ in lists)
    pairs = [(text.decode(), [r.decode() for r in references]) for texts, references in lists for text in texts]
    pairs = pairs[:: max(1, len(pairs) // sample)]
    scorer = sacrebleu.BLEU(tokenize="none", effective_order=True)
    sides: dict[str, tuple[int, Callable[[], Any]]] = {
        "statistics": (candidates, lambda: statistics_of(metric, lists)),
        "statistics and gains": (candidates, lambda: metric.gain(*statistics_of(metric, lists))),
        "sacrebleu.sentence_bleu": (
            len(pairs),
            lambda: [sacrebleu.sentence_bleu(text, references, tokenize="none").score for text, references in pairs],
        ),
        "sacrebleu.BLEU.sentence_score": (
            len(pairs),
            lambda: [scorer.sentence_score(text, references).score for text, references in pairs],
        ),
    }
    values = {name: score() for name, (_, score) in sides.items()}  # compiles, too
    ours = values["statistics and gains"][:: max(1, candidates // sample)]
    apart = float(np.max(np.abs(100 * ours - np.array(values["sacrebleu.sentence_bleu"]))))
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, (count, score) in sides.items():
            start = time.process_time()
            score()
            times[name].append(1e6 * (time.process_time() - start) / count)
    return {
        "lists": len(lists),
        "candidates": candidates,
        "words_per_candidate": round(sum(len(t.split()) for texts, _ in lists for t in texts) / candidates, 1),
        "microseconds_per_candidate": {name: round(statistics.median(t), 2) for name, t in times.items()},
        "times_as_fast_as": {
            theirs: {own: median_ratio(times[theirs], times[own]) for own in ("statistics", "statistics and gains")}
            for theirs in sides
            if theirs.startswith("sacrebleu")
        },
        "largest_difference_of_scores": apart,
    }


def statistics_of(metric: Bleu, lists: Lists) -> tuple[np.ndarray, np.ndarray]:
    """Statistics of all candidates, and for each its list's reference row."""
    found = [metric.stats(texts, references) for texts, references in lists]
    sizes = [rows.shape[0] for _, rows in found]
    return np.concatenate([rows for _, rows in found]), np.repeat([row for row, _ in found], sizes, axis=0)


def median_ratio(theirs: list[float], ours: list[float]) -> int:
    """The median of the rounds' ratios."""
    return round(statistics.median(b / a for a, b in zip(ours, theirs, strict=True)))


if __name__ == "__main__":
    main()
