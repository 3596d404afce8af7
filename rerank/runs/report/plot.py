"""Figures as SVG that can stand in a page, and as numbers: lines, points and bars over two scales, a legend below.

Every colour is a CSS variable with a fallback (``--series-1`` ... ``--series-7``, ``--rule``, ``--muted``; text in
``currentColor``), so that one figure serves light and dark pages; series differ in dashes and marks as well. These few
shapes need no library: one that draws everything takes longer to load than a small run takes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from markupsafe import Markup

from rerank.base.encoding import file_name, plain
from rerank.recipes.figures import FigureSettings
from rerank.runs.report.scale import Scale, linear, logarithmic, short_count
from rerank.storage.files import write_text
from rerank.storage.outputs import output_file

WIDTH, HEIGHT = 410.0, 270.0  # px; the page scales figures to its columns
FONT, SMALL = 12.0, 11.0  # px
LETTER = 0.58  # the width of a letter, rather too wide than too narrow, in font sizes
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#a8518a", "#a87600", "#3a8fc4", "#6b5bb0")  # after Okabe & Ito 2008
DASHES: tuple[str, ...] = ("", "7 3", "2 2", "9 3 2 3", "4 1.5", "12 4", "6 2 2 2 2 2")
MARKS = (  # paths around a point
    "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
    "m-3-3h6v6h-6z",
    "m0-4l3.7 6.4h-7.4z",
    "m0-4l4 4l-4 4l-4-4z",
    "m0 4l3.7-6.4h-7.4z",
    "m-3-3l6 6m0-6l-6 6",
    "m-4 0h8m-4-4v8",
)
MARKED = 25  # points of a line at most that get a marker each
MUTED, RULE = "var(--muted, #767676)", "var(--rule, #d0d0d0)"


def colour(series: int) -> str:
    """The colour of a series: from 1 on, again and again; 0 is that of all others."""
    if series == 0:
        return MUTED
    place = (series - 1) % len(PALETTE)
    return f"var(--series-{place + 1}, {PALETTE[place]})"


def dashes(series: int) -> str:
    """The stroke-dasharray of a series; empty for an unbroken line."""
    return DASHES[(series - 1) % len(DASHES)] if series else ""


@dataclass(frozen=True)
class FigureLine:
    """Points, joined or not.

    name: in the legend, if it has one. spread: one number per point, drawn as a band, or as a bar at a point that is
    not joined. series: colour, dashes and marks, from 1; 0 for all others. faint: thin, with hollow marks.
    """

    x: Sequence[float]
    y: Sequence[float]
    name: str = ""
    spread: Sequence[float] = ()
    series: int = 1
    marks: bool = False
    joined: bool = True
    faint: bool = False


@dataclass(frozen=True)
class Figure:
    """A finished figure: its name, its caption, and its SVG for a page; its axes and lines as numbers."""

    name: str
    caption: str
    svg: Markup
    axes: tuple[str, str]
    lines: Sequence[FigureLine] = ()

    def standalone(self) -> str:
        """The figure as a file of its own: with a size, and colours that need no page."""
        text = re.sub(r"var\(--[\w-]+, (#[0-9a-f]+)\)", r"\1", self.svg).replace("currentColor", "#202020")
        return text.replace("<svg ", '<svg width="800" style="background: #fff" ', 1) + "\n"

    def as_data(self) -> dict[str, Any]:
        """The entry in metrics.json."""
        lines = [
            {"name": line.name, "x": list(line.x), "y": list(line.y), "spread": list(line.spread)}
            for line in self.lines
        ]
        return {"name": self.name, "caption": self.caption, "x": self.axes[0], "y": self.axes[1], "lines": lines}


@dataclass(frozen=True)
class Plot:
    """A figure: what it shows, over two scales with their labels.

    level: a horizontal line, and its text. bars: (x, height) from the bottom, ``bar_width`` wide in units of x. notes:
    texts at points, shifted by so many px: (text, x, y, right, down). diagonal: draws the line where x is y.
    """

    x: Scale
    y: Scale
    x_label: str
    y_label: str
    lines: Sequence[FigureLine] = ()
    level: tuple[float, str] | None = None
    bars: Sequence[tuple[float, float]] = ()
    bar_width: float = 1.0
    notes: Sequence[tuple[str, float, float, float, float]] = ()
    diagonal: bool = False

    @cached_property
    def area(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of the inner rectangle in px."""
        widest = max((len(text) for _, text in self.y.ticks), default=1)
        last = max((len(text) for _, text in self.x.ticks[-1:]), default=0)
        return 26 + SMALL * LETTER * widest, 12.0, WIDTH - 6 - SMALL * LETTER * last / 2, HEIGHT - 44.0

    def at(self, x: float, y: float) -> tuple[float, float]:
        """A point in px."""
        left, top, right, bottom = self.area
        return left + self.x.place(x) * (right - left), bottom - self.y.place(y) * (bottom - top)

    def figure(self, name: str, caption: str, title: str | None = None) -> Figure:
        """The plot as a figure; ``title`` describes it to those who cannot see it: by default, caption and lines."""
        said = "; ".join(ends(line) for line in self.lines)
        title = f"{caption} {said}" if title is None else title
        return Figure(name, caption, Markup(self.svg(title)), (self.x_label, self.y_label), self.lines)

    def svg(self, title: str) -> str:
        """The plot as one SVG element without a size of its own."""
        legend, below = _legend([line for line in self.lines if line.name], self.area[0])
        parts = [_axes(self), *(_bar(self, *bar) for bar in self.bars)]
        if self.diagonal:
            ends = [max(self.x.low, self.y.low), min(self.x.high, self.y.high)]
            parts.append(_path([self.at(end, end) for end in ends], MUTED, "", 1))
        parts += [_line(self, line) for line in self.lines]
        if self.level is not None:
            left, _, right, _ = self.area
            height = self.at(self.x.low, self.level[0])[1]
            parts.append(_path([(left, height), (right, height)], MUTED, "4 3", 1.2))
            parts.append(_text(self.level[1], right, height - 4, anchor="end", size=SMALL))
        for text, x, y, across, down in self.notes:
            px, py = self.at(x, y)
            parts.append(_text(text, px + across, py + down, size=SMALL, anchor="end" if across < 0 else "start"))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" aria-label={quoteattr(plain(title))} '
            f'viewBox="0 0 {WIDTH:g} {HEIGHT + below:g}">{"".join(parts)}{legend}</svg>'
        )


