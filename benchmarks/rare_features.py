"""How often the features occur that tell most about a class, by their rank (Crammer, Dredze & Pereira 2012, Figure 1).

    python benchmarks/rare_features.py DIR/binary [--svg FILE]

On every set: features are ranked by the mutual information of their presence with the label, those of the negative and
of the positive class apart, and the first quarter of them is looked at: how many of these are rare, their share of the
information, and what they have of it where the labels are shuffled.
"""

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import rel_entr
from sklearn.datasets import load_svmlight_file

from rerank.runs.report.page import FigureLine, draw, logarithmic

SETS = "sentiment_books", "sentiment_electronics", "sentiment_kitchen", "news_comp", "news_talk", "sentence_polarity"
QUARTER = 0.25
RARE = 10  # occurrences, at most
DRAWN = "sentiment_books"
QUANTILES = {"median": 0.5, "tenth most frequent": 0.9}  # of the features in a stretch of ranks


def main() -> None:
    """Print how rare the features of the first quarter are in every set; draw one of the sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="where the sets are")
    parser.add_argument("--svg", type=Path, help="draw the figure here")
    arguments = parser.parse_args()
    print("| set | class | features | median count | rare | information of the rare | of that, by chance |")
    lines = list[FigureLine]()
    for name in SETS:
        x, y = load_svmlight_file(str(arguments.directory / f"{name}.svm.gz"))
        present, positive = (x != 0).astype(np.float64), y == y.max()
        total = np.asarray(abs(x).sum(axis=0)).ravel()
        information, leans = mutual_information(present, positive)
        by_chance, _ = mutual_information(present, np.random.default_rng(1).permutation(positive))
        for side, own in (("negative", leans < 0), ("positive", leans > 0)):
            columns = np.flatnonzero(own)
            first = columns[np.argsort(-information[columns], kind="stable")][: round(QUARTER * columns.size)]
            rare = total[first] <= RARE
            share = information[first][rare].sum() / information[first].sum()
            chance = by_chance[first][rare].sum() / information[first][rare].sum()
            told = f"{np.median(total[first]):.0f} | {rare.mean():.0%} | {share:.0%} | {chance:.0%}"
            print(f"| {name} | {side} | {first.size:,} | {told} |")
            if name == DRAWN:
                lines += lines_of(side, total[first])
    if arguments.svg is not None:
        caption = f"How often the features of {DRAWN} occur, by their rank in mutual information with the label"
        x_axis, y_axis = (logarithmic([value for line in lines for value in of(line)]) for of in (_x, _y))
        figure = draw(caption, lines, "rank", "occurrences", x=x_axis, y=y_axis)
        arguments.svg.write_text(figure.standalone())


def mutual_information(present: csr_matrix, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """I(presence; label) in nats, and by how much more often a positive example has the feature (float64 [D]).

    present: 0 or 1 by example and feature; positive: bool [n].
    """
    n, own = present.shape[0], positive.mean()
    a, b = (np.asarray(present[rows].sum(axis=0)).ravel() / n for rows in (positive, ~positive))
    both, shares = a + b, (own, 1.0 - own)
    here = sum(rel_entr(joint, both * share) for joint, share in zip((a, b), shares, strict=True))
    away = [rel_entr(share - joint, (1.0 - both) * share) for joint, share in zip((a, b), shares, strict=True)]
    return here + sum(away), a / own - b / (1.0 - own)


def lines_of(side: str, counts: np.ndarray) -> list[FigureLine]:
    """Quantiles of the counts of features in the order of their ranks, over stretches that grow by a half."""
    edges = np.unique(np.round(1.5 ** np.arange(int(np.log(counts.size) / np.log(1.5)) + 1)).astype(int))
    stretches = list(pairwise(edges))
    x = [float(np.sqrt(low * (high - 1))) for low, high in stretches]
    return [
        FigureLine(x, [float(np.quantile(counts[low - 1 : high - 1], q)) for low, high in stretches], f"{side}, {name}")
        for name, q in QUANTILES.items()
    ]


def _x(line: FigureLine) -> list[float]:
    return list(line.x)


def _y(line: FigureLine) -> list[float]:
    return list(line.y)


if __name__ == "__main__":
    main()
