"""Dual ascent equals its twin, stays in its box, and ends at the optimum of the duals that it climbs."""

import dataclasses

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import corpora, corpus_of, random_corpus, run, targets
from variants import LEARNERS, make

from rerank.contrib.learners.large_margin import LMNWin, LMPerceptron, LMUWin
from rerank.data.corpus import Corpus
from rerank.learn.train import ListProblem, train

Learner = LMUWin | LMPerceptron
MADE = st.sampled_from(["lm-uwin", "lm-nwin", "lm-perc"]).flatmap(
    lambda name: st.sampled_from([make(name, parameters) for parameters in LEARNERS[name].variants])
)


@settings(max_examples=60)
@given(corpora(), MADE, st.integers(0, 4))
def test_duals_stay_in_their_box_and_give_the_weights(corpus: Corpus, learner: Learner, epochs: int) -> None:
    """0 ≤ α ≤ C·weight; α = 0 for oracles; θ (or w) = Σ α·(φ(y*) − φ(y))."""
    ran = run(learner, corpus, epochs)
    alpha, oracles = ran.state.alpha, targets(corpus)
    weight = np.repeat(corpus.weight, np.diff(corpus.lists))
    assert alpha.shape == (corpus.candidate_count,)
    assert (alpha >= 0.0).all()
    assert (alpha <= (np.inf if learner.C is None else learner.C * weight)).all()
    assert not alpha[oracles[oracles >= 0]].any()
    rows = np.column_stack([reference.dense(corpus), learner.base_rate * corpus.base])
    star = np.repeat(oracles, np.diff(corpus.lists))
    total = alpha @ (rows[star] - rows) if alpha.size else np.zeros(corpus.width + 1)
    last = learner.last(ran.state)
    if isinstance(learner, LMPerceptron):
        expected = total
    else:
        expected = 2 * learner.mu * np.sinh(total)
        if isinstance(learner, LMNWin):
            parts = 2 * learner.mu * np.cosh(total)
            W = learner.total or 2 * learner.mu * (corpus.width + (learner.base_rate > 0))
            expected *= W / (parts.sum() if learner.base_rate > 0 else parts[:-1].sum())
    np.testing.assert_allclose(last.w, expected[:-1], rtol=1e-9, atol=1e-11)
    assert last.base == pytest.approx(learner.base + learner.base_rate * expected[-1], rel=1e-9)


def test_large_margins_without_a_limit_are_all_1() -> None:
    """On a separable corpus of pairs the margins of those with α > 0 end at 1, all others above."""
    random = np.random.default_rng(6)
    rows = random.integers(-2, 3, size=(40, 5)) / 2
    rows = np.array([x * np.sign(x.sum()) for x in rows if x.sum()])
    lists = [[(dict(enumerate(x)), 0.0, 1.0), ({}, 0.0, 0.0)] for x in rows]
    corpus = corpus_of(lists, width=5)
    for learner in (
        LMUWin(eta=0.02, mu=0.1, C=None, base=0.0),
        LMNWin(eta=0.02, mu=0.1, C=None, base=0.0, total=20.0),
        LMPerceptron(C=None, base=0.0),
    ):
        state = learner.init(5, corpus.candidate_count)
        learner.epoch(corpus, targets(corpus), np.tile(np.arange(len(rows)), 20_000), state)
        margins, alpha = rows @ learner.last(state).w, state.alpha[1::2]
        assert margins.min() > 1 - 1e-3
        assert margins[alpha > 1e-6] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("learner", [LMUWin(eta=0.1), LMNWin(eta=0.1, total=5.0), LMPerceptron()])
def test_another_corpus_has_other_duals(learner: Learner) -> None:
    """The weights stay; a state with the wrong number of duals is refused, an adopted one goes on."""
    corpus, other = random_corpus(5), random_corpus(6, lists=12)
    ran = run(learner, corpus, 2)
    before = learner.last(ran.state)
    adopted = learner.for_corpus(ran.state, other.candidate_count)
    assert adopted.alpha.tolist() == [0.0] * other.candidate_count
    assert ran.state.alpha.any()
    np.testing.assert_array_equal(learner.last(adopted).w, before.w)
    for state in (ran.state, learner.init(other.width)):
        with pytest.raises(ValueError, match=f"{state.alpha.size} dual variables for {other.candidate_count} cand"):
            learner.epoch(other, targets(other), np.arange(3), state)
    warm = train(learner, ListProblem(other, targets(other), 1), epochs=1, start=(adopted, 2))
    assert warm.state.alpha.shape == (other.candidate_count,)
    assert learner.updates(warm.state) > learner.updates(ran.state)


def test_lists_of_no_weight_and_equal_candidates_teach_nothing() -> None:
    lists = [[({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)], [({1: 1.0}, 0.0, 1.0), ({1: 1.0}, 0.0, 0.0)]]
    corpus = corpus_of(lists, [0.0, 1.0], width=2)
    for learner in (LMUWin(C=None), LMNWin(C=None), LMPerceptron(C=None), LMPerceptron()):
        ran = run(learner, corpus, 3)
        assert ran.per_epoch("mistakes") == [2, 2, 2]
        assert not learner.last(ran.state).w.any()
        assert ran.state.alpha[:2].tolist() == [0.0, 0.0]
    assert run(LMPerceptron(), corpus, 3).per_epoch("updates") == [0, 0, 0]


@pytest.mark.parametrize("base", [0.0, 0.5])
@pytest.mark.parametrize(
    "learner",
    [
        LMUWin(eta=0.02, mu=0.1), LMUWin(eta=None, mu=0.1), LMNWin(eta=0.02, mu=0.1, total=4.0),
        LMNWin(eta=None, mu=0.1, total=4.0), LMPerceptron(),
    ],
    ids=str,
)  # fmt: skip
def test_duals_end_at_their_optimum(learner: Learner, base: float) -> None:
    """Where primal and dual meet; a base score of fixed weight is a margin that is there already."""
    random = np.random.default_rng(4)
    rows, b = random.integers(-2, 3, size=(30, 4)).astype(float), random.integers(-2, 3, size=30) / 4
    rows *= np.where(rows @ [2, -1, 1, 0] < 0, -1.0, 1.0)[:, None]
    rows[:, 0] += rows[:, 0] == 0
    weights = random.choice([0.5, 1.0, 2.0], 30)
    lists = [[(dict(enumerate(x)), score, 1.0), ({}, 0.0, 0.0)] for x, score in zip(rows, b, strict=True)]
    learner = dataclasses.replace(learner, C=0.3, base=base)
    corpus = corpus_of(lists, weights.tolist(), width=4)
    training = train(learner, ListProblem(corpus, targets(corpus), 1), epochs=3000)
    w, alpha, target = training.weights["last"].w, training.state.alpha[1::2], 1.0 - base * b
    gap = 0.3 * float((weights * np.maximum(0.0, target - rows @ w)).sum()) - target @ alpha
    theta = alpha @ rows
    gap += float(theta @ w)  # Ψ(w) + Ψ*(θ) = θ·w at w = ∇Ψ*(θ)
    assert gap == pytest.approx(0.0, abs=1e-6)
    assert 0 < np.count_nonzero(alpha) < 30  # some constraints bind, some do not
    assert (alpha == 0.3 * weights).any()
