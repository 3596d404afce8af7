"""(Voted) RDA equals its dense twin, its weights are the argmin they stand for, and the lazy average is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from strategies import RDA_SETTINGS, Ran, bits, corpora, corpus_of, orders, random_corpus, run, targets
from twins.rda import rda as rda_twin

from rerank.data.corpus import Corpus
from rerank.learn.rules.rda import RDA, VotedRDA


def twin(learner: RDA, corpus: Corpus, epochs: int, any_ties: bool = False) -> reference.Trace:
    names = ("loss", "eta", "l1", "l2", "update", "base", "base_rate")
    parameters: dict[str, Any] = {name: getattr(learner, name) for name in names}
    return rda_twin(corpus, targets(corpus), orders(corpus, epochs), any_ties=any_ties, **parameters)


def assert_equal(learner: RDA, ran: Ran, trace: reference.Trace) -> None:
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


@settings(max_examples=120)
@given(corpora(), RDA_SETTINGS, st.booleans(), st.integers(0, 4))
def test_equals_the_twin_on_dyadic_numbers(
    corpus: Corpus, parameters: dict[str, Any], any_ties: bool, epochs: int
) -> None:
    """Sums of dyadic numbers are exact, so ties and zeros at |s| = kλ are the same ones."""
    learner = RDA(**parameters)
    ran, trace = run(learner, corpus, epochs, any_ties=any_ties), twin(learner, corpus, epochs, any_ties)
    assert_equal(learner, ran, trace)
    np.testing.assert_array_equal(learner.last(ran.state).w == 0, trace.predictors[-1].w == 0)


@settings(max_examples=100)
@given(corpora(dyadic=False), RDA_SETTINGS, st.sampled_from(["logistic", "log", "bayes"]), st.booleans())
def test_equals_the_twin_with_smooth_losses(
    corpus: Corpus, parameters: dict[str, Any], loss: str, any_ties: bool
) -> None:
    learner = RDA(**parameters | {"loss": loss})
    trace = twin(learner, corpus, 3, any_ties)
    assume(trace.gap > 1e-9)
    assert_equal(learner, run(learner, corpus, 3, any_ties=any_ties), trace)


@pytest.mark.parametrize("loss", ["perceptron", "hinge", "logistic", "log", "bayes"])
@pytest.mark.parametrize("update", ["always", "mistakes"])
@pytest.mark.parametrize(
    ("l1", "l2", "base_rate"), [(0.0, 0.0, 0.0), (0.03, 0.0, 0.2), (0.0, 0.1, 0.0), (0.01, 0.05, 0)]
)
def test_equals_the_twin_over_many_updates(loss: str, update: Any, l1: float, l2: float, base_rate: float) -> None:
    learner = RDA(loss, eta=0.7, l1=l1, l2=l2, update=update, base=0.3, base_rate=base_rate)
    corpus = random_corpus(11)
    assert_equal(learner, run(learner, corpus, 5), twin(learner, corpus, 5))


def test_a_weight_is_zero_from_the_update_at_which_its_sum_equals_the_threshold() -> None:
    """s_0 = −1 for good, λ = 1/4: predictors 1, 2, 3 weigh column 0, predictor 4 (kλ = 1) does not."""
    hit = [({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)]
    stuck = [({1: 1.0}, 0.0, 1.0), ({1: 1.0}, 0.0, 0.0)]  # the same row: a mistake every time, g = 0
    corpus, learner = corpus_of([hit, stuck]), VotedRDA(l1=0.25, base=0.0)
    weights, average = [], np.zeros(2)
    state = learner.init(corpus.width)
    for k, i in enumerate([0, 1, 1, 1, 1], 1):
        learner.epoch(corpus, targets(corpus), np.array([i]), state)
        weights.append(learner.last(state).w[0])
        average[0] += weights[-1] / 5
        assert learner.average(state).w[0] * k == pytest.approx(5 * average[0], rel=1e-14)
    assert weights == pytest.approx([0.75, 0.5 / np.sqrt(2), 0.25 / np.sqrt(3), 0.0, 0.0], rel=1e-14)
    assert weights[3] == weights[4] == 0.0
    again = learner.init(corpus.width)
    stats = learner.epoch(corpus, targets(corpus), np.array([0, 1, 1, 1, 1]), again, points=5)
    assert [part.nonzero_weights for part in stats] == [1, 1, 1, 0, 0]
    assert learner.average(again).w[0] == pytest.approx(average[0], rel=1e-14)


@settings(max_examples=40)
@given(corpora(), RDA_SETTINGS)
def test_weights_minimise_what_rda_minimises(corpus: Corpus, parameters: dict[str, Any]) -> None:
    """w = argmin s·w/k + λ₁‖w‖₁ + (λ₂/2)‖w‖² + (η/√k)·‖w‖²/2 (Xiao 2010, eq. 8), as w = p − n with p, n ≥ 0."""
    learner = RDA(**parameters)
    ran, trace = run(learner, corpus, 2), twin(learner, corpus, 2)
    k, D = len(trace.deltas), corpus.width
    assume(k > 0)
    slope = np.sum(trace.deltas, axis=0)[:D] / k
    curve = learner.l2 + learner.eta / np.sqrt(k)

    def objective(pn: np.ndarray) -> tuple[float, np.ndarray]:
        w = pn[:D] - pn[D:]
        g = slope + curve * w
        return float(slope @ w + learner.l1 * pn.sum() + curve * w @ w / 2), np.concatenate([g, -g]) + learner.l1

    found = minimize(
        objective, np.zeros(2 * D), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * D),
        options={"ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    np.testing.assert_allclose(learner.last(ran.state).w, found.x[:D] - found.x[D:], atol=1e-5)


@pytest.mark.parametrize("points", [3, 20])
@pytest.mark.parametrize(("loss", "update"), [("hinge", "mistakes"), ("log", "always")])
def test_parts_of_an_epoch_change_no_bit(points: int, loss: str, update: Any) -> None:
    corpus, learner = random_corpus(5), RDA(loss, l1=0.02, l2=0.01, update=update, base_rate=0.3)
    whole, parts = run(learner, corpus, 3), run(learner, corpus, 3, points=points)
    assert bits(whole.state) == bits(parts.state)
    assert [len(epoch) for epoch in parts.stats] == [points] * 3
    for name in ("lists", "mistakes", "updates"):
        assert whole.per_epoch(name) == parts.per_epoch(name)
    for name, array in whole.log.arrays().items():
        np.testing.assert_array_equal(array, parts.log.arrays()[name])


def test_a_fresh_state_predicts_with_the_base_score_alone() -> None:
    learner = RDA(l1=0.5, base=0.75, base_rate=0.5)
    state = learner.init(4)
    for weights in (learner.last(state), learner.average(state)):
        assert weights.w.tolist() == [0.0] * 4
        assert weights.base == 0.75
    assert learner.updates(state) == 0


def test_only_losses_and_mistakes_update() -> None:
    """Margins 1 (no hinge loss), 1/2 (a loss, no mistake) and 0 (a mistake) of the base score."""
    lists = [[({}, margin, 1.0), ({0: 1.0}, 0.0, 0.0)] for margin in (1.0, 0.5, 0.0)]
    for parameters, updates in [
        ({"loss": "hinge", "update": "always"}, [0, 1, 1]),
        ({"loss": "hinge", "update": "mistakes"}, [0, 0, 1]),
        ({"loss": "perceptron", "update": "always"}, [0, 0, 1]),
        ({"loss": "logistic", "update": "always"}, [1, 1, 1]),
        ({"loss": "log", "update": "mistakes"}, [0, 0, 1]),
    ]:
        found = [run(RDA(**parameters), corpus_of([of_list]), 1).per_epoch("updates") for of_list in lists]
        assert found == [[n] for n in updates]


def test_the_radius_is_of_difference_vectors_however_small_the_coefficient() -> None:
    """At margin 800 the logistic coefficient is about 1e-348, at 500 its square is 0: neither is a length of z."""
    for margin, radius in ((500.0, 5.0), (1000.0, 0.0)):
        corpus = corpus_of([[({0: 3.0}, margin, 1.0), ({1: 4.0}, 0.0, 0.0)]])
        stats = run(RDA("logistic", update="always"), corpus, 1).stats[0][0]
        assert stats.radius == pytest.approx(radius)
