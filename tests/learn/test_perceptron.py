"""The perceptron equals its dense twin, whose scores are exact: every mistake, weight and average."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import bits, corpora, corpus_of, orders, random_corpus, run, targets
from twins.perceptron import perceptron as perceptron_twin

from rerank.data.corpus import Corpus
from rerank.learn.rules.perceptron import Perceptron

RATES = st.sampled_from([(1.0, 0.0), (0.0, 0.0), (0.5, 0.25), (0.0, 0.5)])


@settings(max_examples=80)
@given(corpora(), RATES, st.booleans(), st.integers(0, 3))
def test_equals_the_twin(corpus: Corpus, rates: tuple[float, float], any_ties: bool, epochs: int) -> None:
    learner = Perceptron(*rates)
    ran = run(learner, corpus, epochs, any_ties=any_ties)
    trace = perceptron_twin(
        corpus, targets(corpus), orders(corpus, epochs), base=rates[0], base_rate=rates[1], any_ties=any_ties
    )
    assert ran.per_epoch("lists") == [corpus.list_count] * epochs
    assert ran.per_epoch("mistakes") == trace.mistakes
    assert ran.per_epoch("updates") == trace.updates
    assert ran.per_epoch("loss") == trace.loss
    assert max((part.radius for parts in ran.stats for part in parts), default=0.0) == pytest.approx(trace.radius)
    assert learner.updates(ran.state) == len(trace.deltas)
    assert ran.log.arrays()["survived"].tolist() == trace.survived
    last, (w, beta) = learner.last(ran.state), trace.average()
    np.testing.assert_array_equal(last.w, trace.predictors[-1].w)
    assert last.base == trace.predictors[-1].beta
    average = learner.average(ran.state)
    np.testing.assert_allclose(average.w, w, rtol=1e-10, atol=1e-13)
    assert average.base == pytest.approx(beta, rel=1e-10)


def test_by_hand() -> None:
    """Two lists, one column: a tie is a mistake, w grows until the second list (margin −1 at w = 1) is wrong."""
    corpus = corpus_of([[({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)], [({}, 0.0, 1.0), ({0: 3.0}, 0.0, 0.0)]], width=1)
    learner = Perceptron(base=0.0)
    state = learner.init(1)
    stats = learner.epoch(corpus, targets(corpus), np.array([0, 0, 1, 1]), state)
    # w: 0 (mistake) → 1 (right on list 0, mistake on list 1) → −2 (right on list 1); c = 0, 2, 2
    assert (stats[0].mistakes, stats[0].updates, stats[0].loss, stats[0].radius) == (2, 2, 3.0, 3.0)
    assert learner.last(state).w.tolist() == [-2.0]
    assert learner.average(state).w.tolist() == [(2 * 1 + 2 * -2) / 4]


@pytest.mark.parametrize("points", [3, 20])
def test_parts_of_an_epoch_change_no_bit(points: int) -> None:
    corpus, learner = random_corpus(3), Perceptron(base_rate=0.3)
    whole, parts = run(learner, corpus, 3), run(learner, corpus, 3, points=points)
    assert bits(whole.state) == bits(parts.state)
    assert [len(epoch) for epoch in parts.stats] == [points] * 3
    for name in ("lists", "mistakes", "updates"):
        assert whole.per_epoch(name) == parts.per_epoch(name)
    assert parts.per_epoch("loss") == pytest.approx(whole.per_epoch("loss"))
    for name, array in whole.log.arrays().items():
        np.testing.assert_array_equal(array, parts.log.arrays()[name])


def test_a_fresh_state_predicts_with_the_base_score_alone() -> None:
    learner = Perceptron(base=0.75, base_rate=0.5)
    state = learner.init(4)
    for weights in (learner.last(state), learner.average(state)):
        assert weights.w.tolist() == [0.0] * 4
        assert weights.base == 0.75


def test_ties_count_as_mistakes() -> None:
    corpus = corpus_of([[({0: 1.0}, 2.0, 1.0), ({0: 1.0}, 2.0, 0.0)]])
    ran = run(Perceptron(), corpus, 2)
    assert ran.per_epoch("mistakes") == [1, 1]  # the same row: no update can separate them
    assert not Perceptron().last(ran.state).w.any()
