"""maxent finds the minimum of its formula, whatever the units and the parts of the lists."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import small_rankings
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from strategies import corpora, corpus_of, in_parts, random_corpus, targets

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.learn.base import Weights
from rerank.learn.rules.maxent import Maxent
from rerank.learn.scoring import choices, scores
from rerank.learn.train import ListProblem, score_on, train


def penalised(corpus: Corpus, weights: Weights, l2: float, l1: float, any_ties: bool, extra: float) -> float:
    """L(w), list by list; ``extra``: the penalised part of the base score's weight."""
    s, oracle, total = scores(corpus, weights), targets(corpus), 0.0
    for i, (first, last) in enumerate(pairwise(corpus.lists)):
        if last > first:
            gain = corpus.gain[first:last]
            right = gain == gain[oracle[i] - first] if any_ties else np.arange(first, last) == oracle[i]
            total += corpus.weight[i] * (logsumexp(s[first:last]) - logsumexp(s[first:last][right]))
    every = np.append(weights.w, extra)
    return float(total + l2 / 2 * every @ every + l1 * np.abs(every).sum())


def fitted(learner: Maxent, corpus: Corpus, any_ties: bool = False) -> Weights:
    state = learner.init(corpus.width)
    learner.solve(corpus, targets(corpus), state, any_ties=any_ties)
    return learner.last(state)


@settings(max_examples=60)
@given(
    corpus=corpora(), any_ties=st.booleans(), base=st.sampled_from([0.0, 0.5]), rate=st.sampled_from([0.0, 0.5]),
    l1=st.sampled_from([0.0, 0.5]),
)  # fmt: skip
def test_no_step_in_any_direction_helps(corpus: Corpus, any_ties: bool, base: float, rate: float, l1: float) -> None:
    """Lists of 0, 1 and more candidates, ties, weights of lists; the base score as an offset, and as a column."""
    learner = Maxent(l2=2.0, l1=l1, base=base, base_rate=rate)
    found = fitted(learner, corpus, any_ties)
    extra = (found.base - base) / rate if rate else 0.0
    least = penalised(corpus, found, 2.0, l1, any_ties, extra)
    assert rate or found.base == base
    for j in range(corpus.width + 1):
        for step in (-0.01, 0.01):
            w, b = found.w.copy(), extra
            if j < corpus.width:
                w[j] += step
            else:
                b += step * bool(rate)
            assert penalised(corpus, Weights(w, base + rate * b), 2.0, l1, any_ties, b) > least - 1e-6


def test_listnet_makes_candidates_as_probable_as_their_gains_say() -> None:
    """A column of its own for every candidate but the last fits any distribution."""
    gain = np.array([3.0, 0.0, 1.0, -0.5])
    rows, columns = np.array([0, 1, 2, 3, 3]), np.arange(3, dtype=np.int32)
    lists, zero = np.array([0, 4]), np.zeros(4)
    corpus = Corpus(lists, rows, columns, np.ones(3), zero, gain, gain[:, None], np.ones((1, 1)), np.ones(1), width=3)
    found = scores(corpus, fitted(Maxent(l2=0.0, loss="listnet", base=0.0, base_rate=0.0), corpus))
    np.testing.assert_allclose(found - logsumexp(found), gain - logsumexp(gain), atol=1e-3)


def ranking(x: np.ndarray, right: np.ndarray) -> Corpus:
    """Lists of dense columns x [L, size, F]."""
    rows = []
    for candidates, gains in zip(x, right, strict=True):
        rows.append([(dict(enumerate(row)), 0.0, float(g)) for row, g in zip(candidates, gains, strict=True)])
    made = corpus_of(rows, width=x.shape[2])
    return replace(made, free=made.width)


def test_units_of_dense_columns_do_not_matter() -> None:
    x, right = small_rankings.draw(np.random.default_rng(1), 300)
    units = np.array([2.0**-20, 2.0**13, 1.0])
    one, other = (fitted(Maxent(l2=1.0), ranking(each, right), True).w for each in (x, x * units))
    np.testing.assert_allclose(other * units, one, rtol=1e-3)


def test_an_optimum_that_is_not_reached_is_said(caplog: pytest.LogCaptureFixture) -> None:
    corpus = random_corpus(1, lists=24)
    fitted(Maxent(l2=1.0), corpus)
    assert not caplog.records
    fitted(Maxent(l2=1.0, iterations=2), corpus)
    assert "ends after 2 iterations, before its optimum" in caplog.text


def test_parts_do_not_matter(tmp_path: Path) -> None:
    corpus = random_corpus(1, lists=24)
    lists, learner = in_parts(tmp_path / "corpus", corpus, (0, 7, 8, 24)), Maxent(l2=0.5)
    state = learner.init(corpus.width)
    learner.solve(lists, targets(lists), state)
    np.testing.assert_allclose(learner.last(state).w, fitted(learner, corpus).w, rtol=1e-6, atol=1e-9)


def test_training_has_one_epoch_and_one_predictor() -> None:
    corpus = random_corpus(2)
    problem, observers = ListProblem(corpus, targets(corpus), 1), [score_on(lambda _: 0.5)]
    found = train(Maxent(l2=1.0), problem, epochs=10, keep_log=True, observers=observers)
    assert [line["epoch"] for line in found.history] == [1]
    assert found.history[0]["dev"] == 0.5
    np.testing.assert_array_equal(found.weights["last"].w, found.weights["average"].w)
    mistakes = np.count_nonzero(choices(corpus, found.weights["last"]) != targets(corpus))
    assert found.history[0]["mistakes"] == mistakes


def test_a_penalty_is_needed() -> None:
    with pytest.raises(RecipeError, match="expected a number from 0"):
        fitted(Maxent(), random_corpus(1))
    with pytest.raises(RecipeError, match="expected one of auto, dense, all"):
        Maxent(columns="some")  # type: ignore[arg-type]
