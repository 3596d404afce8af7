"""Runs whose every number is known: eleven learners on eleven data sets, cross-checked with other implementations.

exact_refs.csv has counts (updates, online mistakes, test errors), which are to be met exactly, and sums of weights and
variances, to 1e-6. Training takes the examples outside fold 0 in the order of the file, without a bias.
"""

import csv
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from small import SHARED, needs

from rerank.base.registry import build
from rerank.contrib.classification.sets import read_folds, read_svmlight
from rerank.data.labelled import Labelled
from rerank.learn.learner import Learner, learners
from rerank.metrics.metric import oracles

BINARY = SHARED / "binary"
pytestmark = needs("binary/exact_refs.csv")
DATASETS = [
    *(f"sentiment_{name}" for name in ("books", "electronics", "kitchen")),
    "news_comp",
    "news_talk",
    "sentence_polarity",
    *(f"digits_{pair}" for pair in ("09", "12", "34", "56", "78")),
]
ALGORITHMS: dict[str, dict[str, Any]] = {
    "perceptron": {"name": "perceptron"},
    "PA": {"name": "pa", "variant": "hard"},
    "PA-I": {"name": "pa", "variant": "1", "C": 0.01},
    "PA-II": {"name": "pa", "variant": "2", "C": 0.01},
    "CW-var-KL": {"name": "cw", "form": "var", "covariance": "kl", "phi": 1.0},
    "CW-var-L2": {"name": "cw", "form": "var", "covariance": "l2", "phi": 1.0},
    "CW-stdev-KL": {"name": "cw", "form": "stdev", "covariance": "kl", "phi": 1.0},
    "CW-stdev-L2": {"name": "cw", "form": "stdev", "covariance": "l2", "phi": 1.0},
    "AROW-diagKL": {"name": "arow", "r": 10.0, "covariance": "kl"},
    "AROW-diagL2": {"name": "arow", "r": 10.0, "covariance": "l2"},
    "SOP-diag": {"name": "sop", "a": 1.0, "covariance": "diagonal"},
}


@pytest.fixture(scope="module", params=DATASETS)
def split(request: pytest.FixtureRequest) -> tuple[str, Labelled, Labelled]:
    """Name, training and test examples of a data set."""
    data, folds = BINARY / f"{request.param}.svm.gz", BINARY / f"{request.param}.folds.txt"
    for path in (data, folds):
        if not path.exists():
            pytest.skip(f"{path} is missing")
    examples = read_svmlight(data)
    assert examples.classes == ("-1", "1")
    fold = read_folds(folds, examples.size)
    return request.param, examples.take(fold != 0), examples.take(fold == 0)


def expected_of(dataset: str, algorithm: str) -> dict[int, dict[str, str]]:
    """The rows of exact_refs.csv by the number of epochs."""
    with (BINARY / "exact_refs.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if (row["dataset"], row["algorithm"]) == (dataset, algorithm)]
    return {int(row["epochs"]): row for row in rows}


def sums_of(learner: Learner, state: Any, width: int) -> tuple[np.ndarray, float]:
    """The vector whose sums are known (of the second-order perceptron: Σz), and Σ of the variances − D (Σz²)."""
    if learner.name == "sop":
        return state.cells[:-1, 1], float(state.cells[:-1, 2].sum())
    variances = getattr(learner, "variances", None)
    return learner.last(state).w, float(variances(state).sum() - width) if variances else 0.0


def margins(learner: Learner, state: Any, test: Labelled, width: int) -> np.ndarray:
    """w·x of the test examples; the second-order perceptron counts the example in A."""
    X = csr_matrix((test.values.astype(float), test.columns, test.rows), shape=(test.size, width))
    if learner.name != "sop":
        return np.asarray(X @ learner.last(state).w)
    example = np.repeat(np.arange(test.size), np.diff(test.rows))
    total, squares = state.cells[X.indices, 1], state.cells[X.indices, 2]
    return np.bincount(example, total * X.data / (learner.a + squares + X.data**2), test.size)  # type: ignore[attr-defined]


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_reproduces_the_reference_run(split: tuple[str, Labelled, Labelled], algorithm: str) -> None:
    dataset, training, test = split
    corpus, expected = training.corpus(), expected_of(dataset, algorithm)
    assert sorted(expected) == [1, 3]
    learner = build(learners, ALGORITHMS[algorithm], "learner")
    targets, order = oracles(corpus), np.arange(corpus.list_count)
    state, updates, mistakes = learner.init(corpus.width), 0, 0
    for epoch in range(1, 4):
        stats = learner.epoch(corpus, targets, order, state)
        updates, mistakes = updates + stats.updates, mistakes + stats.mistakes
        if epoch not in expected:
            continue
        row = expected[epoch]
        wrong = (margins(learner, state, test, corpus.width) > 0) != (test.label == 1)
        found = (updates, mistakes, int(wrong.sum()), test.size)
        assert found == tuple(int(row[key]) for key in ("updates", "online_mistakes", "test_errors", "test_size"))
        w, excess = sums_of(learner, state, corpus.width)
        names = ("w_sum", "w_sqnorm", "w_max", "sigma_sum_minus_D")
        for name, value in zip(names, (w.sum(), w @ w, w.max(), excess), strict=True):
            assert value == pytest.approx(float(row[name]), rel=1e-6, abs=1e-6), name
