"""The metric of classification: counts of right and wrong, and the tests that use them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_classes import examples_of

import rerank.contrib.classification.results as classification
from rerank.metrics.metric import chosen_rows
from rerank.metrics.oracle import ListStatistics, corpus_oracle, oracle

METRIC = classification.Classification()


def rows(wrong: list[bool]) -> np.ndarray:
    return np.array(wrong, float)[:, np.newaxis]


@given(st.lists(st.booleans(), min_size=1, max_size=20))
def test_error_is_the_share_of_the_wrong(wrong) -> None:
    stats, reference = rows(wrong), np.ones((len(wrong), 1))
    report = METRIC.report(stats.sum(axis=0), reference.sum(axis=0))
    assert report["error"] == pytest.approx(np.mean(wrong))
    assert report["accuracy"] == pytest.approx(1 - np.mean(wrong))
    assert METRIC.gain(stats, reference).tolist() == [float(not w) for w in wrong]
    assert METRIC.perfect(stats, reference).tolist() == [not w for w in wrong]


def test_it_is_the_metric_of_a_classification_corpus() -> None:
    corpus = examples_of(np.eye(4), [0, 1, 1, 2]).corpus()
    best = oracle(corpus.lists, corpus.gain, corpus.base)
    assert METRIC.gain(corpus.stats, np.ones_like(corpus.stats)).tolist() == corpus.gain.tolist()
    assert not chosen_rows(corpus.stats, best).any()
    assert corpus_oracle(corpus, METRIC).tolist() == best.tolist()
    found = ListStatistics.of(corpus, METRIC)
    assert found.oracle["error"] == 0.0
    assert found.base["error"] == 0.75
    assert found.anti_oracle["error"] == 1.0
    assert found.random["error"] == pytest.approx(2 / 3)
