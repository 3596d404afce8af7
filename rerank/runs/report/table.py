"""Numbers as they are written, with their spread over seeds or folds; and tables of texts: for the page
(``page.html.j2`` lays them out), for the terminal, and for a file or pipe."""

import io
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, Literal, NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from rerank.base.encoding import plain
from rerank.metrics.metric import Metric

NONE = "–"  # what is shown in place of a missing number
MAX_DIGITS = 6  # digits after the point of numbers in a column
MILLIONS_FROM = 1e7  # from here on counts are written in millions


def fixed(value: float | None, digits: int = 2) -> str:
    """``value`` with this many digits after the point.

    >>> fixed(83.751), fixed(None), fixed(float("nan"))
    ('83.75', '–', '–')
    """
    return NONE if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 2) -> str:
    """``value`` with its sign, a true minus, and so many digits after the point; 0.00 has none.

    >>> signed(1.429), signed(-0.5), signed(-0.001)
    ('+1.43', '−0.50', '0.00')
    """
    text = fixed(value, digits)
    if text == NONE or float(text) == 0:
        return text.removeprefix("-")
    return text.replace("-", "−") if text.startswith("-") else f"+{text}"


def count(value: float | None) -> str:
    """A count with thousands separated, and of many millions how many; more digits would say nothing.

    >>> count(372254), count(94960100), count(None)
    ('372,254', '95.0 M', '–')
    """
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:,.0f}" if abs(value) < MILLIONS_FROM else f"{value / 1e6:,.1f} M"


def reals(values: Sequence[float]) -> list[str]:
    """Numbers of one column, with a true minus: as many digits after the point as show four digits of the largest.

    Those that would be shown as 0 have digits of their own.

    >>> reals([-26.88, -27.0, 3.5]), reals([1.181, 0.3562, -0.0001]), reals([4.0, -1.0])
    (['−26.88', '−27.00', '3.50'], ['1.181', '0.356', '−0.0001'], ['4', '−1'])
    """
    whole = all(value == int(value) for value in values)
    largest = max(map(abs, values), default=0.0)
    digits = 0 if whole else 3 - math.floor(math.log10(largest))
    texts = []
    for value in values:
        usual = not whole and 0 < digits <= MAX_DIGITS and (value == 0 or abs(value) >= 0.5 * 10.0**-digits)
        large = f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value + 0.0:.4g}"
        texts.append(fixed(value + 0.0, digits) if usual else large)
    return [text.replace("-", "−", 1) for text in texts]


def p_value(p: float | None) -> str:
    """A p-value with three digits.

    >>> p_value(0.0001), p_value(0.0123), p_value(1.0), p_value(None)
    ('< .001', '.012', '> .999', '–')
    """
    if p is None or not math.isfinite(p):
        return NONE
    if p < 0.001:
        return "< .001"
    return "> .999" if p >= 0.9995 else f"{p:.3f}".removeprefix("0")


