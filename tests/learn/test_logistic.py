"""Conditional logistic regression equals its formula, and chooses no worse than scikit-learn's pointwise one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import small_rankings
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from rerank.learn.logistic import L2, conditional_loss, fit_logistic


def loss_of(w: np.ndarray, lists: np.ndarray, x: np.ndarray, gain: np.ndarray, weight: np.ndarray) -> float:
    """−Σ_i weight_i · log Σ_{y best} p_i(y), list by list."""
    total = 0.0
    for i, (first, last) in enumerate(pairwise(lists)):
        if last > first:
            scores, own = x[first:last] @ w, gain[first:last]
            total += weight[i] * (logsumexp(scores) - logsumexp(scores[own == own.max()]))
    return total


@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(0, 4), min_size=1, max_size=5), large=st.booleans())
def test_the_kernel_is_the_formula(seed: int, sizes: list[int], large: bool) -> None:
    """With empty lists, lists of one, ties, graded gains, weights of lists; scores of 1e4 do not overflow."""
    rng = np.random.default_rng(seed)
    lists, F = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), 3
    x, gain = rng.normal(size=(lists[-1], F)), rng.integers(0, 3, lists[-1]) / 2.0
    weight, w = rng.uniform(0.5, 2, len(sizes)), rng.normal(size=F) * (1e4 if large else 1.0)
    gradient, scores = np.zeros(F), np.empty(max(sizes))
    found = conditional_loss(lists, x, gain, weight, w, scores, gradient)
    expected = loss_of(w, lists, x, gain, weight)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9 * (1e4 if large else 1.0))
    if not large:
        step = 1e-5
        for j in range(F):
            ends = [loss_of(w + sign * step * np.eye(F)[j], lists, x, gain, weight) for sign in (1, -1)]
            assert gradient[j] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-7)


def flat(x: np.ndarray, gain: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Lists of one size as ``fit_logistic`` takes them."""
    L, size, F = x.shape
    return np.arange(0, L * size + 1, size), x.reshape(-1, F).copy(), gain.ravel(), np.ones(L)


def test_the_fit_is_a_minimum_whatever_the_units() -> None:
    x, right = small_rankings.draw(np.random.default_rng(1), 300)
    w = fit_logistic(*flat(x, right))
    lists, values, gain, weight = flat(x, right)
    deviation = np.sqrt(np.mean((x - x.mean(axis=1, keepdims=True)) ** 2, axis=(0, 1)))

    def penalised(w: np.ndarray) -> float:
        return loss_of(w, lists, values, gain, weight) + L2 / 2 * float(np.sum((w * deviation) ** 2))

    for j in range(w.size):
        for factor in (0.98, 1.02):
            moved = w.copy()
            moved[j] *= factor
            assert penalised(moved) > penalised(w)
    units = np.array([1e-6, 1e4, 1.0])
    shifted = x * units + 1e3 * units  # the same list with other units and another zero
    np.testing.assert_allclose(fit_logistic(*flat(shifted, right)) * units, w, rtol=1e-3)


def test_what_is_the_same_in_every_list_weighs_nothing() -> None:
    x, right = small_rankings.draw(np.random.default_rng(1), 50)
    x[:, :, 1] = np.arange(50)[:, np.newaxis]
    w = fit_logistic(*flat(x, right))
    assert w[1] == 0
    assert w[0] > 0
    assert fit_logistic(np.zeros(2, np.int64), np.zeros((0, 2)), np.zeros(0), np.ones(1)).tolist() == [0, 0]


def test_no_worse_than_the_pointwise_regression_of_scikit_learn() -> None:
    """Five draws of 1,000 prompts, tried on 4,000 each: their levels differ, as rewards of different prompts do."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    own, other = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        (x, right), (tried, truth) = small_rankings.draw(rng, 1000), small_rankings.draw(rng, 4000)
        scaler = preprocessing.StandardScaler().fit(x.reshape(-1, 3))
        fitted = linear_model.LogisticRegression().fit(scaler.transform(x.reshape(-1, 3)), right.ravel())
        pointwise = fitted.decision_function(scaler.transform(tried.reshape(-1, 3))).reshape(truth.shape)
        for scores, accuracies in ((tried @ fit_logistic(*flat(x, right)), own), (pointwise, other)):
            accuracies.append(truth[np.arange(4000), scores.argmax(axis=1)].mean())
    assert all(a >= b for a, b in zip(own, other, strict=True)), (own, other)
