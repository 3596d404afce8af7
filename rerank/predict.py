"""Predictions on a corpus by the last, the averaged or the voted predictor."""

from __future__ import annotations

import numpy as np

from rerank.corpus import Corpus
from rerank.learn.base import learners
from rerank.learn.log import Votes
from rerank.learn.voting import vote
from rerank.model import Model
from rerank.registry import build


def vote_model(model: Model, corpus: Corpus) -> np.ndarray:
    """float64 [N]: the votes of every candidate under the updates that ``model`` keeps."""
    learner = build(learners, model.settings["learner"], "learner")
    return vote(Votes.from_arrays(model.votes), learner.voting_rule(), corpus)
