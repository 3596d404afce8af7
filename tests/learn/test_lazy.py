"""Lazy sums of predictors, where they could go wrong."""

import math

import numpy as np
import pytest

from rerank.learn.average import CELL, PredictorSums, last_active, summed

LEVEL = np.arange(6.0)  # τ_k = k
P, Q, F = np.arange(18.0).reshape(3, 6)
CELLS = np.array([(0.0, 1, P[1], Q[1])], CELL)  # up to predictor 1 of the sums
SUMS = PredictorSums(P, Q, F, LEVEL, CELLS, 0)


@pytest.mark.parametrize("slope", [0.0, 0.25])
def test_what_is_no_number_is_looked_up_nowhere(slope: float) -> None:
    assert math.isnan(summed(math.nan, slope, CELLS[0], 4, SUMS))


RISES = {
    "a line": np.arange(200.0),
    "a root": np.sqrt(np.arange(200.0)),
    "a curve": np.exp(0.1 * np.arange(200.0)),
    "steps": np.repeat(np.arange(20.0), 10),
    "a wall": np.repeat([1.0, 2.0, np.inf], [100, 98, 2]),
    "nothing": np.ones(200),
}


@pytest.mark.parametrize("rise", RISES)
def test_a_column_leaves_where_the_first_threshold_reaches_it(rise: str) -> None:
    level = RISES[rise]
    for first, last in ((0, 199), (0, 1), (37, 38), (37, 112), (5, 199)):
        for slope in (1.0, 0.3, 1e-310):
            sizes = {*(level[first:last:7] * slope), *(level[first:last:11] * slope * 1.001), 1e-300}
            for size in sizes - {0.0, np.inf}:
                left = [k for k in range(first + 1, last) if level[k] * slope >= size]
                assert last_active(size, slope, level, first, last) == (left[0] if left else last) - 1
