"""Mixing: the same as by hand, and as without it where there is one section."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from strategies import random_corpus, targets

from rerank.base.errors import RecipeError
from rerank.base.registry import build
from rerank.learn.base import learners
from rerank.learn.mixing import Mixing, train_mixed
from rerank.learn.rules.arow import AROW
from rerank.learn.rules.cw import CW
from rerank.learn.rules.perceptron import Perceptron
from rerank.learn.rules.rda import RDA
from rerank.learn.trainer import Training, epoch_order, train

CORPUS = random_corpus(4, lists=31)
ORACLE = targets(CORPUS)
PIECES = [CORPUS.slice(0, 10), CORPUS.slice(10, 20), CORPUS.slice(20, 31)]
SEEDS = [int(np.random.SeedSequence([5, number]).generate_state(1)[0]) for number in range(3)]


def mixed(learner: Any, mixing: Mixing, **options: Any) -> Training:
    return train_mixed(learner, CORPUS, ORACLE, **({"mixing": mixing, "epochs": 3, "seed": 5} | options))


@pytest.mark.parametrize("name", ["perceptron", "vrda", "arow", "ftrl", "uwin", "lm-perc"])
def test_one_section_is_plain_training(name: str) -> None:
    learner = build(learners, {"name": name}, "learner")
    found, plain = mixed(learner, Mixing(1)), train(learner, CORPUS, ORACLE, epochs=3, seed=5)
    for predictor, weights in plain.weights.items():
        np.testing.assert_array_equal(found.weights[predictor].w, weights.w)
        assert found.weights[predictor].base == weights.base
    for line in (*found.history, *plain.history):
        del line["seconds"], line["nonzeros_per_second"]
        line.pop("gap", None)
    assert found.history == plain.history
    assert (found.samples, found.mistakes, found.epoch) == (plain.samples, plain.mistakes, plain.epoch)


@pytest.mark.parametrize("rule", ["mean", "kl"])
@pytest.mark.parametrize("learner", [Perceptron(base_rate=0.5), RDA(l1=0.01), AROW(), CW(base_rate=0.5)], ids=repr)
def test_epochs_by_hand(learner: Any, rule: Any) -> None:
    """Three sections of 10, 10 and 11 lists, epoch after epoch, each from its own state."""
    if rule == "kl" and not isinstance(learner, AROW | CW):
        with pytest.raises(
            RecipeError, match=r"training\.mixing\.rule: .* keeps no variance of each weight; take mean"
        ):
            mixed(learner, Mixing(3, rule))
        return
    found = mixed(learner, Mixing(3, rule), evaluate_dev=lambda weights: float(np.abs(weights.w).sum()))
    states = [learner.init(CORPUS.width) for _ in PIECES]
    for epoch in range(3):
        for piece, seed, state in zip(PIECES, SEEDS, states, strict=True):
            learner.epoch(piece, targets(piece), epoch_order(piece.list_count, seed, epoch, True), state)
    last = np.mean([learner.last(state).w for state in states], axis=0)
    if rule == "kl":
        precisions = [1.0 / learner.variances(state) for state in states]
        last = sum(p * learner.last(state).w for p, state in zip(precisions, states, strict=True)) / sum(precisions)
    np.testing.assert_allclose(found.weights["last"].w, last, rtol=1e-12, atol=1e-15)
    averages = [mixed(learner, Mixing(3, rule), epochs=epochs).weights["average"].w for epochs in (1, 2, 3)]
    assert [line["dev"] for line in found.history] == [float(np.abs(w).sum()) for w in averages]
    assert found.history[-1]["updates"] > 0
    assert found.samples[-1] == 3 * CORPUS.list_count
    assert (found.log, found.state) == (None, None)


def test_units_of_columns_weigh_precisions() -> None:
    """Columns that are multiplied have weights that are divided, where variances are kept in units of columns."""
    factors = 2.0 ** np.arange(-8, CORPUS.width - 8)
    scaled = replace(CORPUS, values=CORPUS.values * factors[CORPUS.columns])
    one, other = (
        train_mixed(AROW(normalize=True), lists, ORACLE, mixing=Mixing(3, "kl"), epochs=3, seed=5).weights["last"].w
        for lists in (CORPUS, scaled)
    )
    assert np.count_nonzero(one) > 10
    np.testing.assert_allclose(other * factors, one, rtol=1e-12)


def test_more_sections_than_lists() -> None:
    few = CORPUS.slice(0, 3)
    assert train_mixed(Perceptron(), few, targets(few), mixing=Mixing(50), epochs=2, seed=1).samples[-1] == 6


def test_what_finds_one_optimum_is_not_mixed() -> None:
    learner = build(learners, {"name": "maxent"}, "learner")
    with pytest.raises(RecipeError, match=r"training\.mixing: maxent finds one optimum"):
        mixed(learner, Mixing(3))
