"""How long a program waits for a ranking, by what is ranked, and the processor time until a model can rank.

    python benchmarks/latency.py [--calls 1000]

Lists are in memory: 8 samples with two dense columns; 8 samples with templates of their words; 50 parses of 20 words.
Medians and 99th percentiles are in milliseconds, warm. ``import and load`` are CPU seconds of a process of its own: the
median of several.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import rerank

START = """
import sys, time
import rerank
rerank.load(sys.argv[1])
print(time.process_time())
"""
WORDS = 20


def samples(rng: np.random.Generator, *, columns: bool) -> list[dict[str, Any]]:
    """Eight texts of WORDS words, with two columns or without."""
    texts = [" ".join(f"w{word}" for word in rng.integers(0, 500, WORDS)) for _ in range(8)]
    numbers = [dict(zip(("reward", "length"), map(float, row), strict=True)) for row in rng.normal(size=(8, 2))]
    scores = map(float, rng.normal(size=8))
    every = zip(texts, scores, numbers, strict=True)
    return [{"text": text, "score": score, **({"columns": own} if columns else {})} for text, score, own in every]


def parses(rng: np.random.Generator, size: int) -> list[tuple[str, float]]:
    """Trees over the same WORDS words, with their scores, which share most of their phrases as those of a parser do."""
    found = []
    tags = [("NN", "JJ", "VB")[k] for k in rng.integers(0, 3, WORDS)]
    for _ in range(size):
        order = np.random.default_rng(1)
        parts = [f"({tag} w{i})" for i, tag in enumerate(tags)]
        other = int(rng.integers(0, WORDS // 2))  # the phrase that is another one
        while len(parts) > 3:
            first, length = int(order.integers(0, len(parts) - 1)), int(order.integers(2, 4))
            last, label = min(len(parts), first + length), ("NP", "VP", "PP")[int(order.integers(0, 3))]
            label = ("ADJP", "S", "NP", "SBAR")[int(rng.integers(0, 4))] if other == 0 else label
            parts[first:last], other = [f"({label} {' '.join(parts[first:last])})"], other - 1
        found.append((f"(S1 (S {' '.join(parts)}))", float(rng.normal())))
    return found


def models(rng: np.random.Generator) -> dict[str, tuple[rerank.Reranker, list[Any]]]:
    """Of every kind a model and a list for it."""
    gains = [1.0] + [0.0] * 7
    dense = [rerank.NBest(str(i), samples(rng, columns=True), gains=gains) for i in range(60)]
    texts = [rerank.NBest(str(i), samples(rng, columns=False), gains=gains) for i in range(60)]
    trees = []
    for i in range(40):
        given = parses(rng, 20)
        trees.append(rerank.NBest(str(i), given, references=given[0][0]))
    return {
        "8 samples, dense columns": (rerank.fit(dense, features="dense", epochs=2), samples(rng, columns=True)),
        "8 samples, text templates": (rerank.fit(texts, features="text", epochs=2), samples(rng, columns=False)),
        "50 parses": (rerank.fit(trees, features="cj2005", epochs=2), parses(rng, 50)),
    }


def milliseconds(model: rerank.Reranker, given: list[Any], calls: int) -> dict[str, float]:
    """Median and 99th percentile of ranking a list."""
    taken = []
    for _ in range(calls + 10):
        start = time.perf_counter()
        model.rank(given)
        taken.append(1e3 * (time.perf_counter() - start))
    median, high = np.percentile(taken[10:], [50, 99])
    return {"median_ms": round(float(median), 4), "p99_ms": round(float(high), 4)}


def main() -> None:
    """Print the measurements as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000)
    calls = parser.parse_args().calls
    found: dict[str, Any] = {}
    with TemporaryDirectory() as place:
        for name, (model, given) in models(np.random.default_rng(1)).items():
            found[name] = milliseconds(model, given, calls)
            model.save(Path(place, name))
        command = [sys.executable, "-c", START, str(Path(place, "50 parses"))]
        # As after an installation: modules are not compiled each time.
        usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        done = [subprocess.run(command, capture_output=True, check=True, env=usual) for _ in range(8)][1:]
        seconds = [float(each.stdout) for each in done]
    found["import and load"] = {"cpu_seconds": round(float(np.median(seconds)), 3)}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
