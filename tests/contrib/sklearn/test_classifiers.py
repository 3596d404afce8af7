"""Estimators: learners behind them, predictors, batches, weights, orders, input and errors; scikit-learn's checks."""

import doctest
import math
import pickle
import re
import tracemalloc
from collections import defaultdict
from dataclasses import fields, replace
from functools import partial
from inspect import cleandoc, signature
from typing import Any, get_type_hints

import numpy as np
import pytest
from classifiers import CLASSIFIERS, FAMILIES, every, every_family, problem, weights
from hypothesis import given
from hypothesis import strategies as st
from pages import ROOT, text_of
from scipy import sparse
from site_tables import expanded
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from small_classes import examples_of

import rerank.contrib.sklearn.classifiers as visits_module
from rerank.contrib.sklearn import (
    AROWClassifier,
    ListRanker,
    PassiveAggressiveClassifier,
    PerceptronClassifier,
    RDAClassifier,
    SGDClassifier,
    TruncatedGradientClassifier,
    WinnowClassifier,
)
from rerank.contrib.sklearn.classifiers import MAX_VISITS, SHARED_FIELDS, OnlineClassifier, visits_of
from rerank.data.labelled import Labelled
from rerank.learn.learner import Learner
from rerank.learn.train import ListProblem, train

VARIANTS = {cls.__name__: cls for cls in FAMILIES} | {
    "AROW, top 2": partial(AROWClassifier, top=2),
    "PA, top 2": partial(PassiveAggressiveClassifier, top=2, loss="cost"),
    "SGD, mistakes": partial(SGDClassifier, update="mistakes"),
}
every_variant = pytest.mark.parametrize("cls", list(VARIANTS.values()), ids=list(VARIANTS))
two_and_more = pytest.mark.parametrize("k", [2, 3])


# The learner behind a classifier


@every
def test_the_parameters_are_the_learners(cls: Any) -> None:
    """But for the base score and Winnow's positive weights; a classifier may add some, and have defaults of its own."""
    shown, kinds = signature(cls).parameters, get_type_hints(cls.learner)
    for field in fields(cls.learner):
        if hasattr(Learner, field.name):
            assert field.name not in shown
        else:
            expected = 0.01 if (cls.__name__, field.name) == ("NHERDClassifier", "C") else field.default
            assert (shown[field.name].default, shown[field.name].annotation) == (expected, kinds[field.name])
    assert set(cls().get_params()) == set(shown)
    assert all(each.kind == each.KEYWORD_ONLY for each in shown.values())
    told = cleandoc(cls.__doc__).partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    names = [name for line in re.findall(r"^([\w, ]+):", told, re.MULTILINE) for name in line.split(", ")]
    assert sorted(names) == sorted(shown)
    learner = cls()._learner()
    given = {name: value for name, value in cls().get_params().items() if name not in SHARED_FIELDS}
    assert {name: getattr(learner, name) for name in given if hasattr(learner, name)}.items() <= given.items()
    assert learner.base == 0.0


def test_a_classifier_without_a_learner_says_so() -> None:
    with pytest.raises(TypeError, match=r"OnlineClassifier has no learner; expected class .*learner="):
        OnlineClassifier(epochs=2)


@two_and_more
@every
def test_the_weights_are_the_learners(cls: type, k: int) -> None:
    X, y = problem(k)
    model = cls(epochs=3, shuffle=False).fit(X, y)
    corpus = examples_of(X, y).with_bias().corpus()
    oracle = corpus.lists[:-1] + y
    trained = train(model._learner(), ListProblem(corpus, oracle, 0, shuffle=False), epochs=3)
    expected = trained.weights[model.average].w.reshape(1 if k == 2 else k, 7)
    assert expected.any()
    found = np.column_stack([model.coef_, model.intercept_])
    rounding = 1e-9 if cls is PassiveAggressiveClassifier and k == 2 else 0.0  # its norms are summed otherwise
    np.testing.assert_allclose(found, expected, rtol=rounding)


@two_and_more
@pytest.mark.parametrize("average", ["last", "average"])
@every_variant
def test_batches_are_one_pass(cls: Any, average: str, k: int) -> None:
    X, y = problem(k)
    whole = cls(average=average, epochs=1, shuffle=False).fit(X, y)
    parts = cls(average=average, shuffle=False)
    for a, b in ((0, 7), (7, 8), (8, 40)):
        parts.partial_fit(sparse.csr_array(X[a:b]), y[a:b], classes=None if a else range(k))
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-12, atol=1e-12)  # sums of averages are cut differently
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), rtol=1e-12, atol=1e-12)
    assert parts.n_iter_ == 3


