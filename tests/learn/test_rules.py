"""What single rules are: passive-aggressive updates are minimisers, Winnow keeps its sum, SOP solves a system."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import reference
from scipy.optimize import minimize
from strategies import corpus_of, random_corpus, run, stored, targets
from variants import LEARNERS

from rerank.base.errors import RecipeError
from rerank.learn.base import State
from rerank.learn.log import UpdateLog
from rerank.learn.rules.pa import PassiveAggressive
from rerank.learn.rules.sop import SecondOrderPerceptron
from rerank.learn.rules.uwin import NWin, UWin

VARIANTS = ["hard", "1", "2"]


def one_update(learner: PassiveAggressive, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    """(w, w⁺, z, fixed part of the margin, the logged τ) of the first list that a trained learner updates on; the base
    score's coordinate is the last of the vectors."""
    corpus, training = random_corpus(seed), random_corpus(seed + 100)
    rows = np.column_stack([reference.dense(corpus), learner.base_rate * corpus.base])
    before: State = run(learner, training, 1).state
    for i in range(corpus.list_count):
        state, log = stored(before), UpdateLog()
        learner.epoch(corpus, targets(corpus), np.array([i]), state, log=log)
        arrays = log.arrays()
        if log.updates == 1:
            rival = arrays["candidate"][arrays["a"] > 0][0]
            star = arrays["candidate"][arrays["a"] < 0][0]
            w, after = before.cells, state.cells
            fixed = learner.base * float(corpus.base[star] - corpus.base[rival])
            return w, after, rows[star] - rows[rival], fixed, float(arrays["rate"][0] / corpus.weight[i])
    raise AssertionError("no update")


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("C", [0.02, 0.5])
def test_an_update_is_the_minimiser(variant: Any, C: float) -> None:
    """argmin ½‖w⁺ − w‖² where m⁺ ≥ 1 − ξ, + Cξ (PA-I) or + Cξ² (PA-II), ξ ≥ 0 (Crammer et al. 2006, eqs. 3, 6, 7)."""
    w, _, z, fixed, tau = one_update(PassiveAggressive(variant=variant, C=C, base_rate=0.25), seed=1)
    price = {"hard": lambda _: 0.0, "1": lambda s: C * s, "2": lambda s: C * s * s}[variant]
    slack = (0.0, 0.0 if variant == "hard" else None)
    found = minimize(
        lambda x: 0.5 * float((x[:-1] - w) @ (x[:-1] - w)) + price(x[-1]),
        np.append(w + z / (z @ z), 0.5 * (variant != "hard")),
        method="SLSQP",
        bounds=[(None, None)] * w.size + [slack],
        constraints={"type": "ineq", "fun": lambda x: fixed + x[:-1] @ z - 1.0 + x[-1]},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(w + tau * z, found.x[:-1], atol=2e-6)


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
