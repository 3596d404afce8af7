"""Batches: what they cost where there are many columns, and that it does not matter who looks in between."""

import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from classifiers import every_family, weights
from scipy import sparse

from rerank.contrib.sklearn import RDAClassifier, SGDClassifier, TruncatedGradientClassifier

averages = pytest.mark.parametrize("average", ["last", "average", "vote"])


def batches(columns: int, count: int = 4, k: int = 3, rows: int = 8) -> list[tuple[Any, np.ndarray]]:
    """Sparse rows of a few columns out of many, and their classes."""
    random, found = np.random.default_rng(columns), []
    for _ in range(count):
        X = sparse.random_array((rows, columns), density=12 / columns, rng=random, format="csr", dtype=np.float32)
        found.append((X, random.integers(0, k, rows)))
    return found


@averages
@every_family
def test_a_batch_makes_nothing_of_the_size_of_the_weights(cls: Any, average: str, monkeypatch: Any) -> None:
    columns = 1 << 18
    first, *others = batches(columns)
    model = cls(average=average).partial_fit(*first, classes=range(3))
    with monkeypatch.context() as patched:
        patched.setattr(model._learner().__class__, "finish", None)  # it goes over all columns
        tracemalloc.start()
        for X, y in others:
            model.partial_fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < columns  # not even a byte per column
    assert model.coef_.any()


@averages
@every_family
def test_nobody_who_looks_changes_what_is_learnt(cls: Any, average: str) -> None:
    """A reader of the weights, a prediction, and a pickle from which another goes on."""
    unseen, seen = (cls(average=average, random_state=0, keep_state=True) for _ in range(2))
    for X, y in batches(1000):
        unseen.partial_fit(X, y, classes=range(3))
        seen.partial_fit(X, y, classes=range(3)).predict(X)
        shown, before = seen.coef_, seen.coef_.copy()
        seen = pickle.loads(pickle.dumps(seen))
        assert weights(seen)[0] == before.tobytes() == shown.tobytes()
    assert weights(seen) == weights(unseen)
    np.testing.assert_array_equal(seen.decision_function(X), unseen.decision_function(X))


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


def test_predictors_are_those_of_the_batch_whatever_is_set_afterwards() -> None:
    (X, y), *_ = batches(50)
    model, other = (SGDClassifier(random_state=0).partial_fit(X, y, classes=range(3)) for _ in range(2))
    assert weights(model.set_params(average="last", eta=7.0)) == weights(other)


def test_a_batch_that_overflows_is_refused() -> None:
    (X, y), other, *_ = batches(1000, k=2)
    model = SGDClassifier(eta=1e300, schedule="constant").partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"the weights overflowed in 2 passes; scale X or take smaller steps"):
        model.partial_fit(1e30 * other[0], other[1])
    with pytest.raises(ValueError, match="the weights overflowed"):
        model.predict(X)


def test_threads_predict_after_a_batch() -> None:
    (X, y), *_ = batches(1000)
    model = RDAClassifier().partial_fit(X, y, classes=range(3))
    expected = pickle.loads(pickle.dumps(model)).decision_function(X)
    model._conclude(None, model._visits(model._learner(), X, y, None)[0])  # forgotten again
    start = Barrier(4)

    def predict(_: int) -> np.ndarray:
        start.wait()
        return np.asarray(model.decision_function(X))

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(predict, range(4)):
            np.testing.assert_array_equal(found, expected)


def test_what_is_not_fitted_has_no_weights() -> None:
    model = SGDClassifier()
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "intercept_")
    assert pickle.loads(pickle.dumps(model)).get_params() == model.get_params()
