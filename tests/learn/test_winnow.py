"""Winnow keeps its sum, stays finite, and has a prior within limits."""

import dataclasses

import numpy as np
import pytest
from strategies import corpus_of, targets
from variants import LEARNERS

from rerank.base.errors import RecipeError
from rerank.learn.log import UpdateLog
from rerank.learn.rules.uwin import NWin, UWin


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
        now = learner.named(state).now
        assert now.mass + now.carry == pytest.approx(Z_now, rel=1e-12)
        starts.add(float(now.start))
    assert len(starts) > 3
    assert max(starts) / min(starts) > 1e12
    trace = LEARNERS["nwin"].twin(corpus, targets(corpus), [order], **dataclasses.asdict(learner))
    assert log.updates == len(trace.deltas) > 20
    np.testing.assert_allclose(learner.average(state).w, trace.average()[0], rtol=1e-9)
    votes = learner.votes(log, corpus)
    scales = [predictor.d for predictor in trace.predictors]
    np.testing.assert_allclose(votes.scale[1:], scales[1:], rtol=1e-9)  # the first predictor weighs nothing


@pytest.mark.parametrize("mu", [0.0, 1e-101, 1e21])
def test_a_prior_out_of_range_is_refused(mu: float) -> None:
    with pytest.raises(RecipeError, match=r"mu: found .*; expected a .*number from 1e-100 to 1e\+20"):
        UWin(mu=mu)
