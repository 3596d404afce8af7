"""Losses and a source of pairs of a user's own, as docs/adding-a-learner.md shows them, against an epoch in numpy."""

import sys
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest
from reference import dense
from strategies import random_corpus, targets

from rerank.base.errors import RecipeError
from rerank.base.registry import build
from rerank.kernels.sources import PACKAGE
from rerank.learn.contract import check_contract
from rerank.learn.losses import PairLoss
from rerank.learn.pairs import Oracle, PairSource, pairs
from rerank.learn.rules.sgd import SGD
from rerank.learn.train import ListProblem, train

CORPUS = random_corpus(5)


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(PACKAGE.parent / "docs" / "examples"))
    yield
    sys.modules.pop("mylosses", None)


def epoch(lesson: Callable[[np.ndarray, np.ndarray, int], np.ndarray | None]) -> np.ndarray:
    """w after steps −η/√k·g over all lists; ``lesson``: the coefficients of g from scores, gains and oracle."""
    X, w, k = dense(CORPUS), np.zeros(CORPUS.width), 0
    for (first, last), oracle, weight in zip(pairwise(CORPUS.lists), targets(CORPUS), CORPUS.weight, strict=True):
        scores = X[first:last] @ w + CORPUS.base[first:last]
        a = lesson(scores, CORPUS.gain[first:last], int(oracle) - int(first))
        if a is not None:
            k += 1
            w -= weight / np.sqrt(k) * (a @ X[first:last])
    return w


def fit(loss: str, source: PairSource | None = None) -> np.ndarray:
    learner = SGD(loss=loss, eta=1.0, update="always")
    problem = ListProblem(CORPUS, targets(CORPUS), 1, shuffle=False, pairs=source or Oracle())
    return train(learner, problem, epochs=1).weights["last"].w


def squared(scores: np.ndarray, star: int, rival: int) -> np.ndarray | None:
    missing, a = max(0.0, 1.0 - (scores[star] - scores[rival])), np.zeros(scores.size)
    a[star], a[rival] = -2 * missing, 2 * missing
    return a if missing > 0 else None


def test_a_loss_of_pairs() -> None:
    def lesson(scores: np.ndarray, gain: np.ndarray, oracle: int) -> np.ndarray | None:  # noqa: ARG001
        others = [y for y in range(scores.size) if y != oracle]
        return squared(scores, oracle, max(others, key=lambda y: scores[y])) if others else None

    np.testing.assert_allclose(fit("mylosses:SquaredHinge"), epoch(lesson), rtol=1e-10, atol=1e-12)


def test_a_loss_of_lists() -> None:
    def lesson(scores: np.ndarray, gain: np.ndarray, oracle: int) -> np.ndarray | None:  # noqa: ARG001
        return scores - gain if scores.size > 1 else None

    np.testing.assert_allclose(fit("mylosses:Regression"), epoch(lesson), rtol=1e-10, atol=1e-12)


def test_a_source_of_pairs_with_a_parameter() -> None:
    source = build(pairs, {"name": "mylosses:FarBehind", "gap": 0.25}, "training.pairs")

    def lesson(scores: np.ndarray, gain: np.ndarray, oracle: int) -> np.ndarray | None:
        others = [y for y in range(scores.size) if y != oracle and gain[y] <= gain[oracle] - 0.25]
        return squared(scores, oracle, max(others, key=lambda y: scores[y])) if others else None

    found = fit("mylosses:SquaredHinge", source)
    np.testing.assert_allclose(found, epoch(lesson), rtol=1e-10, atol=1e-12)
    assert not np.array_equal(found, fit("mylosses:SquaredHinge"))


class Flat(PairLoss):
    """max(0, 3 − m), which nothing lowers once y* is ahead."""

    @staticmethod
    def of(m: float) -> tuple[float, float]:
        return max(0.0, 3.0 - m), 1.0 if m <= 0.0 else 0.0


def test_where_a_loss_is_flat_nothing_is_learned_or_repeated_in_votes() -> None:
    check_contract(SGD(loss=f"{__name__}:Flat", update="always"))


def test_a_loss_that_lacks_what_it_is_written_as(monkeypatch: pytest.MonkeyPatch) -> None:
    class Empty(PairLoss): ...

    monkeypatch.setattr(sys.modules[__name__], "Empty", Empty, raising=False)
    with pytest.raises(RecipeError, match=r"does not define of; see rerank\.learn\.losses\.Loss") as caught:
        SGD(loss=f"{__name__}:Empty")
    assert caught.value.key == "loss"
