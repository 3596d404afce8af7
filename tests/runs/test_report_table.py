"""Results tables for terminals and pipes."""

import io
import re

import pytest
from rich.console import Console
from synthetic_report import make_metrics, make_run, make_runs

from rerank.runs.report.headline import results_on_terminal
from rerank.runs.report.list_tables import NO_BOUND, bound
from rerank.runs.report.table import plain_text


@pytest.fixture
def metrics():
    return make_metrics(make_runs(), 3)


def single(name="only", **more):
    run = make_run(name, 1, {"name": "perceptron"}, 0.8391, 0.8379, 1234, **more)
    return make_metrics([run], 0)


def lines(metrics, split="test"):
    """Cells of the plain text's lines, by first cell."""
    return plain_text(results_on_terminal(metrics, split, wide=True)).splitlines()


def test_numbers_of_several_seeds(metrics):
    line = next(line for line in lines(metrics) if "perceptron" in line)
    assert "perceptron (2 seeds)" in line
    assert "83.67 ±0.05" in line  # (83.63 + 83.70) / 2 = 83.665, 0.07 / √2 = 0.0495
    assert line.split()[-5:] == ["300,813", "better,", "p", "<", ".001"]


def test_plain_text_is_never_cut_or_coloured():
    text = plain_text(results_on_terminal(single("a rather long name of a run " * 6), "test"))
    assert "…" not in text
    assert "\x1b" not in text
    assert text.count("rather") == 6
    assert not any(line.endswith(" ") for line in text.splitlines())


def test_eighty_columns_are_enough(metrics):
    console = Console(file=io.StringIO(), width=80, color_system=None)
    with console.capture() as captured:
        console.print(results_on_terminal(metrics, "test"))
    text = captured.get()
    assert "…" not in text
    assert re.search(r"300,813 +better,", text)
    assert re.search(r"±0.00 +p < .001", text)
    assert all(len(line) <= 80 for line in text.splitlines())


def test_names_are_not_taken_for_markup():
    assert "[red]x[/red]" in plain_text(results_on_terminal(single("[red]x[/red]"), "test"))


def test_a_bound_that_does_not_apply_is_said_in_words() -> None:
    known = {"mistakes": 3, "lists": 9, "fixed_base": True}
    assert bound({"training": {"bound": known}}) == [("mistakes", "3"), ("lists", "9"), ("bound", NO_BOUND)]
    known |= {"fixed_base": False, "bound": 4.5}
    assert bound({"training": {"bound": known}}) == [("mistakes", "3"), ("lists", "9"), ("bound", "4.5")]
