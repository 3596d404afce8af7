"""A Gaussian learner's update by itself: what it minimises; variances that fall and collapse."""

import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import reference
from scipy.optimize import minimize
from strategies import corpus_of, random_corpus, run, stored, targets

from rerank.data.corpus import Corpus
from rerank.learn.log import UpdateLog
from rerank.learn.predictor import named
from rerank.learn.rules.arow import AROW
from rerank.learn.rules.cw import CW
from rerank.learn.rules.gaussian import Gaussian
from rerank.learn.rules.gaussian_full import SMALLEST
from rerank.learn.rules.nherd import NormalHerd
from rerank.learn.rules.scw import SoftCW
from rerank.learn.train import ListProblem, train


class Update(NamedTuple):
    """Mean and covariance before and after an update on z, the base score's coordinate last."""

    mu: np.ndarray
    sigma: np.ndarray
    mu_after: np.ndarray
    sigma_after: np.ndarray
    z: np.ndarray


def moments(learner: Gaussian, state: Any) -> tuple[np.ndarray, np.ndarray]:
    """(μ, Σ), the latter as a matrix."""
    sigma = state.matrix.copy() if learner.full else np.diag(state.cells[:, 1])
    return named(state).a.copy(), sigma


def updates(learner: Gaussian, seed: int, corpus: Corpus | None = None) -> Iterator[Update]:
    """The updates of a learner, that has seen a few lists, on the lists of weight 1 of a corpus, each by itself."""
    corpus = random_corpus(seed) if corpus is None else corpus
    known = corpus.take(np.arange(5))
    before = run(learner, known, 1).state
    rows = np.column_stack([reference.dense(corpus), learner.base_rate * corpus.base])
    found = 0
    for i in np.flatnonzero(corpus.weight == 1.0):
        state, log = stored(before), UpdateLog()
        learner.epoch(corpus, targets(corpus), np.array([i]), state, log=log)
        if log.updates == 1:
            star, rival = log.arrays()["candidate"]
            np.testing.assert_array_equal(learner.variances(state), np.diag(moments(learner, state)[1])[: corpus.width])
            yield Update(*moments(learner, before), *moments(learner, state), rows[star] - rows[rival])
            found += 1
    assert found > 3


def small_corpus(seed: int) -> Corpus:
    """Two columns, lists of two; all weights 1."""
    random = np.random.default_rng(seed)
    rows = [[dict(enumerate(random.normal(size=2).astype(np.float32).tolist())) for _ in "ab"] for _ in range(40)]
    return corpus_of([[(a, 0.0, 1.0), (b, 0.0, 0.0)] for a, b in rows], width=2)


def divergence(mu: np.ndarray, root: np.ndarray, update: Update) -> float:
    """KL(N(μ, LLᵀ) ‖ N of before) without its constant, in the two columns."""
    inverse = np.linalg.inv(update.sigma[:2, :2])
    step = mu - update.mu[:2]
    log_det = 2 * np.log(np.abs(np.diag(root))).sum()
    return float(0.5 * (np.trace(inverse @ root @ root.T) + step @ inverse @ step - log_det))


