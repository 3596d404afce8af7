"""Votes of predictors whose weights are of very different sizes within a block."""

from dataclasses import replace

import numpy as np
import pytest
import reference
from strategies import random_corpus

from rerank.learn.voting.votes import Votes
from rerank.learn.voting.voting import vote

FAINT = 2.0**-16
PREDICTORS = 512


def sized(sizes: np.ndarray, shrunk: bool, width: int) -> Votes:
    """Predictors of new weights, random numbers times ``sizes`` ([PREDICTORS]), many of them 0; the first is 0."""
    random = np.random.default_rng(4)
    value = random.normal(size=width * (PREDICTORS - 1)) * np.repeat(sizes[1:], width)
    value[random.uniform(size=value.size) < 0.3] = 0.0
    return Votes(
        first=width * np.arange(PREDICTORS),
        columns=np.tile(np.arange(width, dtype=np.int32), PREDICTORS - 1),
        value=value,
        slope=np.sign(value) * random.uniform(0.1, 1.0, value.size) * np.abs(value) if shrunk else np.zeros(0),
        threshold=np.linspace(0.0, 2.0, PREDICTORS) if shrunk else np.zeros(0),
        scale=random.uniform(0.5, 1.0, PREDICTORS),
        beta=np.zeros(PREDICTORS),
        survived=np.arange(PREDICTORS) % 5,
    )


def in_turn() -> np.ndarray:
    """Sizes that rise and fall."""
    return 10.0 ** (15 * np.sin(np.arange(PREDICTORS) / 60))


def at_once() -> np.ndarray:
    """Sizes that are small until the block is almost over."""
    return np.where(np.arange(PREDICTORS) < PREDICTORS - 20, 1.0, 1e20)


def anyhow() -> np.ndarray:
    """Sizes that no two predictors share."""
    return 10.0 ** np.random.default_rng(5).uniform(-100, 100, PREDICTORS)


@pytest.mark.parametrize("shrunk", [False, True])
@pytest.mark.parametrize("sizes", [in_turn(), at_once(), anyhow()], ids=["in turn", "at once", "anyhow"])
@pytest.mark.parametrize("whole", [False, True])
def test_every_predictor_decides_by_its_own_weights(sizes: np.ndarray, shrunk: bool, whole: bool) -> None:
    corpus = random_corpus(9, lists=10)
    if whole:
        corpus = replace(corpus, values=np.rint(2 * corpus.values))
    votes = sized(sizes, shrunk, corpus.width)
    trace = reference.trace_of(votes, corpus.width)
    largest = np.array([predictor.sizes.max() for predictor in trace.predictors])
    assert np.count_nonzero(largest < FAINT * largest.max()) > 64
    clear = reference.leads(trace, corpus) > 1e-9
    assert np.count_nonzero(clear) > PREDICTORS / 2
    votes = votes._replace(survived=np.where(clear, votes.survived, 0))
    trace.survived = votes.survived.tolist()
    np.testing.assert_array_equal(vote(votes, corpus), reference.votes(trace, corpus))
