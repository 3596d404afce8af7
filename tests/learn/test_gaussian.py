"""Learners with a scale for every column: every update by its formula, limits, weights of lists, confidence."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import corpus_of, random_corpus, run, targets
from twins.gaussian import cw_alpha, excess, of_alpha

from rerank.base.errors import RecipeError
from rerank.kernels.compile import kernel
from rerank.learn.learner import Learner, learners
from rerank.learn.predictor import MAX_MATRIX_COLUMNS
from rerank.learn.rules.confidence import CW, SoftCW, exact_stdev, exact_var
from rerank.learn.rules.dual_averaging import FTRL, AdaptiveRDA
from rerank.learn.rules.gaussian import AROW, MIN_VARIANCE, Gaussian, NormalHerd
from rerank.learn.scoring import best, scores
from rerank.learn.train import ListProblem, train
from rerank.learn.workspace import gaussian_step

SCALE_FREE: list[Any] = [
    *(AdaptiveRDA(loss=loss, l1=l1, base_rate=0.2) for loss in ("hinge", "log") for l1 in (0.0, 0.01)),
    *(FTRL(loss=loss, l1=l1, l2=0.1, base_rate=0.2) for loss in ("hinge", "log") for l1 in (0.0, 0.01)),
]


@pytest.mark.parametrize("learner", SCALE_FREE, ids=repr)
def test_the_scale_of_a_column_means_nothing(learner: Any) -> None:
    """Columns multiplied by powers of two: the same weights but for the factor."""
    corpus = random_corpus(10)
    factors = 2.0 ** np.random.default_rng(3).integers(-20, 20, size=corpus.width)
    scaled = replace(corpus, values=(corpus.values * factors[corpus.columns]).astype(np.float32))
    one, two = run(learner, corpus, 3), run(learner, scaled, 3)
    for name in ("mistakes", "updates"):
        assert one.per_epoch(name) == two.per_epoch(name)
    assert one.per_epoch("loss") == pytest.approx(two.per_epoch("loss"), rel=1e-9, abs=0)
    for predictor in (learner.last, learner.average):
        a, b = predictor(one.state), predictor(two.state)
        np.testing.assert_allclose(a.w, b.w * factors, rtol=1e-8, atol=1e-12)
        np.testing.assert_array_equal(best(corpus, scores(corpus, a)), best(scaled, scores(scaled, b)))
    plain = replace(learner, normalized=False)
    one, two = run(plain, corpus, 3), run(plain, scaled, 3)
    assert not np.allclose(plain.last(one.state).w, plain.last(two.state).w * factors)


@pytest.mark.parametrize("name", ["cw", "arow", "scw", "nherd", "sop"])
def test_a_full_matrix_has_its_limits(name: str) -> None:
    cls: Any = learners.get(name)
    for columns in (MAX_MATRIX_COLUMNS + 1, 10**9):
        with pytest.raises(RecipeError, match="diagonal covariance") as caught:
            cls(covariance="full").init(columns)
        assert caught.value.key == "covariance"
    assert cls(covariance="full").init(3).matrix.shape == (4, 4)
    assert cls().init(MAX_MATRIX_COLUMNS + 1).matrix.size == 0


def test_a_list_of_weight_0_is_survived() -> None:
    lists: list[Any] = [[({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)]]
    for learner in (AROW(), CW(), SoftCW(), NormalHerd(), AROW(covariance="full")):
        ran = run(learner, corpus_of(lists, [0.0]), 1)
        assert (ran.per_epoch("mistakes"), ran.per_epoch("updates"), ran.log.updates) == ([1], [0], 0)
        assert not learner.last(ran.state).w.any()


NOISY: list[Any] = [
    AROW(r=1e-3, covariance="full"),
    AROW(r=1.0, covariance="full", base_rate=0.5),
    NormalHerd(C=0.01, covariance="full"),
    NormalHerd(C=100.0, covariance="full", top=3),
    SoftCW(phi=1.0, C=1.0, covariance="full"),
    SoftCW(phi=3.0, C=100.0, covariance="full"),
    CW(phi=0.05, form="stdev", covariance="full"),
    CW(phi=0.05, form="var", covariance="full"),
    CW(phi=1.0, form="stdev", covariance="full"),
    CW(phi=1.0, form="var", covariance="full"),
]


@pytest.mark.parametrize("learner", NOISY, ids=repr)
def test_a_full_covariance_stays_symmetric_and_positive_definite(learner: Gaussian) -> None:
    state = run(learner, random_corpus(9), 5).state
    sigma = state.matrix
    np.testing.assert_array_equal(learner.variances(state), np.diag(sigma)[:-1])
    np.testing.assert_allclose(sigma, sigma.T, rtol=0, atol=1e-14)
    assert np.linalg.eigvalsh((sigma + sigma.T) / 2).min() > 0.0
    assert np.diag(sigma).max() <= 1.0


@pytest.mark.parametrize(
    "learner",
    [
        CW(phi=3.0, form="stdev"),
        CW(phi=3.0, form="stdev", covariance="exact"),
        CW(phi=3.0, form="stdev", covariance="l2"),
        CW(phi=3.0),
    ],
)
def test_collapsing_variances_end_in_numbers(learner: CW, caplog: pytest.LogCaptureFixture) -> None:
    """Labels at random: variances fall doubly exponentially. Updates that they are too small for are left out, counted,
    and warned of once."""
    random = np.random.default_rng(1)
    lists = [
        [(dict(enumerate(random.normal(size=5).tolist())), 0.0, label), ({}, 0.0, 1.0 - label)]
        for label in random.integers(0, 2, size=600).astype(float)
    ]
    corpus = corpus_of(lists)
    with caplog.at_level(logging.WARNING, logger="rerank"):
        training = train(learner, ListProblem(corpus, targets(corpus), 1), epochs=3)
    for weights in training.weights.values():
        assert np.isfinite(weights.w).all()
    assert all(np.isfinite(line["loss"]) for line in training.history)
    assert (learner.variances(training.state) >= MIN_VARIANCE).all()
    assert training.skipped == sum(line["skipped"] for line in training.history)
    assert len(caplog.records) == (training.skipped > 0)
    if learner.form == "stdev" and learner.covariance == "kl":
        assert training.skipped > 0


def test_only_updates_that_were_due_are_skipped() -> None:
    """A margin far above what is asked for leaves nothing to skip, however small the variance."""
    corpus, learner = corpus_of([[({0: 1.0}, 0.0, 1.0), ({}, 0.0, 0.0)]], width=1), CW()
    for mean, skipped in ((-5.0, 1), (5.0, 0)):
        state = learner.init(1)
        state.cells[0, :2] = mean, MIN_VARIANCE
        stats = learner.epoch(corpus, targets(corpus), np.array([0]), state)
        assert (stats.skipped, stats.updates) == (skipped, 0)


DIGITS = 400  # the true forms cancel: v spans 86 orders of magnitude
PHIS = st.floats(-3.0, 1.0).map(lambda e: 10.0**e)
VARIANCES = st.floats(-80.0, 6.0).map(lambda e: 10.0**e)
SIZES = st.floats(-6.0, 6.0).map(lambda e: 10.0**e)
MARGINS = st.one_of(st.just(0.0), SIZES, SIZES.map(lambda x: -x))
FORMS = st.sampled_from(["var", "stdev"])

D = Decimal


@kernel
def compiled_rates(m: float, v: float, weight: float, q: Any) -> tuple[float, float, float, float]:
    """``gaussian_step`` in the arithmetic of kernels."""
    return gaussian_step(m, v, weight, q)


def judged(learner: Learner, m: float, v: float, weight: float = 1.0) -> tuple[float, tuple[float, float, float]]:
    """(loss, (α, β, ξ))."""
    loss, *rates = compiled_rates(m, v, weight, learner.settings(None))
    return loss, tuple(rates)


def lacking(form: str, m: Decimal, v: Decimal, phi: Decimal) -> Decimal:
    """How far m is below φv or φ√v."""
    return phi * (v if form == "var" else v.sqrt()) - m


def distance(form: str, m: float, v: float, phi: float) -> float:
    """``lacking``, relative to its terms: the digits that the decision itself leaves."""
    bound = phi * (v if form == "var" else v**0.5)
    return abs(bound - m) / max(bound, abs(m))


@contextmanager
def exactly() -> Iterator[None]:
    """Decimal numbers of so many digits."""
    with localcontext() as context:
        context.prec, context.Emin = DIGITS, -10000
        yield


def assert_sizes(
    form: str, found: tuple[float, tuple[float, float, float]], m: Any, v: Any, phi: Any, most: Any
) -> Any:
    """A loss and the step sizes are those of the formulas, to 1e-9, with α at most ``most``; α and β as decimals."""
    loss, rates = found
    assert np.isfinite([loss, *rates]).all()
    if lacking(form, m, v, phi) <= 0:
        assert loss == 0.0
        return None
    assert loss == pytest.approx(float(lacking(form, m, v, phi)), rel=1e-9)
    expected = of_alpha(form, min(most, cw_alpha(form, m, v, phi)), v, phi)
    assert rates == pytest.approx([*map(float, expected)], rel=1e-9)
    return expected


@settings(max_examples=300)
@given(FORMS, MARGINS, VARIANCES, PHIS)
def test_cw_meets_its_constraint_with_equality(form: Any, m: float, v: float, phi: float) -> None:
    """m⁺ = φv⁺ or φ√v⁺ for the exact α."""
    assume(distance(form, m, v, phi) > 1e-6)
    found = judged(CW(phi=phi, form=form), m, v)
    with exactly():
        M, V, P = D(m), D(v), D(phi)
        sizes = assert_sizes(form, found, M, V, P, D("Infinity"))
        if sizes is None:
            return
        after = V - sizes.beta * V * V
        side, digits = (after, "1e-300") if form == "var" else (after.sqrt(), "1e-150")
        assert abs(M + sizes.alpha * V - P * side) <= D(digits) * max(abs(M), P * (V if form == "var" else V.sqrt()))
    alpha, beta, _ = found[1]
    assert alpha > 0.0
    assert 0.0 <= beta * v <= 1.0 + 1e-12


@settings(max_examples=300)
@given(FORMS, MARGINS, st.lists(VARIANCES, min_size=1, max_size=5), PHIS)
def test_the_exact_diagonal_is_a_root(form: Any, m: float, parts: list[float], phi: float) -> None:
    """The sign of m⁺ − φv⁺ changes between α·(1 ± 1e-9); with φ√v⁺, between the m⁺ of ξ = αφ²/m⁺ times 1 ± 1e-12."""
    v = float(np.sum(parts))
    assume(distance(form, m, v, phi) > 1e-4)
    assume(phi * (v if form == "var" else np.sqrt(v)) > m)
    if form == "var":
        alpha = float(exact_var(m, v, phi, np.array(parts), len(parts)))
    else:
        alpha, xi = exact_stdev(m, v, phi, np.array(parts), len(parts))
    assert np.isfinite(alpha)
    assert alpha > 0.0
    with exactly():
        terms, M, P = np.array([D(s) for s in parts]), D(m), D(phi)
        lowest = max(D(0), -M / terms.sum())
        low, high = (D(alpha) * (1 + D(sign) * D("1e-9")) for sign in (-1, 1))
        assert low <= lowest or excess(form, low, M, terms, P) < 0
        assert high > lowest
        assert excess(form, high, M, terms, P) > 0
        if form == "stdev":
            ends = (D(alpha) * P * P / D(xi) * (1 + D(sign) * D("1e-12")) for sign in (-1, 1))
            low, high = ((after - M) / terms.sum() for after in ends)
            assert low <= lowest or excess(form, low, M, terms, P) < 0 < excess(form, high, M, terms, P)


def exact_run(rows: np.ndarray, phi: float, epochs: int) -> np.ndarray:
    """The mean of a CW with φ√v and the exact diagonal over z = ``rows`` in their order."""
    P, floor = D(phi) * D(phi), D(MIN_VARIANCE)
    mean, variance = (np.array([D(number)] * rows.shape[1]) for number in (0, 1))
    with exactly():
        for row in [np.array([D(float(x)) for x in row]) for row in rows] * epochs:
            m, parts = (mean * row).sum(), variance * row * row
            v = parts.sum()
            if m >= (P * v).sqrt() or v <= floor:
                continue
            low, high = max(D(0), m), (P * v).sqrt()
            while high - low > D("1e-30") * high:
                after = (low + high) / 2 if low else high / 1000
                above = excess("stdev", (after - m) / v, m, parts, D(phi)) > 0
                low, high = (low, after) if above else (after, high)
            alpha = (high - m) / v
            mean = mean + alpha * variance * row
            variance = np.maximum(floor, variance / (1 + alpha * P / high * parts))
    return mean.astype(float)


@pytest.mark.parametrize("phi", [1.0, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_exact_variances_that_collapse_leave_the_digits_of_the_weights(seed: int, phi: float) -> None:
    """Labels are wrong so often that variances collapse; m + αv then has no digit of m⁺."""
    random = np.random.default_rng(seed)
    x, truth = random.normal(size=(40, 6)).astype(np.float32), random.normal(size=6)
    rows = np.where((x @ truth > 0) ^ (random.random(40) < 0.4), 1, -1)[:, None] * x
    corpus = corpus_of([[(dict(enumerate(map(float, row))), 0.0, 1.0), ({}, 0.0, 0.0)] for row in rows], width=6)
    learner = CW(phi=phi, form="stdev", covariance="exact", base=0.0)
    state = learner.init(corpus.width)
    for _ in range(2):
        learner.epoch(corpus, targets(corpus), np.arange(corpus.list_count), state)
    expected = exact_run(rows, phi, 2)
    np.testing.assert_allclose(learner.last(state).w, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@settings(max_examples=200)
@given(MARGINS, VARIANCES, PHIS, SIZES, st.sampled_from([0.5, 1.0, 3.0]))
def test_soft_cw_is_its_closed_form(m: float, v: float, phi: float, C: float, weight: float) -> None:
    """Wang, Zhao & Hoi (2012), Proposition 1, with C·weight."""
    assume(distance("stdev", m, v, phi) > 1e-6)
    found = judged(SoftCW(phi=phi, C=C), m, v, weight)
    with exactly():
        assert_sizes("stdev", found, D(m), D(v), D(phi), D(C) * D(weight))
