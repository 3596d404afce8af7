"""The figures that recipes ask for: lines with their spread, and bars; as SVG, and as numbers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rerank.recipes.figures import FigureSettings
from rerank.runs.report.canvas import Plot, PlotLine, ends
from rerank.runs.report.scale import Scale, linear, logarithmic, short_count

MARKED = 25  # points of a line at most that get a marker each


@dataclass(frozen=True)
class FigureLine:
    """A line: y (and its spread, where there is one) over x. paper: the points of a paper, for the line before it."""

    name: str
    x: list[float]
    y: list[float]
    spread: list[float] = field(default_factory=list)
    paper: bool = False


@dataclass(frozen=True)
class FigureDrawing:
    """A finished figure: its name, caption, and SVG for a page; its axes and lines as numbers."""

    name: str
    caption: str
    svg: str
    axes: tuple[str, str]
    lines: Sequence[FigureLine] = ()

    def standalone(self) -> str:
        """The figure as a file of its own: with a size, and colours that need no page."""
        text = re.sub(r"var\(--[\w-]+, (#[0-9a-f]+)\)", r"\1", self.svg).replace("currentColor", "#202020")
        return text.replace("<svg ", '<svg width="800" style="background: #fff" ', 1) + "\n"

    def as_data(self) -> dict[str, Any]:
        """The entry in metrics.json."""
        lines = [{"name": line.name, "x": line.x, "y": line.y, "spread": line.spread} for line in self.lines]
        return {"name": self.name, "caption": self.caption, "x": self.axes[0], "y": self.axes[1], "lines": lines}


def captioned(figure: FigureSettings, text: str) -> str:
    """The caption of a figure: its title, what it shows, and what the paper says of its own."""
    return f"{figure.title or figure.name}: {text}.{f' The paper: {figure.paper}' if figure.paper else ''}"


def draw_lines(
    name: str, caption: str, lines: Sequence[FigureLine], x: str, y: str, *, logarithmic_x: bool = False
) -> FigureDrawing:
    """A plot of several lines with a legend; bands show the spread, where there is one."""
    across = [value for line in lines for value in line.x]
    whole = logarithmic(across, margin=0.03, text="{:.4g}".format) if logarithmic_x else linear(
        across, margin=0.02, text=short_count
    )  # fmt: skip
    drawn, series = list[PlotLine](), 0
    for line in lines:
        series += not line.paper
        marks = len(line.x) <= MARKED
        drawn.append(
            PlotLine(line.x, line.y, max(series, 1), line.name, marks=marks, spread=line.spread, faint=line.paper)
        )
    return _finished(name, caption, Plot(whole, _heights(lines), x, y, drawn), lines)


def draw_bars(name: str, caption: str, bars: Sequence[FigureLine], y: str) -> FigureDrawing:
    """A point with its spread for every one of ``bars``, lines of a single point at 1, 2, ..."""
    drawn = [
        PlotLine(bar.x, bar.y, series, bar.name, marks=True, joined=False, spread=bar.spread)
        for series, bar in enumerate(bars, start=1)
    ]
    places = replace(linear([0.5, len(bars) + 0.5]), ticks=())
    return _finished(name, caption, Plot(places, _heights(bars), "run", y, drawn), bars)


def _heights(lines: Sequence[FigureLine]) -> Scale:
    """A scale with room for all lines and their spread."""
    found = [
        value + sign * spread
        for line in lines
        for value, spread in zip(line.y, line.spread or [0.0] * len(line.y), strict=True)
        for sign in (-1, 1)
    ]
    large = max((abs(value) for value in found), default=0.0) >= 1e4
    return linear(found, margin=0.05, text=short_count if large else None)


def _finished(name: str, caption: str, plot: Plot, lines: Sequence[FigureLine]) -> FigureDrawing:
    """The drawing of a plot, with its lines in words and as numbers."""
    said = "; ".join(ends(line.name, line.x, line.y) for line in lines)
    return FigureDrawing(name, caption, plot.svg(f"{caption} {said}"), (plot.x_label, plot.y_label), lines)
