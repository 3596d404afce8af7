"""Tables of text: for the page (``_table.html.j2`` lays them out), for the terminal, and for a file or pipe."""

import io
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from rerank.base.encoding import plain
from rerank.runs.report.numbers import NONE


@dataclass(frozen=True)
class TextTable:
    """A table of texts; the first ``texts`` columns are words, the others numbers.

    best: (row, column) of the cells to highlight; merged: on a page, rows with the same first cell share it; chosen:
    the first cell of the rows to highlight on a page; style: its class there, "long-2" or "long-3" where that column
    holds long texts; bars: numbers that the rows have as bars there;
    """

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    best: Set[tuple[int, int]] = frozenset()
    note: str = ""
    merged: bool = False
    chosen: str | None = None
    style: str = ""
    bars: Sequence[float] = ()

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

    def bar(self, row: int) -> tuple[str, str]:
        """The class of a row's bar, and its width."""
        largest = max(map(abs, self.bars)) or 1.0
        return "against" if self.bars[row] < 0 else "for", f"{100 * abs(self.bars[row]) / largest:.1f}%"

    def rich(self) -> Table:
        """The table for a terminal, its best cells bold."""
        shown = Table(title=Text(plain(self.caption)), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
        for position, heading in enumerate(self.headings):
            words = position < self.texts
            shown.add_column(Text(plain(heading)), justify="left" if words else "right", no_wrap=position == 0)
        for number, cells in enumerate(self.rows):
            styles = ["bold" if (number, position) in self.best else "" for position in range(len(cells))]
            shown.add_row(*(Text(plain(cell, kept="\n"), style) for cell, style in zip(cells, styles, strict=True)))
        return shown


def plain_text(table: Table) -> str:
    """``table`` as text without colours and as wide as it needs to be, for output that is not a terminal."""
    ruler = Console(file=io.StringIO(), width=10_000, color_system=None)
    width = max(1, Measurement.get(ruler, ruler.options, table).maximum)
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"
