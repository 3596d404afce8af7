"""The perceptron equals its dense twin, whose scores are exact: every mistake, weight and average."""

import numpy as np
from strategies import corpus_of, targets

from rerank.learn.rules.perceptron import Perceptron


def test_by_hand() -> None:
    """Two lists, one column: a tie is a mistake, w grows until the second list (margin −1 at w = 1) is wrong."""
    corpus = corpus_of([[({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)], [({}, 0.0, 1.0), ({0: 3.0}, 0.0, 0.0)]], width=1)
    learner = Perceptron(base=0.0)
    state = learner.init(1)
    stats = learner.epoch(corpus, targets(corpus), np.array([0, 0, 1, 1]), state)
    # w: 0 (mistake) → 1 (right on list 0, mistake on list 1) → −2 (right on list 1); c = 0, 2, 2
    assert (stats[0].mistakes, stats[0].updates, stats[0].loss, stats[0].radius) == (2, 2, 3.0, 3.0)
    assert learner.last(state).w.tolist() == [-2.0]
    assert learner.average(state).w.tolist() == [(2 * 1 + 2 * -2) / 4]
