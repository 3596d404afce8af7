"""Pair sources: hope and fear, sampled pairs in turn, and how a training asks for them."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_pairs import Pairs
from strategies import bits, corpora, corpus_of, random_corpus, run, targets

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.learn.pairs import PairSource
from rerank.learn.pairs_kernel import draw, next_pair, pick_pair
from rerank.learn.rules.lm_perc import LMPerceptron
from rerank.learn.rules.pa import PassiveAggressive
from rerank.learn.rules.perceptron import Perceptron
from rerank.learn.rules.rda import RDA
from rerank.learn.trainer import train
from rerank.learn.workspace import ListArrays, view
from rerank.runs.checks import check_pairs

CORPUS = random_corpus(6)
SOURCES = st.one_of(
    st.just(PairSource()),
    st.sampled_from([0.25, 1.0, 4.0]).map(lambda tilt: PairSource("hope-fear", tilt=tilt)),
    st.builds(
        lambda draws, threshold: PairSource("sampled", draws=draws, threshold=threshold),
        st.integers(1, 12),
        st.sampled_from([0.0, 0.25, 0.5]),
    ),
)


def shown(data: ListArrays, i: int, scores: np.ndarray, any_ties: bool) -> list[tuple[int, int]]:
    """All pairs of list i in turn, by the kernels."""
    first, scores, found = int(data.lists[i]), scores.copy(), []
    star, rival = pick_pair(data, i, scores, any_ties)
    while rival >= 0:
        found.append((star - first, rival - first))
        star, rival = next_pair(data, i, scores, any_ties, star, rival)
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


@settings(max_examples=60)
@given(corpora(), st.sampled_from([0.25, 1.0, 4.0]), st.integers(0, 2**32 - 1))
def test_a_hope_is_better_than_a_fear_and_misses_the_margin(corpus: Corpus, tilt: float, seed: int) -> None:
    data = view(corpus, targets(corpus), PairSource("hope-fear", tilt=tilt).rule(1, 0))
    random = np.random.default_rng(seed)
    for i, (first, last) in enumerate(zip(corpus.lists[:-1], corpus.lists[1:], strict=True)):
        scores = random.integers(-4, 5, size=last - first) / 4
        star, rival = pick_pair(data, i, scores, False)
        if rival >= 0:
            better = corpus.gain[star] - corpus.gain[rival]
            assert better > 0.0
            assert scores[star - first] - scores[rival - first] < tilt * better
        else:
            most = (scores - tilt * corpus.gain[first:last]).max(initial=-np.inf)
            assert first == last or scores[star - first] - tilt * corpus.gain[star] == most


def test_draws_are_uniform_over_pairs_of_different_candidates() -> None:
    counted = Counter(draw(np.uint64(seed), number, 4) for seed in range(60) for number in range(200))
    assert set(counted) == {(x, y) for x in range(4) for y in range(4) if x != y}
    assert max(abs(count - 1000) for count in counted.values()) < 150  # five standard deviations


def test_draws_depend_on_seed_epoch_and_list_alone() -> None:
    """Not on the other lists, scores, or the order of visits."""
    lists: list[list[Any]] = [[({0: float(y)}, 0.0, y / 40) for y in range(40)] for _ in range(3)]
    source, corpus = PairSource("sampled", draws=3, threshold=0.0), corpus_of(lists)

    def pairs(corpus: Corpus, seed: int, epoch: int) -> list[list[tuple[int, int]]]:
        data = view(corpus, targets(corpus), source.rule(seed, epoch))
        return [shown(data, i, np.zeros(40), False) for i in range(corpus.list_count)]

    found = pairs(corpus, 1, 0)
    assert found[0] != found[1] != found[2]
    assert pairs(corpus.slice(0, 2), 1, 0) == found[:2]
    assert pairs(corpus, 1, 1) != found
    assert pairs(corpus, 2, 0) != found


def test_the_log_loss_takes_the_hope_for_its_oracle_and_bayes_risk_takes_no_notice() -> None:
    """The oracle is out of reach: with a small tilt its place is taken by the better of the two others."""
    lists: list[list[Any]] = [[({0: 1.0}, -9.0, 1.0), ({1: 1.0}, 0.0, 0.5), ({2: 1.0}, 0.0, 0.0)]]
    corpus, hopeful = corpus_of(lists), PairSource("hope-fear", tilt=1.0)
    usual, hoping = (run(RDA(loss="log"), corpus, 1, pairs=pairs) for pairs in (PairSource(), hopeful))
    assert np.argmax(usual.state.cells[:3]) == 0
    assert np.argmax(hoping.state.cells[:3]) == 1
    risks = [run(RDA(loss="bayes"), corpus, 1, pairs=pairs) for pairs in (PairSource(), hopeful)]
    assert bits(risks[0].state) == bits(risks[1].state)


@pytest.mark.parametrize("pairs", [PairSource("hope-fear", tilt=2.0), PairSource("sampled", draws=5)])
@pytest.mark.parametrize("learner", [Perceptron(), PassiveAggressive(top=2)])
def test_training_takes_pairs_of_its_seed_and_goes_on_with_those_of_later_epochs(
    learner: Perceptron, pairs: PairSource
) -> None:
    def fit(epochs: int, **options: Any) -> Any:
        return train(learner, CORPUS, targets(CORPUS), epochs=epochs, seed=1, pairs=pairs, **options).state

    whole = fit(3)
    assert bits(whole) == bits(run(learner, CORPUS, 3, pairs=pairs).state)
    assert bits(whole) == bits(fit(2, warm=(fit(1), 1)))
    assert bits(whole) != bits(run(learner, CORPUS, 3).state)


def test_a_learner_with_duals_of_oracles_refuses_other_pairs() -> None:
    with pytest.raises(RecipeError, match="expected oracle for the learner 'lm-perc'"):
        train(LMPerceptron(), CORPUS, targets(CORPUS), epochs=1, seed=1, pairs=PairSource("sampled"))


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
        RecipeError, match=f"found '{source}', which changes nothing for the loss {loss}: .* {expected}"
    ):
        train(RDA(loss=loss), CORPUS, targets(CORPUS), epochs=1, seed=1, pairs=PairSource(source))
    with pytest.raises(RecipeError, match=r"training.pairs.name: found"):
        check_pairs(RDA(loss=loss), {"name": source})


@pytest.mark.parametrize(
    ("parameters", "key", "expected"),
    [
        ({"name": "hope"}, "name", "expected one of oracle, hope-fear, sampled"),
        ({"tilt": 0.0}, "tilt", "expected a finite number above 0"),
        ({"tilt": float("nan")}, "tilt", "expected a finite number above 0"),
        ({"draws": 0}, "draws", "expected a whole number from 1"),
        ({"draws": 2.5}, "draws", "expected a whole number from 1"),
        ({"threshold": -0.1}, "threshold", "expected a finite number from 0"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], key: str, expected: str) -> None:
    with pytest.raises(RecipeError, match=expected) as caught:
        PairSource(**parameters)
    assert caught.value.key == key
