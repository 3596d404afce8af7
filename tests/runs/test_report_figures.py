"""Figures: well-formed SVG of their own, the same every time; colours, and the page in a browser."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from browser import assert_nothing_overflows, look, needs_browser
from synthetic_report import (
    make_full_report,
    make_grid,
    make_metrics,
    make_report,
    make_run,
    make_runs,
    make_trained,
    render,
    trained,
)

from rerank.runs.report.page import PALETTE, FigureLine, draw
from rerank.runs.report.table import primary_of
from rerank.runs.results import learning_figure, training_figure

SVG = "{http://www.w3.org/2000/svg}"
LEARNING = {
    "split": "test",
    "slope": 0.005,
    "last": {"test": "paired_t", "difference": 0.008, "p": 0.01},
    "points": [
        {"lists": lists, "dev": score + 0.002, "splits": {"test": score}}
        for lists, score in ((950, 0.82), (4753, 0.83), (9507, 0.838))
    ],
}


@pytest.fixture(scope="module")
def drawn():
    parts = make_report()
    without = [trained(run.name, [line["mistakes"] for line in run.history]) for run in parts["runs"]]
    points = FigureLine([0.5, 2], [0.5, 2], "points", [0.1, 0.3], joined=False)
    figures = {
        "mistakes": training_figure(without, parts["metrics"]),
        "dev": training_figure(parts["runs"], parts["metrics"]),
        "learning": learning_figure(LEARNING, primary_of(parts["metrics"]), "dev"),
        "points": draw("Points.", [points], "x", "y", level=(1.0, "level")),
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
    assert said.startswith("Score on dev after every epoch. voted RDA: 83.1")


def test_a_batch_learner_has_no_course_to_draw():
    alone = trained("maxent", [20], [0.9])
    assert training_figure([alone], {}) is None
    both = training_figure([alone, trained("a", [1, 1], [0.7, 0.8])], {"measure": "f1"})
    assert words(both.svg)[-2:] == ["maxent", "a"]


class TestNames:
    def test_the_chosen_run_comes_first_then_the_best_on_dev(self):
        runs = make_runs()
        figure = training_figure([make_trained(run) for run in runs], make_metrics(runs, 0))
        assert words(figure.svg)[-3:] == ["perceptron", "voted RDA", "AROW"]

    def test_the_palette_has_an_end(self):
        runs = [make_run(f"r{i:02}", 1, {"name": "x", "i": i}, 0.8 + i / 1000, 0.8, 10) for i in range(12)]
        shown = words(training_figure([make_trained(run) for run in runs], make_metrics(runs, 3)).svg)[-len(PALETTE) :]
        assert shown == ["r03", "r11", "r10", "r09", "r08", "r07", "r06"]


CSS = (Path(__file__).parents[2] / "rerank/runs/report/report.css").read_text()
TEXT = ("text", "muted", "accent", "wrong", "missed")
LINES = tuple(f"series-{k}" for k in range(1, 8))


def colours(dark: bool) -> dict[str, str]:
    """The page's colours."""
    light, _, rest = CSS.partition("@media (prefers-color-scheme: dark)")
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light.partition("*,")[0]))
    return found | (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", rest.partition("*,")[0])) if dark else {})


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a: str, b: str) -> float:
    """The contrast ratio of two colours by WCAG 2.2."""
    low, high = sorted([luminance(a), luminance(b)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_contrast(dark: bool) -> None:
    own = colours(dark)
    for ground in ("page", "panel", "accent-soft"):
        for name in TEXT:
            assert contrast(own[name], own[ground]) >= 4.5, f"{name} on {ground}"
    for name in LINES:
        assert contrast(own[name], own["page"]) >= 3, name


@needs_browser
def test_nothing_overflows(tmp_path: Path) -> None:
    parts = make_full_report()
    parts["runs"] += map(make_trained, make_grid())
    assert_nothing_overflows(look(render(**parts), tmp_path))
