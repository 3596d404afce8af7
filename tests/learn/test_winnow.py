"""Winnow equals its twin, keeps its sum, votes exactly, and stays under the mistake bound."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import WIDTH, Row, corpus_of, random_corpus, run, targets
from variants import LEARNERS

from rerank.base.errors import RecipeError
from rerank.learn.log import UpdateLog
from rerank.learn.rules.lm_nwin import LMNWin
from rerank.learn.rules.lm_uwin import LMUWin
from rerank.learn.rules.nwin import NWin
from rerank.learn.rules.uwin import UWin
from rerank.learn.rules.winnow import CARRY, LIMIT, START, Multiplicative, Z


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
        Z_now = np.sum(learner.mu * 2 * np.cosh(state.memory))
        assert state.numbers[Z] + state.numbers[CARRY] == pytest.approx(Z_now, rel=1e-12)
        starts.add(float(state.numbers[START]))
    assert len(starts) > 3
    assert max(starts) / min(starts) > 1e12
    trace = LEARNERS["nwin"].twin(corpus, targets(corpus), [order], **dataclasses.asdict(learner))
    assert log.updates == len(trace.deltas) > 20
    np.testing.assert_allclose(learner.average(state).w, trace.average()[0], rtol=1e-9)
    votes = learner.votes(log, corpus)
    scales = [predictor.d for predictor in trace.predictors]
    np.testing.assert_allclose(votes.scale[1:], scales[1:], rtol=1e-9)  # the first predictor weighs nothing


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("loss", ["perceptron", "hinge", "exponential", "log"])
@pytest.mark.parametrize(("eta", "mu", "size"), [(1e308, 1.0, 1.0), (1e3, 1e20, 3e38), (1e300, 1e-100, 1e-38)])
def test_no_number_overflows(normalised: bool, loss: str, eta: float, mu: float, size: float) -> None:
    corpus = random_corpus(13)
    with np.errstate(over="ignore"):
        corpus = dataclasses.replace(corpus, values=np.clip(corpus.values * np.float32(size), -3e38, 3e38))
    learner = (NWin if normalised else UWin)(loss=loss, eta=eta, mu=mu, update="always", base_rate=0.5)
    ran = run(learner, corpus, 4)
    assert np.abs(ran.state.memory).max() == LIMIT
    for weights in (learner.last(ran.state), learner.average(ran.state)):
        assert np.isfinite(weights.w).all()
        assert np.isfinite(weights.base)
    votes = learner.votes(ran.log, corpus)
    assert all(np.isfinite(array).all() for array in votes)
    assert np.isfinite(ran.per_epoch("loss")).all()


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


@pytest.mark.parametrize("mu", [1e-101, 1e21, 1e300])
def test_priors_out_of_range_are_refused(mu: float) -> None:
    for cls in (UWin, NWin):
        with pytest.raises(RecipeError, match="expected a number from 1e-100 to 1e\\+20") as caught:
            cls(mu=mu)
        assert caught.value.key == "mu"
        assert repr(mu) in caught.value.message


ORDERS = [np.array([0, 2, 1, 3, 4]), np.array([4, 3, 2, 1, 0]), np.array([1, 0, 4, 2, 3])]
PRIOR = np.array([0.5, 2.0, 1.0, 0.25, 4.0, 1.0])


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("base_rate", [0.0, 0.25])
@pytest.mark.parametrize(
    "learner",
    [UWin(eta=0.25), NWin(eta=0.25, total=8.0), NWin(eta=0.25), LMUWin(eta=0.125), LMNWin(eta=None, total=8.0)],
    ids=lambda one: f"{one.name} {getattr(one, 'total', '')}",
)
def test_positive_weights_and_priors_of_columns(
    learner: Multiplicative, base_rate: float, own: bool, balanced: bool
) -> None:
    """A weight begins at its column's prior, or two parts do; multiplied, it stays positive."""
    drawn = np.random.default_rng(5).integers(0, 3, size=(5, 3, WIDTH)).astype(float)
    corpus = corpus_of(
        [[(dict(enumerate(row)), 0.5 * (y == 0), float(y == 1)) for y, row in enumerate(rows)] for rows in drawn]
    )
    learner = dataclasses.replace(learner, balanced=balanced, base_rate=base_rate, mu=0.5, base=1.0)
    state = learner.init(corpus.width, corpus.candidate_count)
    if own:
        state = learner.with_prior(state, PRIOR)
    for order in ORDERS:
        learner.epoch(corpus, targets(corpus), order, state)
    mu = np.append(PRIOR, 0.5) if own else 0.5
    asked = dataclasses.asdict(learner) | {"mu": mu}
    trace = LEARNERS[learner.name].twin(corpus, targets(corpus), ORDERS, **asked)
    assert learner.updates(state) == len(trace.deltas) > 2
    last = trace.predictors[-1]
    np.testing.assert_allclose(learner.last(state).w, last.d * last.v, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(learner.average(state).w, trace.average()[0], rtol=1e-12, atol=1e-14)
    assert learner.last(state).base == pytest.approx(last.beta, rel=1e-12)
    if not balanced:
        assert (learner.last(state).w > 0.0).all()
        assert not learner.begins_at_zero


def test_predictors_that_begin_at_positive_weights_have_no_votes() -> None:
    with pytest.raises(RecipeError, match="uwin begins at positive weights, and has no votes"):
        UWin(balanced=False).votes(UpdateLog(), random_corpus(1))


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, 1e21])
def test_priors_of_columns_out_of_range_are_refused(wrong: float) -> None:
    learner = UWin()
    with pytest.raises(RecipeError, match="expected a number from 1e-100 to 1e") as caught:
        learner.with_prior(learner.init(2), np.array([1.0, wrong]))
    assert caught.value.key == "prior"
