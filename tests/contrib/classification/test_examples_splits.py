"""Folds and held-out parts: every example once, every class with its share, the same for the same seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.base.errors import DataError
from rerank.contrib.classification.fitting import divisions_of, held_out
from rerank.contrib.classification.sets import draw_folds

labels = st.lists(st.integers(0, 3), min_size=2, max_size=60).map(np.array)


@given(labels, st.integers(2, 12), st.integers(0, 5))
def test_folds_share_out_every_class(label: np.ndarray, count: int, seed: int) -> None:
    if label.size < count:
        with pytest.raises(DataError):
            draw_folds(label, count, seed)
        return
    folds = draw_folds(label, count, seed)
    sizes = np.bincount(folds, minlength=count)
    assert sizes.size == count
    assert np.ptp(sizes) <= 1
    for each in np.unique(label):
        assert np.ptp(np.bincount(folds[label == each], minlength=count)) <= 1
    assert np.array_equal(folds, draw_folds(label, count, seed))


@given(labels, st.floats(0.05, 0.95), st.integers(0, 5))
def test_held_out_divides_the_examples(label: np.ndarray, share: float, seed: int) -> None:
    first, second = held_out(label, share, seed)
    assert first.size
    assert second.size
    assert np.array_equal(np.sort(np.concatenate([first, second])), np.arange(label.size))
    if label.size >= 40:
        assert abs(second.size - share * label.size) <= 4  # half an example a class, and rounding
    assert np.array_equal(second, held_out(label, share, seed)[1])


@pytest.mark.parametrize(("examples", "folds", "count"), [(20, 5, 5), (3, 5, 3), (2, 2, 2)])
def test_tuning_judges_every_example_once(examples: int, folds: int, count: int) -> None:
    found = divisions_of(np.arange(examples) % 2, None, folds, 1)
    assert len(found) == count
    assert sorted(np.concatenate([judges for _, judges in found]).tolist()) == list(range(examples))
    for trains, judges in found:
        assert sorted([*trains.tolist(), *judges.tolist()]) == list(range(examples))
