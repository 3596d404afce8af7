"""Estimators: scikit-learn's checks, docs/estimators.md, where the intercept is kept, visits."""

import doctest
import math
import re
import tracemalloc
from collections import defaultdict
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
import pytest
from classifiers import CLASSIFIERS, FAMILIES, every_family, problem, weights
from hypothesis import given
from hypothesis import strategies as st
from pages import ROOT, text_of
from scipy import sparse
from site_tables import expanded
from sklearn.utils.estimator_checks import parametrize_with_checks
from small_classes import examples_of

import rerank.contrib.sklearn.classifiers as visits_module
from rerank.contrib.sklearn import ListRanker, PassiveAggressiveClassifier, PerceptronClassifier
from rerank.contrib.sklearn.classifiers import MAX_VISITS, SHARED_FIELDS, visits_of
from rerank.data.labelled import Labelled


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
