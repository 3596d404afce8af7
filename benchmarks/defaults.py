"""What `rerank.fit` makes of lists with nothing but their file, beside their base, single columns and scikit-learn.

    python benchmarks/defaults.py FILE... [--base vote] [--metric gain | wer] [--splits 10] [--columns vote]

FILE: JSON lines of lists, joined and split again at random: four fifths train, the rest tests. Each split's mean gain
(minus the word error rate) of the choice of: the model; the base score; each of ``--columns``, highest first; scikit-
learn's logistic regression on the numbers of all candidates, standardised, right being the best of a list, unless
that is no better than the worst of all. Then the mean over splits, and the mean difference from the model with its
standard error over splits.
"""

import argparse
import gzip
import json
import math
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rerank

NOT_COLUMNS = {"gain"}


def read(path: str) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as lines:
        return [json.loads(line) for line in lines]


def gains_of(found: dict[str, Any], metric: str) -> list[float]:
    """What every candidate is worth: its gain, or minus its word errors."""
    if metric == "gain":
        return [float(each["gain"]) for each in found["candidates"]]
    words = found["reference"].split()
    return [-float(Levenshtein.distance(words, each["text"].split())) for each in found["candidates"]]


def columns_of(lists: list[dict[str, Any]]) -> list[str]:
    """The numbers that every candidate of the lists has."""
    every = [each for found in lists for each in found["candidates"]]
    names = [name for name, value in every[0].items() if isinstance(value, int | float) and name not in NOT_COLUMNS]
    return [name for name in names if all(name in each for each in every)]


def regression(train: list[dict[str, Any]], tests: list[dict[str, Any]], metric: str, names: list[str]) -> list[int]:
    """The choices of scikit-learn's pointwise logistic regression."""
    rows, right, worst = [], [], min(min(gains_of(found, metric)) for found in train)
    for found in train:
        gains = gains_of(found, metric)
        rows += [[each[name] for name in names] for each in found["candidates"]]
        right += [gain == max(gains) > worst for gain in gains]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(np.array(rows), np.array(right))
    shown = [np.array([[each[name] for name in names] for each in found["candidates"]]) for found in tests]
    return [int(np.argmax(model.decision_function(each))) for each in shown]


def write(path: Path, lists: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(found) + "\n" for found in lists))
    return path


def split(lists: list[dict[str, Any]], args: argparse.Namespace, seed: int) -> dict[str, float]:
    """The scores on a random fifth of what is learned from the rest."""
    shuffled = random.Random(seed).sample(lists, len(lists))
    tests, train = shuffled[: len(lists) // 5], shuffled[len(lists) // 5 :]
    form = {"name": "jsonl", **({"base": args.base} if args.base else {})}
    with tempfile.TemporaryDirectory() as place:
        given = [write(Path(place, name), own) for name, own in (("train.jsonl", train), ("tests.jsonl", tests))]
        how = {} if args.metric == "gain" else {"metric": args.metric}
        model = rerank.fit(rerank.read(given[0], format=form), **how)
        chosen = {"rerank": [ranking.order[0] for ranking in model.rank_many(rerank.read(given[1], format=form))]}
    names = columns_of(lists)
    chosen["first"] = [0] * len(tests)
    for name in dict.fromkeys([*([args.base] if args.base else []), *args.columns]):
        chosen[name] = [max(range(len(x["candidates"])), key=lambda y: x["candidates"][y][name]) for x in tests]
    chosen["logistic regression"] = regression(train, tests, args.metric, names)
    unit = len(tests) if args.metric == "gain" else sum(len(found["reference"].split()) for found in tests)
    gains = [gains_of(found, args.metric) for found in tests]
    return {name: sum(own[y] for own, y in zip(gains, ys, strict=True)) / unit for name, ys in chosen.items()}


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--base")
    parser.add_argument("--metric", choices=("gain", "wer"), default="gain")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--columns", nargs="*", default=[])
    args = parser.parse_args()
    lists = [found for path in args.files for found in read(path)]
    scores = [split(lists, args, seed) for seed in range(args.splits)]
    for name in scores[0]:
        own = np.array([each[name] for each in scores])
        behind = np.array([each["rerank"] for each in scores]) - own
        error = behind.std(ddof=1) / math.sqrt(len(behind)) if len(behind) > 1 else math.nan
        print(json.dumps({"choice": name, "score": own.mean(), "rerank_minus": behind.mean(), "error": error}))


if __name__ == "__main__":
    main()
