"""One page: a headline, sections, and the recipe, folded; without scripts, with nothing from a network; its figures.

A section is a heading with parts one below the other: a text is a paragraph, a mapping a list of names and values, a
sequence a row of figures; a ``TextTable`` and ``Markup`` are what they are, ``Details`` holds parts of its own. What is
empty or None is left out. Everything that is inserted is escaped, except for ``Markup``, which ``markup`` makes.

Figures are SVG: lines and points over two scales, a legend below. Every colour is a CSS variable with a fallback
(``--series-1`` ... ``--series-7``, ``--rule``, ``--muted``; text in ``currentColor``), so that one figure serves light
and dark pages; series differ in dashes and marks as well. These few shapes need no library: one that draws everything
takes longer to load than a small run takes.
"""

import math
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias

from markupsafe import Markup

from rerank import __version__
from rerank.base.encoding import plain
from rerank.runs.report.table import NONE, TextTable, duration

if TYPE_CHECKING:
    from jinja2 import Environment

WIDTH, HEIGHT = 410.0, 270.0  # px; the page scales figures to its columns
FONT_SIZE = 11.0  # px
LETTER_WIDTH = 0.58 * FONT_SIZE  # the width of a letter in px, rather too wide than too narrow
PALETTE = "#0072b2", "#d55e00", "#009e73", "#a8518a", "#a87600", "#3a8fc4", "#6b5bb0"  # after Okabe & Ito 2008
DASHES = "", "7 3", "2 2", "9 3 2 3", "4 1.5", "12 4", "6 2 2 2 2 2"
MAX_DOTS = 25  # a line of more points gets none
TICK_STEPS = 1, 2, 5  # between ticks, times a power of ten
MAX_TICKS = 6
SHORT_FROM = 1e4  # from here on numbers on an axis are short


@dataclass(frozen=True)
class Scale:
    """An axis from ``low`` to ``high``; ``ticks`` are the numbers that are written, with their texts."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def share(self, value: float) -> float:
        """The position of ``value``: 0 at the low end, 1 at the high one."""
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


def linear(values: Iterable[float], *, margin: float = 0.0) -> Scale:
    """A scale with room for ``values`` and ticks at round numbers; margin: the share left free at both ends."""
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if high == low:
        low, high = low - 0.5, high + 0.5
    low, high = low - margin * (high - low), high + margin * (high - low)
    least = (high - low) / MAX_TICKS * (1 - 1e-9)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(power * factor for factor in (*TICK_STEPS, 10) if power * factor >= least)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    at = [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    short = max(abs(low), abs(high)) >= SHORT_FROM
    texts = [short_count(value) if short else f"{value:,.{digits}f}" for value in at]
    return Scale(low, high, tuple((value, text.replace("-", "−")) for value, text in zip(at, texts, strict=True)))


def logarithmic(values: Iterable[float], *, margin: float = 0.0) -> Scale:
    """A logarithmic scale that has room for ``values``, all above 0; ticks at powers of ten, and between them if there
    are few."""
    positive = [value for value in values if value > 0] or [1.0, 10.0]
    low, high = min(positive), max(positive)
    if high < 1.5 * low:
        low, high = low / 1.5, high * 1.5
    room = (high / low) ** margin
    low, high = low / room, high * room
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    inner, interval = TICK_STEPS if high / low < 1000 else (1,), max(1, len(powers) // 6)
    ticks = [step * 10.0**power for power in powers if power % interval == 0 for step in inner]
    return Scale(low, high, tuple((tick, short_count(tick)) for tick in ticks if low <= tick <= high), log=True)


@dataclass(frozen=True)
class FigureLine:
    """Points, joined or not.

    name: in the legend, if it has one. spread: one number per point, drawn as a bar at each. series: colour and dashes,
    from 1; by default the next.
    """

    x: Sequence[float]
    y: Sequence[float]
    name: str = ""
    spread: Sequence[float] = ()
    series: int = 0
    joined: bool = True

    @property
    def band(self) -> tuple[list[float], list[float]]:
        """The lower and the upper ends of the spread."""
        pairs = list(zip(self.y, self.spread or [0.0] * len(self.y), strict=True))
        return [y - half for y, half in pairs], [y + half for y, half in pairs]

    def __str__(self) -> str:
        """The line in words, for those who cannot see it."""
        ends = dict.fromkeys([(self.x[0], self.y[0]), (self.x[-1], self.y[-1])]) if len(self.x) else {}
        return f"{self.name}: {' to '.join(f'{y:,.5g} at {x:,.5g}' for x, y in ends)}"

    @property
    def colour(self) -> str:
        """The colours, and the dashes, come again and again."""
        k = (self.series - 1) % len(PALETTE)
        return f"var(--series-{k + 1}, {PALETTE[k]})"

    @property
    def dash(self) -> str:
        return DASHES[(self.series - 1) % len(DASHES)]


@dataclass(frozen=True)
class Figure:
    """A finished figure: its caption, and its SVG for a page."""

    caption: str
    svg: Markup

    def standalone(self) -> str:
        """The figure as a file of its own: with a size, and colours that need no page."""
        text = re.sub(r"var\(--[\w-]+, (#[0-9a-f]+)\)", r"\1", self.svg).replace("currentColor", "#202020")
        size = '<svg width="800" style="background: #fff; font-family: system-ui, sans-serif" '
        return text.replace("<svg ", size, 1) + "\n"


def draw(
    caption: str, lines: Sequence[FigureLine], x_label: str, y_label: str, *, x: Scale | None = None,
    y: Scale | None = None, level: tuple[float, str] | None = None,
) -> Figure:  # fmt: skip
    """A figure over two scales, by default linear ones with room for all lines and their spread.

    level: a horizontal line, and its text.
    """
    series = [replace(line, series=line.series or k) for k, line in enumerate(lines, start=1)]
    x = x or linear([value for line in lines for value in line.x], margin=0.02)
    values = [value for line in lines for end in line.band for value in end]
    y = y or linear([*values, *([level[0]] if level else [])], margin=0.05)
    left = 26 + LETTER_WIDTH * max((len(text) for _, text in y.ticks), default=1)
    right = WIDTH - 6 - LETTER_WIDTH * max((len(text) for _, text in x.ticks[-1:]), default=0) / 2
    top, bottom = 12.0, HEIGHT - 44.0

    def across(value: float) -> float:
        return left + x.share(value) * (right - left)

    def down(value: float) -> float:
        return bottom - y.share(value) * (bottom - top)

    def points(line: FigureLine) -> tuple[Any, ...]:
        ends = (zip(map(across, line.x), map(down, values), strict=True) for values in (line.y, *line.band))
        return line, *map(list, ends)

    x_ticks, end = list[tuple[float, str]](), -FONT_SIZE
    for value, text in x.ticks:
        centre, half = across(value), LETTER_WIDTH * len(text) / 2
        if centre - half >= end + 4:  # else it would touch the text before
            end = centre + half
            x_ticks.append((centre, text))
    legend, begin, height = list[tuple[FigureLine, float, float]](), left, HEIGHT + 10
    for line in {line.name: line for line in series if line.name}.values():  # in rows
        width = 42 + LETTER_WIDTH * len(line.name)
        if begin > left and begin + width > WIDTH:
            begin, height = left, height + 18
        legend.append((line, begin, height))
        begin += width + 10
    svg = _environment().get_template("figure.svg.j2").render(
        title=f"{caption} {'; '.join(map(str, lines))}", width=WIDTH, height=height + 8 if legend else HEIGHT,
        size=FONT_SIZE, most=MAX_DOTS, left=left, right=right, top=top, bottom=bottom, x_label=x_label, y_label=y_label,
        x_ticks=x_ticks, y_ticks=[(down(value), text) for value, text in y.ticks], lines=[*map(points, series)],
        legend=legend, level=level and (down(level[0]), level[1]),
    )  # fmt: skip
    return Figure(caption, Markup(svg))


# Characters that HTML does not allow: controls, lone surrogates (of bytes that are not UTF-8), noncharacters.
_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


@dataclass(frozen=True)
class Details:
    """Parts behind a line that one opens."""

    summary: str
    parts: "Sequence[Part]"
    open: bool = False


Part: TypeAlias = str | Mapping[str, str] | Sequence[Figure | None] | TextTable | Details | None


@dataclass(frozen=True)
class PageSection:
    """A part of a page with a heading; its parts are those of ``page.html.j2``."""

    heading: str
    parts: Sequence[Part]

    @property
    def name(self) -> str:
        """The anchor of the section on the page."""
        return "-".join(re.findall(r"\w+", self.heading.lower()))


def markup(template: str, *values: object) -> Markup:
    """``template``, HTML with a {} for each of ``values``, which are escaped unless they are ``Markup``."""
    return Markup(template).format(*map(_plain, values))


def _plain(value: Any) -> Any:
    """``value`` made plain if it is a text; pictures are made of plain texts already."""
    return plain(value, safe="\n\t") if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _environment() -> "Environment":
    """The environment of the templates, which compiles each once."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # which a figure does without

    loader = PackageLoader("rerank.runs.report", ".")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, finalize=_plain, trim_blocks=True)


