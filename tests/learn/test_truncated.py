"""Truncated gradient and FOBOS equal their dense twin, their average is exact, and so is voting with them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from strategies import Ran, bits, corpora, corpus_of, orders, random_corpus, run, targets
from twins.truncated import truncated as truncated_twin

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.learn.base import Learner
from rerank.learn.losses import LOSSES
from rerank.learn.rules.truncated import Fobos, TruncatedGradient
from rerank.learn.voting.voting import vote

SETTINGS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "loss": st.sampled_from(["perceptron", "hinge", "logistic", "log", "bayes"]),
        "eta": st.sampled_from([0.5, 1.0, 3.0]),
        "l1": st.sampled_from([0.0, 0.05, 0.1, 0.4]),
        "theta": st.sampled_from([None, None, 0.6, 1.5]),
        "every": st.sampled_from([1, 1, 2, 3]),
        "update": st.sampled_from(["always", "mistakes"]),
        "base": st.sampled_from([0.0, 0.5, 1.0]),
        "base_rate": st.sampled_from([0.0, 0.0, 0.5]),
    }
)


def twin(learner: Any, corpus: Corpus, epochs: int, any_ties: bool = False) -> reference.Trace:
    return truncated_twin(corpus, targets(corpus), orders(corpus, epochs), any_ties=any_ties, **asdict(learner))


def assert_equal(learner: Learner, ran: Ran, trace: reference.Trace) -> None:
    assert ran.per_epoch("mistakes") == trace.mistakes
    assert ran.per_epoch("updates") == trace.updates
    assert ran.per_epoch("loss") == pytest.approx(trace.loss, rel=1e-10, abs=1e-12)
    assert max((part.radius for parts in ran.stats for part in parts), default=0.0) == pytest.approx(trace.radius)
    assert ran.log.arrays()["survived"].tolist() == trace.survived
    last, (w, beta) = learner.last(ran.state), trace.average()
    np.testing.assert_allclose(last.w, trace.predictors[-1].w, rtol=1e-10, atol=1e-12)
    assert last.base == pytest.approx(trace.predictors[-1].beta, rel=1e-10, abs=1e-12)
    average = learner.average(ran.state)
    np.testing.assert_allclose(average.w, w, rtol=1e-10, atol=1e-12)
    assert average.base == pytest.approx(beta, rel=1e-10, abs=1e-12)
    if ran.stats:
        assert ran.stats[-1][-1].nonzero_weights == np.count_nonzero(last.w)


@settings(max_examples=150)
@given(corpora(dyadic=False), SETTINGS, st.booleans(), st.integers(0, 4))
def test_equals_the_twin(corpus: Corpus, parameters: dict[str, Any], any_ties: bool, epochs: int) -> None:
    learner = TruncatedGradient(**parameters)
    trace = twin(learner, corpus, epochs, any_ties)
    assume(trace.gap > 1e-9)
    assert_equal(learner, run(learner, corpus, epochs, any_ties=any_ties), trace)


@pytest.mark.parametrize("loss", list(LOSSES))
@pytest.mark.parametrize("update", ["always", "mistakes"])
@pytest.mark.parametrize(("l1", "theta", "every"), [(0.0, None, 1), (0.02, None, 1), (0.02, 0.5, 4), (0.5, 0.1, 7)])
def test_equals_the_twin_over_many_updates(loss: str, update: Any, l1: float, theta: float | None, every: int) -> None:
    learner = TruncatedGradient(loss, 0.7, l1, theta, every, update, base=0.3, base_rate=0.2)
    corpus = random_corpus(11)
    assert_equal(learner, run(learner, corpus, 5), twin(learner, corpus, 5))


@settings(max_examples=100)
@given(corpora(dyadic=False), corpora(dyadic=False), SETTINGS)
def test_voting_equals_brute_force(training: Corpus, corpus: Corpus, parameters: dict[str, Any]) -> None:
    learner = TruncatedGradient(**parameters)
    trace = twin(learner, training, 3)
    assume(min(trace.gap, reference.voting_gap(trace, corpus)) > 1e-9)
    votes = learner.votes(run(learner, training, 3).log, training)
    np.testing.assert_array_equal(vote(votes, corpus), reference.votes(trace, corpus))


@pytest.mark.parametrize("theta", [None, 0.3])
@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_voting_over_many_updates_equals_brute_force(loss: str, theta: float | None) -> None:
    """Weights leave and return, above θ and below it."""
    training, corpus = random_corpus(1, lists=60), random_corpus(2, lists=40)
    learner = TruncatedGradient(loss, l1=0.05, theta=theta, every=2, base=0.5, base_rate=0.25)
    trace, ran = twin(learner, training, 4), run(learner, training, 4)
    weights = np.array([predictor.w for predictor in trace.predictors])
    assert ((weights[:-1] != 0) & (weights[1:] == 0)).any()
    assert min(trace.gap, reference.voting_gap(trace, corpus)) > 1e-9
    np.testing.assert_array_equal(vote(learner.votes(ran.log, training), corpus), reference.votes(trace, corpus))


@pytest.mark.parametrize("theta", [None, 0.3])
def test_votes_end_with_the_bits_of_the_state(theta: float | None) -> None:
    corpus = random_corpus(3)
    learner = TruncatedGradient("log", l1=0.01, theta=theta, every=3)
    ran = run(learner, corpus, 3)
    votes, a, v = learner.votes(ran.log, corpus), np.zeros(corpus.width), np.zeros(corpus.width)
    for k in range(votes.first.size - 1):
        entries = slice(votes.first[k], votes.first[k + 1])
        a[votes.columns[entries]] = votes.value[entries]
        if theta is not None:
            v[votes.columns[entries]] = votes.slope[entries]
    np.testing.assert_array_equal(a, ran.state.a)
    assert votes.threshold[-1] == ran.state.threshold[0] > 0
    if theta is None:
        assert votes.slope.size == 0
    else:
        np.testing.assert_array_equal(v, np.where(ran.state.exempt, 0.0, np.sign(a)))
        assert (v == 0.0).any()
        assert v.any()


def test_fobos_is_truncation_of_all_weights_after_every_step() -> None:
    corpus = random_corpus(4)
    for update in ("always", "mistakes"):
        same: dict[str, Any] = {"loss": "log", "eta": 0.5, "l1": 0.02, "update": update, "base_rate": 0.25}
        one, two = run(Fobos(**same), corpus, 3), run(TruncatedGradient(**same), corpus, 3)
        assert bits(one.state) == bits(two.state)
        assert one.stats == two.stats


@settings(max_examples=30)
@given(st.integers(0, 999), st.sampled_from([0.05, 0.3]), st.sampled_from(["hinge", "log"]))
def test_a_fobos_step_minimises_what_fobos_minimises(seed: int, l1: float, loss: str) -> None:
    """w' = argmin ½‖w − (w_k − α·g)‖² + α·λ₁‖w‖₁ (Duchi & Singer 2009, eq. 3), column by column."""
    learner, corpus = Fobos(loss, eta=0.8, l1=l1), random_corpus(seed, lists=8, candidates=4, width=6)
    trace = twin(learner, corpus, 2)
    assume(trace.gap > 1e-9)
    found = learner.last(run(learner, corpus, 2).state).w
    alpha = 0.8 / np.sqrt(len(trace.deltas))
    middle = trace.predictors[-2].w - alpha * trace.deltas[-1][:-1]
    for j in range(corpus.width):
        best = minimize_scalar(
            lambda x, c=middle[j]: 0.5 * (x - c) ** 2 + alpha * l1 * abs(x), bracket=(-1.0, 1.0), tol=1e-12
        )
        assert found[j] == pytest.approx(best.x, abs=1e-6)


