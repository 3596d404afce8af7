"""The second-order perceptron equals its dense twin, whose weights are A⁻¹Σz by direct solution."""

from typing import Any

import numpy as np
import pytest
import reference
from strategies import corpus_of, random_corpus, run, targets

from rerank.data.corpus import Corpus
from rerank.learn.rules.sop import SecondOrderPerceptron


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
@pytest.mark.parametrize("a", [0.1, 1.0, 10.0])
def test_weights_solve_the_normal_equations(covariance: Any, a: float) -> None:
    """(aI + Σ weight·zzᵀ)·w = Σ weight·z over the logged updates, or with the diagonal alone; variances are those of
    the inverse."""
    corpus, learner = random_corpus(4), SecondOrderPerceptron(a=a, covariance=covariance, base=0.0, base_rate=0.5)
    ran = run(learner, corpus, 3)
    rows = np.column_stack([reference.dense(corpus), 0.5 * corpus.base])
    star, rival = ran.log.arrays()["candidate"].reshape(-1, 2).T
    Z, omega = rows[star] - rows[rival], corpus.weight[ran.log.arrays()["lists"]]
    A = a * np.eye(corpus.width + 1) + Z.T @ (omega[:, None] * Z)
    A = np.diag(np.diag(A)) if covariance == "diagonal" else A
    inverse, last = np.linalg.inv(A), learner.last(ran.state)
    np.testing.assert_allclose(np.append(last.w, last.base / 0.5), inverse @ (omega @ Z), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(learner.variances(ran.state), np.diag(inverse)[:-1], rtol=1e-9)


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
