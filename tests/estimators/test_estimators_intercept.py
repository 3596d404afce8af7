"""Where the intercept is kept: it makes no difference, and two classes need no copy of the rows for it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from rerank import estimators
from rerank.estimators import AROWClassifier, PassiveAggressiveClassifier, PerceptronClassifier, SGDClassifier, base
from rerank.estimators.base import OnlineClassifier

CLASSIFIERS = [each for name in estimators.__all__ if issubclass(each := getattr(estimators, name), OnlineClassifier)]
every = pytest.mark.parametrize("cls", CLASSIFIERS, ids=lambda cls: cls.__name__)


def problem(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Sparse rows, some of them equal, of k classes with noise."""
    random = np.random.default_rng(k)
    X = random.integers(-4, 5, (40, 6)) / 4.0 * (random.random((40, 6)) < 0.6)
    y = np.argmax(X[:, :k] + 0.3 * random.standard_normal((40, k)), axis=1)
    X[20:24], y[20:24] = X[:4], y[:4]
    return X, y


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("average", ["last", "average", "vote"])
@every
def test_the_intercept_is_a_last_column_of_ones(cls: Any, average: str, k: int) -> None:
    """Wherever it is kept: the visits are the same, and so is the learner."""
    X, y = problem(k)
    own = cls(average=average, epochs=2, random_state=0).fit(X, y)
    column = cls(average=average, epochs=2, random_state=0, fit_intercept=False).fit(
        np.column_stack([X, np.ones(len(X))]), y
    )
    found = np.column_stack([own.coef_, own.intercept_])
    np.testing.assert_allclose(found, column.coef_, rtol=1e-9 if cls is PassiveAggressiveClassifier else 0.0)


@pytest.mark.parametrize("cls", [PerceptronClassifier, PassiveAggressiveClassifier, AROWClassifier, SGDClassifier])
def test_sparse_rows_of_two_classes_are_not_copied(cls: Any) -> None:
    random = np.random.default_rng(0)
    n, width = 10_000, 80
    columns = np.tile(np.arange(width, dtype=np.int32), n)
    data = random.standard_normal(n * width, np.float32) + np.float32(5.0)
    X = sparse.csr_array((data, columns, np.arange(n + 1, dtype=np.int32) * width), shape=(n, 100))
    y = random.integers(0, 2, n)
    cls(epochs=1).fit(X[:10], [0, 1] * 5)
    tracemalloc.start()
    cls(epochs=1).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.3 * (data.nbytes + columns.nbytes)


@pytest.mark.parametrize("average", ["last", "average"])
@every
def test_classes_have_their_copies_of_a_few_rows_at_a_time(cls: Any, average: str, monkeypatch: Any) -> None:
    X, y = problem(4)
    fits = []
    for kept, copied in ((10**9, 1), (1, 1), (1, 100)):
        monkeypatch.setattr(base, "KEPT", kept)
        monkeypatch.setattr(base, "COPIED", copied)
        own = cls(average=average, epochs=3, random_state=0).fit(X, y, sample_weight=np.arange(len(y)) % 3)
        fits.append((own.coef_.tobytes(), own.intercept_.tobytes()))
    assert own.coef_.any()
    assert len(set(fits)) == 1


def test_more_classes_take_no_more_memory_for_rows(monkeypatch: Any) -> None:
    n, width, k = 10_000, 80, 10
    random = np.random.default_rng(0)
    columns = np.tile(np.arange(width, dtype=np.int32), n)
    data = random.standard_normal(n * width, np.float32)
    X = sparse.csr_array((data, columns, np.arange(n + 1, dtype=np.int32) * width), shape=(n, 100))
    y = random.integers(0, k, n)
    PerceptronClassifier(epochs=1).fit(X[:40], y[:40])
    monkeypatch.setattr(base, "KEPT", 10**4)
    monkeypatch.setattr(base, "COPIED", 10**4)
    tracemalloc.start()
    PerceptronClassifier(epochs=1).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.6 * (data.nbytes + columns.nbytes)
