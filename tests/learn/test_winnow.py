"""Winnow equals its twin, keeps its sum, votes exactly, and stays under the mistake bound."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import Ran, Row, bits, corpora, corpus_of, orders, random_corpus, run, targets
from twins.winnow import nwin as nwin_twin
from twins.winnow import uwin as uwin_twin

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.learn.log import UpdateLog
from rerank.learn.rules.winnow import CARRY, LIMIT, START, NWin, P, UWin, Z
from rerank.learn.voting.voting import vote

SETTINGS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "loss": st.sampled_from(["perceptron", "perceptron", "hinge", "cost", "logistic", "log", "bayes"]),
        "eta": st.sampled_from([0.01, 0.125, 0.5]),
        "mu": st.sampled_from([0.01, 0.5, 2.0]),
        "update": st.sampled_from(["mistakes", "always"]),
        "base": st.sampled_from([0.0, 0.5, 1.0]),
        "base_rate": st.sampled_from([0.0, 0.0, 0.5]),
    }
)
TOTALS = st.sampled_from([None, 0.5, 8.0])


def made(parameters: dict[str, Any], normalised: bool, total: float | None) -> UWin:
    return NWin(**parameters, total=total) if normalised else UWin(**parameters)


def twin(learner: UWin, corpus: Corpus, epochs: int, any_ties: bool = False) -> reference.Trace:
    train = nwin_twin if isinstance(learner, NWin) else uwin_twin
    parameters = dataclasses.asdict(learner)
    return train(corpus, targets(corpus), orders(corpus, epochs), any_ties=any_ties, **parameters)


def assert_equal(learner: UWin, ran: Ran, trace: reference.Trace) -> None:
    assert ran.per_epoch("mistakes") == trace.mistakes
    assert ran.per_epoch("updates") == trace.updates
    assert ran.per_epoch("loss") == pytest.approx(trace.loss, rel=1e-10, abs=1e-12)
    assert max((part.radius for parts in ran.stats for part in parts), default=0.0) == pytest.approx(trace.radius)
    assert ran.log.arrays()["survived"].tolist() == trace.survived
    assert ran.log.arrays()["lists"].tolist() == trace.lists_of_updates
    last, average, (w, beta) = learner.last(ran.state), learner.average(ran.state), trace.average()
    np.testing.assert_allclose(last.w, trace.predictors[-1].w, rtol=1e-10, atol=1e-12)
    assert last.base == pytest.approx(trace.predictors[-1].beta, rel=1e-10)
    np.testing.assert_allclose(average.w, w, rtol=1e-10, atol=1e-12)
    assert average.base == pytest.approx(beta, rel=1e-10)


@settings(max_examples=60)
@given(corpora(dyadic=False), SETTINGS, st.booleans(), TOTALS, st.booleans(), st.integers(0, 3))
def test_equals_the_twin(
    corpus: Corpus, parameters: dict[str, Any], normalised: bool, total: float | None, any_ties: bool, epochs: int
) -> None:
    learner = made(parameters, normalised, total)
    trace = twin(learner, corpus, epochs, any_ties)
    assume(trace.gap > 1e-9)
    assert_equal(learner, run(learner, corpus, epochs, any_ties=any_ties), trace)


@pytest.mark.parametrize("loss", ["perceptron", "hinge", "logistic", "log", "bayes"])
@pytest.mark.parametrize("base_rate", [0.0, 0.3])
@pytest.mark.parametrize("normalised", [False, True])
def test_equals_the_twin_over_many_updates(loss: str, base_rate: float, normalised: bool) -> None:
    corpus = random_corpus(11)
    parameters = {"loss": loss, "eta": 0.05, "mu": 0.4, "update": "always", "base": 0.3, "base_rate": base_rate}
    learner = made(parameters, normalised, 7.0)
    assert_equal(learner, run(learner, corpus, 5), twin(learner, corpus, 5))


@settings(max_examples=60)
@given(corpora(dyadic=False), corpora(dyadic=False), SETTINGS, st.booleans(), TOTALS)
def test_votes_equal_brute_force(
    training: Corpus, corpus: Corpus, parameters: dict[str, Any], normalised: bool, total: float | None
) -> None:
    learner = made(parameters, normalised, total)
    trace = twin(learner, training, 2)
    assume(min(trace.gap, reference.voting_gap(trace, corpus)) > 1e-9)
    votes = vote(learner.votes(run(learner, training, 2).log, training), corpus)
    np.testing.assert_array_equal(votes, reference.votes(trace, corpus))


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("base_rate", [0.0, 0.3])
def test_votes_hold_every_predictor(normalised: bool, base_rate: float) -> None:
    """The last one has the bits of the state; positive and negative parts of the normalised ones sum to W."""
    corpus, total = random_corpus(12), 7.0
    learner = made({"eta": 0.1, "mu": 0.4, "base": 0.3, "base_rate": base_rate}, normalised, total)
    ran, trace = run(learner, corpus, 3), twin(learner, corpus, 3)
    votes, v = learner.votes(ran.log, corpus), np.zeros(corpus.width)
    assert len(trace.predictors) > 50
    for k, predictor in enumerate(trace.predictors):
        np.testing.assert_allclose(votes.scale[k] * v, predictor.w, rtol=1e-10, atol=1e-13)
        assert votes.beta[k] == pytest.approx(predictor.beta, rel=1e-11)
        if normalised:
            learned = [(votes.beta[k] - learner.base) / base_rate] if base_rate else []
            all_of_them = np.append(votes.scale[k] * v, learned)
            prior = 2 * learner.mu * votes.scale[k]  # w² + (2μd)² is the square of the sum of both parts
            assert np.hypot(all_of_them, prior).sum() == pytest.approx(total, rel=1e-12)
        if k < len(trace.deltas):
            entries = slice(votes.first[k], votes.first[k + 1])
            v[votes.columns[entries]] = votes.value[entries]
    assert votes.survived.tolist() == trace.survived
    last = learner.last(ran.state)
    np.testing.assert_array_equal(last.w, votes.scale[-1] * v)
    assert last.base == votes.beta[-1]


def test_by_hand() -> None:
    """One column, z = 2 on list 0 and −2 on list 1, η = 1/2: θ is 1 after list 0, and 0 again after list 1."""
    lists = [[({0: 2.0}, 0.0, 1.0), ({}, 0.0, 0.0)], [({}, 0.0, 1.0), ({0: 2.0}, 0.0, 0.0)]]
    corpus, e = corpus_of(lists, width=2), np.exp(1.0)
    for learner, w in (
        (UWin(eta=0.5, mu=0.25, base=0.0), (e - 1 / e) / 4),
        (NWin(eta=0.5, mu=0.25, base=0.0, total=3.0), 3.0 * (e - 1 / e) / (e + 1 / e + 2)),
    ):
        state = learner.init(2)
        stats = learner.epoch(corpus, targets(corpus), np.array([0, 0, 0, 1]), state)[0]
        assert (stats.mistakes, stats.updates, stats.radius) == (2, 2, 2.0)
        assert stats.loss == pytest.approx(2 * w)
        assert learner.last(state).w.tolist() == [0.0, 0.0]
        assert learner.average(state).w == pytest.approx([3 * w / 4, 0.0])


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 3),
    st.integers(4, 60),
    st.integers(2, 3),
    st.booleans(),
    st.sampled_from([0.01, 3.0]),
)
def test_mistakes_stay_under_the_bound(
    seed: int, relevant: int, width: int, candidates: int, signed: bool, mu: float
) -> None:
    """M ≤ 2U·Σ u_j ln(u_j‖μ‖₁/(μ‖u‖₁))·X²/δ², over all passes, with η = δ/(U·X²), U = ‖u‖₁ (Zhang, section 2.2).

    u ≥ 0 has 2D coordinates, those of [z, −z]; δ = min u·z and X = max‖z‖∞ over all pairs of oracle and another.
    """
    random = np.random.default_rng(seed)
    truth = np.zeros(width)
    truth[random.choice(width, relevant, replace=False)] = random.choice([-1.0, 1.0], relevant) if signed else 1.0
    lists: list[list[Any]] = []
    delta, X = np.inf, 0.0
    while len(lists) < 60:
        rows = random.integers(-1, 2, size=(candidates, width)).astype(float)
        rows = rows[np.argsort(-rows @ truth, kind="stable")]
        z = rows[0] - rows[1:]
        if (z @ truth).min() < 1.0:
            continue
        delta, X = min(delta, (z @ truth).min()), max(X, np.abs(z).max())
        lists.append([(dict(enumerate(row)), 0.0, float(y == 0)) for y, row in enumerate(rows)])
    u, U = np.abs(truth[truth != 0]), np.abs(truth).sum()
    bound = 2 * U * float((u * np.log(u * 2 * width / U)).sum()) * X**2 / delta**2
    learner = NWin(eta=delta / (U * X**2), mu=mu, base=0.0)
    ran = run(learner, corpus_of(lists, width=width), 50)
    assert 0 < sum(ran.per_epoch("mistakes")) <= bound
    assert bound < 50 * 60  # it says something
    assert ran.per_epoch("mistakes")[-1] == 0


def test_sums_stay_exact_however_far_the_weights_move() -> None:
    """Z rises by many powers of ten and falls again: where it is summed up anew, nothing is lost."""
    up = [({0: 1.0, 1: 0.5}, 0.0, 1.0), ({}, 0.0, 0.0)]
    corpus = corpus_of([up, [({2: 0.03125}, 0.0, 1.0), ({0: 1.0, 1: 0.5}, 0.0, 0.0)]], [9.1, 1.0], width=4)
    learner = NWin(eta=4.0, mu=0.5, base=0.0, total=2.0, base_rate=0.5)
    state, order = learner.init(4), np.array([0] * 3 + [1] * 20 + [0, 1] * 30)
    starts = set()
    log = UpdateLog()
    for i in order:
        learner.epoch(corpus, targets(corpus), np.array([i]), state, log=log)
        Z_now = np.sum(learner.mu * 2 * np.cosh(np.append(state.theta, state.base[0])))
        assert state.norm[Z] + state.norm[CARRY] == pytest.approx(Z_now, rel=1e-12)
        starts.add(float(state.norm[START]))
    assert len(starts) > 3
    assert max(starts) / min(starts) > 1e12
    trace = nwin_twin(corpus, targets(corpus), [order], **dataclasses.asdict(learner))
    assert log.updates == len(trace.deltas) > 20
    np.testing.assert_allclose(learner.average(state).w, trace.average()[0], rtol=1e-9)
    votes = learner.votes(log, corpus)
    np.testing.assert_allclose(votes.scale, [predictor.d for predictor in trace.predictors], rtol=1e-9)


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("loss", ["perceptron", "hinge", "exponential", "log"])
@pytest.mark.parametrize(("eta", "mu", "size"), [(1e308, 1.0, 1.0), (1e3, 1e20, 3e38), (1e300, 1e-100, 1e-38)])
def test_no_number_overflows(normalised: bool, loss: str, eta: float, mu: float, size: float) -> None:
    corpus = random_corpus(13)
    with np.errstate(over="ignore"):
        corpus = dataclasses.replace(corpus, values=np.clip(corpus.values * np.float32(size), -3e38, 3e38))
    learner = made({"loss": loss, "eta": eta, "mu": mu, "update": "always", "base_rate": 0.5}, normalised, None)
    ran = run(learner, corpus, 4)
    assert np.abs(ran.state.theta).max() == LIMIT
    for weights in (learner.last(ran.state), learner.average(ran.state)):
        assert np.isfinite(weights.w).all()
        assert np.isfinite(weights.base)
    votes = learner.votes(ran.log, corpus)
    assert all(np.isfinite(array).all() for array in votes)
    assert np.isfinite(ran.per_epoch("loss")).all()


@pytest.mark.parametrize("points", [3, 20])
@pytest.mark.parametrize("normalised", [False, True])
def test_parts_of_an_epoch_change_no_bit(points: int, normalised: bool) -> None:
    corpus, learner = random_corpus(5), made({"eta": 0.1, "mu": 0.3, "base_rate": 0.3}, normalised, 5.0)
    whole, parts = run(learner, corpus, 3), run(learner, corpus, 3, points=points)
    assert bits(whole.state) == bits(parts.state)
    assert [len(epoch) for epoch in parts.stats] == [points] * 3


@pytest.mark.parametrize("normalised", [False, True])
def test_a_fresh_state_predicts_with_the_base_score_alone(normalised: bool) -> None:
    learner = made({"base": 0.75, "base_rate": 0.5}, normalised, None)
    for columns in (0, 4):
        state = learner.init(columns)
        for weights in (learner.last(state), learner.average(state)):
            assert weights.w.tolist() == [0.0] * columns
            assert weights.base == 0.75
    assert learner.updates(state) == 0


def test_without_columns_only_base_scores_decide() -> None:
    corpus = corpus_of([[({}, 1.0, 0.0), ({}, 0.0, 1.0)]], width=0)
    for learner in (UWin(), NWin(), NWin(base_rate=0.5)):
        ran = run(learner, corpus, 3)
        assert ran.per_epoch("mistakes") == [1, 1, 1]
        assert np.isfinite(learner.last(ran.state).base)
        assert np.isfinite(learner.average(ran.state).base)


def test_a_normalised_scale_means_something_beside_base_scores_only() -> None:
    """Without base scores nwin makes the mistakes of uwin at every W; with them W decides how much weights say."""
    row: Row = {0: 1.0}
    lists = [[(row, b, 1.0), ({}, 0.0, 0.0)] for b in (0.0, -1.0)]
    corpus = random_corpus(14)
    plain = dataclasses.replace(corpus, base=np.zeros(corpus.candidate_count))
    expected = run(UWin(eta=0.1, base=0.0), plain, 4).per_epoch("mistakes")
    for total in (None, 1e-3, 1e3):
        assert run(NWin(eta=0.1, base=0.0, total=total), plain, 4).per_epoch("mistakes") == expected
    mistakes = [run(NWin(eta=0.1, total=total), corpus_of(lists), 40).per_epoch("mistakes") for total in (0.5, 100.0)]
    assert mistakes[0][-1] == 1  # |w| ≤ W = 1/2 cannot make up for a base score of 1
    assert mistakes[1][-1] == 0


def test_the_average_is_of_the_passed_weights() -> None:
    """P is the sum of d over the lists, whichever way it is cut into epochs."""
    corpus, learner = random_corpus(15), NWin(eta=0.2, mu=0.3, total=4.0)
    ran = run(learner, corpus, 2)
    votes = learner.votes(ran.log, corpus)
    assert ran.state.norm[P] == pytest.approx(float(votes.scale @ votes.survived), rel=1e-12)


@pytest.mark.parametrize("mu", [1e-101, 1e21, 1e300])
def test_priors_out_of_range_are_refused(mu: float) -> None:
    for cls in (UWin, NWin):
        with pytest.raises(RecipeError, match="expected a number from 1e-100 to 1e\\+20") as caught:
            cls(mu=mu)
        assert caught.value.key == "mu"
        assert repr(mu) in caught.value.message


@pytest.mark.parametrize("total", [0.0, -1.0, np.nan, np.inf, "3", True])
def test_sums_that_are_none_are_refused(total: Any) -> None:
    with pytest.raises(RecipeError, match="expected a finite number above 0") as caught:
        NWin(total=total)
    assert caught.value.key == "total"
    assert repr(total) in caught.value.message