# Weights and orders


@pytest.mark.parametrize("average", ["last", "average"])
@every_family
def test_the_order_of_the_rows_does_not_matter(cls: type, average: str) -> None:
    X, y = problem(3)
    weight = np.random.default_rng(1).random(y.size)
    model = cls(average=average, epochs=2, random_state=1).fit(X, y, sample_weight=weight)
    order = np.random.default_rng(2).permutation(y.size)
    again = cls(average=average, epochs=2, random_state=1).fit(X[order], y[order], sample_weight=weight[order])
    assert weights(again) == weights(model)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_the_limit_of_a_dual_variable_grows_with_the_weight() -> None:
    X, y = np.array([[1.0, 0.0], [0.5, 1.0], [0.0, -1.0]]), np.array([1, 0, 1])
    model = WinnowClassifier(eta=1.0, C=0.01, average="last", shuffle=False, random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=[2.0, 0.5, 1.0])  # with so low a limit, all variables are at it
    repeated = clone(model).set_params(C=0.005).fit(X[[0, 0, 0, 0, 1, 2, 2]], y[[0, 0, 0, 0, 1, 2, 2]])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-12)
    np.testing.assert_allclose(weighted.coef_[0], 0.02 * np.sinh([0.02 - 0.0025, -0.005 - 0.01]), rtol=1e-12)


def test_seeds() -> None:
    X, y = problem(2)

    def fitted(seed: Any) -> tuple[bytes, bytes]:
        return weights(PerceptronClassifier(epochs=1, random_state=seed).fit(X, y))

    assert fitted(0) == fitted(0)
    assert len({fitted(seed) for seed in range(5)}) > 1
    assert fitted(np.random.RandomState(0)) == fitted(np.random.RandomState(0))
    generator = np.random.RandomState(0)
    assert len({fitted(generator) for _ in range(5)}) > 1


# Errors


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PerceptronClassifier(epochs=0), r"epochs=0; expected a whole number from 1"),
        (PerceptronClassifier(shuffle="no"), "shuffle='no'; expected true or false"),
        (PerceptronClassifier(average="mean"), "average='mean'; expected one of last, average"),
        (PerceptronClassifier(random_state="x"), "cannot be used to seed"),
        (RDAClassifier(eta=-1.0), "RDAClassifier: eta: found -1.0"),
        (PassiveAggressiveClassifier(variant="3"), "PassiveAggressiveClassifier: variant: found '3'"),
        (PerceptronClassifier(class_weight="even"), "class_weight='even'; expected a dict of class and weight, 'bal"),
        (PerceptronClassifier(class_weight={7: 1.0}), "class_weight names the class 7; expected classes among"),
        (PerceptronClassifier(class_weight={0: -1.0}), r"class_weight=\{0: -1.0\}; finite weights from 0"),
        (PerceptronClassifier(class_weight={0: 0.0}), "found one class, 1, with a weight above 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_parameters_are_named(model: Any, message: str) -> None:
    X, y = problem(2)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model, X, y: model.fit(X, np.ones_like(y)), "found one class"),
        (lambda model, X, y: model.fit(X, y, sample_weight=y), r"found one class, 1, with a weight above 0"),
        (lambda model, X, y: model.partial_fit(X, np.ones_like(y), classes=[1]), "at least two classes"),
        (lambda model, X, y: model.partial_fit(X, y), "needs all classes"),
        (lambda model, X, y: model.partial_fit(X, y + 1, classes=[0, 1]), "not among"),
        (lambda model, X, y: model.partial_fit(X[:1], y[:1], classes=[0, 1]).partial_fit(X, y, [0, 1, 2]), "not those"),
        (lambda model, X, y: model.fit(X, y, sample_weight=np.ones(39)), r"shape \(39,\); expected \(40,\)"),
        (lambda model, X, y: model.fit(X, y, sample_weight=np.full(40, -1.0)), "negative"),
        (lambda model, X, y: model.fit(X, y, sample_weight=np.full(40, np.nan)), "NaN"),
        (lambda model, X, y: model.fit(X, y, sample_weight=np.zeros(40)), "zero"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_classes_and_weights_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(PerceptronClassifier(), *problem(2))


# In company


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (AROWClassifier(covariance="kl"), {"covariance": "full"}),
        (TruncatedGradientClassifier(), {"theta": 1.0}),
        (PerceptronClassifier(average="last"), {"average": "average"}),
        (PerceptronClassifier(), {"fit_intercept": False}),
    ],
)
def test_partial_fit_refuses_parameters_that_need_another_state(first: Any, then: dict[str, Any]) -> None:
    X, y = np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 0.5]]), np.array([0, 1, 0])
    first = clone(first).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"partial_fit"):
        first.set_params(**then).partial_fit(X, y)


