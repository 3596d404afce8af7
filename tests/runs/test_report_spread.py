"""The spread of numbers over seeds and folds."""

import pytest

from rerank.runs.report.spread import Spread


def test_sample_standard_deviation_and_standard_error():
    mean, deviation, error, values = Spread.of([0.1, 0.2, 0.3, 0.4])
    assert (mean, values) == (pytest.approx(0.25), 4)
    assert deviation == pytest.approx((0.05 / 3) ** 0.5)
    assert error == pytest.approx(deviation / 2)


def test_one_value_has_no_deviation():
    assert Spread.of([0.5]) == (0.5, None, None, 1)


def test_missing_values_do_not_count():
    assert Spread.known([1.0, 3.0, None]) == Spread.of([1.0, 3.0])
    assert Spread.known([None]) is None
