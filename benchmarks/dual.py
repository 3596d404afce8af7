"""The dual of the large-margin Winnows after some passes, by their step: fixed ones, and Newton's.

    python benchmarks/dual.py [--dimension 500] [--seed 1]

On Zhang's data (section 4), C = 1: higher is nearer to the optimum.
"""

import argparse

import numpy as np

from rerank.contrib.classification.sets import Winnow
from rerank.contrib.learners.large_margin import LMNWin, LMUWin

PASSES = 1, 3, 10, 40
STEPS = 0.001, 0.01, 0.1, None
TOTAL = 10.0  # W


def main() -> None:
    """Print Σ α − Ψ*(θ) for every learner, step and number of passes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dimension", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    examples, _ = Winnow(arguments.dimension).draw(arguments.seed)
    corpus = examples.corpus()
    oracles = corpus.lists[:-1] + examples.label
    print("| passes |", " | ".join(map(str, PASSES)), "|")
    for eta in STEPS:
        for learner in (LMUWin(eta=eta, base=0.0), LMNWin(eta=eta, base=0.0, total=TOTAL)):
            state, found = learner.init(corpus.width, corpus.candidate_count), list[float]()
            for epoch in range(PASSES[-1]):
                order = np.random.default_rng(epoch).permutation(corpus.list_count)
                learner.epoch(corpus, oracles, order, state)
                mass = 2.0 * learner.mu * float(np.cosh(state.memory[: corpus.width]).sum())
                conjugate = TOTAL * np.log(mass) if learner.normalised else mass
                found.append(float(state.alpha.sum() - conjugate))
            name = f"{learner.name}, {'Newton' if eta is None else f'η = {eta:g}'}"
            print(f"| {name} |", " | ".join(f"{found[number - 1]:.1f}" for number in PASSES), "|")


if __name__ == "__main__":
    main()
