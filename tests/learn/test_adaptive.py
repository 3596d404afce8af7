"""Adaptive RDA and FTRL equal their dense twins, their weights are the argmin they stand for, units do not matter."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from strategies import Ran, bits, corpora, corpus_of, orders, random_corpus, run, targets
from twins.adaptive import arda as arda_twin
from twins.adaptive import ftrl as ftrl_twin
from twins.rda import rda as rda_twin

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.learn.base import Learner
from rerank.learn.losses import LOSSES
from rerank.learn.rules.adaptive import AdaptiveRDA
from rerank.learn.rules.ftrl import FTRL
from rerank.learn.rules.rda import RDA
from rerank.learn.voting.voting import vote

SAME: dict[str, st.SearchStrategy[Any]] = {
    "loss": st.sampled_from(["perceptron", "hinge", "logistic", "log", "bayes"]),
    "normalized": st.booleans(),
    "update": st.sampled_from(["always", "mistakes"]),
    "base": st.sampled_from([0.0, 0.5, 1.0]),
    "base_rate": st.sampled_from([0.0, 0.0, 0.5]),
}
ARDA = st.fixed_dictionaries(
    SAME
    | {
        "eta": st.sampled_from([0.25, 1.0, 3.0]),
        "delta": st.sampled_from([0.0, 0.01, 1.0]),
        "l1": st.sampled_from([0.0, 0.05, 0.2]),
    }
).map(lambda parameters: AdaptiveRDA(**parameters))
PROXIMAL = st.fixed_dictionaries(
    SAME
    | {
        "alpha": st.sampled_from([0.25, 1.0, 3.0]),
        "beta": st.sampled_from([0.0, 0.01, 1.0]),
        "l1": st.sampled_from([0.0, 0.05, 0.5]),
        "l2": st.sampled_from([0.0, 0.1]),
    }
).map(lambda parameters: FTRL(**parameters))
SMALL = st.integers(0, 999).map(lambda seed: random_corpus(seed, lists=8, candidates=4, width=6))
LEARNERS: st.SearchStrategy[Learner] = st.one_of(ARDA, PROXIMAL)


def twin(learner: Any, corpus: Corpus, epochs: int, any_ties: bool = False) -> reference.Trace:
    train: Any = {AdaptiveRDA: arda_twin, FTRL: ftrl_twin, RDA: rda_twin}[type(learner)]
    return train(corpus, targets(corpus), orders(corpus, epochs), any_ties=any_ties, **asdict(learner))


def assert_equal(learner: Learner, ran: Ran, trace: reference.Trace) -> None:
    assert ran.per_epoch("mistakes") == trace.mistakes
    assert ran.per_epoch("updates") == trace.updates
    assert ran.per_epoch("loss") == pytest.approx(trace.loss, rel=1e-9, abs=1e-11)
    assert ran.log.arrays()["survived"].tolist() == trace.survived
    last, (w, beta) = learner.last(ran.state), trace.average()
    np.testing.assert_allclose(last.w, trace.predictors[-1].w, rtol=1e-9, atol=1e-11)
    assert last.base == pytest.approx(trace.predictors[-1].beta, rel=1e-9, abs=1e-11)
    average = learner.average(ran.state)
    np.testing.assert_allclose(average.w, w, rtol=1e-9, atol=1e-11)
    assert average.base == pytest.approx(beta, rel=1e-9, abs=1e-11)
    if ran.stats:
        assert ran.stats[-1][-1].nonzero_weights == np.count_nonzero(last.w)


@settings(max_examples=200)
@given(corpora(dyadic=False), LEARNERS, st.booleans(), st.integers(0, 4))
def test_equal_their_twins(corpus: Corpus, learner: Learner, any_ties: bool, epochs: int) -> None:
    trace = twin(learner, corpus, epochs, any_ties)
    assume(trace.gap > 1e-9)
    assert_equal(learner, run(learner, corpus, epochs, any_ties=any_ties), trace)


@pytest.mark.parametrize("loss", list(LOSSES))
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("l1", [0.0, 0.02])
def test_equal_their_twins_over_many_updates(loss: str, normalized: bool, l1: float) -> None:
    corpus = random_corpus(11)
    same: dict[str, Any] = {"loss": loss, "l1": l1, "normalized": normalized, "base": 0.3, "base_rate": 0.2}
    for learner in (AdaptiveRDA(**same, delta=0.1), FTRL(**same, l2=0.05), FTRL(**same, update="mistakes")):
        assert_equal(learner, run(learner, corpus, 5), twin(learner, corpus, 5))


@settings(max_examples=120)
@given(corpora(dyadic=False), corpora(dyadic=False), LEARNERS)
def test_voting_equals_brute_force(training: Corpus, corpus: Corpus, learner: Learner) -> None:
    trace = twin(learner, training, 3)
    assume(min(trace.gap, reference.voting_gap(trace, corpus)) > 1e-9)
    votes = learner.votes(run(learner, training, 3).log, training)
    np.testing.assert_array_equal(vote(votes, corpus), reference.votes(trace, corpus))


@pytest.mark.parametrize("loss", ["hinge", "log"])
@pytest.mark.parametrize("normalized", [False, True])
def test_voting_over_many_updates_equals_brute_force(loss: str, normalized: bool) -> None:
    """Weights leave and return."""
    training, corpus = random_corpus(1, lists=60), random_corpus(2, lists=40)
    same: dict[str, Any] = {"loss": loss, "normalized": normalized, "base": 0.5, "base_rate": 0.25}
    for learner in (AdaptiveRDA(**same, l1=0.05, delta=0.1), FTRL(**same, l1=1.0)):
        trace, ran = twin(learner, training, 4), run(learner, training, 4)
        weights = np.array([predictor.w for predictor in trace.predictors])
        assert ((weights[:-1] != 0) & (weights[1:] == 0)).any()
        assert min(trace.gap, reference.voting_gap(trace, corpus)) > 1e-11
        np.testing.assert_array_equal(vote(learner.votes(ran.log, training), corpus), reference.votes(trace, corpus))


@pytest.mark.parametrize("loss", ["logistic", "log", "bayes"])
@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_votes_end_with_the_last_predictor(loss: str, l1: float) -> None:
    """The replay has the bits of training; for adaptive RDA up to the rounding of a product."""
    corpus = random_corpus(3)
    for learner in (FTRL(loss, l1=l1, base_rate=0.2), AdaptiveRDA(loss, l1=l1, base_rate=0.2)):
        ran = run(learner, corpus, 3)
        votes, last = learner.votes(ran.log, corpus), learner.last(ran.state)
        a, v = np.zeros((2, corpus.width))
        for k in range(votes.first.size - 1):
            entries = slice(votes.first[k], votes.first[k + 1])
            a[votes.columns[entries]] = votes.value[entries]
            v[votes.columns[entries]] = votes.slope[entries] if votes.slope.size else 0.0
        threshold = votes.threshold[-1] if votes.threshold.size else 0.0
        w = np.where(np.abs(a) > threshold * np.abs(v), a - threshold * v, 0.0)
        np.testing.assert_allclose(votes.scale[-1] * w, last.w, rtol=1e-12, atol=1e-15)
        assert votes.beta[-1] == last.base
        if isinstance(learner, FTRL):
            np.testing.assert_array_equal(w, last.w)


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
@given(SMALL, ARDA)
def test_weights_minimise_what_adaptive_rda_minimises(corpus: Corpus, learner: AdaptiveRDA) -> None:
    """w = argmin ⟨s, w⟩ + k·λ₁‖w‖₁ + wᵀHw/2η with H = δ + √(Σ g²) (Duchi et al. 2011, eq. 3)."""
    learner = replace(learner, normalized=False, delta=max(learner.delta, 0.5))
    ran, trace = run(learner, corpus, 2), twin(learner, corpus, 2)
    assume(trace.gap > 1e-9)
    assume(trace.deltas)
    g = np.array(trace.deltas)[:, :-1]
    H = learner.delta + np.sqrt((g**2).sum(axis=0))
    expected = argmin(g.sum(axis=0), len(g) * learner.l1, H / learner.eta)
    np.testing.assert_allclose(learner.last(ran.state).w, expected, atol=1e-5)


@settings(max_examples=40)
@given(SMALL, PROXIMAL)
def test_weights_minimise_what_ftrl_minimises(corpus: Corpus, learner: FTRL) -> None:
    """w = argmin ⟨Σ g, w⟩ + λ₁‖w‖₁ + λ₂‖w‖²/2 + Σ_s σ_s (w − w_s)²/2 + (β/2α)·w² (McMahan et al. 2013, section 3)."""
    learner = replace(learner, normalized=False, beta=max(learner.beta, 0.5))
    ran, trace = run(learner, corpus, 2), twin(learner, corpus, 2)
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
    learner = RDA(loss, eta=0.5, l1=strengths[0], l2=strengths[1])
    ran, trace = run(learner, corpus, 2), twin(learner, corpus, 2)
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
    for learner in (AdaptiveRDA(loss, l1=l1, base_rate=0.2), FTRL(loss, l1=l1, l2=0.1, base_rate=0.2)):
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
                AdaptiveRDA(loss, delta=0.0, normalized=normalized, base_rate=0.5),
                FTRL(loss, beta=0.0, normalized=normalized, base_rate=0.5),
            ):
                ran = run(learner, corpus, 3)
                w, beta = learner.last(ran.state)
                assert w[0] == 0.0
                assert beta == 1.0
                assert np.abs(w).max() < 10.0
    ran = run(AdaptiveRDA("bayes", delta=0.0), corpus.slice(1, 2), 3)
    assert not AdaptiveRDA().last(ran.state).w.any()


@pytest.mark.parametrize("value", [1e-30, 1e30])
@pytest.mark.parametrize("loss", list(LOSSES))
def test_extreme_settings_and_values_stay_finite(value: float, loss: str) -> None:
    corpus = random_corpus(7)
    corpus = replace(corpus, values=corpus.values * np.float32(value))
    for normalized in (False, True):
        for tiny, huge in ((0.0, 1e-300), (0.0, 1e300), (1e-300, 1.0), (1e300, 1.0)):
            for learner in (
                AdaptiveRDA(loss, eta=huge, delta=tiny, normalized=normalized),
                FTRL(loss, alpha=huge, beta=tiny, normalized=normalized),
            ):
                state = run(learner, corpus, 2).state
                for weights in (learner.last(state), learner.average(state)):
                    assert np.isfinite(weights.w).all()


def test_l1_leaves_fewer_weights() -> None:
    """The threshold of adaptive RDA grows with k, that of FTRL does not."""
    corpus = random_corpus(9, lists=80, width=40)
    for make, strengths in ((AdaptiveRDA, (0.0, 0.02, 0.05, 100.0)), (FTRL, (0.0, 2.0, 10.0, 100.0))):
        ran = [run(make(l1=l1), corpus, 3) for l1 in strengths]
        counts = [one.stats[-1][-1].nonzero_weights for one in ran]
        assert counts[0] > counts[1] > counts[2] > counts[3] == 0


@pytest.mark.parametrize("points", [3, 20])
def test_parts_of_an_epoch_change_no_bit(points: int) -> None:
    corpus = random_corpus(5)
    for learner in (AdaptiveRDA("log", l1=0.02, base_rate=0.3), FTRL("log", l1=0.02, base_rate=0.3)):
        whole, parts = run(learner, corpus, 3), run(learner, corpus, 3, points=points)
        assert bits(whole.state) == bits(parts.state)
        for name, array in whole.log.arrays().items():
            np.testing.assert_array_equal(array, parts.log.arrays()[name])


def test_a_fresh_state_predicts_with_the_base_score_alone() -> None:
    for learner in (AdaptiveRDA(base=0.75, base_rate=0.5, delta=0.0), FTRL(base=0.75, base_rate=0.5, beta=0.0)):
        state = learner.init(4)
        for weights in (learner.last(state), learner.average(state)):
            assert weights.w.tolist() == [0.0] * 4
            assert weights.base == 0.75
        assert learner.updates(state) == 0


@pytest.mark.parametrize("value", [0, 1, None, "yes", 1.0])
def test_bad_switches_are_refused(value: Any) -> None:
    for make in (AdaptiveRDA, FTRL):
        with pytest.raises(RecipeError, match="expected true or false") as caught:
            make(normalized=value)
        assert caught.value.key == "normalized"