# Classes and passes


@every_family
def test_class_weights_are_sample_weights(cls: type) -> None:
    X, y = problem(3)
    expected = weights(cls(random_state=0, epochs=2).fit(X, y, sample_weight=np.array([2.0, 1.0, 0.5])[y]))
    assert weights(cls(random_state=0, epochs=2, class_weight={0: 2.0, 2: 0.5}).fit(X, y)) == expected
    given = {"classes": [0, 1, 2], "sample_weight": np.array([2.0, 1.0, 0.5])[y]}
    step = cls(random_state=0).partial_fit(X, y, **given)
    one = cls(random_state=0, class_weight={0: 2.0, 2: 0.5}).partial_fit(X, y, classes=[0, 1, 2])
    assert weights(one) == weights(step)


def test_balanced_classes_weigh_the_same() -> None:
    X, y = problem(3)
    own = np.where(y == 1, 2.0, 1.0)
    counts = np.bincount(y, own)
    balanced = own * (counts.sum() / (3 * counts))[y]
    one = AROWClassifier(random_state=0, class_weight="balanced").fit(X, y, sample_weight=own)
    assert weights(one) == weights(AROWClassifier(random_state=0).fit(X, y, sample_weight=balanced))
    assert weights(one) != weights(AROWClassifier(random_state=0).fit(X, y, sample_weight=own))


def test_a_batch_is_not_all_rows() -> None:
    with pytest.raises(ValueError, match="needs all rows at once; call fit"):
        PerceptronClassifier(class_weight="balanced").partial_fit(*problem(2), classes=[0, 1])


# Batches and pickles


def batches(columns: int, count: int = 4, k: int = 3, rows: int = 8) -> list[tuple[Any, np.ndarray]]:
    """Sparse rows of a few columns out of many, and their classes."""
    random, found = np.random.default_rng(columns), []
    for _ in range(count):
        X = sparse.random_array((rows, columns), density=12 / columns, rng=random, format="csr", dtype=np.float32)
        found.append((X, random.integers(0, k, rows)))
    return found


@pytest.mark.parametrize("cls", [RDAClassifier, TruncatedGradientClassifier])
def test_parameters_that_change_hold_from_then_on(cls: Any) -> None:
    """The average over visits, columns without a visit included, is that of the predictors."""
    rows = [(X[i : i + 1], y[i : i + 1]) for X, y in batches(300, count=3, k=2) for i in range(len(y))]
    average, last, seen = cls(average="average", shuffle=False), cls(average="last", shuffle=False), []
    for at, (X, y) in enumerate(rows):
        for model in (average, last):
            model.set_params(l1=0.001 if at < 10 else 0.01, eta=1.0 if at < 17 else 0.1)
            model.partial_fit(X, y, classes=[0, 1])
        seen.append(last.coef_)
    np.testing.assert_allclose(average.coef_, np.mean(seen, axis=0), rtol=1e-10, atol=1e-12)


def test_a_batch_that_overflows_is_refused() -> None:
    (X, y), other, *_ = batches(1000, k=2)
    model = SGDClassifier(eta=1e100, schedule="constant").partial_fit(X, y, classes=[0, 1])
    before = weights(model)
    with pytest.raises(ValueError, match=r"SGDClassifier: epoch 2: the .* left the range of"):
        model.set_params(eta=1e300).partial_fit(1e30 * other[0], other[1])
    assert (weights(model), model.n_iter_) == (before, 1)


