"""Rules of a user's own: the same few lines everywhere, and refused where they break the contract."""

import ast
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from own_rules import Average
from strategies import random_corpus, run, targets
from variants import every_family, make

from rerank.base.errors import RecipeError
from rerank.contrib.sklearn.classifiers import OnlineClassifier
from rerank.kernels.sources import PACKAGE
from rerank.learn.base_weight import make_learner
from rerank.learn.contract import accept, check_contract
from rerank.learn.learner import Learner
from rerank.learn.predictor import NUMBERS, Predictor, weights_of
from rerank.learn.train import ListProblem, train
from rerank.learn.voting import vote


@every_family
def test_every_learner_keeps_the_contract(name: str, parameters: dict[str, Any]) -> None:
    check_contract(make(name, parameters))


@every_family
def test_without_an_average_the_last_predictor_is_the_same(name: str, parameters: dict[str, Any]) -> None:
    learner, corpus = make(name, parameters), replace(random_corpus(5), free=2)
    fresh = learner.init(corpus.width, corpus.candidate_count)
    light = run(learner, corpus, 2, state=learner.without_average(fresh))
    whole = run(learner, corpus, 2)
    assert learner.last(light.state).w.tobytes() == learner.last(whole.state).w.tobytes()
    assert learner.last(light.state).base == learner.last(whole.state).base
    with pytest.raises(ValueError, match="this state keeps no average"):
        learner.average(light.state)


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
        accept(make_learner({"name": f"own_rules:{name}"}))


def test_a_rule_of_ones_own_trains_and_votes() -> None:
    corpus, learner = random_corpus(3), accept(make_learner({"name": "mylearner:Harmonic", "decay": 0.5}))
    training = train(learner, ListProblem(corpus, targets(corpus), 1), epochs=2, keep_log=True)
    log = training.log.arrays()
    np.testing.assert_array_equal(log["rate"], corpus.weight[log["lists"]])
    assert vote(learner.votes(training.log, corpus), corpus).sum() > 0


def test_what_is_kept_on_disk_for_all_names_no_class_of_a_user() -> None:
    """Of the package's kernels, only those that ``kernel_of`` keeps apart take settings."""
    found = set()
    for path in (PACKAGE / "learn").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and "kernel" in map(ast.unparse, node.decorator_list):
                found |= {node.name for argument in node.args.args if argument.arg == "params"}
    assert found == {"epoch", "pair_epoch", "repeat_updates", "repeat_pairs"}


class SlippingClassifier(OnlineClassifier, learner=Average): ...


def test_a_rule_with_a_slip_is_refused_as_a_classifier_too() -> None:
    model = SlippingClassifier()
    with pytest.raises(ValueError, match="Average breaks the contract of learners: its average is not that of"):
        model.fit([[1.0], [-1.0]], [0, 1])
    assert not hasattr(model, "classes_")


def test_romma_keeps_the_contract() -> None:
    """The worked example of docs/adding-a-learner.md: a scale of all weights and a number that is remembered."""
    learner = accept(make_learner({"name": "romma:ROMMA", "base_rate": 0.5}))
    ran = run(learner, random_corpus(3), 2)
    squares = float(np.square(weights_of(ran.state)).sum())
    assert learner.view(ran.state).now.norm2 == pytest.approx(squares)


def test_the_guide_says_of_every_number_whether_a_rule_may_set_it() -> None:
    guide = (PACKAGE.parent / "docs" / "adding-a-learner.md").read_text(encoding="utf-8")
    table = "".join(line for line in guide.splitlines() if line.startswith("| `state."))
    assert set(re.findall(r"`state\.now\.(\w+)`", table)) == set(NUMBERS)
    assert set(re.findall(r"`state\.(\w+)", table)) == set(Predictor._fields)


def test_a_body_that_no_kernel_calls_is_refused() -> None:
    """A learner whose rule is misspelt would learn by that of its base, or nothing."""

    def lern(*_: Any) -> None:
        """Never called."""

    with pytest.raises(TypeError, match="Wrong has a static method 'lern', which no kernel calls: did you mean learn"):
        type("Wrong", (Learner,), {"lern": staticmethod(lern)})
    type("Right", (Learner,), {"_lern": staticmethod(lern)})
