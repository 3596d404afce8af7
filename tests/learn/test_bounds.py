"""Mistake bounds: the right-hand sides from their definitions, and the observed mistakes under them."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import WIDTH, corpora, corpus_of, random_corpus, run
from variants import twin_of

from rerank.data.corpus import Corpus
from rerank.learn.base import Learner, Weights
from rerank.learn.bounds import Bounds, DualRule, bounds
from rerank.learn.log import UpdateLog
from rerank.learn.rules.perceptron import Perceptron
from rerank.learn.rules.vrda import VotedRDA

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
        rule = DualRule.of(self.learner)
        weights = Weights(np.array(u[:-1]), rule.base + rule.base_rate * float(u[-1]))
        return bounds(self.log, self.corpus, rule, weights, hinge=True)


def first_pass(learner: Learner, corpus: Corpus) -> Pass:
    trace, ran, rule = twin_of(learner, corpus, 1), run(learner, corpus, 1), DualRule.of(learner)
    average = learner.average(ran.state)
    in_base = (average.base - rule.base) / rule.base_rate if rule.base_rate else 0.0
    return Pass(learner, corpus, trace, np.append(average.w, in_base), ran.log)


@settings(max_examples=60)
@given(corpora(), REGULARISERS, COMPARISONS, FREE)
def test_right_hand_side_of_voted_rda(corpus: Corpus, parameters: dict[str, float], u: list[float], free: int) -> None:
    learner, corpus = VotedRDA(**parameters, base=0.5), replace(corpus, free=free)
    passed, rate = first_pass(learner, corpus), learner.base_rate
    vector = np.array(u) if rate else np.append(u[:-1], 0.0)
    assume(passed.trace.deltas and vector.any())
    found = passed.bounds(vector)
    assert found["mistakes"] == len(passed.trace.deltas)
    assert found["norm_u"] == pytest.approx(np.linalg.norm(vector))
    assert found["radius"] == pytest.approx(max(np.linalg.norm(z) for z in passed.trace.deltas))
    expected = reference.voted_rda_bound(passed.trace, vector, learner.eta, learner.l1, learner.l2, free)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-10, abs=1e-10), name


@settings(max_examples=60)
@given(corpora(), st.sampled_from([0.0, 0.5]), COMPARISONS)
def test_right_hand_side_of_the_perceptron(corpus: Corpus, rate: float, u: list[float]) -> None:
    passed = first_pass(Perceptron(base=1.0, base_rate=rate), corpus)
    vector = np.array(u) if rate else np.append(u[:-1], 0.0)
    assume(passed.trace.deltas and vector.any())
    found, expected = passed.bounds(vector), reference.perceptron_bound(passed.trace, vector)
    assert ("bound" in found) == ("bound" in expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-10), name


@settings(max_examples=120)
@given(corpora(dyadic=False, max_lists=12), REGULARISERS, COMPARISONS, st.booleans(), FREE)
def test_mistakes_of_one_pass_lie_under_every_bound(
    corpus: Corpus, parameters: dict[str, float], u: list[float], linear: bool, free: int
) -> None:
    rate, corpus = parameters["base_rate"], replace(corpus, free=free)
    learner: Learner = Perceptron(base=0.0, base_rate=rate) if linear else VotedRDA(**parameters, base=0.0)
    passed = first_pass(learner, corpus)
    assume(passed.trace.deltas)
    direction = -np.sum(passed.trace.deltas, axis=0)
    for vector in (passed.average, np.array(u), direction, 1e-3 * direction, 10 * np.array(u)):
        vector = vector if rate else np.append(vector[:-1], 0.0)
        found = passed.bounds(vector)
        assert found["fixed_base"] is False
        for name in ("bound", "separable_bound"):
            assert found["mistakes"] <= found.get(name, np.inf) * (1 + 1e-12) + 1e-9, (name, vector)


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
    factor = 1 if isinstance(learner, Perceptron) else 2
    assert found["separable_bound"] == pytest.approx(factor * (R / gamma) ** 2)
    assert 0 < found["mistakes"] <= found["separable_bound"]


def test_no_separable_bound_where_l1_breaks_it() -> None:
    """At λ₁ = 1 every weight stays 0 and every list is a mistake, though u separates them with γ = R."""
    corpus = corpus_of([[({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)]] * 9)
    found = first_pass(VotedRDA(base=0.0, l1=1.0), corpus).bounds(np.eye(WIDTH + 1)[0])
    assert found["mistakes"] == 9
    assert "separable_bound" not in found
    assert found["bound"] >= 9


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_a_base_score_that_weighs_from_the_start_is_said(rate: float) -> None:
    """Its weight can cause more mistakes than w_1 = 0 would make."""
    corpus = random_corpus(1)
    for base in (0.0, 2.0):
        found = first_pass(VotedRDA(base=base, base_rate=rate), corpus).bounds(np.ones(corpus.width + 1))
        assert found["fixed_base"] is (base != 0.0)


def test_nothing_is_said_without_mistakes_or_for_a_zero_vector() -> None:
    right = corpus_of([[({}, 1.0, 1.0), ({}, 0.0, 0.0)]])
    found = first_pass(VotedRDA(), right).bounds(np.ones(WIDTH + 1))
    assert (found["mistakes"], found["radius"], "bound" in found) == (0, 0.0, False)
    wrong = corpus_of([[({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)]])
    found = first_pass(VotedRDA(), wrong).bounds(np.zeros(WIDTH + 1))
    assert (found["mistakes"], found["norm_u"], "bound" in found) == (1, 0.0, False)


def test_only_the_hinge_loss_has_the_bound_of_voted_rda() -> None:
    passed = first_pass(VotedRDA(loss="perceptron", base=0.0), random_corpus(2))
    weights = Weights(passed.average[:-1], 0.0)
    assert "bound" not in bounds(passed.log, passed.corpus, DualRule.of(passed.learner), weights, hinge=False)
