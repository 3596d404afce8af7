"""Predictions on lists by the last, the averaged or the voted predictor, and what they are worth."""

import numpy as np

from rerank.data.corpus import Corpus
from rerank.data.shards import Lists, reference_rows
from rerank.learn.base import Weights
from rerank.learn.scoring import weighed_rows
from rerank.learn.voting.votes import Votes
from rerank.learn.voting.voting import vote
from rerank.metrics.base import Metric
from rerank.models.model import Model


def corpus_score(lists: Lists, weights: Weights, metric: Metric) -> float:
    """The metric of what ``weights`` choose."""
    rows = weighed_rows(lists, weights, metric).sum(axis=0)
    return float(metric.scores(rows, reference_rows(lists).sum(axis=0)))


def vote_model(model: Model, corpus: Corpus) -> np.ndarray:
    """float64 [N]: the votes for all candidates by the updates that ``model`` keeps."""
    return vote(Votes(**model.votes), corpus)
