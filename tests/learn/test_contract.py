"""Rules of a user's own: the same few lines everywhere, and refused where they break the contract."""

from __future__ import annotations

import ast
from typing import Any, ClassVar

import numpy as np
import pytest
from own_rules import Harmonic
from strategies import random_corpus, targets
from variants import make, variants

from rerank.base.errors import RecipeError
from rerank.estimators.base import OnlineClassifier
from rerank.kernels.sources import PACKAGE
from rerank.learn.base import Learner
from rerank.learn.base_weight import make_learner
from rerank.learn.contract import accepted, check_contract
from rerank.learn.mixing.mixing import Mixing, train_mixed
from rerank.learn.trainer import train
from rerank.learn.voting.voting import vote


@pytest.mark.parametrize(("name", "parameters"), list(variants()))
def test_every_learner_keeps_the_contract(name: str, parameters: dict[str, Any]) -> None:
    check_contract(make(name, parameters))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Boundless", "its weights are not finite"),
        ("Endless", "its counts of updates and of survived lists are not those of its log"),
        ("Average", "its average is not that of its predictors"),
        ("Idle", "it learns nothing from lists whose oracles lose"),
        ("Raising", "Raising fails on small lists: ZeroDivisionError: .*nothing to divide by"),
        ("Untyped", "fails on small lists: TypingError: .*nothing"),
    ],
)
def test_a_rule_with_a_slip_is_refused_when_it_is_named(name: str, reason: str) -> None:
    with pytest.raises(RecipeError, match=reason):
        accepted(make_learner({"name": f"own_rules:{name}"}))


def test_a_rule_of_ones_own_trains_votes_and_mixes() -> None:
    corpus, learner = random_corpus(3), accepted(make_learner({"name": "own_rules:Harmonic", "decay": 0.5}))
    training = train(learner, corpus, targets(corpus), epochs=2, seed=1, keep_log=True)
    assert training.log is not None
    log = training.log.arrays()
    expected = corpus.weight[log["lists"]] / (1.0 + 0.5 * np.arange(training.log.updates))
    np.testing.assert_allclose(log["rate"], expected)
    assert vote(learner.votes(training.log, corpus), corpus).sum() > 0
    mixed = train_mixed(learner, corpus, targets(corpus), mixing=Mixing(shards=2), epochs=2, seed=1)
    assert np.isfinite(mixed.weights["average"].w).all()


def test_what_is_kept_on_disk_for_all_names_no_class_of_a_user() -> None:
    """Of the package's kernels, only those that ``kernel_of`` keeps apart take settings or states."""
    found = set()
    for path in (PACKAGE / "learn").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and "kernel" in map(ast.unparse, node.decorator_list):
                found |= {node.name for argument in node.args.args if argument.arg in ("q", "state")}
    assert found == {"gradient_pass", "pair_pass", "dual_pass", "repeat_steps", "repeat_pairs", "flush"}


class HarmonicClassifier(OnlineClassifier):
    """A classifier with a user's rule."""

    _rule: ClassVar[type[Learner]] = Harmonic


def test_a_rule_of_ones_own_classifies() -> None:
    random = np.random.default_rng(1)
    X = random.normal(size=(200, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] > 0
    assert HarmonicClassifier(random_state=1).fit(X, y).score(X, y) > 0.9
