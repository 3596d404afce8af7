"""Figures as SVG that can stand in a page, and as numbers: lines and points over two scales, a legend below.

Every colour is a CSS variable with a fallback (``--series-1`` ... ``--series-7``, ``--rule``, ``--muted``; text in
``currentColor``), so that one figure serves light and dark pages; series differ in dashes and marks as well. These few
shapes need no library: one that draws everything takes longer to load than a small run takes.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from markupsafe import Markup

from rerank.base.encoding import file_name, plain
from rerank.recipes.sections import FigureSettings
from rerank.storage.files import write_text
from rerank.storage.outputs import output_file

WIDTH, HEIGHT = 410.0, 270.0  # px; the page scales figures to its columns
FONT, SMALL = 12.0, 11.0  # px
LETTER = 0.58  # the width of a letter, rather too wide than too narrow, in font sizes
PALETTE = "#0072b2", "#d55e00", "#009e73", "#a8518a", "#a87600", "#3a8fc4", "#6b5bb0"  # after Okabe & Ito 2008
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
STEPS = 1, 2, 5  # between ticks, times a power of ten
TICKS = 6  # steps between them at most
LARGE = 1e4  # from here on numbers on an axis are short
NEXT = -1  # the series after that of the line before it


@dataclass(frozen=True)
class Scale:
    """An axis from ``low`` to ``high``; ``ticks`` are the numbers that are written, with their texts."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def place(self, value: float) -> float:
        """The place of ``value``: 0 at the low end, 1 at the high one."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def short_count(value: float) -> str:
    """A count as an axis has room for it.

    >>> short_count(0), short_count(950), short_count(12500), short_count(3_000_000)
    ('0', '950', '12.5k', '3M')
    """
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:.4g}{letter}"
    return f"{value:.4g}"


def linear(values: Iterable[float], *, zero: bool = False, margin: float = 0.0, integer: bool = False) -> Scale:
    """A scale that has room for ``values``, from 0 if ``zero``; ticks are at round numbers, or ``integer`` ones alone.

    margin: what is left free at both ends, as a share of the range.
    """
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    low = min(low, 0.0) if zero else low
    if high == low:
        low, high = (low, low + 1.0) if zero else (low - 0.5, high + 0.5)
    room = margin * (high - low)
    low, high = low if zero else low - room, high + room
    least = (high - low) / TICKS * (1 - 1e-9)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(power * factor for factor in (*STEPS, 10) if power * factor >= max(least, float(integer)))
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    places = [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    large = max(abs(low), abs(high)) >= LARGE
    texts = [short_count(place) if large else f"{place:,.{digits}f}" for place in places]
    return Scale(low, high, tuple((place, text.replace("-", "−")) for place, text in zip(places, texts, strict=True)))


def logarithmic(values: Iterable[float], *, margin: float = 0.0) -> Scale:
    """A logarithmic scale that has room for ``values``, all above 0; ticks at powers of ten, and between them if there
    are few."""
    known = [value for value in values if value > 0] or [1.0, 10.0]
    low, high = min(known), max(known)
    if high < 1.5 * low:
        low, high = low / 1.5, high * 1.5
    room = (high / low) ** margin
    low, high = low / room, high * room
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    inner = STEPS if high / low < 1000 else (1,)
    every = max(1, len(powers) // 6)
    found = [step * 10.0**power for power in powers if power % every == 0 for step in inner]
    return Scale(low, high, tuple((at, short_count(at)) for at in found if low <= at <= high), log=True)


@dataclass(frozen=True)
class FigureLine:
    """Points, joined or not.

    name: in the legend, if it has one. spread: one number per point, drawn as a band or, with ``bars`` and where points
    are not joined, as a bar at each. series: colour, dashes and marks, from 1; 0 for all others; NEXT is for a faint
    line, thin with hollow marks, that of the line before it. marks: by default where points are few.
    """

    x: Sequence[float]
    y: Sequence[float]
    name: str = ""
    spread: Sequence[float] = ()
    series: int = NEXT
    marks: bool | None = None
    joined: bool = True
    faint: bool = False
    bars: bool = False

    @property
    def colour(self) -> str:
        """The colours come again and again."""
        place = (self.series - 1) % len(PALETTE)
        return f"var(--series-{place + 1}, {PALETTE[place]})" if self.series else MUTED

    @property
    def dashes(self) -> str:
        """The stroke-dasharray; empty for an unbroken line."""
        return DASHES[(self.series - 1) % len(DASHES)] if self.series else ""

    @property
    def band(self) -> tuple[list[float], list[float]]:
        """The lower and the upper ends of the spread."""
        pairs = list(zip(self.y, self.spread or [0.0] * len(self.y), strict=True))
        return [y - half for y, half in pairs], [y + half for y, half in pairs]


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
        return (
            text.replace("<svg ", '<svg width="800" style="background: #fff; font-family: system-ui, sans-serif" ', 1)
            + "\n"
        )

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

    level: a horizontal line, and its text. notes: texts at points, shifted by this many px: (text, x, y, right, down).
    diagonal: draws the line where x is y.
    """

    x: Scale
    y: Scale
    x_label: str
    y_label: str
    lines: Sequence[FigureLine] = ()
    level: tuple[float, str] | None = None
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

    def svg(self, title: str) -> str:
        """The plot as one SVG element without a size of its own."""
        named = {(line.name, line.series): line for line in self.lines if line.name}
        legend, below = _legend([*named.values()], self.area[0])
        parts = [_axes(self)]
        if self.diagonal:
            ends = [max(self.x.low, self.y.low), min(self.x.high, self.y.high)]
            parts.append(_path([self.at(end, end) for end in ends], MUTED, "", 1))
        parts += [_line(self, line) for line in reversed(self.lines)]  # the first on top
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
        low, high = ([plot.at(x, y) for x, y in zip(line.x, end, strict=True)] for end in line.band)
        if line.joined and not line.bars:
            steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in [*high, *low[::-1]])
            parts.append(f'<path d="M{steps}Z" style="fill:{line.colour};fill-opacity:.13;stroke:none"/>')
        else:
            parts += [_path(list(pair), line.colour) for pair in zip(low, high, strict=True)]
    if line.joined and points:
        width = 1.8 if line.series and not line.faint else 0.7
        parts.append(_path(points, line.colour, line.dashes, width))
    if line.marks and points:
        parts.append(_marks(points, line))
    return "".join(parts)


