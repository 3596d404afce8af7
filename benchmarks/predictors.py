"""The last predictor beside the average, for every classifier as it is by default, on held-out training examples.

    python benchmarks/predictors.py DIR/binary

On every set: the examples of the first tenfold's training part, of which random fifths are held out, five times. Errors
in per cent, means over sets, with the standard error of the mean difference over sets; then how many sets are better by
the last predictor. What classifiers take by default follows from it.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file

from rerank.contrib import sklearn as estimators

SETS = "sentiment_books", "sentiment_electronics", "sentiment_kitchen", "news_comp", "news_talk", "sentence_polarity"
NAMES = (
    "Perceptron", "PassiveAggressive", "SGD", "TruncatedGradient", "RDA", "ARDA", "FTRL", "SecondOrderPerceptron",
    "CW", "AROW", "SCW", "NHERD", "Winnow",
)  # fmt: skip
DRAWS = 5
HELD_OUT = 0.2


def main() -> None:
    """Print the errors of both predictors of every classifier."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="where the sets are")
    parser.add_argument("--flipped", type=float, default=0.0, help="share of training labels that are wrong")
    arguments = parser.parse_args()
    print("| classifier | last | average | last less average | better by last |")
    parts = [training_part(arguments.directory, name) for name in SETS]
    for name in NAMES:
        kind = getattr(estimators, f"{name}Classifier")
        errors = np.array([errors_of(kind, *part, arguments.flipped) for part in parts])
        apart = errors[:, 0] - errors[:, 1]
        sure = f"{apart.mean():+.2f} ±{apart.std(ddof=1) / np.sqrt(apart.size):.2f}"
        last, average = errors.mean(axis=0)
        print(f"| `{name}Classifier` | {last:.2f} | {average:.2f} | {sure} | {(apart < 0).sum()} of {apart.size} |")


def training_part(directory: Path, name: str) -> tuple[csr_matrix, np.ndarray]:
    """The examples of a set that its first fold trains on, and their labels."""
    x, y = load_svmlight_file(str(directory / f"{name}.svm.gz"))
    folds = np.loadtxt(directory / f"{name}.folds.txt", dtype=int)
    chosen = folds != folds.min()
    return x[chosen], y[chosen]


def errors_of(kind: Any, x: csr_matrix, y: np.ndarray, flipped: float) -> tuple[float, float]:
    """Errors in per cent of the last predictor and of the average, mean over the draws."""
    found = []
    for draw in range(DRAWS):
        random = np.random.default_rng(draw)
        order = random.permutation(y.size)
        held, rest = order[: round(HELD_OUT * y.size)], order[round(HELD_OUT * y.size) :]
        wrong = random.random(rest.size) < flipped
        labels = np.where(wrong, y.min() + y.max() - y[rest], y[rest])
        fitted = [kind(average=which, random_state=draw).fit(x[rest], labels) for which in ("last", "average")]
        found.append([100.0 * (1.0 - each.score(x[held], y[held])) for each in fitted])
    last, average = np.mean(found, axis=0)
    return float(last), float(average)


if __name__ == "__main__":
    main()
