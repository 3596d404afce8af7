"""Dual ascent ends at the optimum of the duals that it climbs, and goes on with those of another corpus."""

import dataclasses

import numpy as np
import pytest
from strategies import corpus_of, random_corpus, run, targets

from rerank.contrib.learners.large_margin import LMNWin, LMPerceptron, LMUWin
from rerank.learn.train import ListProblem, train

Learner = LMUWin | LMPerceptron


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


@pytest.mark.parametrize(
    "learner",
    [
        LMUWin(eta=0.02, mu=0.1), LMUWin(eta=None, mu=0.1), LMNWin(eta=0.02, mu=0.1, total=4.0),
        LMNWin(eta=None, mu=0.1, total=4.0), LMPerceptron(),
    ],
    ids=str,
)  # fmt: skip
def test_duals_end_at_their_optimum(learner: Learner) -> None:
    """Where primal and dual meet; a base score of fixed weight is a margin that is there already."""
    random = np.random.default_rng(4)
    rows, b = random.integers(-2, 3, size=(30, 4)).astype(float), random.integers(-2, 3, size=30) / 4
    rows *= np.where(rows @ [2, -1, 1, 0] < 0, -1.0, 1.0)[:, None]
    rows[:, 0] += rows[:, 0] == 0
    weights = random.choice([0.5, 1.0, 2.0], 30)
    lists = [[(dict(enumerate(x)), score, 1.0), ({}, 0.0, 0.0)] for x, score in zip(rows, b, strict=True)]
    learner = dataclasses.replace(learner, C=0.3, base=0.5)
    corpus = corpus_of(lists, weights.tolist(), width=4)
    epochs = 1500 if getattr(learner, "eta", None) else 300  # small steps take longer than Newton's
    training = train(learner, ListProblem(corpus, targets(corpus), 1), epochs=epochs)
    w, alpha, target = training.weights["last"].w, training.state.alpha[1::2], 1.0 - b / 2
    gap = 0.3 * float((weights * np.maximum(0.0, target - rows @ w)).sum()) - target @ alpha
    theta = alpha @ rows
    gap += float(theta @ w)  # Ψ(w) + Ψ*(θ) = θ·w at w = ∇Ψ*(θ)
    assert gap == pytest.approx(0.0, abs=1e-6)
    assert 0 < np.count_nonzero(alpha) < 30  # some constraints bind, some do not
    assert (alpha == 0.3 * weights).any()