def _marks(points: Sequence[tuple[float, float]], line: FigureLine) -> str:
    mark = MARKS[(line.series - 1) % len(MARKS)]
    steps = "".join(f"M{x:.1f} {y:.1f}{mark}" for x, y in points)
    fill = "none" if line.faint else line.colour
    return f'<path d="{steps}" style="fill:{fill};stroke:{line.colour};stroke-width:1"/>'


def _legend(lines: Sequence[FigureLine], left: float) -> tuple[str, float]:
    """The legend below the axes, in as many rows as it needs, and its height."""
    parts, across, down = [], left, HEIGHT + 10
    for line in lines:
        width = 42 + SMALL * LETTER * len(line.name)
        if across > left and across + width > WIDTH:
            across, down = left, down + 18
        if line.joined:
            parts.append(_path([(across, down - 4), (across + 28, down - 4)], line.colour, line.dashes))
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


def draw(
    name: str,
    caption: str,
    lines: Sequence[FigureLine],
    x_label: str,
    y_label: str,
    *,
    x: Scale | None = None,
    y: Scale | None = None,
    said: str = "",
    **more: Any,
) -> Figure:
    """A figure over two scales, by default linear ones with room for all lines and their spread.

    said: the figure in words, for those who cannot see it; by default, caption and lines. more: fields of ``Plot``.
    """
    drawn, last = list[FigureLine](), 0
    for line in lines:
        last += not line.faint
        series = max(last, 1) if line.series == NEXT else line.series
        marks = len(line.x) <= MARKED if line.marks is None else line.marks
        drawn.append(replace(line, series=series, marks=marks))
    x = x or linear([value for line in lines for value in line.x], margin=0.02)
    level = [more["level"][0]] if more.get("level") else []
    y = y or linear([value for line in lines for end in line.band for value in end] + level, margin=0.05)
    plot = Plot(x, y, x_label, y_label, drawn, **more)
    title = said or f"{caption} {'; '.join(map(ends, lines))}"
    return Figure(name, caption, Markup(plot.svg(title)), (x_label, y_label), drawn)


def captioned(figure: FigureSettings, text: str) -> str:
    """The caption of a figure: its title, its content, and what the paper says of its own."""
    return f"{figure.title or figure.name}: {text}.{f' The paper: {figure.paper}' if figure.paper else ''}"


def write_figures(directory: Path, figures: Sequence[Figure], metrics: dict[str, Any]) -> None:
    """Write every figure to a file of its own, and their numbers into ``metrics``."""
    for figure in figures:
        write_text(output_file(directory, "figures", f"{file_name(figure.name)}.svg"), figure.standalone())
    metrics["figures"] = [figure.as_data() for figure in figures]
