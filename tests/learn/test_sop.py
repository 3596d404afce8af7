"""The second-order perceptron equals its dense twin, whose weights are A⁻¹Σz by direct solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import bits, corpora, corpus_of, orders, random_corpus, run, targets
from twins.sop import sop as sop_twin

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.learn.rules.gaussian_full import MOST_COLUMNS
from rerank.learn.rules.perceptron import Perceptron
from rerank.learn.rules.sop import SecondOrderPerceptron
from rerank.learn.voting.voting import vote

DIAGONAL: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "covariance": st.just("diagonal"),
        "a": st.sampled_from([0.1, 1.0, 8.0]),
        "top": st.sampled_from([1, 1, 2, 5]),
        "base": st.sampled_from([0.0, 0.5, 1.0]),
        "base_rate": st.sampled_from([0.0, 0.5]),
    }
)
FULL = DIAGONAL.map(lambda parameters: parameters | {"covariance": "full"})


def twin(learner: SecondOrderPerceptron, corpus: Corpus, epochs: int, any_ties: bool = False) -> reference.Trace:
    return sop_twin(corpus, targets(corpus), orders(corpus, epochs), any_ties=any_ties, **vars(learner))


@pytest.mark.parametrize("parameters", [DIAGONAL, FULL], ids=["diagonal", "full"])
@settings(max_examples=80)
@given(data=st.data(), corpus=corpora(dyadic=False), any_ties=st.booleans(), epochs=st.integers(1, 2))
def test_equals_the_twin(parameters: Any, data: st.DataObject, corpus: Corpus, any_ties: bool, epochs: int) -> None:
    learner = SecondOrderPerceptron(**data.draw(parameters))
    trace = twin(learner, corpus, epochs, any_ties)
    assume(trace.gap > 1e-9)
    ran = run(learner, corpus, epochs, any_ties=any_ties)
    assert (ran.per_epoch("mistakes"), ran.per_epoch("updates")) == (trace.mistakes, trace.updates)
    assert ran.per_epoch("loss") == pytest.approx(trace.loss, rel=1e-10, abs=1e-12)
    assert ran.log.arrays()["survived"].tolist() == trace.survived
    assert max((part.radius for parts in ran.stats for part in parts), default=0.0) == pytest.approx(trace.radius)
    last, average, (w, beta) = learner.last(ran.state), learner.average(ran.state), trace.average()
    np.testing.assert_allclose(last.w, trace.predictors[-1].w, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(average.w, w, rtol=1e-9, atol=1e-11)
    assert (last.base, average.base) == pytest.approx((trace.predictors[-1].beta, beta), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("parameters", [DIAGONAL, FULL], ids=["diagonal", "full"])
@settings(max_examples=50)
@given(data=st.data(), training=corpora(dyadic=False), corpus=corpora(dyadic=False))
def test_votes_equal_brute_force(parameters: Any, data: st.DataObject, training: Corpus, corpus: Corpus) -> None:
    learner = SecondOrderPerceptron(**data.draw(parameters))
    trace = twin(learner, training, 2)
    assume(min(trace.gap, reference.voting_gap(trace, corpus)) > 1e-9)
    found = vote(learner.votes(run(learner, training, 2).log, training), corpus)
    np.testing.assert_array_equal(found, reference.votes(trace, corpus))


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_votes_equal_brute_force_over_many_updates(covariance: Any) -> None:
    training, corpus = random_corpus(1), random_corpus(2)
    learner = SecondOrderPerceptron(0.5, covariance, top=2, base=0.0, base_rate=0.25)
    ran, trace = run(learner, training, 4), twin(learner, training, 4)
    votes, w = learner.votes(ran.log, training), np.zeros(training.width)
    assert len(trace.deltas) > 80
    np.testing.assert_array_equal(vote(votes, corpus), reference.votes(trace, corpus))
    w[votes.columns] = votes.value
    np.testing.assert_array_equal(w, learner.last(ran.state).w)


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
@pytest.mark.parametrize("a", [0.1, 1.0, 10.0])
def test_weights_solve_the_normal_equations(covariance: Any, a: float) -> None:
    """(aI + Σ weight·zzᵀ)·w = Σ weight·z over the logged updates, or with the diagonal alone; variances are those of
    the inverse."""
    corpus, learner = random_corpus(4), SecondOrderPerceptron(a, covariance, base=0.0, base_rate=0.5)
    ran = run(learner, corpus, 3)
    rows = np.column_stack([reference.dense(corpus), 0.5 * corpus.base])
    star, rival = ran.log.arrays()["candidate"].reshape(-1, 2).T
    Z, omega = rows[star] - rows[rival], corpus.weight[ran.log.arrays()["lists"]]
    A = a * np.eye(corpus.width + 1) + Z.T @ (omega[:, None] * Z)
    A = np.diag(np.diag(A)) if covariance == "diagonal" else A
    inverse, last = np.linalg.inv(A), learner.last(ran.state)
    np.testing.assert_allclose(np.append(last.w, last.base / 0.5), inverse @ (omega @ Z), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(learner.variances(ran.state), np.diag(inverse)[:-1], rtol=1e-9)


def test_a_large_a_is_the_perceptron() -> None:
    """w·a tends to the perceptron's weights, so its mistakes are the same ones."""
    corpus = random_corpus(5)
    learner = SecondOrderPerceptron(a=2.0**40, base=0.0)
    ran, other = run(learner, corpus, 3), run(Perceptron(base=0.0), corpus, 3)
    assert ran.per_epoch("mistakes") == other.per_epoch("mistakes")
    np.testing.assert_allclose(learner.last(ran.state).w * learner.a, other.state.w, rtol=1e-6)


