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
from rerank.runs.report.measures import NONE, Measure, count, measures_of, primary_of
from rerank.runs.report.rows import Row, result_rows
from rerank.runs.report.spread import Spread

_AGAINST = "against base"
_WHOLE = ("nonzero weights", _AGAINST)
_NAME, _WIDE_NAME = 16, 40  # columns for names; with them, a table of four measures needs 80 of a terminal


@dataclass(frozen=True)
class TextTable:
    """A table of texts; the first ``texts`` columns are words, the others numbers.

    best: (row, column) of the cells to highlight; merged: on a page, rows with the same first cell share it; chosen:
    the first cell of the rows to highlight on a page; style: its class there, "long-2" or "long-3" where that column
    holds long texts.
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


def results_table(metrics: Mapping[str, Any], split: str, *, wide: bool = False) -> Table:
    """The results on ``split`` for a terminal: base, oracle, then every run with each of its predictors.

    Scores of several seeds are means with standard deviations; the last column says whether that is better or worse
    than the base, with the largest p of all seeds. Where the terminal is too narrow, cells break between a mean and its
    deviation. In a ``wide`` table they need not.
    """
    rows, measures = result_rows(metrics, split), measures_of(metrics)
    headings = ["run", "predictor", *(measure.heading for measure in measures), *_WHOLE]
    cells = [_cells(row, measures, primary_of(metrics)) for row in rows]
    if not wide:
        cells = [[*line[:-1], line[-1].replace("not ", "not\n").replace(", ", ",\n")] for line in cells]
    chosen = {(number, place) for number, row in enumerate(rows) if row.chosen for place in range(len(headings))}
    table = TextTable(split, headings, cells, texts=2, best=chosen).rich()
    table.padding = (0, 1, 0, 0)
    longest = max((len(_name(row)) for row in rows), default=0)
    table.columns[0].width = min(longest, _WIDE_NAME if wide else _NAME)
    for position, (column, heading) in enumerate(zip(table.columns, headings, strict=True)):
        column.header = Text(heading.replace(" ", "\n", 1))
        column.no_wrap = position == 1 or heading in _WHOLE  # the others may break: a score before its deviation
        column.overflow = "fold"
    return table


def spread_text(spread: Spread | None, measure: Measure) -> str:
    """A score as ``83.75`` or, for several seeds, ``83.75 ±0.05``; nothing where there is none."""
    if spread is None:
        return ""
    mean = measure.text(spread.mean)
    return mean if spread.deviation is None else f"{mean} ±{measure.text(spread.deviation)}"


def _name(row: Row) -> str:
    name = plain(row.name)
    return name if row.seeds == 1 else f"{name} ({row.seeds} seeds)"


def _cells(row: Row, measures: Sequence[Measure], primary: Measure) -> list[str]:
    cells = [
        _name(row) if row.first else "",
        row.predictor,
        *(spread_text(row.scores.get(measure.key), measure) for measure in measures),
        count(row.nonzero.mean) if row.first and row.nonzero else "",
        row.test.verdict(primary) if row.test else "",
    ]
    return ["" if cell == NONE else cell for cell in cells]