def minimiser(learner: Any, update: Update) -> tuple[np.ndarray, np.ndarray]:
    """(μ, Σ) that minimises what the learner's paper says, over (μ, L, slack) with Σ = LLᵀ."""
    diagonal, z = learner.covariance == "exact", update.z[:2]

    def parts(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        return x[:2], np.array([[x[2], 0.0], [0.0 if diagonal else x[4], x[3]]]), float(x[5])

    def variance(x: np.ndarray) -> float:
        return float(((parts(x)[1].T @ z) ** 2).sum())

    def objective(x: np.ndarray) -> float:
        mu, root, slack = parts(x)
        value = divergence(mu, root, update)
        match learner.name:
            case "scw":
                return value + learner.C * slack
            case "arow":
                return value + (slack**2 + variance(x)) / (2 * learner.r)
        return value

    def slackness(x: np.ndarray) -> float:
        mu, _, slack = parts(x)
        m = float(mu @ z)
        if learner.name == "arow":
            return m + slack - 1.0
        asked = variance(x) if learner.name == "cw" and learner.form == "var" else np.sqrt(variance(x))
        return m + slack - learner.phi * float(asked)

    root = np.linalg.cholesky(update.sigma[:2, :2])
    start = np.array([*update.mu[:2], root[0, 0], root[1, 1], root[1, 0], 0.0 if learner.name == "cw" else 0.5])
    free = (None, None)
    found = minimize(
        objective,
        start,
        method="SLSQP",
        bounds=[free, free, (1e-6, None), (1e-6, None), free, (0.0, 0.0 if learner.name == "cw" else None)],
        constraints={"type": "ineq", "fun": slackness},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    mu, root, _ = parts(found.x)
    return mu, root @ root.T


MINIMISERS: list[Any] = [
    CW(phi=0.5, form="var", covariance="full", base=0.0),
    CW(phi=1.0, form="stdev", covariance="full", base=0.0),
    CW(phi=0.5, form="var", covariance="exact", base=0.0),
    CW(phi=1.0, form="stdev", covariance="exact", base=0.0),
    SoftCW(phi=0.5, C=0.3, covariance="full", base=0.0),
    SoftCW(phi=1.0, C=5.0, covariance="full", base=0.0),
    AROW(r=0.5, covariance="full", base=0.0),
    AROW(r=5.0, covariance="full", base=0.0),
]


@pytest.mark.parametrize("learner", MINIMISERS, ids=repr)
def test_an_update_is_the_minimiser(learner: Any) -> None:
    """CW: least divergence where m ≥ φv or φ√v; soft CW: + C·slack; AROW: + (hinge² + v)/2r."""
    for n, update in enumerate(updates(learner, seed=0, corpus=small_corpus(6))):
        mu, sigma = minimiser(learner, update)
        np.testing.assert_allclose(update.mu_after[:2], mu, atol=2e-4)
        np.testing.assert_allclose(update.sigma_after[:2, :2], sigma, atol=2e-4)
        if n == 5:
            break


NOISY: list[Any] = [
    AROW(r=1e-3, covariance="full"),
    AROW(r=1.0, covariance="full", base_rate=0.5),
    NormalHerd(C=0.01, covariance="full"),
    NormalHerd(C=100.0, covariance="full", top=3),
    SoftCW(phi=1.0, C=1.0, covariance="full"),
    SoftCW(phi=3.0, C=100.0, covariance="full"),
    CW(phi=0.05, form="stdev", covariance="full"),
    CW(phi=0.05, form="var", covariance="full"),
    CW(phi=1.0, form="stdev", covariance="full"),
    CW(phi=1.0, form="var", covariance="full"),
]


@pytest.mark.parametrize("learner", NOISY, ids=repr)
def test_a_full_covariance_stays_symmetric_and_positive_definite(learner: Gaussian) -> None:
    sigma = run(learner, random_corpus(9), 5).state.matrix
    np.testing.assert_allclose(sigma, sigma.T, rtol=0, atol=1e-14)
    assert np.linalg.eigvalsh((sigma + sigma.T) / 2).min() > 0.0
    assert np.diag(sigma).max() <= 1.0


@pytest.mark.parametrize(
    "learner",
    [
        CW(phi=3.0, form="stdev"),
        CW(phi=3.0, form="stdev", covariance="exact"),
        CW(phi=3.0, form="stdev", covariance="l2"),
        CW(phi=3.0),
    ],
)
def test_collapsing_variances_end_in_numbers(learner: CW, caplog: pytest.LogCaptureFixture) -> None:
    """Labels at random: variances fall doubly exponentially. Updates that they are too small for are left out, counted,
    and warned of once."""
    random = np.random.default_rng(1)
    lists = [
        [(dict(enumerate(random.normal(size=5).tolist())), 0.0, label), ({}, 0.0, 1.0 - label)]
        for label in random.integers(0, 2, size=600).astype(float)
    ]
    corpus = corpus_of(lists)
    with caplog.at_level(logging.WARNING, logger="rerank"):
        training = train(learner, ListProblem(corpus, targets(corpus), 1), epochs=3)
    for weights in training.weights.values():
        assert np.isfinite(weights.w).all()
    assert all(np.isfinite(line["loss"]) for line in training.history)
    assert (learner.variances(training.state) >= SMALLEST).all()
    assert training.skipped == sum(line["skipped"] for line in training.history)
    assert len(caplog.records) == (training.skipped > 0)
    if learner.form == "stdev" and learner.covariance == "kl":
        assert training.skipped > 0


def test_only_updates_that_were_due_are_skipped() -> None:
    """A margin far above what is asked for leaves nothing to skip, however small the variance."""
    corpus, learner = corpus_of([[({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)]], width=1), CW()
    for mean, skipped in ((-5.0, 1), (5.0, 0)):
        state = learner.init(1)
        state.cells[0, :2] = mean, SMALLEST
        stats = learner.epoch(corpus, targets(corpus), np.array([0]), state)
        assert (stats.skipped, stats.updates) == (skipped, 0)