def one_column() -> Corpus:
    """z = 1 (m = 0 at first: a mistake), then z = 4 against a base score of −5."""
    return corpus_of([[({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)], [({0: 4.0}, 0.0, 1.0), ({}, 5.0, 0.0)]], width=1)


def weights_in_order(learner: SecondOrderPerceptron, corpus: Corpus) -> list[float]:
    state, found = learner.init(corpus.width), []
    for i in range(corpus.list_count):
        learner.epoch(corpus, targets(corpus), np.array([i]), state)
        found.append(float(learner.last(state).w[0]))
    return found


def test_the_current_example_counts_by_hand() -> None:
    """a = 1: w = 1/2 after z = 1; z = 4 has the margin 4·1/(2 + 16) − 5 < 0, so w = 5/18."""
    assert weights_in_order(SecondOrderPerceptron(), one_column()) == [0.5, 5.0 / 18.0]


def test_one_column_is_the_same_with_a_full_matrix() -> None:
    assert weights_in_order(SecondOrderPerceptron(covariance="full"), one_column()) == pytest.approx([0.5, 5.0 / 18.0])


def test_one_column_is_judged_the_same_with_a_full_matrix() -> None:
    """z = 4 against −1: 4·1/2 − 1 > 0 is right, 4·1/18 − 1 is not."""
    corpus = corpus_of([[({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)], [({0: 4.0}, 0.0, 1.0), ({}, 1.0, 0.0)]], width=1)
    diagonal, full = (SecondOrderPerceptron(covariance=covariance) for covariance in ("diagonal", "full"))  # type: ignore[arg-type]
    one, other = (learner.epoch(corpus, targets(corpus), np.arange(2), learner.init(1)) for learner in (diagonal, full))
    assert one[0].mistakes == 2
    assert other[0].mistakes == 2


def test_a_full_matrix_has_its_limits() -> None:
    with pytest.raises(RecipeError, match="diagonal covariance") as caught:
        SecondOrderPerceptron(covariance="full").init(MOST_COLUMNS + 1)
    assert caught.value.key == "covariance"
    for top in (0, -1, 1.0, True):
        with pytest.raises(RecipeError, match="whole number from 1"):
            SecondOrderPerceptron(top=top)  # type: ignore[arg-type]


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_parts_of_an_epoch_change_no_bit(covariance: Any) -> None:
    corpus, learner = random_corpus(5), SecondOrderPerceptron(covariance=covariance, top=2, base_rate=0.3)
    whole, parts = run(learner, corpus, 3), run(learner, corpus, 3, points=7)
    assert bits(whole.state) == bits(parts.state)
    for name, array in whole.log.arrays().items():
        np.testing.assert_array_equal(array, parts.log.arrays()[name])
