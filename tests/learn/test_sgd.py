"""Stochastic gradient descent equals its dense twin with every loss, and follows the losses' gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import bits, corpora, corpus_of, orders, random_corpus, run, targets
from twins.sgd import sgd as sgd_twin

from rerank.data.corpus import Corpus
from rerank.learn.losses import LOSSES
from rerank.learn.rules.sgd import SGD
from rerank.learn.voting.voting import vote

EXACT = ["perceptron", "hinge", "cost"]
SETTINGS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "eta": st.sampled_from([0.25, 1.0]),
        "schedule": st.sampled_from(["sqrt", "constant"]),
        "update": st.sampled_from(["always", "mistakes"]),
        "base": st.sampled_from([0.0, 0.5, 1.0]),
        "base_rate": st.sampled_from([0.0, 0.5]),
    }
)


def twin(learner: SGD, corpus: Corpus, epochs: int, any_ties: bool = False) -> reference.Trace:
    return sgd_twin(corpus, targets(corpus), orders(corpus, epochs), any_ties=any_ties, **vars(learner))


def assert_equal(learner: SGD, corpus: Corpus, trace: reference.Trace, epochs: int, any_ties: bool = False) -> None:
    ran = run(learner, corpus, epochs, any_ties=any_ties)
    assert (ran.per_epoch("mistakes"), ran.per_epoch("updates")) == (trace.mistakes, trace.updates)
    assert ran.per_epoch("loss") == pytest.approx(trace.loss, rel=1e-10, abs=1e-12)
    assert max((part.radius for parts in ran.stats for part in parts), default=0.0) == pytest.approx(trace.radius)
    assert ran.log.arrays()["survived"].tolist() == trace.survived
    last, average, (w, beta) = learner.last(ran.state), learner.average(ran.state), trace.average()
    np.testing.assert_allclose(last.w, trace.predictors[-1].w, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(average.w, w, rtol=1e-10, atol=1e-12)
    assert (last.base, average.base) == pytest.approx((trace.predictors[-1].beta, beta), rel=1e-10, abs=1e-12)


@settings(max_examples=80)
@given(corpora(), SETTINGS, st.sampled_from(EXACT), st.booleans(), st.integers(0, 3))
def test_equals_the_twin_on_dyadic_numbers(
    corpus: Corpus, parameters: dict[str, Any], loss: str, any_ties: bool, epochs: int
) -> None:
    """With a constant dyadic step all sums are exact: every tie is the same one."""
    learner = SGD(loss, **parameters | {"schedule": "constant"})
    assert_equal(learner, corpus, twin(learner, corpus, epochs, any_ties), epochs, any_ties)


@settings(max_examples=80)
@given(corpora(dyadic=False), SETTINGS, st.sampled_from(list(LOSSES)), st.booleans())
def test_equals_the_twin_with_every_loss(corpus: Corpus, parameters: dict[str, Any], loss: str, any_ties: bool) -> None:
    learner = SGD(loss, **parameters | ({"eta": 0.03125} if loss == "exponential" else {}))
    trace = twin(learner, corpus, 2, any_ties)
    assume(trace.gap > 1e-9)
    assert_equal(learner, corpus, trace, 2, any_ties)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("update", ["always", "mistakes"])
def test_equals_the_twin_over_many_updates(loss: str, update: Any) -> None:
    eta = 0.03 if loss == "exponential" else 0.3  # larger steps reach margins at which e^{−m} is 0
    learner, corpus = SGD(loss, eta=eta, update=update, base=0.3, base_rate=0.2), random_corpus(11)
    assert_equal(learner, corpus, twin(learner, corpus, 5), 5)


@settings(max_examples=60)
@given(corpora(), corpora(), SETTINGS, st.sampled_from(EXACT))
def test_votes_equal_brute_force(training: Corpus, corpus: Corpus, parameters: dict[str, Any], loss: str) -> None:
    learner = SGD(loss, **parameters | {"schedule": "constant"})
    expected = reference.votes(twin(learner, training, 2), corpus)
    np.testing.assert_array_equal(vote(learner.votes(run(learner, training, 2).log, training), corpus), expected)


@settings(max_examples=60)
@given(corpora(dyadic=False), corpora(dyadic=False), SETTINGS, st.sampled_from(list(LOSSES)))
def test_votes_equal_brute_force_where_nothing_nearly_ties(
    training: Corpus, corpus: Corpus, parameters: dict[str, Any], loss: str
) -> None:
    learner = SGD(loss, **parameters | ({"eta": 0.03125} if loss == "exponential" else {}))
    trace = twin(learner, training, 2)
    assume(min(trace.gap, reference.voting_gap(trace, corpus)) > 1e-9)
    found = vote(learner.votes(run(learner, training, 2).log, training), corpus)
    np.testing.assert_array_equal(found, reference.votes(trace, corpus))


@pytest.mark.parametrize("loss", LOSSES)
def test_replayed_updates_have_the_bits_of_training(loss: str) -> None:
    learner, corpus = SGD(loss, base_rate=0.2), random_corpus(3)
    ran = run(learner, corpus, 2)
    votes, w = learner.votes(ran.log, corpus), np.zeros(corpus.width)
    w[votes.columns] = votes.value  # among equal columns the last entry stays
    np.testing.assert_array_equal(w, learner.last(ran.state).w)
    assert votes.beta[-1] == learner.last(ran.state).base


@pytest.mark.parametrize("loss", LOSSES)
def test_a_step_follows_the_gradient_of_the_loss(loss: str) -> None:
    """The first update is −η·weight·∂loss/∂w, by central differences of the loss that the learner itself reports."""
    corpus = random_corpus(12, lists=1, candidates=5)
    learner, eta = SGD(loss, eta=0.5, base=0.7, base_rate=0.25), 0.5
    oracles, order = targets(corpus), np.zeros(1, np.int64)

    def loss_at(w: np.ndarray, beta: float) -> float:
        state = learner.init(corpus.width)
        state.w[:], state.base[0] = w, beta
        return learner.epoch(corpus, oracles, order, state)[0].loss

    start, h = 0.1 * np.random.default_rng(1).normal(size=corpus.width), 1e-6
    state = learner.init(corpus.width)
    state.w[:], state.base[0] = start, 0.0
    learner.epoch(corpus, oracles, order, state)
    eye = h * np.eye(corpus.width)
    gradient = np.array([loss_at(start + e, 0.0) - loss_at(start - e, 0.0) for e in eye]) / (2 * h)
    slope = (loss_at(start, h) - loss_at(start, -h)) / (2 * h)
    assert np.abs(gradient).max() > 1e-3
    np.testing.assert_allclose(state.w - start, -eta * corpus.weight[0] * gradient, atol=1e-7)
    assert state.base[0] == pytest.approx(-eta * corpus.weight[0] * slope, abs=1e-7)


def test_by_hand() -> None:
    """Hinge steps of 1/√k along z = 1 until the margin is 1: w = 1, then nothing; twice the weight, twice the step."""
    corpus = corpus_of([[({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)], [({0: 2.0}, 0.0, 1.0), ({}, 0.0, 0.0)]], [0.25, 1.0], 1)
    learner = SGD(eta=1.0)
    state = learner.init(1)
    weights = []
    for i in (0, 0, 1, 1):
        learner.epoch(corpus, targets(corpus), np.array([i]), state)
        weights.append(float(state.w[0]))
    second = 0.25 + 0.25 / np.sqrt(2)
    assert weights == pytest.approx([0.25, second, second + 2 / np.sqrt(3), second + 2 / np.sqrt(3)], rel=1e-15)


def test_parts_of_an_epoch_change_no_bit() -> None:
    corpus, learner = random_corpus(5), SGD("log", base_rate=0.3)
    whole, parts = run(learner, corpus, 3), run(learner, corpus, 3, points=7)
    assert bits(whole.state) == bits(parts.state)
    for name, array in whole.log.arrays().items():
        np.testing.assert_array_equal(array, parts.log.arrays()[name])