def _text(text: str, x: float, y: float, *, anchor: str = "start", size: float = FONT, more: str = "") -> str:
    style = f"fill:currentColor;font-size:{size:g}px"
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="{style}"{more}>{escape(plain(text))}</text>'


def _path(points: Sequence[tuple[float, float]], stroke: str, dash: str = "", width: float = 1.6) -> str:
    steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    style = f"fill:none;stroke:{stroke};stroke-width:{width:g}" + (f";stroke-dasharray:{dash}" if dash else "")
    return f'<path d="M{steps}" style="{style}"/>'


def _axes(plot: Plot) -> str:
    left, top, right, bottom = plot.area
    parts = []
    for value, text in plot.y.ticks:
        height = plot.at(plot.x.low, value)[1]
        parts.append(_path([(left, height), (right, height)], RULE, width=0.7))
        parts.append(_text(text, left - 5, height + 0.35 * SMALL, anchor="end", size=SMALL))
    taken = -SMALL
    for value, text in plot.x.ticks:
        across, half = plot.at(value, plot.y.low)[0], SMALL * LETTER * len(text) / 2
        if across - half < taken + 4:
            continue
        taken = across + half
        parts.append(_path([(across, bottom), (across, bottom + 4)], MUTED, width=0.8))
        parts.append(_text(text, across, bottom + 16, anchor="middle", size=SMALL))
    parts.append(_path([(left, top), (left, bottom), (right, bottom)], MUTED, width=0.8))
    middle = (top + bottom) / 2
    parts.append(_text(plot.x_label, (left + right) / 2, bottom + 34, anchor="middle"))
    parts.append(_text(plot.y_label, 12, middle, anchor="middle", more=f' transform="rotate(-90 12 {middle:.1f})"'))
    return "".join(parts)


def _line(plot: Plot, line: FigureLine) -> str:
    points, parts = [plot.at(x, y) for x, y in zip(line.x, line.y, strict=True)], []
    if any(line.spread):
        high, low = (
            [plot.at(x, y + sign * own) for x, y, own in zip(line.x, line.y, line.spread, strict=True)]
            for sign in (1, -1)
        )
        if line.joined:
            steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in [*high, *low[::-1]])
            parts.append(f'<path d="M{steps}Z" style="fill:{colour(line.series)};fill-opacity:.13;stroke:none"/>')
        else:
            parts += [_path(list(pair), colour(line.series)) for pair in zip(low, high, strict=True)]
    if line.joined and points:
        width = 1.8 if line.series and not line.faint else 0.7
        parts.append(_path(points, colour(line.series), dashes(line.series), width))
    if line.marks and points:
        parts.append(_marks(points, line))
    return "".join(parts)


