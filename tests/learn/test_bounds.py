"""Mistake bounds: the right-hand sides from their definitions, and the observed mistakes under them."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import WIDTH, corpora, corpus_of, random_corpus, run
from variants import twin_of

from rerank.data.corpus import Corpus
from rerank.learn.bounds import Bounds, best_scale, bounds, differences, list_margins, perceptron_bound, theorem_of
from rerank.learn.epoch import UpdateLog
from rerank.learn.learner import Learner, Weights
from rerank.learn.rules.additive import Perceptron
from rerank.learn.rules.dual_averaging import RDA, VotedRDA
from rerank.learn.rules.gaussian import AROW
from rerank.learn.rules.winnow import NWin, UWin
from rerank.metrics.metric import oracles

REGULARISERS = st.fixed_dictionaries(
    {
        "eta": st.sampled_from([0.25, 1.0, 4.0]),
        "l1": st.sampled_from([0.0, 0.125, 0.5]),
        "l2": st.sampled_from([0.0, 0.25]),
        "base_rate": st.sampled_from([0.0, 0.5]),
    }
)
FREE = st.sampled_from([0, 0, 2, WIDTH])
COMPARISONS = st.lists(st.integers(-16, 16).map(lambda n: n / 8), min_size=WIDTH + 1, max_size=WIDTH + 1)


class Pass(NamedTuple):
    """One pass of a learner and of its twin, and the bounds for any u (float64 [D + 1], the base score's last)."""

    learner: Learner
    corpus: Corpus
    trace: reference.Trace
    average: np.ndarray
    log: UpdateLog

    def bounds(self, u: np.ndarray) -> Bounds:
        weights = Weights(np.array(u[:-1]), self.learner.base + self.learner.base_rate * float(u[-1]))
        return bounds_of(self.learner, self.log, self.corpus, len(self.trace.deltas), weights)


def bounds_of(learner: Learner, log: UpdateLog, corpus: Corpus, mistakes: int, u: Weights) -> Bounds:
    return bounds(learner, log, corpus, mistakes, u, list_margins(corpus, oracles(corpus), u, any_ties=False))


def first_pass(learner: Learner, corpus: Corpus) -> Pass:
    trace, ran = twin_of(learner, corpus, 1), run(learner, corpus, 1)
    average = learner.average(ran.state)
    in_base = (average.base - learner.base) / learner.base_rate if learner.base_rate else 0.0
    return Pass(learner, corpus, trace, np.append(average.w, in_base), ran.log)


@settings(max_examples=60)
@given(corpora(), st.sampled_from([0.0, 0.25]), st.sampled_from(["hinge", "log"]))
def test_differences_are_the_dense_subgradients(corpus: Corpus, rate: float, loss: str) -> None:
    passed = first_pass(VotedRDA(base_rate=rate, loss=loss), corpus)
    found, deltas = differences(passed.log, corpus, rate).toarray(), passed.trace.deltas
    np.testing.assert_allclose(found, -np.array(deltas).reshape(found.shape), atol=1e-12)


@settings(max_examples=60)
@given(corpora(), REGULARISERS, COMPARISONS, FREE)
def test_right_hand_side_of_voted_rda(corpus: Corpus, parameters: dict[str, float], u: list[float], free: int) -> None:
    learner, corpus = VotedRDA(**parameters, base=0.0), replace(corpus, free=free)
    passed, rate = first_pass(learner, corpus), learner.base_rate
    vector = np.array(u) if rate else np.append(u[:-1], 0.0)
    assume(passed.trace.deltas and vector.any())
    assume(parameters["l1"] or (parameters["l2"] and (rate or free)))
    found = passed.bounds(vector)
    assert found["mistakes"] == len(passed.trace.deltas)
    assert found["norm_u"] == pytest.approx(np.linalg.norm(vector))
    assert found["radius"] == pytest.approx(max(np.linalg.norm(z) for z in passed.trace.deltas))
    expected = reference.voted_rda_bound(passed.trace, vector, learner.eta, learner.l1, learner.l2, free)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-10, abs=1e-10), name


