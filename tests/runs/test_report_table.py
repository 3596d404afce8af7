"""Results tables for terminals and pipes."""

import io

import pytest
from rich.console import Console
from synthetic_report import make_metrics, make_run, make_runs

from rerank.runs.report.results import results_table
from rerank.runs.report.table import Bar, TextTable, plain_text


@pytest.fixture
def metrics():
    return make_metrics(make_runs(), 3)


def single(name="only", **more):
    run = make_run(name, 1, {"name": "perceptron"}, 0.8391, 0.8379, 1234, **more)
    return make_metrics([run], 0)


def lines(metrics, split="test"):
    """Cells of the plain text's lines, by first cell."""
    return plain_text(results_table(metrics, split).rich()).splitlines()


def test_numbers_of_several_seeds(metrics):
    line = next(line for line in lines(metrics) if "perceptron" in line)
    assert "perceptron (2 seeds)" in line
    assert "83.67 ±0.05" in line  # (83.63 + 83.70) / 2 = 83.665, 0.07 / √2 = 0.0495
    assert line.split()[-1] == "300,813"
    assert "better, p < .001" in line


def test_plain_text_is_never_cut_or_coloured():
    text = plain_text(results_table(single("a rather long name of a run " * 6), "test").rich())
    assert "…" not in text
    assert "\x1b" not in text
    assert text.count("rather") == 6
    assert not any(line.endswith(" ") for line in text.splitlines())


def test_eighty_columns_are_enough(metrics):
    console = Console(file=io.StringIO(), width=80, color_system=None)
    table = results_table(metrics, "test", narrow=True).rich(narrow=True)
    with console.capture() as captured:
        console.print(table)
    text = captured.get()
    assert "300,813" in text
    assert "better," in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_names_are_not_taken_for_markup():
    assert "[red]x[/red]" in plain_text(results_table(single("[red]x[/red]"), "test").rich())


def test_intervals_of_differences_are_bars(metrics):
    table = results_table(metrics, "test")
    low, high = metrics["significance"]["test"]["average_vs_base"]["interval"]
    assert table.bars[:2] == [None, None]
    bar = next(
        bar for row, bar in zip(table.rows, table.bars, strict=True) if row[:2] == ["voted RDA (2 seeds)", "average"]
    )
    assert bar.low < bar.point < bar.high
    assert (bar.high, bar.low <= low) == (high, True)


@pytest.mark.parametrize(
    ("from_zero", "places"), [(True, ["0.0%", "25.0%", "100.0%"]), (False, ["-33.3%", "0.0%", "100.0%"])]
)
def test_bars_have_one_scale(from_zero, places):
    table = TextTable("", ["a"], [["x"], ["y"]], bars=[Bar(1.0, 2.0), Bar(3.0, 4.0, 3.5)], from_zero=from_zero)
    assert [table.share(value) for value in (0.0, 1.0, 4.0)] == places


def test_predictors_with_the_same_figures_share_a_row_of_the_page():
    metrics = single(voted=False)
    systems, tests = metrics["splits"]["test"], metrics["significance"]["test"]
    run = metrics["runs"][0]
    systems["mbr"], systems["fuse"] = dict(systems["average"]), systems["average"] | {"f1": 0.9}
    tests["mbr_vs_base"] = tests["fuse_vs_base"] = tests["average_vs_base"]
    assert run["splits"]["test"] is systems
    rows = results_table(metrics | {"predictor": "mbr"}, "test")
    assert [row[1] for row in rows.rows] == ["", "", "average, mbr", "fuse"]
    assert rows.best == {(2, k) for k in range(1, 5)}
