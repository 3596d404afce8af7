"""Mistakes of one pass, and what their theorems allow, over the number of lists: a table, and the figure of the docs.

    python benchmarks/bounds.py [--svg docs/papers/bounds.svg] [--flipped 0.05]

Lists of two are drawn: their candidates differ by −1, 0 or 1 in each of 20 columns, and the sum of the first three,
which is not 0, says which one is right; of some the answer is flipped. That sum is the theorems' u.
"""

import argparse
from pathlib import Path

import numpy as np

from rerank.data.corpus import Corpus
from rerank.learn.bounds import bounds, list_margins
from rerank.learn.epoch import UpdateLog
from rerank.learn.learner import Learner
from rerank.learn.rules.additive import Perceptron
from rerank.learn.rules.dual_averaging import VotedRDA
from rerank.learn.rules.gaussian import AROW
from rerank.learn.rules.winnow import NWin
from rerank.learn.scoring import Weights
from rerank.runs.report.page import FigureLine, draw, logarithmic

WIDTH, RELEVANT = 20, 3
SIZES = 10, 30, 100, 300, 1000, 3000
LEARNERS: dict[str, Learner] = {
    "perceptron": Perceptron(base=0.0),
    "voted RDA, λ = 1e-3": VotedRDA(base=0.0, loss="hinge", l1=1e-3),
    "AROW": AROW(base=0.0, covariance="full", r=1.0),
    "Winnow, normalised": NWin(base=0.0, eta=0.02),
}


def main() -> None:
    """Train, and print mistakes / bound for every learner and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--svg", type=Path, help="draw the figure here")
    parser.add_argument("--flipped", type=float, default=0.0, help="share of answers that are wrong")
    arguments = parser.parse_args()
    z, truth = drawn(SIZES[-1], arguments.flipped)
    found = {name: [outcome(learner, z[:n], truth) for n in SIZES] for name, learner in LEARNERS.items()}
    print("| lists |", " | ".join(f"{n:,}" for n in SIZES), "|")
    for name, pairs in found.items():
        print(f"| {name} |", " | ".join(f"{mistakes} / {bound:.0f}" for mistakes, bound in pairs), "|")
    if arguments.svg is not None:
        lines = list[FigureLine]()
        for k, (name, pairs) in enumerate(found.items(), start=1):
            for j, said in enumerate(("", ", allowed")):
                values = [pair[j] for pair in pairs]
                lines.append(FigureLine(list(SIZES), values, name + said, series=k))
        every = [max(value, 1.0) for line in lines for value in line.y]
        caption = "Mistakes of one pass, and the most that theorems allow"
        figure = draw(caption, lines, "lists", "mistakes", x=logarithmic(SIZES), y=logarithmic(every))
        arguments.svg.write_text(figure.standalone())


def drawn(count: int, flipped: float) -> tuple[np.ndarray, np.ndarray]:
    """Differences right − wrong (float64 [count, WIDTH]), and the vector that knows (float64 [WIDTH])."""
    rng, truth = np.random.default_rng(1), np.repeat([1.0, 0.0], [RELEVANT, WIDTH - RELEVANT])
    z = rng.integers(-1, 2, size=(2 * count, WIDTH)).astype(np.float64)
    z = z[z @ truth != 0][:count]
    signs = np.sign(z @ truth) * np.where(rng.random(count) < flipped, -1.0, 1.0)
    return z * signs[:, None], truth


def corpus_of(z: np.ndarray) -> Corpus:
    """The lists (φ, 0) with φ = z (float64 [n, D]), of which the first is right."""
    n, D = z.shape
    rows = np.repeat(np.arange(0, n * D + 1, D), 2)[1:]  # the second candidate has no columns
    return Corpus(
        np.arange(0, 2 * n + 1, 2), rows, np.tile(np.arange(D, dtype=np.int32), n), z.ravel().astype(np.float32),
        np.zeros(2 * n), np.tile([1.0, 0.0], n), np.tile([[1.0], [0.0]], (n, 1)), np.ones((n, 1)), np.ones(n), D,
    )  # fmt: skip


def outcome(learner: Learner, z: np.ndarray, truth: np.ndarray) -> tuple[int, float]:
    """The mistakes of a pass over the lists, in their order, and the bound."""
    corpus = corpus_of(z)
    n = corpus.list_count
    oracles, log = np.arange(0, 2 * n, 2), UpdateLog()
    state = learner.init(corpus.width, corpus.candidate_count)
    stats = learner.epoch(corpus, oracles, np.arange(n), state, log=log)
    mistakes, u = stats.mistakes, Weights(truth, 0.0)
    about = bounds(learner, log, corpus, mistakes, u, list_margins(corpus, oracles, u, any_ties=False))
    return mistakes, float(about.get("bound", 0.0))


if __name__ == "__main__":
    main()
