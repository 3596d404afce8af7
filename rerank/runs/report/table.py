"""Tables of text: for the page (``page.html.j2`` lays them out), for the terminal, and for a file or pipe."""

import io
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from rerank.base.encoding import plain
from rerank.runs.report.numbers import NONE


@dataclass(frozen=True)
class Bar:
    """A range that a row of a table has as a bar on a page, and a point in it."""

    low: float
    high: float
    point: float | None = None


@dataclass(frozen=True)
class TextTable:
    """A table of texts; the first ``texts`` columns are words, the others numbers.

    best: (row, column) of the cells to highlight; merged: on a page, rows with the same first cell share it; chosen:
    the first cell of the rows to highlight on a page; bars: those of the rows there, all to one scale, in which 0 is if
    ``from_zero``. A table without rows is false.
    """

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    best: Set[tuple[int, int]] = frozenset()
    note: str = ""
    merged: bool = False
    chosen: str | None = None
    bars: Sequence[Bar | None] = ()
    from_zero: bool = True

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
    def groups(self) -> list[list[tuple[int, Sequence[str]]]]:
        """The rows with their numbers; if ``merged``, grouped where consecutive ones have the same first cell."""
        numbered = list(enumerate(self.rows))
        if not self.merged:
            return [numbered]
        return [list(rows) for _, rows in groupby(numbered, key=lambda row: row[1][0])]

    def share(self, value: float) -> str:
        """The place of a bar's end in the column of the bars, in percent of its width."""
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
            for place, (number, cells) in enumerate(group):
                shown = ["" if self.merged and place and not k else plain(cells[k], kept="\n") for k in self.columns]
                styles = ["bold" if (number, k) in self.best else "" for k in self.columns]
                table.add_row(*map(Text, shown, styles))
        return table


def plain_text(table: Table) -> str:
    """``table`` as text without colours and as wide as it needs to be, for output that is not a terminal."""
    ruler = Console(file=io.StringIO(), width=10_000, color_system=None)
    width = max(1, Measurement.get(ruler, ruler.options, table).maximum)
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"
