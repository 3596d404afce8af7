"""Where the intercept is kept: it makes no difference, and rows of two classes need no copy for it."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from classifiers import every_family, problem, weights
from scipy import sparse

from rerank.contrib.sklearn import PassiveAggressiveClassifier, PerceptronClassifier


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
@pytest.mark.parametrize("average", ["last", "average", "vote"])
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


@pytest.mark.parametrize("average", ["average", "vote"])
def test_float64_is_read_as_float32(average: str) -> None:
    X, y = problem(2)
    fits = set()
    for rows in ((X / 3).astype(np.float32), X / 3, sparse.csr_array(X / 3)):
        own = PerceptronClassifier(average=average, epochs=2, random_state=0).fit(rows, y)
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


def test_stored_zeros_are_left_out() -> None:
    X, y = problem(2)
    stored = sparse.csr_array(X)
    stored.data[3] = 0.0
    without = stored.copy()
    without.eliminate_zeros()
    one, other = (weights(PerceptronClassifier(random_state=0).fit(rows, y)) for rows in (stored, without))
    assert one == other
    assert stored.nnz == without.nnz + 1


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
    model = PerceptronClassifier(random_state=0, average="vote").fit(twice, y[::-1])
    model.predict(twice)
    assert weights(model) == weights(PerceptronClassifier(random_state=0, average="vote").fit(X, y))
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
