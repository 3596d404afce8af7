"""Every registered learner with settings that no use has: finite numbers, or an error that names what did it."""

import dataclasses
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from entries import ONLINE
from strategies import random_corpus, run, targets
from variants import make

from rerank.base.errors import RecipeError, RunError
from rerank.contrib.learners.large_margin import NO_LIMIT
from rerank.learn.base import learners
from rerank.learn.rules.tg import TruncatedGradient
from rerank.learn.rules.winnow import LIMIT
from rerank.learn.train import ListProblem, train
from rerank.learn.voting.voting import vote
from rerank.storage.documents import as_json

EXTREMES = (1e-300, 1e-160, 1e160, 1e300)


def numbers() -> Iterator[Any]:
    """Every numeric parameter of every registered learner."""
    for name in ONLINE:
        for item in dataclasses.fields(learners.get(name)):  # type: ignore[arg-type]
            if isinstance(item.default, float):
                yield pytest.param(name, item.name, id=f"{name}.{item.name}")


@pytest.mark.parametrize(("name", "parameter"), list(numbers()))
def test_extreme_settings_give_finite_numbers_or_an_error(name: str, parameter: str) -> None:
    corpus, said = random_corpus(1, lists=12), list[tuple[float, str]]()
    for value in EXTREMES:
        try:
            learner = make(name, {parameter: value})
        except RecipeError:
            continue
        try:
            training = train(learner, ListProblem(corpus, targets(corpus), 1), epochs=3, keep_log=True)
        except RunError as error:
            said.append((value, str(error)))
            continue
        as_json(training.history)
        for weights in training.weights.values():
            assert np.isfinite(weights.w).all()
            assert np.isfinite(weights.base)
        assert training.log is not None
        votes = learner.votes(training.log, corpus)
        votes.check(corpus.width)
        assert vote(votes, corpus).sum() == votes.survived.sum() * corpus.list_count
    for value, message in said:
        assert re.match(rf"epoch [123]: the .* of learner {name} \(.*{parameter}: {re.escape(str(value))}", message)


ADAPTIVE = [
    (make(name, {"loss": loss, "normalized": normalized} | dict(zip(ends, values, strict=True))), size)
    for name, ends in (("arda", ("delta", "eta")), ("ftrl", ("beta", "alpha")))
    for values in ((0.0, 1e-300), (0.0, 1e300), (1e-300, 1.0), (1e300, 1.0))
    for loss, normalized, size in product(("hinge", "exponential", "log", "bayes"), (False, True), (1e-30, 1e30))
]
WINNOW = [
    (make(name, {"loss": loss, "eta": eta, "mu": mu, "update": "always", "base_rate": 0.5}), size)
    for name, loss in product(("uwin", "nwin"), ("perceptron", "exponential", "log"))
    for eta, mu, size in ((1e308, 1.0, 1.0), (1e3, 1e20, 3e38), (1e300, 1e-100, 1e-38))
]
DUAL = [
    (make(name, {"C": C} | ({} if name == "lm-perc" else {"eta": eta})), size)
    for name, C in product(("lm-uwin", "lm-nwin", "lm-perc"), (1e-300, 1e308, None))
    for eta, size in product((1e-300, 1e308), (1e-38, 1.0, 3e38))
]


@pytest.mark.parametrize("made", [ADAPTIVE, WINNOW, DUAL], ids=["adaptive", "winnow", "dual"])
def test_no_number_overflows(made: list[tuple[Any, float]]) -> None:
    """What limits its own numbers has no error where others have one, whatever the size of values."""
    corpus = random_corpus(13)
    for learner, size in made:
        with np.errstate(over="ignore"):
            values = np.clip(corpus.values * np.float32(size), -3e38, 3e38)
        ran = run(learner, dataclasses.replace(corpus, values=values), 4)
        for weights in (learner.last(ran.state), learner.average(ran.state)):
            assert np.isfinite([*weights.w, weights.base]).all()
        if made is WINNOW:
            assert np.abs(ran.state.memory).max() == LIMIT
            assert np.isfinite(ran.per_epoch("loss")).all()
        if made is DUAL:
            assert (ran.state.alpha <= NO_LIMIT).all()
            assert all(np.isfinite(array).all() for array in ran.state)
        if made is not ADAPTIVE:
            assert all(np.isfinite(array).all() for array in learner.votes(ran.log, corpus))


def test_a_large_truncation_zeroes_all_weights_up_to_theta() -> None:
    corpus = random_corpus(6)
    for l1 in (1e3, 1e308):
        for every in (1, 2**31 - 1):
            ran = run(TruncatedGradient(loss="hinge", eta=1e10, l1=l1, every=every), corpus, 2)
            for weights in (TruncatedGradient().last(ran.state), TruncatedGradient().average(ran.state)):
                assert np.isfinite(weights.w).all()
                assert weights.w.any() == (every > 1)
    ran = run(TruncatedGradient(loss="hinge", l1=1e308, theta=0.5), corpus, 2)
    w = TruncatedGradient(theta=0.5).last(ran.state).w
    assert (np.abs(w[w != 0]) > 0.5).all()
    assert w.any()
