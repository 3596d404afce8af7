"""Figures over results: a measure over a parameter, and one run's measure over another's."""

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np

from rerank.recipes.figures import ExampleFigure
from rerank.runs.examples.results import Result
from rerank.runs.examples.tables import Cell
from rerank.runs.report.canvas import Plot, PlotLine
from rerank.runs.report.lines import FigureDrawing, FigureLine, captioned
from rerank.runs.report.scale import linear

NAMES = {
    "error": "test error (%)",
    "accuracy": "test accuracy (%)",
    "train_error": "training error (%)",
    "train_accuracy": "training accuracy (%)",
}

K = TypeVar("K", bound=Hashable)


def parameter_lines(settings: ExampleFigure, results: Sequence[Result]) -> dict[str, list[FigureLine]]:
    """By set (and noise): one line per run over the values of the grid's key ``settings.x``; level for runs without
    it."""
    panels: dict[str, list[FigureLine]] = {}
    key = str(settings.x)
    for panel, members in _grouped(results, lambda each: _place(each, results)).items():
        values = sorted({_coordinate(settings, each) for each in members if key in each.spec.point})
        for run, own in _grouped(members, lambda each: each.spec.run).items():
            points = _grouped(own, lambda each: _coordinate(settings, each) if key in each.spec.point else None)
            means = {x: [float(np.mean(e.values(settings.measure))) for e in found] for x, found in points.items()}
            xs = values if None in means else sorted(x for x in means if x is not None)
            found = [means.get(x, means.get(None, [])) for x in xs]
            spread = [100 * float(np.std(each, ddof=1)) if len(each) > 1 else 0.0 for each in found]
            line = FigureLine(run, xs, [100 * float(np.mean(each)) for each in found], spread)
            panels.setdefault(panel, []).append(line)
    return panels


def _coordinate(settings: ExampleFigure, result: Result) -> float:
    value = float(result.spec.point[str(settings.x)])
    return 1.0 / (result.size * value) if settings.inverse else value


def _place(result: Result, results: Sequence[Result]) -> str:
    noisy = len({each.noise for each in results}) > 1
    return f"{result.set}, noise {result.noise:g}" if noisy else result.set


def _grouped(members: Sequence[Result], key: Callable[[Result], K]) -> dict[K, list[Result]]:
    found: dict[K, list[Result]] = {}
    for each in members:
        found.setdefault(key(each), []).append(each)
    return found


def draw_scatter(settings: ExampleFigure, cells: Sequence[Cell]) -> FigureDrawing:
    """One point per set: the measure of run ``y`` over that of run ``x``, and the line where they are equal."""
    run_x, run_y = str(settings.x), str(settings.y)
    found = {(cell.set, cell.noise, cell.run): 100 * cell.spread(settings.measure).mean for cell in cells}
    places = dict.fromkeys((cell.set, cell.noise) for cell in cells)
    points = [
        (name, found[name, noise, run_x], found[name, noise, run_y])
        for name, noise in places
        if (name, noise, run_x) in found and (name, noise, run_y) in found
    ]
    both = linear([value for _, a, b in points for value in (a, b)] or [0.0, 100.0], margin=0.05)
    plot = Plot(
        x=both,
        y=both,
        x_label=f"{run_x}: {NAMES[settings.measure]}",
        y_label=f"{run_y}: {NAMES[settings.measure]}",
        lines=[PlotLine([a], [b], k, name, marks=True, joined=False) for k, (name, a, b) in enumerate(points, start=1)],
        diagonal=True,
    )
    caption = captioned(settings, f"{run_y} over {run_x}; above the line, {run_y} is higher")
    said = "; ".join(f"{name}: {a:.2f} and {b:.2f}" for name, a, b in points)
    every_point = [FigureLine(name, [a], [b]) for name, a, b in points]
    return FigureDrawing(
        settings.name, caption, plot.svg(f"{caption} {said}"), (plot.x_label, plot.y_label), every_point
    )
