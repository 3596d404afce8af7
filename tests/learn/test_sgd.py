"""Stochastic gradient descent equals its dense twin with every loss, and follows the losses' gradients."""

import numpy as np
import pytest
from strategies import random_corpus, targets

from rerank.learn.losses import LOSSES
from rerank.learn.rules.sgd import SGD


@pytest.mark.parametrize("loss", LOSSES)
def test_a_step_follows_the_gradient_of_the_loss(loss: str) -> None:
    """The first update is −η·weight·∂loss/∂w, by central differences of the loss that the learner itself reports."""
    corpus = random_corpus(12, lists=1, candidates=5)
    learner, eta = SGD(loss=loss, eta=0.5, base=0.7, base_rate=0.25), 0.5
    oracles, order = targets(corpus), np.zeros(1, np.int64)

    def loss_at(w: np.ndarray, beta: float) -> float:
        state = learner.init(corpus.width)
        state.cells[:-1], state.cells[-1] = w, beta
        return learner.epoch(corpus, oracles, order, state)[0].loss

    start, h = 0.1 * np.random.default_rng(1).normal(size=corpus.width), 1e-6
    state = learner.init(corpus.width)
    state.cells[:-1], state.cells[-1] = start, 0.0
    learner.epoch(corpus, oracles, order, state)
    eye = h * np.eye(corpus.width)
    gradient = np.array([loss_at(start + e, 0.0) - loss_at(start - e, 0.0) for e in eye]) / (2 * h)
    slope = (loss_at(start, h) - loss_at(start, -h)) / (2 * h)
    assert np.abs(gradient).max() > 1e-3
    np.testing.assert_allclose(state.cells[:-1] - start, -eta * corpus.weight[0] * gradient, atol=1e-7)
    assert state.cells[-1] == pytest.approx(-eta * corpus.weight[0] * slope, abs=1e-7)
