"""Figures: well-formed SVG of their own, the legend, the same every time."""

import re
import xml.etree.ElementTree as ET

import pytest
from synthetic_report import make_curve, make_metrics, make_report, make_run, make_runs, make_sweep

from rerank.runs.report.list_figures import (
    POINTS,
    Curve,
    LearningCurve,
    learning_figure,
    sweep_figure,
    sweeps_of,
    training_figures,
)
from rerank.runs.report.measures import primary_of
from rerank.runs.report.plot import PALETTE

SVG = "{http://www.w3.org/2000/svg}"
LEARNING = LearningCurve([950, 4753, 9507], {"dev": [0.83, 0.834, 0.84], "test": [0.82, 0.83, 0.838]}, "")


@pytest.fixture(scope="module")
def drawn():
    report = make_report()
    mistakes, weights, dev = training_figures(report.curves, report.metrics)
    figures = {
        "mistakes": mistakes,
        "weights": weights,
        "dev": dev,
        "learning": learning_figure(LEARNING, primary_of(report.metrics)),
        "sweep": sweep_figure(make_sweep().metrics),
    }
    return {name: figure.svg for name, figure in figures.items()}


def words(svg):
    return [text.text for text in ET.fromstring(svg).iter(f"{SVG}text")]


def paths(svg, colour):
    """The drawn lines of one series, as lists of points."""
    found = [path for path in ET.fromstring(svg).iter(f"{SVG}path") if f"stroke:var({colour}," in path.get("style", "")]
    lines = [re.findall(r"[ML](\S+?) ([\d.]+)", path.get("d")) for path in found if "fill:none" in path.get("style")]
    return [[(float(x), float(y)) for x, y in line] for line in lines]


def test_well_formed_without_ids_style_and_anything_outside(drawn):
    for svg in drawn.values():
        root = ET.fromstring(svg)
        assert not {element.get("id") for element in root.iter()} - {None}, "figures stand next to one another"
        assert root.get("role") == "img"
        assert set(re.findall(r"https?://[^\"' ]+", svg)) == {"http://www.w3.org/2000/svg"}
        assert "<style" not in svg


def test_everything_is_inside(drawn):
    for svg in drawn.values():
        root = ET.fromstring(svg)
        width, height = (float(number) for number in root.get("viewBox").split()[2:])
        for text in root.iter(f"{SVG}text"):
            x, y, half = float(text.get("x")), float(text.get("y")), 0.5 * 6.4 * len(text.text)
            middle = x + {"start": half, "middle": 0.0, "end": -half}[text.get("text-anchor")]
            reach = height if "rotate" in text.get("transform", "") else width
            assert middle - half > -half or "rotate" in text.get("transform", "")
            assert 2 * half <= reach
            assert 0 <= y <= height
        for path in root.iter(f"{SVG}path"):
            points = re.findall(r"[ML](\S+?) ([\d.-]+)", path.get("d"))
            assert all(0 <= float(x) <= width and 0 <= float(y) <= height for x, y in points)


def test_a_figure_says_in_words_what_it_shows(drawn):
    said = ET.fromstring(drawn["dev"]).get("aria-label")
    assert said.startswith("F (%) on dev over lists processed in training. voted RDA: 83.1")


def test_long_curves_are_thinned_to_their_ends():
    steps = list(range(10_001))
    curve = Curve("a", 1, steps, [step * step for step in steps], steps)
    line, _ = paths(training_figures([curve], {})[0].svg, "--series-1")
    assert 2 < len(line) <= POINTS
    assert line[0][0] < line[-1][0]
    assert line[0][1] > line[-1][1]


def test_a_batch_learner_has_no_course_to_draw():
    alone = Curve("maxent", 1, [300], [20], [15], [300], [0.9])
    assert training_figures([alone], {}) == []
    mistakes, _, dev = training_figures([alone, Curve("a", 1, [1, 2], [1, 1], [1, 1], [2], [0.8])], {"measure": "f1"})
    assert ("maxent" in words(mistakes.svg), "maxent" in words(dev.svg)) == (False, True)


class TestNames:
    def test_the_chosen_run_comes_first_then_the_best_on_dev(self):
        runs = make_runs()
        drawn = training_figures([make_curve(run) for run in runs], make_metrics(runs, 0))
        assert words(drawn[0].svg)[-3:] == ["perceptron", "voted RDA", "AROW"]

    @pytest.mark.parametrize(("names", "last"), [(len(PALETTE), "r00"), (len(PALETTE) + 5, "6 others")])
    def test_the_legend_has_an_end(self, names, last):
        runs = [make_run(f"r{i:02}", 1, {"name": "x", "i": i}, 0.8 + i / 1000, 0.8, 10) for i in range(names)]
        svg = training_figures([make_curve(run) for run in runs], make_metrics(runs, 3))[0].svg
        shown = words(svg)[-len(PALETTE) :]
        assert (shown[0], shown[-1]) == ("r03", last)


class TestSweep:
    def test_only_runs_that_differ_in_l1_alone_and_at_least_three(self):
        assert [len(family) for family in sweeps_of(make_sweep().metrics)] == [5]
        assert sweep_figure(make_report().metrics) is None
        two = [make_run(f"r{l1}", 1, {"name": "vrda", "l1": l1}, 0.8, 0.8, 10) for l1 in (0.1, 0.2)]
        other = make_run("r", 1, {"name": "vrda", "l1": 0.3, "eta": 2.0}, 0.8, 0.8, 10)
        assert sweeps_of({"runs": [*two, other]}) == []

    def test_dev_scores_of_training_do_where_dev_was_not_evaluated(self):
        metrics = make_sweep().metrics
        for run in metrics["runs"]:
            del run["splits"]["dev"]
        assert sweep_figure(metrics).caption.startswith("Score on test against")
        metrics["runs"] = [run | {"dev": run["splits"]["test"]["average"]["f1"]} for run in metrics["runs"]]
        assert sweep_figure(metrics).caption.startswith("Score on dev against")
        assert "base 82.32" in words(sweep_figure(metrics).svg)
