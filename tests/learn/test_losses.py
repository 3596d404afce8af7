"""Losses, those of a user's own among them: the slow twin's values, gradients by differences; sources of pairs."""

import itertools
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import dense, loss_of, oracle_and_rival
from reference_pairs import Pairs
from strategies import bits, corpora, corpus_of, random_corpus, run, targets

from rerank.base.errors import RecipeError
from rerank.base.registry import build
from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel, kernel_of, settings_of
from rerank.learn.contract import check_contract
from rerank.learn.losses import PairLoss, losses, value_and_slope, value_of_list
from rerank.learn.pairs import HopeFear, Oracle, PairSource, Sampled, draw, pairs, pick, pick_next, rivals
from rerank.learn.rules.additive import SGD, PassiveAggressive, Perceptron
from rerank.learn.rules.dual_averaging import RDA, accumulate_spread
from rerank.learn.train import ListProblem, train
from rerank.learn.workspace import ListArrays, accumulate, scratch_for, view
from rerank.parts import LOSSES


def freeze(numbers: list[float] | np.ndarray) -> np.ndarray:
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
        value = value_of_list(np.array(scores, float), freeze(gain), right, a, how)
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
    found = rivals(scores, freeze(gain), chosen, any_ties)
    assert found == (star, -1 if rival is None else rival)


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


CORPUS = random_corpus(5)


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


PAIRED = random_corpus(6)
SOURCES = st.one_of(
    st.just(Oracle()),
    st.sampled_from([0.25, 1.0, 4.0]).map(lambda tilt: HopeFear(tilt=tilt)),
    st.builds(Sampled, draws=st.integers(1, 12), threshold=st.sampled_from([0.0, 0.25, 0.5])),
)


@kernel
def first_pair(scores: Any, gain: Any, oracle: int, any_ties: bool, i: int, how: Any) -> tuple[int, int]:
    return pick(scores, gain, oracle, any_ties, i, how)


@kernel
def pair_after(
    scores: Any, gain: Any, oracle: int, any_ties: bool, i: int, star: int, rival: int, how: Any
) -> tuple[int, int]:  # fmt: skip
    return pick_next(scores, gain, oracle, any_ties, i, star, rival, how)


def shown(data: ListArrays, i: int, scores: np.ndarray, any_ties: bool) -> list[tuple[int, int]]:
    """All pairs of list i in turn, by the kernels."""
    first, last, scores, found = int(data.lists[i]), int(data.lists[i + 1]), scores.copy(), []
    how = scores, data.gain[first:last], int(data.oracle[i]) - first, any_ties, i
    kind = data.pairs.owner
    star, rival = kernel_of(first_pair, kind)(*how, data.pairs)
    while rival >= 0:
        found.append((star, rival))
        star, rival = kernel_of(pair_after, kind)(*how, star, rival, data.pairs)
    return found


@settings(max_examples=200)
@given(corpora(), SOURCES, st.booleans(), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_pairs_come_in_turn(corpus: Corpus, source: PairSource, any_ties: bool, epoch: int, seed: int) -> None:
    oracle, random = targets(corpus), np.random.default_rng(seed)
    data, naive = view(corpus, oracle, source.rule(seed, epoch)), Pairs(source, seed)
    for i, (first, last) in enumerate(zip(corpus.lists[:-1], corpus.lists[1:], strict=True)):
        scores = random.integers(-2, 3, size=last - first) / 4
        expected = naive.in_turn(epoch, i, scores, corpus.gain[first:last], oracle[i] - first, any_ties)
        assert shown(data, i, scores, any_ties) == expected


def test_draws_are_uniform_over_pairs_of_different_candidates() -> None:
    counted = Counter(draw(np.uint64(seed), number, 4) for seed in range(60) for number in range(200))
    assert set(counted) == {(x, y) for x in range(4) for y in range(4) if x != y}
    assert max(abs(count - 1000) for count in counted.values()) < 150  # five standard deviations


@pytest.mark.parametrize(
    ("learner", "pairs"),
    [
        (Perceptron(), Sampled(draws=5)),
        (PassiveAggressive(top=2), Sampled(draws=5)),
        (PassiveAggressive(top=2), HopeFear(tilt=2.0)),
    ],
)
def test_pairs_are_those_of_the_seed_and_of_the_epoch(learner: Perceptron, pairs: PairSource) -> None:
    def fit(epochs: int, **options: Any) -> Any:
        return train(learner, ListProblem(PAIRED, targets(PAIRED), 1, pairs=pairs), epochs=epochs, **options).state

    whole = fit(3)
    assert bits(whole) == bits(run(learner, PAIRED, 3, pairs=pairs).state)
    assert bits(whole) == bits(fit(2, start=(fit(1), 1)))
    assert bits(whole) != bits(run(learner, PAIRED, 3).state)


@pytest.mark.parametrize(
    ("loss", "source", "expected"),
    [
        ("log", "sampled", "oracle or hope-fear, or a loss of pairs"),
        ("bayes", "sampled", "oracle, or a loss"),
        ("bayes", "hope-fear", "oracle, or a loss"),
    ],
)
def test_pairs_that_change_nothing_for_a_loss_are_refused(loss: str, source: Any, expected: str) -> None:
    with pytest.raises(
        RecipeError, match=f"training.pairs.name: found '{source}', which changes nothing for .* {expected}"
    ):
        train(RDA(loss=loss), ListProblem(PAIRED, targets(PAIRED), 1, pairs=pairs.get(source)()), epochs=1)
