"""Exact voting equals brute force over all predictors; the log of updates is what training did."""

from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import WIDTH, Row, corpora, corpus_of, orders, random_corpus, run, targets
from variants import twin_of

from rerank.data.corpus import Corpus
from rerank.learn.base import Learner
from rerank.learn.log import UpdateLog
from rerank.learn.rules.perceptron import Perceptron
from rerank.learn.rules.rda import RDA
from rerank.learn.voting.voting import vote


def votes_of(learner: Learner, training: Corpus, epochs: int, corpus: Corpus, any_ties: bool = False) -> np.ndarray:
    log = run(learner, training, epochs, any_ties=any_ties).log
    return vote(learner.votes(log, training), corpus)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("l1", "update"), [(0.0, "mistakes"), (0.25, "mistakes"), (2**-6, "always")])
def test_long_lists_and_many_predictors_equal_brute_force(whole: bool, l1: float, update: Any) -> None:
    """Lists of 1 to 70 candidates, hundreds of predictors, several of most columns' departures and returns."""
    random = np.random.default_rng(8)

    def row() -> Row:
        columns = random.choice(WIDTH, size=random.integers(0, WIDTH), replace=False)
        return {int(j): float(random.integers(-3, 4)) / (1 if whole else 4) for j in columns}

    def lists(sizes: list[int]) -> Corpus:
        return corpus_of([[(row(), random.integers(-4, 5) / 4, random.uniform()) for _ in range(n)] for n in sizes])

    training, corpus = lists([3, 20, 5] * 25), lists([1, 2, 15, 16, 17, 0, 32, 33, 70])
    for learner in (RDA(eta=0.5, l1=l1, update=update, base=0.5, base_rate=0.25), Perceptron(base=0.5)):
        trace = twin_of(learner, training, 7)
        assert len(trace.deltas) > 300
        np.testing.assert_array_equal(votes_of(learner, training, 7, corpus), reference.votes(trace, corpus))


@pytest.mark.parametrize("value", [200.0, 1000.0, 3e4, 5e4, 1e9])
def test_large_whole_numbers_equal_brute_force(value: float) -> None:
    """Sums beyond 16 and 32 bits."""
    random = np.random.default_rng(int(value))

    def lists(count: int) -> Corpus:
        def row() -> Row:
            return {int(j): value * float(random.integers(-3, 4)) for j in random.choice(WIDTH, 3, replace=False)}

        return corpus_of([[(row(), 0.0, random.uniform()) for _ in range(5)] for _ in range(count)])

    training, corpus = lists(60), lists(20)
    for learner in (Perceptron(base=0.0), RDA(base=0.0, l1=64.0, update="mistakes")):
        expected = reference.votes(twin_of(learner, training, 3), corpus)
        np.testing.assert_array_equal(votes_of(learner, training, 3, corpus), expected)


@settings(max_examples=40)
@given(corpora(), st.integers(0, 3), st.booleans())
def test_logs(corpus: Corpus, epochs: int, linear: bool) -> None:
    """Counts sum to the lists seen; arrays are read back; a head holds the first updates; a cut the first epochs."""
    learner: Learner = Perceptron() if linear else RDA(loss="log", l1=0.125)
    log = run(learner, corpus, epochs).log
    arrays = log.arrays()
    M = log.updates
    assert arrays["survived"].sum() == epochs * corpus.list_count
    assert arrays["survived"].shape == arrays["first"].shape == (M + 1,)
    assert {name: array.dtype for name, array in arrays.items()} == {
        "lists": np.int64, "first": np.int64, "candidate": np.int64, "a": np.float64, "rate": np.float64,
        "survived": np.int64,
    }  # fmt: skip
    again = UpdateLog.from_arrays(arrays)
    assert again.updates == M
    for n in (0, M // 2, M):
        head = log.head(n).arrays()
        assert head["lists"].tolist() == arrays["lists"][:n].tolist()
        assert head["survived"].tolist() == arrays["survived"][: n + 1].tolist()
        assert head["candidate"].tolist() == arrays["candidate"][: arrays["first"][n]].tolist()
        assert head["a"].tolist() == arrays["a"][: arrays["first"][n]].tolist()
    for name, array in again.arrays().items():
        np.testing.assert_array_equal(array, arrays[name])


def test_a_cut_log_is_the_log_of_the_first_epochs() -> None:
    corpus, learner = random_corpus(4), RDA(l1=0.02)
    state, log, marks = learner.init(corpus.width), UpdateLog(), []
    for order in orders(corpus, 3):
        marks.append(log.marks())
        learner.epoch(corpus, targets(corpus), order, state, log=log)
    for epochs, mark in enumerate(marks):
        expected = run(learner, corpus, epochs).log.arrays()
        for name, array in log.head(*mark).arrays().items():
            np.testing.assert_array_equal(array, expected[name])
