"""Exact voting, for every registered learner, against brute force over its predictors on real numbers."""

from typing import Any

import numpy as np
import reference
from strategies import Row, corpus_of, random_corpus, run
from variants import every, every_learner, every_variant, make, variants

from rerank.data.corpus import Corpus
from rerank.learn.base import Learner
from rerank.learn.voting.voting import vote

WIDTH = 40


def real_corpus(seed: int, lists: int, whole: bool) -> Corpus:
    """Lists in which ties abound: of candidates that are equal, or differ in a feature that is rare, or have few.

    whole: features are counts, else the common ones have real values; base scores repeat.
    """
    random = np.random.default_rng(seed)

    def row() -> Row:
        columns = random.choice(8, size=random.integers(0, 4), replace=False)
        values = random.integers(1, 4, size=columns.size) if whole else random.normal(size=columns.size)
        return {int(j): float(np.float32(x)) for j, x in zip(columns, values, strict=True)}

    def candidates() -> list[Row]:
        rows = [row() for _ in range(random.integers(1, 4))]
        rare = random.integers(8, WIDTH, size=3)
        return [{}, *rows, *rows, *(x | {int(j): 1.0} for x, j in zip(rows, rare, strict=False)), {int(rare[0]): 1.0}]

    return corpus_of(
        [[(x, float(random.integers(2)), random.uniform()) for x in candidates()] for _ in range(lists)],
        [float(x) for x in random.choice([0.5, 1.0, 2.0], size=lists)],
        WIDTH,
    )


def assert_votes_equal_brute_force(learner: Learner, training: Corpus, corpus: Corpus) -> None:
    """Under predictors whose winners all are ahead by more than a billionth of what the list's products come to."""
    votes = learner.votes(run(learner, training, 3).log, training)
    trace = reference.trace_of(votes, corpus.width)
    clear = reference.leads(trace, corpus) > 1e-9
    assert np.count_nonzero(clear) > 5
    votes = votes._replace(survived=np.where(clear, votes.survived, 0))
    trace.survived = votes.survived.tolist()
    np.testing.assert_array_equal(vote(votes, corpus), reference.votes(trace, corpus))


@every_variant
def test_votes_equal_brute_force_on_real_numbers(name: str, parameters: dict[str, Any]) -> None:
    assert_votes_equal_brute_force(make(name, parameters), real_corpus(5, 60, False), real_corpus(6, 20, False))


@every_learner
def test_votes_equal_brute_force_on_whole_numbers(name: str, parameters: dict[str, Any]) -> None:
    assert_votes_equal_brute_force(make(name, parameters), real_corpus(5, 60, True), real_corpus(6, 20, True))


@every([variant for variant in variants() if variant.values[1].get("loss") == "exponential"])
def test_votes_equal_brute_force_where_many_columns_meet(name: str, parameters: dict[str, Any]) -> None:
    """Few columns make weights of exponential loss run away, from 0.1 to 1e13 within a block of predictors."""
    for seed in (2, 6):
        assert_votes_equal_brute_force(make(name, parameters), random_corpus(seed), random_corpus(seed))
