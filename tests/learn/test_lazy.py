"""Lazy sums of predictors, where they could go wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rerank.learn.rules.lazy import Prefix, summed_weight

PREFIX = Prefix(*np.arange(18.0).reshape(3, 6), np.zeros(2, np.int64), 0)


@pytest.mark.parametrize("x", [0.0, 1.0, -3.0, 1e300])
@pytest.mark.parametrize("l1", [0.0, 0.25])
def test_sums_are_those_of_the_predictors_with_a_weight(x: float, l1: float) -> None:
    expected = 0.0
    for k in range(1, 4):
        if abs(x) > k * l1:
            expected += abs(x) * np.diff(PREFIX.P)[k] - l1 * np.diff(PREFIX.Q)[k]
    assert summed_weight(x, l1, 1, 3, PREFIX) == pytest.approx(-math.copysign(expected, x))


@pytest.mark.parametrize("l1", [0.0, 0.25])
def test_what_is_no_number_is_looked_up_nowhere(l1: float) -> None:
    assert math.isnan(summed_weight(math.nan, l1, 1, 3, PREFIX))
