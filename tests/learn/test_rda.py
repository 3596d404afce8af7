"""(Voted) RDA equals its dense twin, its weights are the argmin they stand for, and the lazy average is exact."""

import pytest
from strategies import corpus_of, run

from rerank.learn.rules.rda import RDA


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
