"""The mistake bounds of the papers hold in the first pass, for any u: random ones and what training returned."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from strategies import corpus_of, run

from rerank.learn.base import Learner
from rerank.learn.log import UpdateLog
from rerank.learn.rules.arow import AROW
from rerank.learn.rules.pa import PassiveAggressive
from rerank.learn.rules.sop import SecondOrderPerceptron

D = 6


class Pass(NamedTuple):
    """A pass over n binary examples z = y·x, and vectors to compare with."""

    Z: np.ndarray  # float64 [n, D]
    mistakes: np.ndarray  # bool [n]
    updates: np.ndarray  # bool [n]
    losses: np.ndarray  # float64 [n]: of the learner, before its update
    comparisons: list[np.ndarray]


def first_pass(learner: Learner, seed: int, noise: float, n: int = 60) -> Pass:
    """Labels by a random hyperplane, a share of them flipped; every example as an epoch of its own."""
    random = np.random.default_rng(seed)
    truth = random.normal(size=D)
    X = (random.normal(size=(n, D)) * random.choice([0.3, 1.0, 2.0], size=D)).astype(np.float32).astype(float)
    y = np.where(X @ truth > 0, 1.0, -1.0) * np.where(random.random(n) < noise, -1.0, 1.0)
    corpus = corpus_of(
        [[({}, 0.0, float(s < 0)), (dict(enumerate(x)), 0.0, float(s > 0))] for x, s in zip(X, y, strict=True)], width=D
    )
    oracles = 2 * np.arange(n) + (y > 0)
    state, log = learner.init(D, corpus.candidate_count), UpdateLog()
    stats = [learner.epoch(corpus, oracles, np.array([i]), state, log=log)[0] for i in range(n)]
    long = learner.last(run(learner, corpus, 20).state).w
    comparisons = [truth, learner.last(state).w, learner.average(state).w, long, np.zeros(D)]
    comparisons += [random.normal(size=D) * scale for scale in (0.1, 1.0, 10.0)]
    comparisons += [truth * scale for scale in (0.1, 0.5, 5.0)]
    found = np.array([(one.mistakes, one.updates, one.loss) for one in stats])
    Z = y[:, None] * X
    assert log.arrays()["lists"].tolist() == np.flatnonzero(found[:, 1]).tolist()
    return Pass(Z, found[:, 0] > 0, found[:, 1] > 0, found[:, 2], comparisons)


def passes(learner: Learner) -> Iterator[Pass]:
    for seed in range(8):
        for noise in (0.0, 0.1, 0.4):
            yield first_pass(learner, seed, noise)


def assert_bounds(found: list[tuple[float, float]], tight: float) -> None:
    """No observed number is above its bound, and some bound is less than ``tight`` times what was observed."""
    for observed, bound in found:
        assert observed <= bound * (1 + 1e-9)
    assert min(bound / observed for observed, bound in found if observed > 0) < tight


def hinge(Z: np.ndarray, u: np.ndarray, margin: float = 1.0) -> np.ndarray:
    return np.maximum(0.0, margin - Z @ u)


@pytest.mark.parametrize("r", [0.1, 1.0, 10.0])
def test_arow(r: float) -> None:
    """Crammer et al. (2009), Theorem 2: M ≤ √(r‖u‖² + uᵀXu)·√(log det(I + X/r) + U) + Σ_{M∪U} g − U."""
    found = []
    for one in passes(AROW(r=r, covariance="full")):
        Z = one.Z[one.updates]
        M, U = one.mistakes.sum(), (one.updates & ~one.mistakes).sum()
        X = Z.T @ Z
        log_det = np.linalg.slogdet(np.eye(D) + X / r)[1]
        for u in one.comparisons:
            norm = np.sqrt(r * u @ u + u @ X @ u)
            found.append((float(M), float(norm * np.sqrt(log_det + U) + hinge(Z, u).sum() - U)))
    assert_bounds(found, tight=6.0)


@pytest.mark.parametrize("a", [0.1, 1.0, 10.0])
def test_second_order_perceptron(a: float) -> None:
    """Cesa-Bianchi et al. (2005), Theorem 3.1, over the mistakes: M ≤ Σ max(0, γ − u·z)/γ + √((a + uᵀXu)·Σ ln(1 +
    λ_i/a))/γ for ‖u‖ = 1 and γ > 0."""
    found = []
    for one in passes(SecondOrderPerceptron(a=a, covariance="full")):
        np.testing.assert_array_equal(one.mistakes, one.updates)
        Z = one.Z[one.mistakes]
        X = Z.T @ Z
        spread = np.log1p(np.maximum(0.0, np.linalg.eigvalsh(X)) / a).sum()
        for u in one.comparisons:
            if not u.any():
                continue
            unit = u / np.linalg.norm(u)
            for gamma in (0.03, 0.3, 1.0, 3.0):
                size = np.sqrt((a + unit @ X @ unit) * spread)
                found.append((float(len(Z)), float((hinge(Z, unit, gamma).sum() + size) / gamma)))
    assert_bounds(found, tight=3.0)


def test_passive_aggressive_where_u_has_no_loss() -> None:
    """Crammer et al. (2006), Theorem 2: Σ loss² ≤ ‖u‖²R² where u has margin 1 everywhere."""
    found = []
    for seed in range(12):
        one = first_pass(PassiveAggressive(variant="hard"), seed, 0.0)
        R = np.linalg.norm(one.Z, axis=1).max()
        for u in one.comparisons:
            smallest = float((one.Z @ u).min())
            if smallest > 0:
                scaled = u / smallest
                found.append((float((one.losses**2).sum()), float(scaled @ scaled * R**2)))
    assert len(found) > 12
    assert_bounds(found, tight=1e5)


@pytest.mark.parametrize("C", [0.01, 0.3, 10.0])
def test_passive_aggressive_1(C: float) -> None:
    """Theorem 4: M ≤ max(R², 1/C)·(‖u‖² + 2C Σ loss(u))."""
    found = []
    for one in passes(PassiveAggressive(variant="1", C=C)):
        R2 = (one.Z**2).sum(axis=1).max()
        for u in one.comparisons:
            found.append((float(one.mistakes.sum()), float(max(R2, 1 / C) * (u @ u + 2 * C * hinge(one.Z, u).sum()))))
    assert_bounds(found, tight=200.0)


@pytest.mark.parametrize("C", [0.01, 0.3, 10.0])
def test_passive_aggressive_2(C: float) -> None:
    """Theorem 5: Σ loss² ≤ (R² + 1/2C)·(‖u‖² + 2C Σ loss(u)²)."""
    found = []
    for one in passes(PassiveAggressive(variant="2", C=C)):
        R2 = (one.Z**2).sum(axis=1).max()
        for u in one.comparisons:
            bound = (R2 + 1 / (2 * C)) * (u @ u + 2 * C * (hinge(one.Z, u) ** 2).sum())
            found.append((float((one.losses**2).sum()), float(bound)))
    assert_bounds(found, tight=200.0)
