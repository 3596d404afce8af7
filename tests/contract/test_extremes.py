"""Every registered learner with settings that no use has: finite numbers, or an error that names what did it."""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from entries import ONLINE
from strategies import random_corpus, targets
from variants import make

from rerank.base.errors import RecipeError, RunError
from rerank.learn.base import learners
from rerank.learn.trainer import train
from rerank.learn.voting.voting import vote
from rerank.storage.strict_json import as_json

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
            training = train(learner, corpus, targets(corpus), epochs=3, seed=1, keep_log=True)
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
