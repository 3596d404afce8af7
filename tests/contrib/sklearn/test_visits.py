"""The visits of a fit, beside plain Python."""

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_classes import examples_of

import rerank.contrib.sklearn.base as visits_module
from rerank.contrib.sklearn.base import MOST, visits_of
from rerank.data.labelled import Labelled

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
    rows: list[Row] = [((1.0, 0.0), 0, 1e6), ((0.0, 1.0), 1, 2.5), *[((1.0, 1.0), 0, 1.0)] * (MOST + 5)]
    for shuffle in (False, True):
        visits = visits_of(examples(rows), shuffle=shuffle)
        times = np.bincount(visits.sequence, minlength=len(rows))
        assert times[:2].tolist() == [MOST, 3]
        assert times[2:].sum() == MOST + 5
        np.testing.assert_allclose((times * visits.importance)[:2], [1e6, 2.5])
        assert set(visits.importance[visits.sequence]) == {1e6 / MOST, 2.5 / 3, 1.0}


def test_too_many_visits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits_module, "LIMIT", 2 * MOST)
    many = [((float(i), 0.0), i % 2, 1e7) for i in range(3)]
    with pytest.raises(ValueError, match=r"ask for 3e.03 visits per pass, more than 2e.03; divide them by a constant"):
        visits_of(examples(many), shuffle=False)
