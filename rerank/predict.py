"""Predictions on a corpus by the last, the averaged or the voted predictor."""

from __future__ import annotations

import numpy as np

from rerank.corpus import Corpus
from rerank.learn.votes import Votes
from rerank.learn.voting import vote
from rerank.model import Model


def vote_model(model: Model, corpus: Corpus) -> np.ndarray:
    """float64 [N]: the votes of every candidate under the updates that ``model`` keeps."""
    return vote(Votes.from_arrays(model.votes), corpus)
