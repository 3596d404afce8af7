"""Results as tables of text: for the terminal, for a file or pipe, and as Markdown."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from rerank.base.escaping import plain
from rerank.runs.report.measures import NONE, Measure, count, measures_of, primary_of
from rerank.runs.report.rows import Row, Spread, result_rows

_AGAINST = "against base"
_WHOLE = ("nonzero weights", _AGAINST)
_NAME, _WIDE_NAME = 16, 40  # columns for names; with them, a table of four measures needs 80 of a terminal


def results_table(metrics: Mapping[str, Any], split: str, *, wide: bool = False) -> Table:
    """The results on ``split`` for a terminal: base, oracle, then every run with each of its predictors.

    Scores of several seeds are means with standard deviations; the last column says whether that is better or worse
    than the base, with the largest p of all seeds. Where the terminal is too narrow, cells break between a mean and its
    deviation. In a ``wide`` table they need not.
    """
    table = Table(
        title=Text(plain(split)), box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title_justify="left"
    )
    rows = result_rows(metrics, split)
    names = [_name(row) for row in rows]
    for position, heading in enumerate(_headings(metrics)):
        table.add_column(
            Text(heading.replace(" ", "\n", 1)),
            justify="left" if position < 2 else "right",
            no_wrap=position == 1 or heading in _WHOLE,  # the others may break: a score before its deviation
            overflow="fold",
            width=min(max(map(len, names), default=0), _WIDE_NAME if wide else _NAME) if position == 0 else None,
        )
    for row in rows:
        cells = ["" if cell == NONE else cell for cell in _cells(row, measures_of(metrics), primary_of(metrics))]
        if not wide:
            cells[-1] = cells[-1].replace("not ", "not\n").replace(", ", ",\n")
        table.add_row(*(Text(cell) for cell in cells), style="bold" if row.chosen else None)
    return table


def plain_text(table: Table) -> str:
    """``table`` as text without colours and as wide as it needs to be, for output that is not a terminal."""
    ruler = Console(file=io.StringIO(), width=10_000, color_system=None)
    width = max(1, Measurement.get(ruler, ruler.options, table).maximum)
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def markdown_table(metrics: Mapping[str, Any], split: str) -> str:
    """The results on ``split`` as a Markdown table, with the columns of ``results_table``."""
    headings = _headings(metrics)
    measures, primary = measures_of(metrics), primary_of(metrics)
    rows = [[_escape(cell) for cell in _cells(row, measures, primary)] for row in result_rows(metrics, split)]
    rules = ["---" if position < 2 else "---:" for position in range(len(headings))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [headings, rules, *rows])


def spread_text(spread: Spread | None, measure: Measure) -> str:
    """A score as ``83.75`` or, for several seeds, ``83.75 ±0.05``."""
    if spread is None:
        return NONE
    mean = measure.text(spread.mean)
    return mean if spread.deviation is None else f"{mean} ±{measure.text(spread.deviation)}"


def _headings(metrics: Mapping[str, Any]) -> list[str]:
    return ["run", "predictor", *(m.heading for m in measures_of(metrics)), *_WHOLE]


def _name(row: Row) -> str:
    name = plain(row.name)
    return name if row.seeds == 1 else f"{name} ({row.seeds} seeds)"


def _cells(row: Row, measures: Sequence[Measure], primary: Measure) -> list[str]:
    return [
        _name(row) if row.first else "",
        row.predictor,
        *(spread_text(row.scores.get(measure.key), measure) for measure in measures),
        (count(row.nonzero.mean) if row.nonzero else NONE) if row.first else "",
        row.test.verdict(primary) if row.test else NONE,
    ]


def _escape(cell: str) -> str:
    """A cell's text, with what Markdown would take as markup escaped."""
    text = " ".join(cell.split())
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" else letter for letter in text)