def test_by_hand() -> None:
    """One column, perceptron loss, λ = 1/4, η = 1: the steps are 1, 1/√2, 1/√3; θ keeps large weights."""
    up, stuck = [({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)], [({1: 1.0}, 0.0, 1.0), ({1: 1.0}, 0.0, 0.0)]
    corpus = corpus_of([up, stuck])  # the second list is a mistake every time, with g = 0
    order = np.array([0, 1, 1, 1, 1, 1])
    cuts = 0.25 / np.sqrt(np.arange(1, 7))
    for learner, expected in [
        (TruncatedGradient("perceptron", l1=0.25, base=0.0), np.maximum(1 - np.cumsum(cuts), 0)),
        (TruncatedGradient("perceptron", l1=0.25, theta=0.9, base=0.0), np.ones(6)),
        (TruncatedGradient("perceptron", l1=0.25, theta=1.0, base=0.0), np.maximum(1 - np.cumsum(cuts), 0)),
        (
            TruncatedGradient("perceptron", l1=0.25, every=2, base=0.0),
            np.maximum(1 - np.cumsum([0, 2 * cuts[1], 0, 2 * cuts[3], 0, 2 * cuts[5]]), 0),
        ),
    ]:
        state, seen = learner.init(corpus.width), []
        for i in order:
            learner.epoch(corpus, targets(corpus), np.array([i]), state)
            seen.append(learner.last(state).w[0])
            assert learner.average(state).w[0] == pytest.approx(np.mean(seen), rel=1e-13)
        assert seen == pytest.approx(expected, abs=1e-15)
        again = learner.init(corpus.width)
        stats = learner.epoch(corpus, targets(corpus), order, again, points=6)
        assert [part.nonzero_weights for part in stats] == [int(w > 0) for w in expected]
        assert learner.average(again).w[0] == pytest.approx(np.mean(seen), rel=1e-13)


def test_a_large_truncation_zeroes_all_weights_up_to_theta() -> None:
    corpus = random_corpus(6)
    for l1 in (1e3, 1e308):
        for every in (1, 2**31 - 1):
            ran = run(TruncatedGradient("hinge", eta=1e10, l1=l1, every=every), corpus, 2)
            for weights in (
                TruncatedGradient().last(ran.state),
                TruncatedGradient().average(ran.state),
            ):
                assert np.isfinite(weights.w).all()
                assert weights.w.any() == (every > 1)
    ran = run(TruncatedGradient("hinge", l1=1e308, theta=0.5), corpus, 2)
    w = TruncatedGradient(theta=0.5).last(ran.state).w
    assert (np.abs(w[w != 0]) > 0.5).all()
    assert w.any()


@pytest.mark.parametrize("points", [3, 20])
def test_parts_of_an_epoch_change_no_bit(points: int) -> None:
    corpus, learner = random_corpus(5), TruncatedGradient("log", l1=0.02, theta=0.4, every=2, base_rate=0.3)
    whole, parts = run(learner, corpus, 3), run(learner, corpus, 3, points=points)
    assert bits(whole.state) == bits(parts.state)
    assert [len(epoch) for epoch in parts.stats] == [points] * 3
    for name, array in whole.log.arrays().items():
        np.testing.assert_array_equal(array, parts.log.arrays()[name])


def test_a_fresh_state_predicts_with_the_base_score_alone() -> None:
    learner = TruncatedGradient(theta=0.5, base=0.75, base_rate=0.5)
    state = learner.init(4)
    for weights in (learner.last(state), learner.average(state)):
        assert weights.w.tolist() == [0.0] * 4
        assert weights.base == 0.75
    assert learner.updates(state) == 0


@pytest.mark.parametrize("value", [0, 0.0, -1.0, np.nan, np.inf, "1", True])
def test_bad_limits_are_refused(value: Any) -> None:
    with pytest.raises(RecipeError, match="expected a finite number above 0") as caught:
        TruncatedGradient(theta=value)
    assert caught.value.key == "theta"


@pytest.mark.parametrize("value", [0, -1, 1.0, 2**31, None, True, "2"])
def test_bad_counts_are_refused(value: Any) -> None:
    with pytest.raises(RecipeError, match="expected a whole number from 1") as caught:
        TruncatedGradient(every=value)
    assert caught.value.key == "every"
