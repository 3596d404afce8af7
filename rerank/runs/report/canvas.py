"""What all figures share: a style, colours that the page may set, and SVG that can stand in a page.

matplotlib takes a second to load, so it is imported only when something is drawn, which most commands never do.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

SIZE = (4.1, 2.8)  # inches; the page scales figures to its columns
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#a8518a", "#a87600", "#3a8fc4", "#6b5bb0")  # after Okabe & Ito 2008
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.5, 1.5), (7, 2, 1.5, 2), (3, 1), (8, 3), (4, 1, 1, 1, 1, 1))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

# Colours that matplotlib writes → what the page reads instead.
SERIES = tuple(f"#0101{position:02x}" for position in range(1, len(PALETTE) + 1))
TEXT, MUTED, RULE = "#020201", "#020202", "#020203"
_CSS = {
    **{own: f"var(--series-{position}, {PALETTE[position - 1]})" for position, own in enumerate(SERIES, start=1)},
    TEXT: "currentColor",
    MUTED: "var(--muted, #767676)",
    RULE: "var(--rule, #d0d0d0)",
}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "rerank",
    "font.size": 9.5,
    "axes.labelsize": 9.5,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": TEXT,
    "ytick.labelcolor": TEXT,
    "text.color": TEXT,
    "lines.linewidth": 1.5,
}


def new_axes(size: tuple[float, float] = SIZE) -> tuple[Figure, Axes]:
    """An empty figure of one plot; ``size`` in inches. Only within ``styled``."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasSVG(figure)
    return figure, figure.add_subplot()


def round_ticks(axis: Axis, integer: bool = False) -> None:
    """A few ticks at round numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10], integer=integer))


def plain_counts(axis: Axis) -> None:
    """Numbers as 10k or 3M, and none at minor ticks."""
    from matplotlib.ticker import EngFormatter, NullFormatter

    axis.set_major_formatter(EngFormatter(sep=""))
    axis.set_minor_formatter(NullFormatter())


@contextmanager
def styled() -> Iterator[None]:
    """Within this context, matplotlib draws in this module's style, whatever the user's settings are."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def to_svg(figure: Figure, name: str, title: str) -> str:
    """The figure as one SVG element that can stand next to others: ids of its own, no size, no metadata.

    ``name`` starts its ids, ``title`` describes it to readers who cannot see it; both are inserted as they are.
    """
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r" font-family: [^;\"]*;|<defs>\s*</defs>", "", text)
    used = set(re.findall(r'(?:href="|url\()#([^")]*)', text))
    text = re.sub(r' id="([^"]*)"', lambda match: f' id="{name}-{match[1]}"' if match[1] in used else "", text)
    text = re.sub(r'xlink:(href="#)|(url\(#)', lambda match: f"{match[1] or match[2]}{name}-", text)
    box = re.search(r'viewBox="[^"]*"', text)
    head = f'<svg class="plot" role="img" aria-label="{title}" xmlns="http://www.w3.org/2000/svg" {box and box[0]}>'
    text = re.sub(r"^<svg[^>]*>", lambda _: head, text)
    for own, css in _CSS.items():
        text = text.replace(own, css)
    return text.strip()
