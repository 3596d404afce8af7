"""Adaptive RDA and FTRL equal their dense twins, their weights are the argmin they stand for, units do not matter."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from strategies import corpus_of, random_corpus, run
from variants import LEARNERS, make, twin_of

from rerank.data.corpus import Corpus
from rerank.learn.rules.arda import AdaptiveRDA
from rerank.learn.rules.ftrl import FTRL
from rerank.learn.rules.rda import RDA


def drawn(name: str) -> st.SearchStrategy[Any]:
    """A learner with any of its choices."""
    choices = {key: st.sampled_from(values) for key, values in LEARNERS[name].choices.items()}
    return st.fixed_dictionaries(choices).map(lambda parameters: make(name, parameters))


SMALL = st.integers(0, 999).map(lambda seed: random_corpus(seed, lists=8, candidates=4, width=6))


def argmin(slope: np.ndarray, l1: float, curve: np.ndarray | float) -> np.ndarray:
    """argmin ⟨slope, w⟩ + l1·‖w‖₁ + Σ curve_j w_j²/2, as w = p − n with p, n ≥ 0."""
    D = slope.size

    def objective(pn: np.ndarray) -> tuple[float, np.ndarray]:
        w = pn[:D] - pn[D:]
        g = slope + curve * w
        return float(slope @ w + l1 * pn.sum() + (curve * w) @ w / 2), np.concatenate([g, -g]) + l1

    found = minimize(
        objective, np.zeros(2 * D), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * D),
        options={"ftol": 1e-16, "gtol": 1e-11},
    )  # fmt: skip
    return np.asarray(found.x[:D] - found.x[D:])


@settings(max_examples=40)
@given(SMALL, drawn("arda"))
def test_weights_minimise_what_adaptive_rda_minimises(corpus: Corpus, learner: AdaptiveRDA) -> None:
    """w = argmin ⟨s, w⟩ + k·λ₁‖w‖₁ + wᵀHw/2η with H = δ + √(Σ g²) (Duchi et al. 2011, eq. 3)."""
    learner = replace(learner, normalized=False, delta=max(learner.delta, 0.5))
    ran, trace = run(learner, corpus, 2), twin_of(learner, corpus, 2)
    assume(trace.gap > 1e-9)
    assume(trace.deltas)
    g = np.array(trace.deltas)[:, :-1]
    H = learner.delta + np.sqrt((g**2).sum(axis=0))
    expected = argmin(g.sum(axis=0), len(g) * learner.l1, H / learner.eta)
    np.testing.assert_allclose(learner.last(ran.state).w, expected, atol=1e-5)


@settings(max_examples=40)
@given(SMALL, drawn("ftrl"))
def test_weights_minimise_what_ftrl_minimises(corpus: Corpus, learner: FTRL) -> None:
    """w = argmin ⟨Σ g, w⟩ + λ₁‖w‖₁ + λ₂‖w‖²/2 + Σ_s σ_s (w − w_s)²/2 + (β/2α)·w² (McMahan et al. 2013, section 3)."""
    learner = replace(learner, normalized=False, beta=max(learner.beta, 0.5))
    ran, trace = run(learner, corpus, 2), twin_of(learner, corpus, 2)
    assume(trace.gap > 1e-9)
    assume(trace.deltas)
    g = np.array(trace.deltas)[:, :-1]
    roots = np.sqrt(np.cumsum(g**2, axis=0))
    sigma = np.diff(roots, axis=0, prepend=0.0) / learner.alpha
    before = np.array([predictor.w for predictor in trace.predictors[:-1]])
    slope = g.sum(axis=0) - (sigma * before).sum(axis=0)
    curve = sigma.sum(axis=0) + learner.beta / learner.alpha + learner.l2
    np.testing.assert_allclose(learner.last(ran.state).w, argmin(slope, learner.l1, curve), atol=1e-5)


@settings(max_examples=30)
@given(SMALL, st.sampled_from([(0.05, 0.0), (0.0, 0.5), (0.05, 0.5)]), st.sampled_from(["hinge", "log"]))
def test_weights_minimise_what_rda_minimises(corpus: Corpus, strengths: tuple[float, float], loss: str) -> None:
    """w = argmin ⟨s, w⟩ + k·λ₁‖w‖₁ + (k·λ₂ + η·√k)·‖w‖²/2 (Xiao 2010, eq. 8), with L1, with L2, and with both."""
    learner = RDA(loss=loss, eta=0.5, l1=strengths[0], l2=strengths[1])
    ran, trace = run(learner, corpus, 2), twin_of(learner, corpus, 2)
    assume(trace.gap > 1e-9)
    assume(trace.deltas)
    k = len(trace.deltas)
    slope = np.sum(trace.deltas, axis=0)[:-1]
    expected = argmin(slope, k * learner.l1, k * learner.l2 + learner.eta * np.sqrt(k))
    np.testing.assert_allclose(learner.last(ran.state).w, expected, atol=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "log"])
@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_the_unit_of_a_feature_does_not_matter(loss: str, l1: float) -> None:
    """Columns times powers of two (here no sum is rounded otherwise): the same scores, weights by the inverse."""
    corpus = random_corpus(4)
    units = 2.0 ** np.random.default_rng(4).integers(-20, 20, size=corpus.width)
    scaled = replace(corpus, values=corpus.values * units[corpus.columns])
    for learner in (AdaptiveRDA(loss=loss, l1=l1, base_rate=0.2), FTRL(loss=loss, l1=l1, l2=0.1, base_rate=0.2)):
        one, two = run(learner, corpus, 3), run(learner, scaled, 3)
        assert one.per_epoch("mistakes") == two.per_epoch("mistakes")
        assert one.per_epoch("loss") == pytest.approx(two.per_epoch("loss"), rel=1e-9)
        for predictor in (learner.last, learner.average):
            np.testing.assert_allclose(predictor(one.state).w, predictor(two.state).w * units, rtol=1e-8, atol=1e-12)
        plain = replace(learner, normalized=False)
        same = np.allclose(plain.last(run(plain, corpus, 3).state).w, plain.last(run(plain, scaled, 3).state).w * units)
        assert not same


def test_rounding_is_not_learned_from() -> None:
    """A column that all candidates share, equal base scores, equal gains: sums over a softmax are rounding there."""
    rows = [{0: 0.3, j + 1: 1.0} for j in range(5)]
    lists = [[(row, 0.7, 0.1 * y) for y, row in enumerate(rows)], [(row, 0.7, 0.3) for row in rows]]
    corpus = corpus_of(lists)
    for normalized in (False, True):
        for loss in ("log", "bayes"):
            for learner in (
                AdaptiveRDA(loss=loss, delta=0.0, normalized=normalized, base_rate=0.5),
                FTRL(loss=loss, beta=0.0, normalized=normalized, base_rate=0.5),
            ):
                ran = run(learner, corpus, 3)
                w, beta, _ = learner.last(ran.state)
                assert w[0] == 0.0
                assert beta == 1.0
                assert np.abs(w).max() < 10.0
    ran = run(AdaptiveRDA(loss="bayes", delta=0.0), corpus.slice(1, 2), 3)
    assert not AdaptiveRDA().last(ran.state).w.any()


@pytest.mark.parametrize("value", [1e-30, 1e30])
@pytest.mark.parametrize("loss", ["hinge", "exponential", "log", "bayes"])
def test_extreme_settings_and_values_stay_finite(value: float, loss: str) -> None:
    corpus = random_corpus(7)
    corpus = replace(corpus, values=corpus.values * np.float32(value))
    for normalized in (False, True):
        for tiny, huge in ((0.0, 1e-300), (0.0, 1e300), (1e-300, 1.0), (1e300, 1.0)):
            for learner in (
                AdaptiveRDA(loss=loss, eta=huge, delta=tiny, normalized=normalized),
                FTRL(loss=loss, alpha=huge, beta=tiny, normalized=normalized),
            ):
                state = run(learner, corpus, 2).state
                for weights in (learner.last(state), learner.average(state)):
                    assert np.isfinite(weights.w).all()
