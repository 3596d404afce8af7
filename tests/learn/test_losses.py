"""Losses: values and coefficients of the slow twin, gradients by differences, numbers that would overflow."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import loss_of, oracle_and_rival
from strategies import corpus_of

from rerank.learn.judge import accumulate
from rerank.learn.losses import PairLoss, losses, softmax, value_and_slope, value_of_list
from rerank.learn.pairs import rivals
from rerank.learn.rules.spread import accumulate_spread
from rerank.learn.settings import settings_of
from rerank.learn.workspace import scratch_for, view
from rerank.parts import LOSSES


def frozen(numbers: list[float] | np.ndarray) -> np.ndarray:
    array = np.array(numbers, float)
    array.flags.writeable = False
    return array


def loss(
    name: str, scores: list[float], gain: list[float], star: int = 0, rival: int = 1, any_ties: bool = False
) -> tuple[float, list[float]]:
    """Value, and the coefficient of every candidate."""
    n, kind = len(scores), losses.get(name)
    how, a = settings_of(kind(), {}), np.zeros(n)
    if issubclass(kind, PairLoss):
        value, slope = value_and_slope(scores[star] - scores[rival], gain[star] - gain[rival], how)
        a[star], a[rival] = -slope, slope
    else:
        right = np.array([y == star or (any_ties and gain[y] == gain[star]) for y in range(n)], np.int64)
        value = value_of_list(np.array(scores, float), frozen(gain), right, a, how)
    return value, a.tolist()


@settings(max_examples=100)
@given(
    st.sampled_from(sorted(LOSSES)),
    st.lists(st.tuples(st.floats(-6, 6), st.floats(0, 1) | st.just(1.0)), min_size=2, max_size=6),
    st.booleans(),
)
def test_coefficients_are_the_gradient(name: str, candidates: list[tuple[float, float]], any_ties: bool) -> None:
    """∂ value / ∂ score(y) = a_y, with y* and y' held; off the kinks."""
    scores, gain = [x for x, _ in candidates], [s for _, s in candidates]
    others = [y for y in range(1, len(scores)) if not (any_ties and gain[y] == gain[0])]
    if not others:
        return  # all are right: there is nothing to learn
    rival = max(others, key=lambda y: scores[y])
    m = scores[0] - scores[rival]
    kink = {"perceptron": 0.0, "hinge": 1.0, "cost": gain[0] - gain[rival]}.get(name)
    if kink is not None and m > kink - 1e-4:
        return  # no subgradient is asked for beyond the kink
    if name == "lambdarank" and min(abs(x - z) for x, z in itertools.combinations(scores, 2)) < 1e-4:
        return  # places change
    h, gradient = 1e-6, []
    for y in range(len(scores)):
        up, down = ([x + sign * h * (z == y) for z, x in enumerate(scores)] for sign in (1, -1))
        gradient.append(
            (loss(name, up, gain, 0, rival, any_ties)[0] - loss(name, down, gain, 0, rival, any_ties)[0]) / (2 * h)
        )
    value, a = loss(name, scores, gain, 0, rival, any_ties)
    assert a == pytest.approx(gradient, rel=1e-6, abs=1e-7)
    expected, b = loss_of(name, np.array(scores), np.array(gain), 0, rival, any_ties=any_ties)
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert a == pytest.approx(list(b), rel=1e-12, abs=1e-12)


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=9), st.floats(-3, 3))
def test_gains_that_are_all_alike_teach_nothing(scores: list[float], gain: float) -> None:
    value, coefficients_ = loss("bayes", scores, [gain] * len(scores), rival=len(scores) - 1)
    assert value == -gain
    assert not any(coefficients_)


@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.parametrize("margin", [1e4, -1e4, 720.0, -720.0])
def test_large_scores_do_not_overflow(name: str, margin: float) -> None:
    with np.errstate(over="ignore"):
        expected, b = loss_of(name, np.array([margin, 0.0, -1e4]), np.array([1.0, 0.25, 0.0]), 0, 1)
    value, a = loss(name, [margin, 0.0, -1e4], [1.0, 0.25, 0.0])
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert a == pytest.approx(list(b), abs=1e-12)
    assert np.isfinite([value, *a]).all()


def test_softmax_sums_to_one_and_returns_log_z() -> None:
    p = np.empty(5)
    scores = np.array([1e4, 1e4 - 1, -1e4, 0.0, 7.0])
    log_z = softmax(scores[:3], p)
    assert log_z == pytest.approx(1e4 + math.log(1 + math.exp(-1)), rel=1e-15)
    assert p[:3] == pytest.approx([1 / (1 + math.exp(-1)), math.exp(-1) / (1 + math.exp(-1)), 0.0])


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.0]), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=6),
    st.data(),
    st.booleans(),
)
def test_rivals(candidates: list[tuple[float, float]], data: st.DataObject, any_ties: bool) -> None:
    scores, gain = np.array([x for x, _ in candidates]), np.array([s for _, s in candidates])
    chosen = data.draw(st.integers(0, scores.size - 1))
    star, rival = oracle_and_rival(scores, gain, chosen, any_ties)
    found = rivals(scores, frozen(gain), chosen, any_ties)
    assert found == (star, -1 if rival is None else rival)


def test_rivals_of_an_empty_list() -> None:
    assert rivals(np.zeros(0), frozen([]), -1, False) == (-1, -1)


def test_a_sum_that_is_0_in_between_is_one_entry_and_one_that_stays_0_is_none() -> None:
    rows = [{0: 1.0, 1: 1.0}, {0: 1.0, 2: 2.0}, {0: 3.0, 1: -1.0}]
    corpus = corpus_of([[(row, 0.0, 0.0) for row in rows]])
    data, scratch = view(corpus, np.zeros(1, np.int64)), scratch_for(corpus, False)
    scratch.who[:3], scratch.a[:3] = range(3), (1.0, -1.0, 1.0)
    for count in (accumulate(data, scratch, 3), accumulate_spread(data, scratch, 3, 0.0)):
        found = zip(scratch.column[:count].tolist(), scratch.value[:count].tolist(), strict=True)
        assert sorted(found) == [(0, 3.0), (2, -2.0)]
        assert not scratch.sums.any()
    assert scratch.extra[:2].tolist() == [2.0, 2.0]
