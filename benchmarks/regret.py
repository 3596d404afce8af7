"""Regret of one pass of learners with hinge loss, per list, over the number of lists: it should fall as 1/√T.

    python benchmarks/regret.py [--flipped 0.05]

On the lists of `bounds.py`: the loss of every list under the predictor before it, less its loss under the known vector.
"""

import argparse

import numpy as np
from bounds import SIZES, corpus_of, drawn

from rerank.learn.learner import Learner
from rerank.learn.rules.additive import SGD, PassiveAggressive
from rerank.learn.rules.dual_averaging import FTRL, RDA, AdaptiveRDA

LEARNERS: dict[str, Learner] = {
    "RDA, η = 1": RDA(base=0.0, loss="hinge"),
    "RDA, η = 10": RDA(base=0.0, loss="hinge", eta=10.0),
    "RDA, η = 10, λ = 1e-3": RDA(base=0.0, loss="hinge", eta=10.0, l1=1e-3),
    "ARDA": AdaptiveRDA(base=0.0, loss="hinge"),
    "FTRL": FTRL(base=0.0, loss="hinge"),
    "SGD, η = 0.1": SGD(base=0.0, loss="hinge", eta=0.1),
    "PA-I": PassiveAggressive(base=0.0, variant="1", C=0.1),
}


def main() -> None:
    """Print the regret per list of every learner and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flipped", type=float, default=0.0, help="share of answers that are wrong")
    z, truth = drawn(SIZES[-1], parser.parse_args().flipped)
    print("| lists |", " | ".join(f"{n:,}" for n in SIZES), "|")
    for name, learner in LEARNERS.items():
        found = []
        for n in SIZES:
            corpus = corpus_of(z[:n])
            stats = learner.epoch(corpus, np.arange(0, 2 * n, 2), np.arange(n), learner.init(corpus.width))
            known = np.maximum(0.0, 1.0 - z[:n] @ truth).sum()
            found.append((stats.loss - known) / n)
        print(f"| {name} |", " | ".join(f"{value:.3f}" for value in found), "|")


if __name__ == "__main__":
    main()
