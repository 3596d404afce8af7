"""Progress of long work: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

T = TypeVar("T")
log = logging.getLogger("rerank")
# Paths and words may look like emoji codes ("file:100: ..."): they are shown as they are.
console = Console(stderr=True, emoji=False)

SECONDS_BETWEEN_LINES = 15.0


def track(items: Iterable[T], what: str, *, total: int | None = None, unit: str = "lists") -> Iterator[T]:
    """Pass ``items`` on while showing how many have gone by, at what rate, and how long it will take."""
    start, done = time.monotonic(), 0
    if console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
        with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True) as bar:
            task = bar.add_task(what, total=total)
            for item in items:
                yield item
                done += 1
                bar.advance(task)
    else:
        shown = start
        for item in items:
            yield item
            done += 1
            if time.monotonic() - shown > SECONDS_BETWEEN_LINES:
                shown = time.monotonic()
                left = "" if total is None else f" of {total:,}, {(total - done) * (shown - start) / done:.0f} s left"
                log.info("%s: %s %s%s, %.0f a second", what, f"{done:,}", unit, left, done / (shown - start))
    seconds = time.monotonic() - start
    log.info("%s: %s %s in %.1f s", what, f"{done:,}", unit, seconds)
