"""Pair sources: hope and fear, sampled pairs in turn, and how a training asks for them."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_pairs import Pairs
from strategies import bits, corpora, random_corpus, run, targets

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel, kernel_of
from rerank.learn.pairs import HopeFear, Oracle, PairSource, Sampled, draw, pairs, pick, pick_next
from rerank.learn.rules.additive import PassiveAggressive, Perceptron
from rerank.learn.rules.dual_averaging import RDA
from rerank.learn.train import ListProblem, train
from rerank.learn.workspace import ListArrays, view

CORPUS = random_corpus(6)
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
        return train(learner, ListProblem(CORPUS, targets(CORPUS), 1, pairs=pairs), epochs=epochs, **options).state

    whole = fit(3)
    assert bits(whole) == bits(run(learner, CORPUS, 3, pairs=pairs).state)
    assert bits(whole) == bits(fit(2, start=(fit(1), 1)))
    assert bits(whole) != bits(run(learner, CORPUS, 3).state)


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
        train(RDA(loss=loss), ListProblem(CORPUS, targets(CORPUS), 1, pairs=pairs.get(source)()), epochs=1)
