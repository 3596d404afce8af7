"""CW, AROW, soft CW and normal herding equal their dense twins; scales, weights of lists and limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
from entries import find_entries
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import bits, corpora, corpus_of, orders, random_corpus, run, targets

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.learn.base import learners
from rerank.learn.rules.arow import AROW
from rerank.learn.rules.cw import CW
from rerank.learn.rules.gaussian_full import MOST_COLUMNS, FullGaussian
from rerank.learn.rules.nherd import NormalHerd
from rerank.learn.rules.scw import SoftCW
from rerank.learn.scoring import best, scores
from rerank.learn.voting.voting import vote

TWINS = find_entries()
RULES: dict[str, list[dict[str, Any]]] = {
    "cw": [{"form": form, "phi": phi} for form in ("var", "stdev") for phi in (0.0625, 0.25, 1.0)],
    "arow": [{"r": r} for r in (0.1, 1.0, 10.0)],
    "scw": [{"variant": v, "phi": phi, "C": C} for v in "12" for phi in (0.25, 1.0) for C in (0.5, 2.0)],
    "nherd": [{"C": C} for C in (0.1, 1.0, 4.0)],
}


@st.composite
def built(draw: st.DrawFn, normalize: bool) -> FullGaussian:
    """A learner with random parameters."""
    name = draw(st.sampled_from(list(RULES)))
    cls: Any = learners.get(name)
    covariances = [c for c in cls.covariances if not (normalize and c == "full")]
    return cls(  # type: ignore[no-any-return]
        covariance=draw(st.sampled_from(covariances)),
        normalize=normalize,
        top=draw(st.sampled_from([1, 1, 2, 5])),
        base=draw(st.sampled_from([0.0, 0.5, 1.0])),
        base_rate=draw(st.sampled_from([0.0, 0.5])),
        **draw(st.sampled_from(RULES[name])),
    )


def twin(learner: FullGaussian, corpus: Corpus, epochs: int, any_ties: bool = False) -> tuple[reference.Trace, Any]:
    """The trace and the covariance of every predictor."""
    sigmas: list[np.ndarray] = []
    parameters = {"any_ties": any_ties, "sigmas": sigmas, **vars(learner)}
    return TWINS[learner.name].twin(corpus, targets(corpus), orders(corpus, epochs), **parameters), sigmas


def well_conditioned(sigmas: list[np.ndarray]) -> bool:
    """No variance has collapsed: below that, rounding decides (see the tests of collapsing variances)."""
    return bool(min(np.linalg.eigvalsh(sigma).min() for sigma in sigmas) > 1e-5)


def has_equal_rivals(corpus: Corpus) -> bool:
    """Do two candidates of a list have the same features?"""
    phi = reference.dense(corpus)
    lists = [phi[first:last] for first, last in zip(corpus.lists[:-1], corpus.lists[1:], strict=True)]
    return any(len(np.unique(rows, axis=0)) < len(rows) for rows in lists)


@pytest.mark.parametrize("normalize", [False, True])
@settings(max_examples=80)
@given(data=st.data(), corpus=corpora(dyadic=False), any_ties=st.booleans(), epochs=st.integers(1, 2))
def test_equals_the_twin(normalize: bool, data: st.DataObject, corpus: Corpus, any_ties: bool, epochs: int) -> None:
    learner = data.draw(built(normalize))
    trace, sigmas = twin(learner, corpus, epochs, any_ties)
    assume(trace.gap > 1e-9)
    assume(well_conditioned(sigmas))
    ran = run(learner, corpus, epochs, any_ties=any_ties)
    assert (ran.per_epoch("mistakes"), ran.per_epoch("updates")) == (trace.mistakes, trace.updates)
    assert ran.per_epoch("skipped") == [0] * epochs
    if not has_equal_rivals(corpus):
        assert ran.per_epoch("loss") == pytest.approx(trace.loss, rel=1e-9, abs=1e-12)
    assert ran.log.arrays()["survived"].tolist() == trace.survived
    assert max((part.radius for parts in ran.stats for part in parts), default=0.0) == pytest.approx(trace.radius)
    last, average, (w, beta) = learner.last(ran.state), learner.average(ran.state), trace.average()
    np.testing.assert_allclose(last.w, trace.predictors[-1].w, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(average.w, w, rtol=1e-9, atol=1e-11)
    assert (last.base, average.base) == pytest.approx((trace.predictors[-1].beta, beta), rel=1e-9, abs=1e-11)
    np.testing.assert_allclose(learner.variances(ran.state), np.diag(sigmas[-1])[:-1], rtol=1e-9)


@settings(max_examples=60)
@given(st.data(), corpora(dyadic=False), corpora(dyadic=False))
def test_votes_equal_brute_force(data: st.DataObject, training: Corpus, corpus: Corpus) -> None:
    learner = data.draw(built(data.draw(st.booleans())))
    trace, sigmas = twin(learner, training, 1)
    assume(min(trace.gap, reference.voting_gap(trace, corpus)) > 1e-9)
    assume(well_conditioned(sigmas))
    found = vote(learner.votes(run(learner, training, 1).log, training), corpus)
    np.testing.assert_array_equal(found, reference.votes(trace, corpus))


def assert_replayed(learner: FullGaussian) -> None:
    """The replay ends with the bits of training, and its predictors vote as those of the twin."""
    training, corpus = random_corpus(1), random_corpus(2)
    ran, (trace, _) = run(learner, training, 3), twin(learner, training, 3)
    votes, w = learner.votes(ran.log, training), np.zeros(training.width)
    assert len(trace.deltas) > 40
    w[votes.columns] = votes.value
    np.testing.assert_array_equal(w, learner.last(ran.state).w)
    assert votes.beta[-1] == learner.last(ran.state).base
    np.testing.assert_array_equal(vote(votes, corpus), reference.votes(trace, corpus))


VOTERS = [
    AROW(top=3, base_rate=0.25),
    AROW(covariance="full", base_rate=0.25),
    CW(phi=0.5, covariance="exact", base_rate=0.25),
    SoftCW(variant="2", covariance="l2"),
    NormalHerd(C=0.25, covariance="exact", top=2),
    AROW(normalize=True),
    NormalHerd(C=0.25, normalize=True, top=2, base_rate=0.25),
]


@pytest.mark.parametrize("learner", VOTERS, ids=repr)
def test_votes_equal_brute_force_over_many_updates(learner: FullGaussian) -> None:
    assert_replayed(learner)


SCALE_FREE: list[Any] = [
    AROW(normalize=True),
    AROW(0.1, "l2", normalize=True, top=3),
    CW(normalize=True),
    CW(0.03, "stdev", "exact", normalize=True),
    SoftCW(normalize=True),
    NormalHerd(0.5, "exact", normalize=True),
]


@pytest.mark.parametrize("learner", SCALE_FREE, ids=repr)
def test_the_scale_of_a_column_means_nothing(learner: FullGaussian) -> None:
    """Columns multiplied by powers of two: the same bits but for the factor."""
    corpus = random_corpus(10)
    factors = 2.0 ** np.random.default_rng(3).integers(-12, 13, size=corpus.width)
    values = (corpus.values * factors[corpus.columns]).astype(np.float32)
    scaled = Corpus(**{name: getattr(corpus, name) for name in corpus.__dataclass_fields__} | {"values": values})
    one, two = run(learner, corpus, 3), run(learner, scaled, 3)
    for name in ("mistakes", "updates", "loss"):
        assert one.per_epoch(name) == two.per_epoch(name)
    for predictor in (learner.last, learner.average):
        a, b = predictor(one.state), predictor(two.state)
        np.testing.assert_array_equal(a.w, b.w * factors)
        np.testing.assert_array_equal(best(corpus, scores(corpus, a)), best(scaled, scores(scaled, b)))


def test_without_normalize_the_scale_of_a_column_matters() -> None:
    """The test above can fail."""
    corpus = random_corpus(10)
    values = corpus.values * np.where(corpus.columns % 2, np.float32(8.0), np.float32(1.0))
    scaled = Corpus(**{name: getattr(corpus, name) for name in corpus.__dataclass_fields__} | {"values": values})
    assert run(AROW(), corpus, 3).per_epoch("loss") != run(AROW(), scaled, 3).per_epoch("loss")


@pytest.mark.parametrize("learner", [AROW(normalize=True, base_rate=1.0), CW(normalize=True, base_rate=1.0)])
@pytest.mark.parametrize("size", [1e-200, 1e-30, 1e30])
def test_base_scores_of_any_size_give_numbers(learner: FullGaussian, size: float) -> None:
    lists = [[({0: 1.0}, -size * (i + 1), 1.0), ({1: 2.0}, size, 0.0)] for i in range(3)]
    ran = run(learner, corpus_of(lists), 2)
    last = learner.last(ran.state)
    assert np.isfinite(last.w).all()
    assert np.isfinite(last.base)


@pytest.mark.parametrize("name", list(RULES))
def test_a_full_matrix_has_its_limits(name: str) -> None:
    cls: Any = learners.get(name)
    for columns in (MOST_COLUMNS + 1, 10**9):
        with pytest.raises(RecipeError, match="diagonal covariance") as caught:
            cls(covariance="full").init(columns)
        assert caught.value.key == "covariance"
    with pytest.raises(RecipeError, match="full matrix") as caught:
        cls(covariance="full", normalize=True)
    assert caught.value.key == "normalize"
    assert cls(covariance="full").init(3).sigma.shape == (4, 4)
    assert cls(covariance="kl").init(MOST_COLUMNS + 1).g.shape == (MOST_COLUMNS + 2, 2)


@pytest.mark.parametrize("name", list(RULES))
def test_bad_counts_are_refused(name: str) -> None:
    for top in (0, -1, 1.0, True, "2"):
        with pytest.raises(RecipeError, match="whole number from 1") as caught:
            learners.get(name)(top=top)  # type: ignore[call-arg]
        assert caught.value.key == "top"


@pytest.mark.parametrize("learner", [*VOTERS, AROW(normalize=True, top=2)], ids=repr)
def test_parts_of_an_epoch_change_no_bit(learner: FullGaussian) -> None:
    corpus = random_corpus(5)
    whole, parts = run(learner, corpus, 3), run(learner, corpus, 3, points=7)
    assert bits(whole.state) == bits(parts.state)
    for name, array in whole.log.arrays().items():
        np.testing.assert_array_equal(array, parts.log.arrays()[name])


@pytest.mark.parametrize("learner", [AROW(2.0), NormalHerd(0.5), SoftCW(1.0, 0.1), AROW(2.0, "full")], ids=repr)
def test_a_list_weight_scales_r_or_c(learner: Any) -> None:
    """A list of weight 2 is one of weight 1 with r/2 or 2C."""
    lists: list[Any] = [[({0: 1.0, 1: 2.0}, 0.0, 1.0), ({2: 1.0}, 0.0, 0.0)]]
    other = {"r": learner.r / 2} if learner.name == "arow" else {"C": learner.C * 2}
    once, twice = corpus_of(lists, [1.0]), corpus_of(lists, [2.0])
    found = run(learner, twice, 1).state
    expected = run(type(learner)(**vars(learner) | other), once, 1).state
    assert bits(found) == bits(expected)


def test_a_list_of_weight_0_is_survived() -> None:
    lists: list[Any] = [[({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)]]
    for learner in (AROW(), CW(), SoftCW(), NormalHerd(), AROW(covariance="full")):
        ran = run(learner, corpus_of(lists, [0.0]), 1)
        assert (ran.per_epoch("mistakes"), ran.per_epoch("updates"), ran.log.updates) == ([1], [0], 0)
        assert not learner.last(ran.state).w.any()
