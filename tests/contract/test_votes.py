"""Exact voting, for every registered learner, against brute force over its predictors on real numbers with ties."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from reference import dense
from strategies import Row, corpus_of, run
from variants import make, variants

from rerank.corpus import Corpus
from rerank.learn.votes import Votes
from rerank.learn.voting import vote

WIDTH = 40
every_variant = pytest.mark.parametrize(("name", "parameters"), list(variants()))


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


def predictors(votes: Votes, width: int) -> np.ndarray:
    """float64 [K, D]: the weights of every predictor, as ``votes`` defines them."""
    a, v, w = np.zeros(width), np.zeros(width), np.zeros((votes.survived.size, width))
    for k in range(votes.survived.size):
        if k > 0:
            entries = slice(votes.first[k - 1], votes.first[k])
            a[votes.columns[entries]] = votes.value[entries]
            v[votes.columns[entries]] = votes.slope[entries] if votes.slope.size else np.sign(votes.value[entries])
        threshold = votes.threshold[k] if votes.threshold.size else 0.0
        w[k] = np.where(np.abs(a) > threshold * np.abs(v), votes.scale[k] * (a - threshold * v), 0.0)
    return w


def brute_force(votes: Votes, corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """The winner of every list under every predictor (int64 [K, L]), and which predictors (bool [K]) are clear: no
    rounding error can turn a winner.

    Candidates whose features of nonzero weight, and weighed base scores, are the same tie exactly.
    """
    w, phi, base = predictors(votes, corpus.width), dense(corpus), corpus.base
    winners, clear = np.zeros((len(w), corpus.list_count), np.int64), np.ones(len(w), np.bool_)
    for i, (first, last) in enumerate(pairwise(corpus.lists)):
        order = first + np.lexsort((np.arange(last - first), -base[first:last]))  # the earlier wins a tie
        weighed = votes.beta[:, None] * base[order]
        scores = w @ phi[order].T + weighed
        sizes = np.abs(w) @ np.abs(phi[order].T) + np.abs(weighed)
        for y in range(order.size):
            for x in range(y):
                same = ~((w != 0) & (phi[order[x]] != phi[order[y]])).any(axis=1)
                scores[same & (weighed[:, x] == weighed[:, y]), y] = -np.inf  # it ties with x, which wins
        best = scores.argmax(axis=1)
        behind = scores.max(axis=1)[:, None] - scores
        behind[np.arange(len(w)), best] = np.inf
        winners[:, i] = order[best]
        clear &= (behind > 1e-12 * sizes.max(axis=1)[:, None]).all(axis=1)
    return winners, clear


@every_variant
@pytest.mark.parametrize("whole", [False, True])
def test_votes_equal_brute_force_on_real_numbers(name: str, parameters: dict[str, Any], whole: bool) -> None:
    learner = make(name, parameters)
    training, corpus = real_corpus(5, 60, whole), real_corpus(6, 20, whole)
    votes = learner.votes(run(learner, training, 3).log, training)
    winners, clear = brute_force(votes, corpus)
    assert np.count_nonzero(clear) > 5
    votes = votes._replace(survived=np.where(clear, votes.survived, 0))
    expected = np.zeros(corpus.candidate_count)
    np.add.at(expected, winners, votes.survived[:, None])
    np.testing.assert_array_equal(vote(votes, corpus), expected)
