"""Winnow keeps its sum, stays finite, and takes priors of columns."""

import dataclasses

import numpy as np
import pytest
from strategies import WIDTH, corpus_of, random_corpus, targets
from variants import LEARNERS

from rerank.base.errors import RecipeError
from rerank.contrib.learners.large_margin import LMNWin, LMUWin
from rerank.learn.log import UpdateLog
from rerank.learn.rules.uwin import NWin, UWin
from rerank.learn.rules.winnow import CARRY, START, Multiplicative, Z


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
