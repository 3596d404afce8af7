"""Adaptive learners: scales of columns; Gaussian ones: weights of lists and limits."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from strategies import corpus_of, random_corpus, run

from rerank.base.errors import RecipeError
from rerank.learn.base import learners
from rerank.learn.predictor import MOST_COLUMNS
from rerank.learn.rules.arda import AdaptiveRDA
from rerank.learn.rules.arow import AROW
from rerank.learn.rules.cw import CW
from rerank.learn.rules.ftrl import FTRL
from rerank.learn.rules.nherd import NormalHerd
from rerank.learn.rules.scw import SoftCW
from rerank.learn.scoring import best, scores

SCALE_FREE: list[Any] = [
    *(AdaptiveRDA(loss=loss, l1=l1, base_rate=0.2) for loss in ("hinge", "logistic", "log") for l1 in (0.0, 0.01)),
    *(FTRL(loss=loss, l1=l1, l2=0.1, base_rate=0.2) for loss in ("hinge", "logistic", "log") for l1 in (0.0, 0.01)),
]


@pytest.mark.parametrize("learner", SCALE_FREE, ids=repr)
def test_the_scale_of_a_column_means_nothing(learner: Any) -> None:
    """Columns multiplied by powers of two: the same weights but for the factor."""
    corpus = random_corpus(10)
    factors = 2.0 ** np.random.default_rng(3).integers(-20, 20, size=corpus.width)
    scaled = replace(corpus, values=(corpus.values * factors[corpus.columns]).astype(np.float32))
    one, two = run(learner, corpus, 3), run(learner, scaled, 3)
    for name in ("mistakes", "updates"):
        assert one.per_epoch(name) == two.per_epoch(name)
    assert one.per_epoch("loss") == pytest.approx(two.per_epoch("loss"), rel=1e-9, abs=0)
    for predictor in (learner.last, learner.average):
        a, b = predictor(one.state), predictor(two.state)
        np.testing.assert_allclose(a.w, b.w * factors, rtol=1e-8, atol=1e-12)
        np.testing.assert_array_equal(best(corpus, scores(corpus, a)), best(scaled, scores(scaled, b)))
    plain = replace(learner, normalized=False)
    one, two = run(plain, corpus, 3), run(plain, scaled, 3)
    assert not np.allclose(plain.last(one.state).w, plain.last(two.state).w * factors)


@pytest.mark.parametrize("name", ["cw", "arow", "scw", "nherd", "sop"])
def test_a_full_matrix_has_its_limits(name: str) -> None:
    cls: Any = learners.get(name)
    for columns in (MOST_COLUMNS + 1, 10**9):
        with pytest.raises(RecipeError, match="diagonal covariance") as caught:
            cls(covariance="full").init(columns)
        assert caught.value.key == "covariance"
    assert cls(covariance="full").init(3).matrix.shape == (4, 4)
    assert cls().init(MOST_COLUMNS + 1).matrix.size == 0


def test_a_list_of_weight_0_is_survived() -> None:
    lists: list[Any] = [[({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)]]
    for learner in (AROW(), CW(), SoftCW(), NormalHerd(), AROW(covariance="full")):
        ran = run(learner, corpus_of(lists, [0.0]), 1)
        assert (ran.per_epoch("mistakes"), ran.per_epoch("updates"), ran.log.updates) == ([1], [0], 0)
        assert not learner.last(ran.state).w.any()
