"""Truncated gradient and FOBOS equal their dense twin, their average is exact, and so is voting with them."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from strategies import random_corpus, run
from variants import twin_of

from rerank.learn.rules.fobos import Fobos
from rerank.learn.rules.tg import TruncatedGradient


@settings(max_examples=30)
@given(st.integers(0, 999), st.sampled_from([0.05, 0.3]), st.sampled_from(["hinge", "log"]))
def test_a_fobos_step_minimises_what_fobos_minimises(seed: int, l1: float, loss: str) -> None:
    """w' = argmin ½‖w − (w_k − α·g)‖² + α·λ₁‖w‖₁ (Duchi & Singer 2009, eq. 3), column by column."""
    learner, corpus = Fobos(loss=loss, eta=0.8, l1=l1), random_corpus(seed, lists=8, candidates=4, width=6)
    trace = twin_of(learner, corpus, 2)
    assume(trace.gap > 1e-9)
    found = learner.last(run(learner, corpus, 2).state).w
    alpha = 0.8 / np.sqrt(len(trace.deltas))
    middle = trace.predictors[-2].w - alpha * trace.deltas[-1][:-1]
    for j in range(corpus.width):
        best = minimize_scalar(
            lambda x, c=middle[j]: 0.5 * (x - c) ** 2 + alpha * l1 * abs(x), bracket=(-1.0, 1.0), tol=1e-12
        )
        assert found[j] == pytest.approx(best.x, abs=1e-6)


def test_a_large_truncation_zeroes_all_weights_up_to_theta() -> None:
    corpus = random_corpus(6)
    for l1 in (1e3, 1e308):
        for every in (1, 2**31 - 1):
            ran = run(TruncatedGradient(loss="hinge", eta=1e10, l1=l1, every=every), corpus, 2)
            for weights in (
                TruncatedGradient().last(ran.state),
                TruncatedGradient().average(ran.state),
            ):
                assert np.isfinite(weights.w).all()
                assert weights.w.any() == (every > 1)
    ran = run(TruncatedGradient(loss="hinge", l1=1e308, theta=0.5), corpus, 2)
    w = TruncatedGradient(theta=0.5).last(ran.state).w
    assert (np.abs(w[w != 0]) > 0.5).all()
    assert w.any()