@pytest.mark.parametrize("average", ["last", "average"])
@every_family
def test_a_pickle_goes_on(cls: Any, average: str) -> None:
    unseen, seen = (cls(average=average, random_state=0) for _ in range(2))
    for X, y in batches(1000):
        unseen.partial_fit(X, y, classes=range(3))
        seen = pickle.loads(pickle.dumps(seen.partial_fit(X, y, classes=range(3))))
        np.testing.assert_array_equal(seen.decision_function(X), unseen.decision_function(X))
        assert weights(seen) == weights(unseen)


def test_sparse_rows_of_two_classes_are_not_copied() -> None:
    n, width, random = 10_000, 80, np.random.default_rng(0)
    columns = np.tile(np.arange(width, dtype=np.int32), n)
    data = (random.standard_normal(n * width) + 5.0).astype(np.float32)
    X = sparse.csr_array((data, columns, np.arange(n + 1, dtype=np.int32) * width), shape=(n, 100))
    y, model = random.integers(0, 2, n), PerceptronClassifier(epochs=1)
    model.fit(X[:40], y[:40])  # compiled
    tracemalloc.start()
    model.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.3 * (data.nbytes + columns.nbytes)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("average", ["last", "average"])
@every_family
def test_the_intercept_is_a_last_column_of_ones(cls: Any, average: str, k: int) -> None:
    """Wherever it is kept: the visits are the same, and so is the learner."""
    X, y = problem(k)
    own = cls(average=average, epochs=2, random_state=0).fit(X, y)
    column = cls(average=average, epochs=2, random_state=0, fit_intercept=False).fit(
        np.column_stack([X, np.ones(len(X))]), y
    )
    found = np.column_stack([own.coef_, own.intercept_])
    np.testing.assert_allclose(found, column.coef_, rtol=1e-9 if cls is PassiveAggressiveClassifier else 0.0)


def test_float64_is_read_as_float32() -> None:
    X, y = problem(2)
    fits = set()
    for rows in ((X / 3).astype(np.float32), X / 3, sparse.csr_array(X / 3)):
        own = PerceptronClassifier(epochs=2, random_state=0).fit(rows, y)
        fits.add((*weights(own), own.decision_function(X.astype(np.float32)).tobytes()))
    assert len(fits) == 1


def test_damaged_rows_are_refused() -> None:
    """Falling offsets, signed or not, and columns that as int32 would be others."""
    X, y = problem(2)
    for dtype in (np.int32, np.uint32):
        damaged = sparse.csr_array(X)
        damaged.indptr[2] = damaged.nnz
        damaged.indptr = damaged.indptr.astype(dtype)
        with pytest.raises(ValueError, match=r"X is a damaged CSR matrix: .*X\.indptr, decrease"):
            PerceptronClassifier().fit(damaged, y)
    damaged = sparse.csr_array(X)
    damaged.indices = damaged.indices.astype(np.int64)
    damaged.indices[-1] += 2**32
    with pytest.raises(ValueError, match=r"damaged CSR matrix: columns from 0 to 4294967.*expected 0\.\.5"):
        PerceptronClassifier().fit(damaged, y)


def test_disordered_sparse_input_is_understood_and_left_alone() -> None:
    X, y = problem(2)
    given = sparse.csr_array(X)
    twice = sparse.csr_array(  # every entry in two halves, the columns of a row backwards, and a stored 0
        (
            np.concatenate([[0.0], np.repeat(given.data, 2)[::-1] / 2]),
            np.concatenate([[0], np.repeat(given.indices, 2)[::-1]]),
            np.concatenate([[0], 1 + 2 * np.cumsum(np.diff(given.indptr)[::-1])]),
        ),
        shape=X.shape,
    )
    before = [array.copy() for array in (twice.data, twice.indices, twice.indptr)]
    model = PerceptronClassifier(random_state=0).fit(twice, y[::-1])
    model.predict(twice)
    assert weights(model) == weights(PerceptronClassifier(random_state=0).fit(X, y))
    for array, copy in zip((twice.data, twice.indices, twice.indptr), before, strict=True):
        np.testing.assert_array_equal(array, copy)


@every_family
def test_values_below_the_range_of_features_are_refused(cls: type) -> None:
    """Rows that turn to 0 silently would teach nothing."""
    X, y = problem(2)
    for scale in (1e-50, 1e-320):
        with pytest.raises(ValueError, match=r"below the smallest 32-bit float.*scale X"):
            cls().fit(X * scale, y)
    X[0] = 0.0
    cls(epochs=1).fit(X, y)