def report(
    metrics: Mapping[str, Any],
    sections: Sequence[PageSection],
    *,
    recipe: str,
    seconds: float,
    date: datetime | None = None,
    machine: Sequence[str] | None = None,
    about: str = "",
    summary: Mapping[str, Any] | None = None,
) -> str:
    """The page of a run; the same content gives the same text.

    metrics: the content of metrics.json. recipe: the resolved one, as YAML. date: when the run ended, now by default;
    seconds: how long it took. machine: lines about machine, Python and libraries, by default these here. summary:
    ``tiles`` of (name, value, note), the second of which stands out, and a ``sentence``.
    """
    end = (date or datetime.now().astimezone()).strftime("%Y-%m-%d %H:%M %Z").strip()
    number = len(metrics["runs"])
    provenance = {
        "finished": end,
        "duration": duration(seconds),
        "version": f"rerank {metrics.get('version', '')}".rstrip(),
        "seed": str(metrics.get("seed", NONE)),
        "metric": str(metrics.get("metric", NONE)),
        "machine": "; ".join(environment() if machine is None else machine),
    }
    yaml = markup('<pre tabindex="0"><code>{}</code></pre>', recipe.rstrip("\n"))
    settings = PageSection("Settings", [Details("The recipe with all defaults", [yaml]), provenance])
    template = _environment().get_template("page.html.j2")
    text = template.render(
        title=str(metrics.get("name") or "Unnamed run"),
        sections=[section for section in [*sections, settings] if any(section.parts)],
        kicker=f"rerank report · {metrics.get('task', '')}",
        facts=[end, f"{number} run{'s' if number > 1 else ''}", duration(seconds)],
        about=about,
        summary=summary or {},
    )
    return _FORBIDDEN.sub("\ufffd", text)


def environment() -> list[str]:
    """Lines about machine, Python and libraries."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "scipy"))
    return [
        f"rerank {__version__}",
        f"Python {platform.python_version()}, {libraries}",
        f"{platform.system()} {platform.machine()}",
    ]
