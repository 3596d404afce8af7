"""The average is the mean of w after every visit of a list; lazy sums."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from strategies import random_corpus, targets
from variants import FAMILIES, FIRST, every, make

from rerank.contrib.structures.chain import chains_of
from rerank.contrib.structures.training import ChainProblem
from rerank.data.corpus import Corpus
from rerank.learn.learner import Learner, Weights
from rerank.learn.predictor import CELL, PredictorSums, last_active, sum_weights
from rerank.learn.train import ListProblem, epoch_order, train

EPOCHS, SEED = 3, 5
CUTS = (0, 7, 18, 30)
CORPUS = replace(random_corpus(2, width=6), width=60)  # few columns are touched: what is summed late is there most


class Steps:
    """A learner that visits one list at a time, and the sum of its predictors after every visit."""

    def __init__(self, learner: Learner, corpus: Corpus) -> None:
        self.learner, self.total, self.count = learner, np.zeros(corpus.width + 1), 0
        self.begin(corpus)

    def begin(self, corpus: Corpus) -> None:
        """Learn from the beginning; what was summed stays."""
        self.state = self.learner.init(corpus.width, corpus.candidate_count)

    def visit(self, corpus: Corpus, order: np.ndarray) -> None:
        """Visit lists of ``corpus``."""
        for i in order:
            self.learner.epoch(corpus, targets(corpus), np.array([i]), self.state)
            last = self.learner.last(self.state)
            self.total, self.count = self.total + np.append(last.w, last.base), self.count + 1


def pieces(corpus: Corpus) -> list[Corpus]:
    return [corpus.slice(first, last) for first, last in pairwise(CUTS)]


def stepped(learner: Learner, corpus: Corpus) -> Steps:
    steps = Steps(learner, corpus)
    for epoch in range(EPOCHS):
        steps.visit(corpus, epoch_order(corpus.list_count, SEED, epoch, True))
    return steps


def plain(learner: Learner, corpus: Corpus) -> tuple[Weights, Steps]:
    found = train(learner, ListProblem(corpus, targets(corpus), SEED), epochs=EPOCHS)
    return found.weights["average"], stepped(learner, corpus)


def warm(learner: Learner, corpus: Corpus) -> tuple[Weights, Steps]:
    problem = ListProblem(corpus, targets(corpus), SEED)
    found = train(learner, problem, epochs=EPOCHS - 1, start=(train(learner, problem, epochs=1).state, 1))
    return found.weights["average"], stepped(learner, corpus)


def batches(learner: Learner, corpus: Corpus) -> tuple[Weights, Steps]:
    """Epochs over other lists each time, whose average is looked at between them."""
    state, steps = learner.init(corpus.width), Steps(learner, corpus)
    for part in pieces(corpus) * EPOCHS:
        state, steps.state = (learner.for_corpus(each, part.candidate_count) for each in (state, steps.state))
        learner.epoch(part, targets(part), np.arange(part.list_count), state)
        steps.visit(part, np.arange(part.list_count))
        average = learner.average(state)
    return average, steps


@pytest.mark.parametrize(
    ("trained", "name", "parameters"),
    [
        *((plain, *variant.values) for variant in FIRST),
        *((way, *variant.values) for way in (warm, batches) for variant in FIRST if variant.values[0] in FAMILIES),
    ],
)
def test_the_average_is_the_mean_over_all_visits(
    trained: Callable[..., tuple[Weights, Steps]], name: str, parameters: dict[str, Any]
) -> None:
    average, steps = trained(make(name, parameters), CORPUS)
    assert steps.count == EPOCHS * CORPUS.list_count
    assert_equal(np.append(average.w, average.base), steps.total / steps.count)


def assert_equal(found: np.ndarray, expected: np.ndarray) -> None:
    size = np.abs(expected[:-1]).max()
    assert size > 0.0
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * size)


@every([variant for variant in FIRST if variant.values[0] in ("perceptron", "vrda", "arow")])  # each compiles passes
def test_the_average_over_chains_is_the_mean_over_all_sentences(name: str, parameters: dict[str, Any]) -> None:
    learner, random = make(name, parameters), np.random.default_rng(3)
    tokens, labels = np.arange(0, 37, 3), random.integers(0, 3, 36)
    chains = chains_of(
        tokens, np.arange(0, 73, 2), random.integers(0, 5, 72), labels, np.ones((5, 3)), attribute_count=5
    )
    state, total = learner.init(chains.width), np.zeros(chains.width)
    for i in np.concatenate([epoch_order(chains.example_count, SEED, epoch, True) for epoch in range(EPOCHS)]):
        ChainProblem(chains.take(np.array([i]))).visit(learner, state, 0, None)
        total += learner.last(state).w
    training = train(learner, ChainProblem(chains, SEED), epochs=EPOCHS)
    assert_equal(training.weights["average"].w, total / (EPOCHS * chains.example_count))


LEVEL = np.arange(6.0)  # τ_k = k
P, Q, F = np.arange(18.0).reshape(3, 6)
CELLS = np.array([(0.0, 1, P[1], Q[1])], CELL)  # up to predictor 1 of the sums
SUMS = PredictorSums(P, Q, F, LEVEL, CELLS, 0)


@pytest.mark.parametrize("slope", [0.0, 0.25])
def test_what_is_no_number_is_looked_up_nowhere(slope: float) -> None:
    assert math.isnan(sum_weights(math.nan, slope, CELLS[0], 4, SUMS))


RISES = {
    "a line": np.arange(200.0),
    "a root": np.sqrt(np.arange(200.0)),
    "a curve": np.exp(0.1 * np.arange(200.0)),
    "steps": np.repeat(np.arange(20.0), 10),
    "a wall": np.repeat([1.0, 2.0, np.inf], [100, 98, 2]),
    "nothing": np.ones(200),
}


@pytest.mark.parametrize("rise", RISES)
def test_a_column_leaves_where_the_first_threshold_reaches_it(rise: str) -> None:
    level = RISES[rise]
    for first, last in ((0, 199), (0, 1), (37, 38), (37, 112), (5, 199)):
        for slope in (1.0, 0.3, 1e-310):
            sizes = {*(level[first:last:7] * slope), *(level[first:last:11] * slope * 1.001), 1e-300}
            for size in sizes - {0.0, np.inf}:
                left = [k for k in range(first + 1, last) if level[k] * slope >= size]
                assert last_active(size, slope, level, first, last) == (left[0] if left else last) - 1
