"""Sections of the examples: the same as by hand, and as without them where there is one."""

from typing import Any

import numpy as np
import pytest
from strategies import random_corpus, targets

from rerank.base.errors import RecipeError
from rerank.base.registry import build
from rerank.contrib.classification.fitting import combined, divided, require_rule
from rerank.learn.base import learners
from rerank.learn.train import ListProblem, Training, epoch_order, train

CORPUS = random_corpus(4, lists=31)


def trainings(name: str, count: int, epochs: int = 3) -> list[Training]:
    learner = build(learners, {"name": name}, "learner")
    parts = [(CORPUS.take(place), seed) for place, seed in divided(CORPUS.list_count, count, 5)]
    return [train(learner, ListProblem(part, targets(part), seed), epochs=epochs) for part, seed in parts]


@pytest.mark.parametrize(("name", "rule"), [("perceptron", "mean"), ("rda", "mean"), ("arow", "kl"), ("cw", "kl")])
def test_epochs_by_hand(name: str, rule: str) -> None:
    """Three sections, epoch after epoch, each from its own state."""
    learner: Any = build(learners, {"name": name}, "learner")
    sections = [(CORPUS.take(place), seed) for place, seed in divided(CORPUS.list_count, 3, 5)]
    assert [part.list_count for part, _ in sections] == [10, 10, 11]
    states = [learner.init(CORPUS.width) for _ in sections]
    for epoch in range(3):
        for (part, seed), state in zip(sections, states, strict=True):
            learner.epoch(part, targets(part), epoch_order(part.list_count, seed, epoch, True), state)
    last = np.mean([learner.last(state).w for state in states], axis=0)
    if rule == "kl":
        precisions = [1.0 / learner.variances(state) for state in states]
        last = sum(p * learner.last(state).w for p, state in zip(precisions, states, strict=True)) / sum(precisions)
    average = sum(len_ * learner.average(s).w for len_, s in zip((10, 10, 11), states, strict=True)) / 31
    found = combined(trainings(name, 3), rule)
    np.testing.assert_allclose(found["last"].w, last, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found["average"].w, average, rtol=1e-12, atol=1e-15)


def test_one_section_is_plain_training_in_another_order_of_examples() -> None:
    ((place, seed),) = divided(CORPUS.list_count, 1, 5)
    assert (sorted(place.tolist()), seed) == (list(range(31)), 5)
    (alone,) = trainings("perceptron", 1)
    np.testing.assert_array_equal(combined([alone], "mean")["last"].w, alone.weights["last"].w)
    assert len(divided(3, 50, 1)) == 3


@pytest.mark.parametrize(("name", "rule", "message"), [
    ("perceptron", "kl", "keeps no variance of each weight; take mean"), ("maxent", "mean", "finds one optimum")
])  # fmt: skip
def test_learners_that_cannot_be_combined_are_refused(name: str, rule: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        require_rule(build(learners, {"name": name}, "learner"), rule)
