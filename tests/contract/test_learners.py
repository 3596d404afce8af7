"""What every registered learner must do; a new one needs an entry in a module of ``twins``, and no test of its own."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import reference
from entries import ONLINE
from sameness import ARRAYS, bytes_of
from strategies import WIDTH, bits, corpus_of, random_corpus, run, targets
from variants import EPOCHS, LEARNERS, every_family, every_learner, in_python, make

from rerank.base.errors import RecipeError
from rerank.learn.epoch import UpdateLog
from rerank.learn.learner import learners
from rerank.learn.scoring import best, scores


def fields(kind: type) -> list[tuple[str, str]]:
    """Every parameter of every registered learner of a type; limits that are left out by default are numbers."""
    return [
        (name, item.name)
        for name in ONLINE
        for item in dataclasses.fields(learners.get(name))  # type: ignore[arg-type]
        if type(0.0 if item.default is None else item.default) is kind
    ]


def test_every_learner_has_an_entry() -> None:
    for name in ONLINE:
        assert name in LEARNERS, f"learner {name!r} has no entry: add variants and a twin to a module of tests/twins"
        assert learners.get(name).name == name


@every_family
def test_the_corpus_stays_untouched(name: str, parameters: dict[str, Any]) -> None:
    corpus, learner = random_corpus(2), make(name, parameters)
    oracles = targets(corpus)
    before, kept = bytes_of(corpus), oracles.copy()
    run(learner, corpus, EPOCHS, oracles=oracles)
    assert bytes_of(corpus) == before
    assert not any(getattr(corpus, key).flags.writeable for key in ARRAYS)
    np.testing.assert_array_equal(oracles, kept)
    assert oracles.flags.writeable


@every_family
def test_predictors_are_copies(name: str, parameters: dict[str, Any]) -> None:
    """Neither does reading a predictor change the state, nor does training change a predictor that was read."""
    corpus, learner = random_corpus(3), make(name, parameters)
    ran = run(learner, corpus, 1)
    before, weights = bits(ran.state), (learner.last(ran.state), learner.average(ran.state))
    kept = [w.copy() for w, *_ in weights]
    for w, *_ in weights:
        assert w.dtype == np.float64
        assert w.shape == (corpus.width,)
    assert bits(ran.state) == before
    run(learner, corpus, 1, state=ran.state, first=1)
    for (w, *_), old in zip(weights, kept, strict=True):
        np.testing.assert_array_equal(w, old)
        w[:] = np.nan
    assert np.isfinite(learner.last(ran.state).w).all()
    assert np.isfinite(learner.average(ran.state).w).all()


@every_learner
def test_learns_a_separable_corpus(name: str, parameters: dict[str, Any]) -> None:
    """Every oracle is ahead by 2 of the others under weights ±1: no mistakes in the end, by any predictor."""
    random = np.random.default_rng(5)
    truth = random.choice([-1.0, 1.0], size=WIDTH)
    lists: list[list[Any]] = []
    while len(lists) < 25:
        rows = random.integers(-2, 3, size=(4, WIDTH)) / 2
        rows = rows[np.argsort(-rows @ truth)]
        if rows[0] @ truth >= rows[1] @ truth + 2:
            made = [(dict(enumerate(row)), random.integers(-2, 3) / 4, float(y == 0)) for y, row in enumerate(rows)]
            lists.append([made[y] for y in random.permutation(4)])
    corpus, learner = corpus_of(lists), make(name, parameters)
    ran = run(learner, corpus, 40)
    assert ran.per_epoch("mistakes")[0] > 0
    assert ran.per_epoch("mistakes")[-1] == 0
    for weights in (learner.last(ran.state), learner.average(ran.state)):
        np.testing.assert_array_equal(best(corpus, scores(corpus, weights)), targets(corpus))


@pytest.mark.parametrize(("name", "parameter"), fields(float))
def test_bad_numbers_are_refused(name: str, parameter: str) -> None:
    positive = parameter in LEARNERS[name].positive
    above = "from 1e-100 to 1e+20" if parameter == "mu" else "above 0"
    allowed = f"expected a finite number {above if positive else 'from 0'}"
    bad: list[Any] = [math.nan, -1.0, -1e-300, math.inf, -math.inf, "1", True, [1.0], 10**400]
    item = next(f for f in dataclasses.fields(learners.get(name)) if f.name == parameter)  # type: ignore[arg-type]
    none = [] if "None" in str(item.type) else [None]  # some limits can be left out
    for value in bad + none + [0, 0.0] * positive + [1e-101, 1e21] * (parameter == "mu"):
        with pytest.raises(RecipeError, match=rf"^learner\.{parameter}: ") as caught:
            make(name, {parameter: value})
        assert allowed in caught.value.message
        assert repr(value) in caught.value.message
    for value in [1, 0.5, *([] if positive else [0, 0.0])]:
        assert getattr(make(name, {parameter: value}), parameter) == value


@pytest.mark.parametrize(
    ("kind", "bad", "expected"),
    [
        (bool, ("yes", 1, None, 0.0), "expected true or false"),
        (int, (0, -1, 1.0, True, 2**31, "2", None), "expected a whole number from 1"),
        (str, ("", "nonsense", None, 3, ["hinge"]), "expected one of|unknown loss|expected a string"),
    ],
)
def test_other_bad_values_are_refused(kind: type, bad: tuple[Any, ...], expected: str) -> None:
    for name, parameter in fields(kind):
        for value in bad:
            with pytest.raises(RecipeError, match=expected) as caught:
                learners.get(name)(**{parameter: value})
            assert caught.value.key == parameter
            assert repr(value) in caught.value.message


@every_learner
def test_votes_end_with_the_bits_of_the_state(name: str, parameters: dict[str, Any]) -> None:
    """But for learners whose steps are products that are rounded once more."""
    corpus, learner = random_corpus(3), make(name, parameters)
    ran = run(learner, corpus, EPOCHS)
    votes, last = learner.votes(ran.log, corpus), learner.last(ran.state)
    end = reference.trace_of(votes, corpus.width).predictors[-1]
    assert votes.first.size > 5
    np.testing.assert_allclose(end.w, last.w, rtol=1e-12, atol=1e-15)
    if name != "arda":
        np.testing.assert_array_equal(end.w, last.w)
        assert end.beta == last.base


@every_family
def test_a_corpus_without_columns_gives_weights_without_columns(name: str, parameters: dict[str, Any]) -> None:
    """No feature varies in enough lists: what is left is the base score."""
    corpus, learner = random_corpus(9), make(name, parameters)
    bare = dataclasses.replace(corpus.keep_columns(np.zeros(corpus.width, np.bool_)), width=0, free=0)
    with in_python():  # arrays without entries are of other types
        state = run(learner, bare, 2).state
    for weights in (learner.last(state), learner.average(state)):
        assert weights.w.shape == (0,)
        assert np.isfinite(weights.base)


@every_family
def test_an_order_may_leave_out_and_repeat_lists(name: str, parameters: dict[str, Any]) -> None:
    if LEARNERS[name].duals:
        pytest.skip("a repeated list has one dual variable, its copies have one each")
    corpus, learner = random_corpus(5), make(name, parameters)
    order = np.array([4, 4, 0, 17, 4], np.int64)
    states = []
    for part, of_part in ((corpus, order), (corpus.take(order), np.arange(order.size))):
        state = learner.init(corpus.width, part.candidate_count)
        stats = learner.epoch(part, targets(part), of_part, state, log=UpdateLog())
        assert stats.lists == order.size
        states.append(state)
    assert bits(states[0]) == bits(states[1])