ROWS = st.lists(
    st.tuples(
        st.tuples(*[st.sampled_from([0.0, 1.0, -1.0, 0.5])] * 2),  # few values, so that rows are equal
        st.integers(0, 2),
        st.sampled_from([0.0, 0.25, 1.0, 2.0, 2.5, 1e-300]),
    ),
    min_size=1,
    max_size=12,
)
Row = tuple[tuple[float, ...], int, float]


def examples(rows: list[Row]) -> Labelled:
    X = np.array([row for row, _, _ in rows])
    found = examples_of(X, [label for _, label, _ in rows], classes=[0, 1, 2])
    return replace(found, weight=np.array([weight for _, _, weight in rows]))


def content(rows: list[Row], visits: np.ndarray, importance: np.ndarray) -> list[tuple]:
    return [(*rows[i][:2], importance[i]) for i in visits]


@given(ROWS)
def test_shuffled_visits_join_equal_rows(rows: list[Row]) -> None:
    visits = visits_of(examples(rows), shuffle=True)
    sums: dict[tuple, float] = defaultdict(float)
    for row, label, weight in rows:
        sums[row, label] += weight
    counts: dict[tuple, int] = defaultdict(int)
    for row, label, importance in content(rows, visits.sequence, visits.importance):
        counts[row, label] += 1
        assert importance == pytest.approx(sums[row, label] / math.ceil(sums[row, label]))
    assert counts == {key: math.ceil(total) for key, total in sums.items() if total > 0}


def test_sums_of_weights_are_as_good_as_whole() -> None:
    rows: list[Row] = [((1.0, 0.0), 0, 0.1)] * 30  # 0.1 · 30 is not 3 in floating point
    visits = visits_of(examples(rows), shuffle=True)
    assert visits.sequence.size == 3
    assert visits.importance[visits.sequence[0]] == pytest.approx(1.0)


def test_large_weights_scale_the_step() -> None:
    """A weight of a million is no million of visits; equal rows are visited as often as before."""
    rows: list[Row] = [((1.0, 0.0), 0, 1e6), ((0.0, 1.0), 1, 2.5), *[((1.0, 1.0), 0, 1.0)] * (MAX_VISITS + 5)]
    for shuffle in (False, True):
        visits = visits_of(examples(rows), shuffle=shuffle)
        times = np.bincount(visits.sequence, minlength=len(rows))
        assert times[:2].tolist() == [MAX_VISITS, 3]
        assert times[2:].sum() == MAX_VISITS + 5
        np.testing.assert_allclose((times * visits.importance)[:2], [1e6, 2.5])
        assert set(visits.importance[visits.sequence]) == {1e6 / MAX_VISITS, 2.5 / 3, 1.0}


def test_too_many_visits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits_module, "MAX_PASS_VISITS", 2 * MAX_VISITS)
    many = [((float(i), 0.0), i % 2, 1e7) for i in range(3)]
    with pytest.raises(ValueError, match=r"ask for 3e.03 visits per pass, more than 2e.03; divide them by a constant"):
        visits_of(examples(many), shuffle=False)


PAGE = ROOT / "docs" / "estimators.md"
SITE = expanded(text_of(PAGE), site=True)


@parametrize_with_checks([cls() for cls in FAMILIES])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    """Without exceptions for defaults."""
    check(estimator)


def test_the_examples_are_true() -> None:
    failed, run = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert run > 20
    assert failed == 0


@pytest.mark.parametrize("cls", CLASSIFIERS, ids=lambda cls: cls.__name__)
def test_every_parameter_is_in_the_table(cls: type) -> None:
    row = re.search(rf"^\| `{cls.__name__}` \|.*$", SITE, re.MULTILINE)
    assert row is not None
    own = [parameter for parameter in signature(cls).parameters if parameter not in SHARED_FIELDS]
    assert re.findall(r"`(\w+)`", row[0].rpartition("|")[0].rpartition("|")[2]) == own


@pytest.mark.parametrize("parameter", [*SHARED_FIELDS, *signature(ListRanker).parameters])
def test_every_parameter_has_a_meaning(parameter: str) -> None:
    rows = [row.split(" | ") for row in SITE.splitlines() if row.startswith(f"| `{parameter}` |")]
    assert rows
    assert all(len(meaning) > len(" |") for *_, meaning in rows)
