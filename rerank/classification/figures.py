"""Figures over runs: a measure over a parameter or over the examples seen, and one run's measure over another's."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rerank.classification.results import Result
from rerank.classification.tables import Cell
from rerank.recipes.example_recipe import FigureSettings
from rerank.runs.report.canvas import DASHES, MARKERS, MUTED, SERIES, new_axes, styled, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE, SQUARE = (6.4, 4.2), (4.6, 4.6)  # inches
NAMES = {
    "error": "test error (%)",
    "accuracy": "test accuracy (%)",
    "train_error": "training error (%)",
    "train_accuracy": "training accuracy (%)",
}

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class ErrorCurve:
    """A curve: y (and its spread, where there are several seeds) over x."""

    name: str
    x: list[float]
    y: list[float]
    spread: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class FigureDrawing:
    """A finished figure: its name, caption, and SVG for a page."""

    name: str
    caption: str
    svg: str

    def standalone(self) -> str:
        """The figure as a file of its own: with a size, and colours that need no page."""
        text = re.sub(r"var\(--[\w-]+, (#[0-9a-f]+)\)", r"\1", self.svg).replace("currentColor", "#202020")
        return text.replace("<svg ", '<svg width="800" ', 1) + "\n"


def parameter_lines(settings: FigureSettings, results: Sequence[Result]) -> dict[str, list[ErrorCurve]]:
    """By set (and noise): one line per run over the values of the grid's key ``settings.x``; level for runs without
    it."""
    panels: dict[str, list[ErrorCurve]] = {}
    key = str(settings.x)
    for panel, members in _grouped(results, lambda each: _place(each, results)).items():
        values = sorted({_coordinate(settings, each) for each in members if key in each.spec.point})
        for run, own in _grouped(members, lambda each: each.spec.run).items():
            points = _grouped(own, lambda each: _coordinate(settings, each) if key in each.spec.point else None)
            means = {x: [float(np.mean(e.values(settings.measure))) for e in found] for x, found in points.items()}
            xs = values if None in means else sorted(x for x in means if x is not None)
            found = [means.get(x, means.get(None, [])) for x in xs]
            spread = [100 * float(np.std(each, ddof=1)) if len(each) > 1 else 0.0 for each in found]
            line = ErrorCurve(run, xs, [100 * float(np.mean(each)) for each in found], spread)
            panels.setdefault(panel, []).append(line)
    return panels


def _coordinate(settings: FigureSettings, result: Result) -> float:
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


def draw_lines(
    name: str, title: str, lines: Sequence[ErrorCurve], x: str, y: str, *, logarithmic: bool = False
) -> FigureDrawing:
    """A plot of several curves with a legend; bars show the spread, where there is one."""
    with styled():
        figure, axes = new_axes(WIDE)
        for number, line in enumerate(lines):
            style: dict[str, Any] = {"color": SERIES[number % len(SERIES)], "dashes": DASHES[number % len(DASHES)]}
            axes.plot(line.x, line.y, label=line.name, marker=MARKERS[number % len(MARKERS)], markersize=3.5, **style)
            if line.spread and any(line.spread):
                low, high = np.subtract(line.y, line.spread), np.add(line.y, line.spread)
                axes.fill_between(line.x, low, high, color=style["color"], alpha=0.12, linewidth=0)
        if logarithmic:
            axes.set_xscale("log")
        else:
            axes.xaxis.set_major_formatter("{x:,.0f}")
        return _finished(figure, axes, name, title, x, y)


def draw_scatter(settings: FigureSettings, cells: Sequence[Cell]) -> FigureDrawing:
    """One point per set: the measure of run ``y`` over that of run ``x``, and the line where they are equal."""
    run_x, run_y = str(settings.x), str(settings.y)
    found = {(cell.set, cell.noise, cell.run): 100 * cell.spread(settings.measure).mean for cell in cells}
    places = dict.fromkeys((cell.set, cell.noise) for cell in cells)
    points = [
        (name, found[name, noise, run_x], found[name, noise, run_y])
        for name, noise in places
        if (name, noise, run_x) in found and (name, noise, run_y) in found
    ]
    with styled():
        figure, axes = new_axes(SQUARE)
        every = [value for _, a, b in points for value in (a, b)] or [0.0, 100.0]
        margin = 0.05 * (max(every) - min(every)) or 1.0
        low, high = min(every) - margin, max(every) + margin
        axes.plot([low, high], [low, high], color=MUTED, linewidth=0.8)
        for number, (name, a, b) in enumerate(points):
            style: dict[str, Any] = {"marker": MARKERS[number % len(MARKERS)], "color": SERIES[number % len(SERIES)]}
            axes.plot([a], [b], linestyle="none", markersize=5, label=name, **style)
        axes.set_xlim(low, high)
        axes.set_ylim(low, high)
        axes.set_aspect("equal")
        axes_of = [f"{run}: {NAMES[settings.measure]}" for run in (run_x, run_y)]
        title = settings.title or f"{run_y} over {run_x}; above the line, {run_y} is higher."
        return _finished(figure, axes, settings.name, title, *axes_of)


def _finished(figure: Figure, axes: Axes, name: str, title: str, x: str, y: str) -> FigureDrawing:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.legend(frameon=False, fontsize=8)
    plain = re.sub(r"[^\w-]", "-", name)
    return FigureDrawing(name, title, to_svg(figure, plain, re.sub(r'[<>&"]', "", title)))