def duration(seconds: float | None) -> str:
    """A time span.

    >>> duration(0.421), duration(42), duration(187), duration(7265)
    ('0.42 s', '42.0 s', '3 min 07 s', '2 h 01 min')
    """
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(whole / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min"


class Spread(NamedTuple):
    """Mean, sample standard deviation (n − 1) and standard error of this many values; a single one has no deviation."""

    mean: float
    deviation: float | None
    error: float | None
    values: int

    @staticmethod
    def of(values: Sequence[float]) -> "Spread":
        """The spread of ``values``, at least one."""
        mean = float(np.mean(values))
        if len(values) < 2:
            return Spread(mean, None, None, len(values))
        deviation = float(np.std(values, ddof=1))
        return Spread(mean, deviation, deviation / float(np.sqrt(len(values))), len(values))


@dataclass(frozen=True)
class Measure:
    """One number of a metric's report: its key in metrics.json, its heading, and how the metric shows it.

    scale: 100 for fractions shown in percent. gain_scale: the same for the gains of candidates.
    """

    key: str
    heading: str
    scale: float = 100.0
    gain_scale: float = 100.0
    digits: int = 2
    lower_is_better: bool = False

    @property
    def name(self) -> str:
        """The heading as a sentence has it.

        >>> Measure("gain", "errors (lower is better)").name
        'errors'
        """
        return self.heading.removesuffix(" (lower is better)")

    def text(self, value: float | None) -> str:
        """``value`` in its scale."""
        return fixed(None if value is None else self.scale * value, self.digits)

    def signed(self, value: float | None) -> str:
        """A difference, with its sign."""
        return signed(None if value is None else self.scale * value, self.digits)

    def gain(self, value: float) -> str:
        """The gain of a candidate."""
        return fixed(self.gain_scale * value, self.digits)

    def spread(self, spread: Spread | None) -> str:
        """A score as ``83.75`` or, for several seeds, ``83.75 ±0.05``; nothing where there is none."""
        if spread is None:
            return ""
        mean = self.text(spread.mean)
        return mean if spread.deviation is None else f"{mean} ±{self.text(spread.deviation)}"

    def better(self, value: float) -> float:
        """``value``, negated where lower is better."""
        return -value if self.lower_is_better else value


# In the order of the columns.
MEASURES = (
    Measure("precision", "P"),
    Measure("recall", "R"),
    Measure("f1", "F"),
    Measure("exact_match", "exact match"),
    Measure("bleu", "BLEU", scale=1.0),
    Measure("chrf", "chrF", scale=1.0),
    Measure("ter", "TER", scale=1.0, lower_is_better=True),
    Measure("length_ratio", "length", scale=1.0),
    Measure("accuracy", "accuracy"),
    Measure("error", "error", lower_is_better=True),
    Measure("wer", "WER", lower_is_better=True),
    Measure("cer", "CER", lower_is_better=True),
    Measure("gain", "gain", scale=1.0, gain_scale=1.0, digits=4),
    Measure("ndcg", "NDCG"),
    Measure("mrr", "MRR"),
)


def own_measure(metric: Metric) -> dict[str, Any]:
    """The entry of metrics.json on how a user's metric, or one with a cut-off, beta or direction, is shown; nothing for
    others."""
    own = metric.ordered or metric.name == "counts" or (metric.name == "gain" and metric.lower_is_better)
    if type(metric).__module__.startswith("rerank.") and not own:
        return {}
    scales = metric.percent, metric.gain_percent, metric.digits, metric.lower_is_better
    return {"own_measure": asdict(Measure(metric.primary, metric.heading, *scales))}


def measures_of(metrics: Mapping[str, Any]) -> dict[str, Measure]:
    """The measures that there are for ``metrics`` (metrics.json), by key, in the order of the columns: first that of a
    user's own metric."""
    own = [Measure(**entry) for entry in [metrics.get("own_measure")] if entry]
    others = (measure for measure in MEASURES if measure.key not in {each.key for each in own})
    return {measure.key: measure for measure in (*own, *others)}


def primary_of(metrics: Mapping[str, Any]) -> Measure:
    """The measure that runs are compared by: what ``metrics`` says under ``measure``; F where there is none."""
    measures = measures_of(metrics)
    return measures.get(metrics.get("measure", ""), measures["f1"])


@dataclass(frozen=True)
class Bar:
    """A range that a row of a table has as a bar on a page, and a point in it."""

    low: float
    high: float
    point: float | None = None

    @staticmethod
    def of(value: float) -> "Bar":
        """The bar from 0 to ``value``."""
        return Bar(min(value, 0.0), max(value, 0.0))


@dataclass(frozen=True)
class TextTable:
    """A table of texts; the first ``texts`` columns are words, the others numbers.

    best: (row, column) of the cells to highlight; merged: on a page, rows with the same first cell share it; highlight:
    the first cell of the rows to mark on a page; bars: those of the rows there, all to one scale, in which 0 is if
    ``from_zero``; front: a column that a page shows right behind the first numbers. A table without rows is false.
    """

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    best: Set[tuple[int, int]] = frozenset()
    note: str = ""
    merged: bool = False
    highlight: str | None = None
    bars: Sequence[Bar | None] = ()
    from_zero: bool = True
    front: int | None = None

    def __bool__(self) -> bool:
        return bool(self.rows)

    @staticmethod
    def of(caption: str, rows: Sequence[Mapping[str, str]], **more: Any) -> "TextTable":
        """A table of rows that are cells by heading, all with the same headings; ``more`` are its other fields."""
        return TextTable(caption, [*rows[0]] if rows else [], [[*row.values()] for row in rows], **more)

    @property
    def columns(self) -> list[int]:
        """The columns that say something: the first, and those with at least one value."""
        return [k for k in range(len(self.headings)) if k == 0 or any(row[k] not in ("", NONE) for row in self.rows)]

    @property
    def page_columns(self) -> list[int]:
        """The columns in their order on a page."""
        if self.front not in (columns := self.columns):
            return columns
        begin = self.texts + 1
        return sorted(columns, key=lambda k: (k >= begin, k != self.front, k))

    @property
    def groups(self) -> list[list[tuple[int, Sequence[str]]]]:
        """The rows with their numbers; if ``merged``, grouped where consecutive ones have the same first cell."""
        rows = list(enumerate(self.rows))
        if not self.merged:
            return [rows]
        return [list(rows) for _, rows in groupby(rows, key=lambda row: row[1][0])]

    def share(self, value: float) -> str:
        """The position of a bar's end in the column of the bars, in percent of its width."""
        bars = [bar for bar in self.bars if bar is not None]
        ends = [end for bar in bars for end in (bar.low, bar.high)] + [0.0] * self.from_zero
        low, high = min(ends), max(ends)
        return f"{100 * (value - low) / ((high - low) or 1.0):.1f}%"

    def rich(self, *, narrow: bool = False) -> Table:
        """The table, its best cells bold; ``narrow``: as a terminal has room for it."""
        table = Table(title=Text(plain(self.caption)), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
        table.padding = (0, 1, 0, 0) if narrow else (0, 1)
        for k in self.columns:
            side: Literal["left", "right"] = "left" if k < self.texts else "right"
            table.add_column(Text(plain(self.headings[k])), justify=side, no_wrap=k == 0 and not narrow)
        for group in self.groups:
            for index, (number, cells) in enumerate(group):
                texts = ["" if self.merged and index and not k else plain(cells[k], safe="\n") for k in self.columns]
                styles = ["bold" if (number, k) in self.best else "" for k in self.columns]
                table.add_row(*map(Text, texts, styles))
        return table


def plain_text(table: Table) -> str:
    """``table`` as text without colours and as wide as it needs to be, for output that is not a terminal."""
    ruler = Console(file=io.StringIO(), width=10_000, color_system=None)
    width = max(1, Measurement.get(ruler, ruler.options, table).maximum)
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"
