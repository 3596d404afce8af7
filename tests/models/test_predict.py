"""A model votes with the updates that it keeps and the rule of its learner."""

from typing import Any, cast

import numpy as np
import reference
from strategies import random_corpus, run
from variants import twin_of

from rerank.learn.rules.vrda import VotedRDA
from rerank.learn.scoring import best
from rerank.models.model import Model
from rerank.models.predictions import vote_model

PARAMETERS: dict[str, Any] = {"eta": 0.5, "l1": 0.125, "base": 0.5, "base_rate": 0.25}


def model(learner: dict[str, Any]) -> Model:
    corpus = random_corpus(1, dyadic=True)
    voted = VotedRDA(**PARAMETERS)
    votes = voted.votes(run(voted, corpus, 2).log, corpus)
    return Model({"learner": learner}, {}, cast(Any, None), {}, votes=votes.arrays())


def test_votes_equal_brute_force() -> None:
    training, corpus = random_corpus(1, dyadic=True), random_corpus(2, dyadic=True)
    trace = twin_of(VotedRDA(**PARAMETERS), training, 2)
    counted = vote_model(model({"name": "vrda", **PARAMETERS}), corpus)
    np.testing.assert_array_equal(counted, reference.votes(trace, corpus))
    assert counted.sum() == 2 * training.list_count * corpus.list_count
    assert (counted[best(corpus, counted)] == np.maximum.reduceat(counted, corpus.lists[:-1])).all()
