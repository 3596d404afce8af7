"""The figures that recipes ask for: lines with their spread, and bars; as SVG, and as numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rerank.recipes.figures import FigureSettings
from rerank.runs.report.canvas import DASHES, MARKERS, SERIES, new_axes, plain_counts, styled, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE = (6.4, 4.2)  # inches
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
        return text.replace("<svg ", '<svg width="800" ', 1) + "\n"

    def as_data(self) -> dict[str, Any]:
        """The entry in metrics.json."""
        lines = [{"name": line.name, "x": line.x, "y": line.y, "spread": line.spread} for line in self.lines]
        return {"name": self.name, "caption": self.caption, "x": self.axes[0], "y": self.axes[1], "lines": lines}


def captioned(figure: FigureSettings, text: str) -> str:
    """The caption of a figure: its title, what it shows, and what the paper says of its own."""
    return f"{figure.title or figure.name}: {text}.{f' The paper: {figure.paper}' if figure.paper else ''}"


def draw_lines(
    name: str, caption: str, lines: Sequence[FigureLine], x: str, y: str, *, logarithmic: bool = False
) -> FigureDrawing:
    """A plot of several lines with a legend; bands show the spread, where there is one."""
    with styled():
        figure, axes = new_axes(WIDE)
        number = -1
        for line in lines:
            number += not line.paper
            style: dict[str, Any] = {"color": SERIES[number % len(SERIES)], "dashes": DASHES[number % len(DASHES)]}
            if line.paper:
                style |= {"linewidth": 0.6, "markerfacecolor": "none", "markersize": 6}
            marker = MARKERS[number % len(MARKERS)] if len(line.x) <= MARKED else None
            axes.plot(line.x, line.y, label=line.name, **{"marker": marker, "markersize": 3.5} | style)
            if line.spread and any(line.spread):
                low, high = np.subtract(line.y, line.spread), np.add(line.y, line.spread)
                axes.fill_between(line.x, low, high, color=style["color"], alpha=0.12, linewidth=0)
        if logarithmic:
            axes.set_xscale("log")
        else:
            plain_counts(axes.xaxis)
        if max((value for line in lines for value in line.y), default=0.0) >= 1e4:
            plain_counts(axes.yaxis)
        return finished(figure, axes, name, caption, (x, y), lines)


def draw_bars(name: str, caption: str, bars: Sequence[FigureLine], y: str) -> FigureDrawing:
    """A point with its spread for every one of ``bars``, lines of a single point at 1, 2, ..."""
    with styled():
        figure, axes = new_axes(WIDE)
        for number, bar in enumerate(bars):
            style: dict[str, Any] = {"color": SERIES[number % len(SERIES)], "marker": MARKERS[number % len(MARKERS)]}
            axes.errorbar(bar.x, bar.y, yerr=bar.spread or None, capsize=5, markersize=5, label=bar.name, **style)
        axes.set_xticks([])
        axes.set_xlim(0.5, len(bars) + 0.5)
        return finished(figure, axes, name, caption, ("run", y), bars)


def finished(
    figure: Figure, axes: Axes, name: str, caption: str, labels: tuple[str, str], lines: Sequence[FigureLine] = ()
) -> FigureDrawing:
    """What was drawn, with the labels of its axes and a legend."""
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.legend(frameon=False, fontsize=8)
    plain = re.sub(r"[^\w-]", "-", name)
    return FigureDrawing(name, caption, to_svg(figure, plain, re.sub(r'[<>&"]', "", caption)), labels, lines)
