"""Scores under a linear model, and the tie rule of predictions."""

import numpy as np
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import WIDTH, corpora

from rerank.data.corpus import Corpus
from rerank.learn.base import Weights
from rerank.learn.scoring import best, scores

VECTORS = st.lists(st.integers(-8, 8).map(lambda n: n / 4), min_size=WIDTH, max_size=WIDTH).map(np.array)


@settings(max_examples=60)
@given(corpora(), VECTORS, st.sampled_from([0.0, 0.5, 1.0]))
def test_scores_are_dense_products(corpus: Corpus, w: np.ndarray, base: float) -> None:
    found = scores(corpus, Weights(w, base))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, base * corpus.base + reference.dense(corpus) @ w)


@settings(max_examples=60)
@given(corpora(), VECTORS)
def test_best_sorts_by_score_base_score_and_index(corpus: Corpus, w: np.ndarray) -> None:
    f = scores(corpus, Weights(w, 0.0))
    expected = [
        min(range(first, last), key=lambda y: (-f[y], -corpus.base[y], y), default=-1)
        for first, last in zip(corpus.lists[:-1], corpus.lists[1:], strict=True)
    ]
    found = best(corpus, f)
    assert found.dtype == np.int64
    assert found.tolist() == expected
