"""What single rules are: RDA, FTRL and truncated gradient an argmin, Winnow keeps its sum, SOP solves a system."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from strategies import corpus_of, random_corpus, run, targets
from variants import LEARNERS, make, twin_of

from rerank.data.corpus import Corpus
from rerank.learn.epoch import UpdateLog
from rerank.learn.rules.additive import TruncatedGradient
from rerank.learn.rules.dual_averaging import FTRL, RDA, AdaptiveRDA
from rerank.learn.rules.gaussian import SecondOrderPerceptron
from rerank.learn.rules.winnow import NWin


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
        now = learner.view(state).now
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


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
@pytest.mark.parametrize("a", [0.1, 1.0, 10.0])
def test_weights_solve_the_normal_equations(covariance: Any, a: float) -> None:
    """(aI + Σ weight·zzᵀ)·w = Σ weight·z over the logged updates, or with the diagonal alone; variances are those of
    the inverse."""
    corpus, learner = random_corpus(4), SecondOrderPerceptron(a=a, covariance=covariance, base=0.0, base_rate=0.5)
    ran = run(learner, corpus, 3)
    rows = np.column_stack([reference.dense(corpus), 0.5 * corpus.base])
    star, rival = ran.log.arrays()["candidate"].reshape(-1, 2).T
    Z, omega = rows[star] - rows[rival], corpus.weight[ran.log.arrays()["lists"]]
    A = a * np.eye(corpus.width + 1) + Z.T @ (omega[:, None] * Z)
    A = np.diag(np.diag(A)) if covariance == "diagonal" else A
    inverse, last = np.linalg.inv(A), learner.last(ran.state)
    np.testing.assert_allclose(np.append(last.w, last.base / 0.5), inverse @ (omega @ Z), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(learner.variances(ran.state), np.diag(inverse)[:-1], rtol=1e-9)


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


def asked_of_arda(learner: AdaptiveRDA, g: np.ndarray, _: np.ndarray) -> Any:
    """⟨s, w⟩ + k·λ₁‖w‖₁ + wᵀHw/2η with H = δ + √(Σ g²) (Duchi et al. 2011, eq. 3)."""
    return g.sum(axis=0), len(g) * learner.l1, (learner.delta + np.sqrt((g**2).sum(axis=0))) / learner.eta


def asked_of_ftrl(learner: FTRL, g: np.ndarray, before: np.ndarray) -> Any:
    """⟨Σ g, w⟩ + λ₁‖w‖₁ + λ₂‖w‖²/2 + Σ_s σ_s (w − w_s)²/2 + (β/2α)·w² (McMahan et al. 2013, section 3)."""
    sigma = np.diff(np.sqrt(np.cumsum(g**2, axis=0)), axis=0, prepend=0.0) / learner.alpha
    curve = sigma.sum(axis=0) + learner.beta / learner.alpha + learner.l2
    return g.sum(axis=0) - (sigma * before).sum(axis=0), learner.l1, curve


def asked_of_rda(learner: RDA, g: np.ndarray, _: np.ndarray) -> Any:
    """⟨s, w⟩ + k·λ₁‖w‖₁ + (k·λ₂ + η·√k)·‖w‖²/2 (Xiao 2010, eq. 8)."""
    k = len(g)
    return g.sum(axis=0), k * learner.l1, k * learner.l2 + learner.eta * np.sqrt(k)


def asked_of_tg(learner: TruncatedGradient, g: np.ndarray, before: np.ndarray) -> Any:
    """½‖w − (w_k − α·g)‖² + α·λ₁‖w‖₁ (Duchi & Singer 2009, eq. 3)."""
    alpha = learner.eta / np.sqrt(len(g))
    return alpha * g[-1] - before[-1], alpha * learner.l1, 1.0


@pytest.mark.parametrize(
    ("name", "kept", "asked"),
    [
        ("arda", {"normalized": False, "delta": 0.5}, asked_of_arda),
        ("ftrl", {"normalized": False, "beta": 0.5}, asked_of_ftrl),
        ("rda", {"update": "always"}, asked_of_rda),
        ("tg", {"update": "always", "theta": None, "every": 1}, asked_of_tg),
    ],
)
@settings(max_examples=40)
@given(corpus=SMALL, data=st.data())
def test_weights_minimise_what_their_learner_minimises(
    name: str, kept: dict[str, Any], asked: Any, corpus: Corpus, data: st.DataObject
) -> None:
    choices = {key: st.sampled_from(values) for key, values in LEARNERS[name].choices.items()}
    learner = make(name, data.draw(st.fixed_dictionaries(choices)) | kept)
    ran, trace = run(learner, corpus, 2), twin_of(learner, corpus, 2)
    assume(trace.gap > 1e-9)
    assume(trace.deltas)
    before = np.array([predictor.w for predictor in trace.predictors[:-1]])
    expected = argmin(*asked(learner, np.array(trace.deltas)[:, :-1], before))
    np.testing.assert_allclose(learner.last(ran.state).w, expected, atol=1e-5)


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
