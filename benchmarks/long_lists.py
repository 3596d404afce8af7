"""One list of many candidates: seconds and memory to open it and to extract its features, by kind and size.

    python benchmarks/long_lists.py [--sizes 10000 40000 160000] [--kinds dense texts trees]

Candidates are random: texts of 20 words with three scores, trees over 20 words. Every measurement is a process of its
own that has loaded its kernels before, with a short list; memory is what the long one adds to its peak.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

from rerank.extraction.content import Content
from rerank.extraction.kinds import content_of
from rerank.readers.lists import Lists
from rerank.recipes.recipe import Recipe, TextRecipe

WORDS = 20
FEATURES = {"dense": "dense", "texts": "text", "trees": "cj2005"}


def main() -> None:
    """Measure every kind and size in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 40_000, 160_000])
    parser.add_argument("--kinds", nargs="+", default=list(FEATURES), choices=list(FEATURES))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one[0], int(arguments.one[1]))))
        return
    found = []
    for kind in arguments.kinds:
        for size in arguments.sizes:
            command = [sys.executable, __file__, "--one", kind, str(size)]
            found.append(json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout))
    print(json.dumps(found, indent=1))


def measure(kind: str, size: int) -> dict[str, Any]:
    """Seconds, and bytes of memory a candidate."""
    content = make_content(kind)
    run(content, make_list(kind, 50))
    nbest = make_list(kind, size)
    before, start = peak(), time.process_time()
    stored = run(content, nbest)
    seconds, more = time.process_time() - start, peak() - before
    return {
        "kind": kind,
        "candidates": size,
        "seconds": round(seconds, 3),
        "us_a_candidate": round(1e6 * seconds / size, 1),
        "bytes_a_candidate": round(more / size),
        "values_a_candidate": round(stored / size, 1),
    }


def run(content: Content[Any], nbest: Lists) -> int:
    """Open a list and extract its features; how many values they have."""
    return int(content.features(*content.open(nbest)).value.size)


def make_content(kind: str) -> Content[Any]:
    """What a Scorer of a model of the kind has."""
    settings: dict[str, Any] = {"name": kind, "data": {"root": "."}, "features": {"set": FEATURES[kind]}}
    if kind == "trees":
        return content_of(Recipe.model_validate(settings), centred=False, keeps_texts=False)
    recipe = TextRecipe.model_validate({**settings, "task": "ranking"})
    return content_of(recipe, centred=False, keeps_texts=False)


def make_list(kind: str, size: int) -> Lists:
    """A list of random candidates."""
    rng = np.random.default_rng(size)
    if kind == "trees":
        texts = [f"(S1 {grown(rng, 0, WORDS)})".encode() for _ in range(size)]
        return Lists.one("long", "memory", 1, texts, range(size), rng.normal(size=(size, 1)))
    vocabulary = np.array([f"word{i}" for i in range(5_000)])
    texts = [" ".join(row).encode() for row in vocabulary[rng.zipf(1.5, (size, WORDS)) % vocabulary.size]]
    scores, names = rng.normal(size=(size, 3)), ("logprob", "reward", "process")
    source = " ".join(vocabulary[:WORDS]).encode()
    return Lists.one("long", "memory", 1, texts, range(size), scores, names=names, source=source)


def grown(rng: np.random.Generator, first: int, last: int) -> str:
    """A random tree over the words first..last."""
    if last - first == 1:
        return f"({('NN', 'VB', 'JJ')[int(rng.integers(3))]} w{first})"
    cut = int(rng.integers(first + 1, last))
    label = ("NP", "VP", "S", "PP", "SBAR")[int(rng.integers(5))]
    return f"({label} {grown(rng, first, cut)} {grown(rng, cut, last)})"


def peak() -> int:
    """The most bytes that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
