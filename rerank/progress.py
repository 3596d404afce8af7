"""Progress of long work: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

T = TypeVar("T")
log = logging.getLogger("rerank")
# Paths and words may look like emoji codes ("file:100: ..."): they are shown as they are.
console = Console(stderr=True, emoji=False)

SECONDS_BETWEEN_LINES = 15.0


def track(items: Iterable[T], what: str, *, total: int | None = None, unit: str = "lists") -> Iterator[T]:
    """Pass ``items`` on while showing how many have gone by, at what rate, and how long it will take."""
    with counting(what, total=total, unit=unit) as advance:
        for item in items:
            yield item
            advance()


@contextmanager
def counting(what: str, *, total: int | None = None, unit: str = "lists") -> Iterator[Callable[[], None]]:
    """Show how often the function that the block gets has been called; ``track`` for work that is no iteration."""
    count = _Bar(what, total, unit) if console.is_terminal else _Lines(what, total, unit)
    try:
        yield count.advance
    finally:
        count.close()
    log.info("%s: %s %s in %.1f s", what, f"{count.done:,}", unit, time.monotonic() - count.start)


class _Lines:
    """A log line now and then."""

    def __init__(self, what: str, total: int | None, unit: str) -> None:
        self.what, self.total, self.unit = what, total, unit
        self.start = self.shown = time.monotonic()
        self.done = 0

    def advance(self) -> None:
        self.done += 1
        now = time.monotonic()
        if now - self.shown > SECONDS_BETWEEN_LINES:
            self.shown = now
            rate = self.done / (now - self.start)
            left = "" if self.total is None else f" of {self.total:,}, {(self.total - self.done) / rate:.0f} s left"
            per = f"{rate:.0f} a second" if rate >= 1 else f"{1 / rate:.0f} s each"
            log.info("%s: %s %s%s, %s", self.what, f"{self.done:,}", self.unit, left, per)

    def close(self) -> None:
        pass


class _Bar:
    """A line of the display on the terminal, which all bars of the moment share: there can be one display only."""

    display: Progress | None = None
    shown = 0

    def __init__(self, what: str, total: int | None, unit: str) -> None:
        self.start, self.done = time.monotonic(), 0
        if _Bar.display is None:
            _Bar.display = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[unit]}"),
                _Rate(), TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True,
            )  # fmt: skip
            _Bar.display.start()
        self._display = _Bar.display
        self._task = self._display.add_task(what, total=total, unit=unit)
        _Bar.shown += 1

    def advance(self) -> None:
        self.done += 1
        self._display.advance(self._task)

    def close(self) -> None:
        self._display.remove_task(self._task)
        _Bar.shown -= 1
        if not _Bar.shown:
            self._display.stop()
            _Bar.display = None


class _Rate(ProgressColumn):
    """How many a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.1f}/s")
