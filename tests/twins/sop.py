"""The second-order perceptron."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from entries import Entry
from reference import Trace
from reference_pairs import ORACLES, Pairs

from rerank.data.corpus import Corpus
from rerank.learn.rules.sop import SecondOrderPerceptron
from twins.pa import Step, walk


def solve(covariance: str, A: np.ndarray, s: np.ndarray) -> np.ndarray:
    """A⁻¹s, with the diagonal of A alone where the covariance is diagonal."""
    return s / np.diag(A) if covariance == "diagonal" else np.linalg.solve(A, s)


def sop(
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Iterable[Sequence[int]],
    *,
    a: float,
    covariance: str,
    top: int,
    base: float,
    base_rate: float,
    any_ties: bool = False,
    pairs: Pairs = ORACLES,
) -> Trace:
    """Cesa-Bianchi, Conconi & Gentile (2005), Fig. 2: A = aI + Σ weight·zzᵀ, s = Σ weight·z over the updates.

    A holds the current z when that is judged. A list of weight 0, or with two equal rows, can be a mistake, but teaches
    nothing.
    """
    n = corpus.width + 1
    state = {"A": a * np.eye(n), "s": np.zeros(n)}

    def learn(_: np.ndarray, z: np.ndarray, fixed: float, weight: float) -> Step:
        A, s = state["A"], state["s"]
        m = fixed + float(solve(covariance, A + np.outer(z, z), s) @ z)
        mistake = m <= 0.0
        if not mistake or not z.any() or weight == 0.0:
            return Step(max(0.0, -m), None, abs(m), mistake)
        state["A"], state["s"] = A + weight * np.outer(z, z), s + weight * z
        return Step(-m, solve(covariance, state["A"], state["s"]), abs(m), mistake)

    return walk(corpus, oracle, orders, learn, top=top, base=base, base_rate=base_rate, any_ties=any_ties, pairs=pairs)


def binary_sop(learner: SecondOrderPerceptron, X: np.ndarray, y: np.ndarray, epochs: int) -> tuple[np.ndarray, int]:
    """The same on examples z = y·x, the current one always in A: (w, mistakes)."""
    D, mistakes = X.shape[1], 0
    A, s = learner.a * np.eye(D), np.zeros(D)
    for z in np.tile(y[:, None] * X, (epochs, 1)):
        if solve(learner.covariance, A + np.outer(z, z), s) @ z <= 0.0:
            A, s, mistakes = A + np.outer(z, z), s + z, mistakes + 1
    return solve(learner.covariance, A, s), mistakes


VARIANTS: list[dict[str, Any]] = [
    {},
    {"a": 0.25, "base": 0.0, "top": 2},
    {"a": 4.0, "base": 0.5, "base_rate": 0.25, "top": 3},
    {"covariance": "full", "base": 0.0},
    {"covariance": "full", "a": 0.5, "base": 0.25, "base_rate": 0.25, "top": 3},
]

ENTRIES = {"sop": Entry(VARIANTS, sop, binary_sop, frozenset({"a"}))}