def _marks(points: Sequence[tuple[float, float]], line: FigureLine) -> str:
    mark = MARKS[(line.series - 1) % len(MARKS)]
    steps = "".join(f"M{x:.1f} {y:.1f}{mark}" for x, y in points)
    fill = "none" if line.faint else colour(line.series)
    return f'<path d="{steps}" style="fill:{fill};stroke:{colour(line.series)};stroke-width:1"/>'


def _bar(plot: Plot, x: float, height: float) -> str:
    (left, top), (right, _) = (plot.at(x + side * 0.425 * plot.bar_width, height) for side in (-1, 1))
    size = f'width="{right - left:.1f}" height="{max(0.0, plot.area[3] - top):.1f}"'
    return f'<rect x="{left:.1f}" y="{top:.1f}" {size} style="fill:{colour(1)}"/>'


def _legend(lines: Sequence[FigureLine], left: float) -> tuple[str, float]:
    """The legend below the axes, in as many rows as it needs, and its height."""
    parts, across, down = [], left, HEIGHT + 10
    for line in lines:
        width = 42 + SMALL * LETTER * len(line.name)
        if across > left and across + width > WIDTH:
            across, down = left, down + 18
        if line.joined:
            parts.append(_path([(across, down - 4), (across + 28, down - 4)], colour(line.series), dashes(line.series)))
        if line.marks:
            parts.append(_marks([(across + 14, down - 4)], line))
        parts.append(_text(line.name, across + 34, down, size=SMALL))
        across += width + 10
    return "".join(parts), down - HEIGHT + 8 if parts else 0.0


def ends(line: FigureLine) -> str:
    """A line in words, for those who cannot see it.

    >>> ends(FigureLine([0, 1, 2], [5, 6, 8.25], "a"))
    'a: 5 at 0 to 8.25 at 2'
    """
    points = list(dict.fromkeys([(line.x[0], line.y[0]), (line.x[-1], line.y[-1])])) if len(line.x) else []
    said = " to ".join(f"{y:,.5g} at {x:,.5g}" for x, y in points)
    return f"{line.name}: {said}" if said else line.name


def draw_lines(
    name: str, caption: str, lines: Sequence[FigureLine], x: str, y: str, *, logarithmic_x: bool = False
) -> Figure:
    """A plot of several lines with a legend; a faint line belongs to the one before it."""
    across = [value for line in lines for value in line.x]
    if logarithmic_x:
        scale = logarithmic(across, margin=0.03, text="{:.4g}".format)
    else:
        scale = linear(across, margin=0.02, text=short_count)
    drawn, series = list[FigureLine](), 0
    for line in lines:
        series += not line.faint
        drawn.append(replace(line, series=max(series, 1), marks=len(line.x) <= MARKED))
    return Plot(scale, _heights(lines), x, y, drawn).figure(name, caption)


def draw_bars(name: str, caption: str, bars: Sequence[FigureLine], y: str) -> Figure:
    """A point with its spread for every one of ``bars``, lines of a single point at 1, 2, ..."""
    drawn = [replace(bar, series=series, marks=True, joined=False) for series, bar in enumerate(bars, start=1)]
    places = replace(linear([0.5, len(bars) + 0.5]), ticks=())
    return Plot(places, _heights(bars), "run", y, drawn).figure(name, caption)


def _heights(lines: Sequence[FigureLine]) -> Scale:
    """A scale with room for all lines and their spread."""
    heights = [
        value + sign * spread
        for line in lines
        for value, spread in zip(line.y, line.spread or [0.0] * len(line.y), strict=True)
        for sign in (-1, 1)
    ]
    large = max((abs(value) for value in heights), default=0.0) >= 1e4
    return linear(heights, margin=0.05, text=short_count if large else None)


def captioned(figure: FigureSettings, text: str) -> str:
    """The caption of a figure: its title, its content, and what the paper says of its own."""
    return f"{figure.title or figure.name}: {text}.{f' The paper: {figure.paper}' if figure.paper else ''}"


def write_figures(directory: Path, figures: Sequence[Figure], metrics: dict[str, Any]) -> None:
    """Write every figure to a file of its own, and their numbers into ``metrics``."""
    for figure in figures:
        write_text(output_file(directory, "figures", f"{file_name(figure.name)}.svg"), figure.standalone())
    metrics["figures"] = [figure.as_data() for figure in figures]
