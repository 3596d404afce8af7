"""(Voted) RDA equals its dense twin, its weights are the argmin they stand for, and the lazy average is exact."""

import numpy as np
import pytest
from strategies import corpus_of, run, targets

from rerank.learn.rules.rda import RDA
from rerank.learn.rules.vrda import VotedRDA


def test_a_weight_is_zero_from_the_update_at_which_its_sum_equals_the_threshold() -> None:
    """s_0 = −1 for good, λ = 1/4: predictors 1, 2, 3 weigh column 0, predictor 4 (kλ = 1) does not."""
    hit = [({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)]
    stuck = [({1: 1.0}, 0.0, 1.0), ({1: 1.0}, 0.0, 0.0)]  # the same row: a mistake every time, g = 0
    corpus, learner = corpus_of([hit, stuck]), VotedRDA(l1=0.25, base=0.0)
    weights, average = [], np.zeros(2)
    state = learner.init(corpus.width)
    for k, i in enumerate([0, 1, 1, 1, 1], 1):
        learner.epoch(corpus, targets(corpus), np.array([i]), state)
        weights.append(learner.last(state).w[0])
        average[0] += weights[-1] / 5
        assert learner.average(state).w[0] * k == pytest.approx(5 * average[0], rel=1e-14)
    assert weights == pytest.approx([0.75, 0.5 / np.sqrt(2), 0.25 / np.sqrt(3), 0.0, 0.0], rel=1e-14)
    assert weights[3] == weights[4] == 0.0
    again = learner.init(corpus.width)
    stats = learner.epoch(corpus, targets(corpus), np.array([0, 1, 1, 1, 1]), again, points=5)
    assert [part.nonzero_weights for part in stats] == [1, 1, 1, 0, 0]
    assert learner.average(again).w[0] == pytest.approx(average[0], rel=1e-14)


def test_only_losses_and_mistakes_update() -> None:
    """Margins 1 (no hinge loss), 1/2 (a loss, no mistake) and 0 (a mistake) of the base score."""
    lists = [[({}, margin, 1.0), ({0: 1.0}, 0.0, 0.0)] for margin in (1.0, 0.5, 0.0)]
    for parameters, updates in [
        ({"loss": "hinge", "update": "always"}, [0, 1, 1]),
        ({"loss": "hinge", "update": "mistakes"}, [0, 0, 1]),
        ({"loss": "perceptron", "update": "always"}, [0, 0, 1]),
        ({"loss": "logistic", "update": "always"}, [1, 1, 1]),
        ({"loss": "log", "update": "mistakes"}, [0, 0, 1]),
    ]:
        found = [run(RDA(**parameters), corpus_of([of_list]), 1).per_epoch("updates") for of_list in lists]
        assert found == [[n] for n in updates]


def test_the_radius_is_of_difference_vectors_however_small_the_coefficient() -> None:
    """At margin 800 the logistic coefficient is about 1e-348, at 500 its square is 0: neither is a length of z."""
    for margin, radius in ((500.0, 5.0), (1000.0, 0.0)):
        corpus = corpus_of([[({0: 3.0}, margin, 1.0), ({1: 4.0}, 0.0, 0.0)]])
        stats = run(RDA(loss="logistic", update="always"), corpus, 1).stats[0][0]
        assert stats.radius == pytest.approx(radius)