@settings(max_examples=60)
@given(corpora(), st.sampled_from([0.0, 0.5]), COMPARISONS, st.booleans())
def test_right_hand_side_of_the_perceptron(corpus: Corpus, rate: float, u: list[float], dual: bool) -> None:
    """At the scales of all positive margins, and at 0; voted RDA without a penalty has the same, whatever its step."""
    learner = VotedRDA(base=0.0, base_rate=rate, eta=3.0) if dual else Perceptron(base=0.0, base_rate=rate)
    passed = first_pass(learner, corpus)
    vector = np.array(u) if rate else np.append(u[:-1], 0.0)
    assume(passed.trace.deltas and vector.any())
    found, expected = passed.bounds(vector), reference.perceptron_bound(passed.trace, passed.corpus, vector, rate)
    assert found["bound"] == pytest.approx(expected, rel=1e-10)
    assert found["lists"] == corpus.list_count
    assert found["vote_error"] == min(1.0, 2 * len(passed.trace.deltas) / (corpus.list_count + 1))


def separable(seed: int, lists: int) -> tuple[Corpus, np.ndarray]:
    """Lists whose oracle (the first) is ahead of all others by at least 1 under a known vector; and that vector."""
    random = np.random.default_rng(seed)
    w = random.choice([-1.0, 1.0], size=WIDTH)
    made = []
    while len(made) < lists:
        rows = random.integers(-2, 3, size=(3, WIDTH)).astype(float)
        rows = rows[np.argsort(-rows @ w)]
        if rows[0] @ w >= rows[1] @ w + 1:
            made.append([(dict(enumerate(row)), 0.0, float(y == 0)) for y, row in enumerate(rows)])
    return corpus_of(made), np.append(w, 0.0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("learner", [Perceptron(base=0.0), VotedRDA(base=0.0), VotedRDA(base=0.0, l2=0.5, eta=0.3)])
def test_the_separable_bound(seed: int, learner: Learner) -> None:
    corpus, w = separable(seed, 60)
    passed = first_pass(learner, corpus)
    found = passed.bounds(w)
    Z = -np.array(passed.trace.deltas)
    gamma, R = float((Z @ w).min() / np.linalg.norm(w)), float(np.linalg.norm(Z, axis=1).max())
    assert found["separable_gamma"] == pytest.approx(gamma)
    assert found["separable_bound"] == pytest.approx((R / gamma) ** 2)
    assert 0 < found["mistakes"] <= found["separable_bound"]
    assert found["mistakes"] <= found["bound"] <= min(len(corpus.lists) - 1, found["separable_bound"]) + 1e-9


def test_no_separable_bound_where_l1_breaks_it() -> None:
    """At λ₁ = 1 every weight stays 0 and every list is a mistake, though u separates them with γ = R."""
    corpus = corpus_of([[({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)]] * 9)
    found = first_pass(VotedRDA(base=0.0, l1=1.0), corpus).bounds(np.eye(WIDTH + 1)[0])
    assert found["mistakes"] == 9
    assert "separable_bound" not in found
    assert found["bound"] >= 9


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_there_is_no_bound_where_a_base_score_weighs_from_the_start(rate: float) -> None:
    """Its weight can cause more mistakes than w_1 = 0 would make."""
    corpus = random_corpus(1)
    for base in (0.0, 2.0):
        found = first_pass(VotedRDA(base=base, base_rate=rate), corpus).bounds(np.ones(corpus.width + 1))
        assert found["fixed_base"] is (base != 0.0)
        assert ("bound" in found) is (base == 0.0)
        assert "mistakes" in found


def test_nothing_is_said_without_mistakes_or_for_a_zero_vector() -> None:
    right = corpus_of([[({}, 1.0, 1.0), ({}, 0.0, 0.0)]])
    found = first_pass(VotedRDA(), right).bounds(np.ones(WIDTH + 1))
    assert (found["mistakes"], found["radius"], "bound" in found) == (0, 0.0, False)
    wrong = corpus_of([[({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)]])
    found = first_pass(VotedRDA(), wrong).bounds(np.zeros(WIDTH + 1))
    assert (found["mistakes"], found["norm_u"], "bound" in found) == (1, 0.0, False)


@pytest.mark.parametrize("l1", [0.0, 0.125])
@pytest.mark.parametrize("seed", range(4))
def test_logistic_loss_has_at_least_ln_2_for_every_mistake(l1: float, seed: int) -> None:
    """Theorem 1 over the gradients, as in its proof: M·ln 2 ≤ Σ ln(1 + e^−u·z) + M·Δ(u) + (η‖u‖²/2 + G²/η)·√M."""
    corpus = random_corpus(seed)
    corpus = replace(corpus, weight=np.ones(corpus.list_count))
    learner = VotedRDA(loss="logistic", base=0.0, l1=l1, eta=0.5)
    passed = first_pass(learner, corpus)
    gradients = -np.array(passed.trace.deltas)[:, : corpus.width]
    M = len(gradients)
    for u in (passed.average[:-1], 3 * gradients.sum(axis=0) / M, np.ones(corpus.width)):
        found = passed.bounds(np.append(u, 0.0))
        coefficients = np.maximum.reduceat(np.abs(passed.log.arrays()["a"]), passed.log.arrays()["first"][:-1])
        z = gradients / coefficients[:, None]
        steepest = np.linalg.norm(gradients, axis=1).max()
        expected = np.log1p(np.exp(-z @ u)).sum() + M * found["delta_u"]
        expected += (learner.eta * u @ u / 2 + steepest**2 / learner.eta) * np.sqrt(M)
        assert found["bound"] == pytest.approx(expected / np.log(2))
        assert found["radius"] == pytest.approx(np.linalg.norm(z, axis=1).max())
        assert found["delta_u"] == 0.0 if l1 == 0.0 else found["delta_u"] != 0.0
        assert found["bound"] >= M


def test_other_losses_than_hinge_perceptron_and_logistic_have_no_bound() -> None:
    passed = first_pass(VotedRDA(loss="exponential", base=0.0), random_corpus(2))
    assert "bound" not in passed.bounds(passed.average)


def test_a_scale_is_never_worse_than_none() -> None:
    """u = 0 allows a mistake on every list, so no bound says more; many lists are tried at SCALES of them alone."""
    assert best_scale(np.full(5, -1.0), perceptron_bound(3.0)) == {"scale": 0.0, "loss_u": 5.0, "bound": 5.0}
    at_one = perceptron_bound(1.0)
    assert (at_one(1.0, np.array([2.0])), at_one(1.0, np.full(4, 0.5))) == (4.0, 4.0)  # by sum; by sum and by squares
    found = best_scale(np.geomspace(1e-3, 10.0, 3000), perceptron_bound(1.0))
    assert 0.0 < found["scale"] < 1000.0
    assert found["bound"] < 3000.0


def test_margins_of_lists() -> None:
    """The lowest right score less the highest wrong one, weighted; infinite where nothing is wrong."""
    rows = [[2.0, 1.0], [3.0, 1.0], [-1.0, 0.0]]
    lists = [[({0: w}, 0.0, gain) for w, gain in rows], [({0: 1.0}, 0.0, 1.0)], []]
    corpus = replace(corpus_of(lists), weight=np.array([0.5, 1.0, 1.0]))
    u = Weights(np.eye(WIDTH)[0], 0.0)
    assert list_margins(corpus, oracles(corpus), u, any_ties=True).tolist() == [1.5, np.inf, np.inf]
    assert list_margins(corpus, oracles(corpus), u, any_ties=False).tolist() == [-0.5, np.inf, np.inf]


WHITENING: list[AROW] = [
    AROW(r=0.5, covariance="full", base=0.0), AROW(r=5.0, covariance="full", base=0.0, base_rate=0.5),
]  # fmt: skip


def assert_bounded(learner: AROW | NWin, corpus: Corpus, vectors: list[Weights], right: Any) -> None:
    """The mistakes of a pass lie under the least right(short, scale, u, z, mistakes) of all scales, for every u."""
    corpus = replace(corpus, weight=np.ones(corpus.list_count))
    ran, rate = run(learner, corpus, 1), learner.base_rate
    z, mistakes = differences(ran.log, corpus, rate).toarray(), int(ran.per_epoch("mistakes")[0])
    assert mistakes > 0
    for u in vectors or [learner.average(ran.state)]:
        margins = list_margins(corpus, oracles(corpus), u, any_ties=False)
        found = bounds_of(learner, ran.log, corpus, mistakes, u)
        vector, finite = np.append(u.w, u.base / rate if rate else 0.0), margins[np.isfinite(margins)]
        expected = [float(finite.size)]
        for scale in 1 / finite[finite > 0]:
            expected.append(right(float(np.maximum(0.0, 1.0 - scale * finite).sum()), scale, vector, z, mistakes))
        assert found["bound"] == pytest.approx(min(expected))
        assert mistakes <= found["bound"]


@pytest.mark.parametrize("learner", WHITENING, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_mistakes_of_arow_with_a_full_matrix_lie_under_its_bound(learner: AROW, seed: int) -> None:
    """Crammer et al. 2009, Theorem 2, matrix and all."""

    def right(short: float, scale: float, vector: np.ndarray, z: np.ndarray, mistakes: int) -> float:
        X, spare, v = z.T @ z, len(z) - mistakes, scale * vector
        volume = np.linalg.slogdet(np.eye(len(X)) + X / learner.r)[1]
        return float(short + np.sqrt((learner.r * v @ v + v @ X @ v) * (volume + spare)) - spare)

    assert_bounded(learner, random_corpus(seed), [], right)


@pytest.mark.parametrize(("eta", "rate"), [(0.01, 0.0), (0.1, 0.5), (0.5, 0.0)])
@pytest.mark.parametrize("seed", range(4))
def test_mistakes_of_normalised_winnow_lie_under_their_bound(eta: float, rate: float, seed: int) -> None:
    """M·(1 − ηX²‖u‖₁/2) ≤ L(u) + ‖u‖₁·K/η, over the separable lists and over others."""

    def right(short: float, scale: float, vector: np.ndarray, z: np.ndarray, _: int) -> float:
        total, X = scale * np.abs(vector).sum(), np.abs(z).max()
        q = np.abs(vector[vector != 0]) / np.abs(vector).sum()
        K, left = float((q * np.log(q * 2 * (vector.size - 1 + (rate > 0)))).sum()), 1 - eta * X**2 * total / 2
        return float((short + total * K / eta) / left) if left > 0 else np.inf

    corpus, w = separable(seed, 60)
    for lists, vectors in ((corpus, [Weights(w[:-1], 0.0)]), (random_corpus(seed), [])):
        assert_bounded(NWin(eta=eta, base=0.0, base_rate=rate), lists, vectors, right)


def test_nothing_is_said_of_learners_without_a_theorem() -> None:
    theorems = [(AROW(covariance="full"), "arow"), (NWin(), "winnow"), (Perceptron(), "dual"), (VotedRDA(), "dual")]
    none = AROW(), AROW(covariance="full", top=2), UWin()
    none += NWin(update="always", loss="hinge"), NWin(loss="log"), RDA()
    for learner, expected in [*theorems, *((learner, None) for learner in none)]:
        assert theorem_of(learner) == expected, learner


@pytest.mark.parametrize("learner", [*WHITENING, NWin(base=0.0)], ids=str)
def test_candidates_without_a_difference_are_mistakes_and_no_updates(learner: AROW | NWin) -> None:
    same: list[Any] = [({0: 1.0}, 0.0, 1.0), ({0: 1.0}, 0.0, 0.0)]
    corpus = corpus_of([[({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)], *[same] * 9], width=2)
    ran = run(learner, corpus, 1)
    u, mistakes = learner.average(ran.state), int(ran.per_epoch("mistakes")[0])
    assert mistakes == 10
    assert ran.log.updates == (10 if isinstance(learner, NWin) else 1)
    assert mistakes <= bounds_of(learner, ran.log, corpus, mistakes, u)["bound"] <= 10 + 1e-12
