"""How numbers are written in reports, their spread, and the measures of a run."""

import doctest
import math

import pytest

from rerank.metrics.gain import Gain
from rerank.runs.report import table
from rerank.runs.report.table import (
    MEASURES,
    Spread,
    all_measures,
    duration,
    fixed,
    measures_of,
    number,
    own_measure,
    p_value,
    primary_of,
    signed,
)


def test_the_examples_in_the_docstrings():
    assert doctest.testmod(table).failed == 0


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0, "< .001"), (0.00099, "< .001"), (0.001, ".001"), (0.0496, ".050"), (0.9994, ".999"), (0.9996, "> .999")],
)
def test_p_values(p, text):
    assert p_value(p) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0.00 s"), (59.94, "59.9 s"), (59.96, "1 min 00 s"), (3599.6, "1 h 00 min")]
)
def test_durations_carry_over(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize("write", [fixed, signed, number, p_value, duration, table.count])
def test_what_is_not_a_number_is_a_dash(write):
    assert write(None) == write(math.nan) == write(math.inf) == "–"


def test_measures_are_those_that_are_there_in_the_order_of_columns():
    metrics = {"splits": {"test": {"base": {"exact_match": 0.1, "f1": 0.5, "sentences": 3.0}, "last": {"recall": 0.2}}}}
    assert [measure.key for measure in measures_of(metrics)] == ["recall", "f1", "exact_match"]
    assert primary_of(metrics).key == "f1"


def test_sample_standard_deviation_and_standard_error():
    mean, deviation, error, values = Spread.of([0.1, 0.2, 0.3, 0.4])
    assert (mean, values) == (pytest.approx(0.25), 4)
    assert deviation == pytest.approx((0.05 / 3) ** 0.5)
    assert error == pytest.approx(deviation / 2)


def test_higher_is_better_but_for_errors_and_gains_that_say_so():
    assert [each.key for each in MEASURES if each.lower_is_better is not False] == ["ter", "error", "wer", "cer"]
    assert all_measures(own_measure(Gain(lower=True)))[0].lower_is_better is True
