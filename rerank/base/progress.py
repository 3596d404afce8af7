"""Progress of long work: a bar on a terminal, log lines elsewhere."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from rerank.base.encoding import amount, plain

T = TypeVar("T")
log = logging.getLogger("rerank")


class PlainConsole(Console):
    """A console that makes all strings plain before it lays them out, including those in table cells."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(plain(text, safe="\n\t"), **options)


# Paths and words may look like emoji codes ("file:100: ..."): they are shown as they are.
console = PlainConsole(stderr=True, emoji=False)

SECONDS_BETWEEN_LINES = 15.0
DETAIL = "detail"  # the mark of log records that a bar makes superfluous


def track(items: Iterable[T], what: str, *, total: int | None = None, unit: str = "lists") -> Iterator[T]:
    """Pass ``items`` on while showing how many have passed, at what rate, and how long the rest will take."""
    with counting(what, total=total, unit=unit) as count:
        for item in items:
            yield item
            count.advance()


@contextmanager
def counting(what: str, *, total: int | None = None, unit: str = "lists", lines: bool = True) -> "Iterator[Count]":
    """Show the progress that the block reports by ``advance``: on a terminal by a bar, unless messages of its kind are
    not shown, and elsewhere, if ``lines``, in a line from time to time."""
    bar = console.is_terminal and all(handler.level <= logging.INFO for handler in log.handlers)
    count = Count(plain(what), total, unit, lines)
    with count.bar() if bar else nullcontext():
        yield count
    if lines:
        compiling = Compilation.seconds - count.compiled
        after = f", after {compiling:.1f} s of compiling kernels" if compiling else ""
        log.info("%s: %s in %.1f s%s", count.what, amount(count.done, unit.removesuffix("s")), count.seconds, after)


class Count:
    """The amount done, of which total if that is known, and since when."""

    display: ClassVar[Progress | None] = None  # of all current bars, each a line of it

    def __init__(self, what: str = "", total: int | None = None, unit: str = "lists", lines: bool = False) -> None:
        self.what, self.total, self.unit, self.lines, self.done = what, total, unit, lines, 0
        self.start = self.last_line = time.monotonic()
        self.compiled = Compilation.seconds
        self._task: TaskID | None = None

    @contextmanager
    def bar(self) -> Iterator[None]:
        """Show a bar within the block; the last one ends the display."""
        display = Count.display = Count.display or Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[unit]}"),
            TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True,
        )  # fmt: skip
        display.start()
        task = self._task = display.add_task(self.what, total=self.total, unit=self.unit)
        try:
            yield
        finally:
            display.remove_task(task)
            if not display.tasks:
                display.stop()
                Count.display = None

    def advance(self, rest: int | None = None, *, more: int = 1) -> None:
        """Count so many more as done; ``rest``: how many are not, if that has just become known. It is shown in a line
        if the last one is long enough ago."""
        self.done += more
        self.total = self.total if rest is None else self.done + rest
        now = time.monotonic()
        if self._task is not None and Count.display is not None:
            Count.display.update(self._task, completed=self.done, total=self.total)
        elif self.lines and now - self.last_line > SECONDS_BETWEEN_LINES:
            self.last_line = now
            of = "" if self.total is None else f" of {self.total:,}"
            rate = f"{self.rate:,.0f} per second" if self.rate >= 1 else f"{1 / self.rate:,.0f} s each"
            left_over = f", {self.remaining}" if self.remaining else ""
            log.info("%s: %s%s %s, %s%s", self.what, f"{self.done:,}", of, self.unit, rate, left_over)

    @property
    def seconds(self) -> float:
        """The seconds that it has taken, without the time in which kernels were compiled."""
        return max(0.0, time.monotonic() - self.start - (Compilation.seconds - self.compiled))

    @property
    def rate(self) -> float:
        """The number per second."""
        return self.done / max(self.seconds, 1e-9)

    @property
    def remaining(self) -> str:
        """The time that the rest will take, in words; empty if it is unknown or nothing is left."""
        if self.total is None or self.total <= self.done or not self.done:
            return ""
        return f"{timedelta(seconds=round((self.total - self.done) / self.rate))} left"


class Compilation:
    """The compilation of kernels when they are first used, which is logged from time to time.

    seconds: how long it has taken so far; kernels: how many those are, each with those that it calls. at_first: called
    once, before the next one.
    """

    seconds, kernels = 0.0, 0
    at_first: ClassVar[Callable[[], Any] | None] = None
    _start, _last_line = 0.0, float("-inf")

    @classmethod
    def begin(cls) -> None:
        """Begin to time the compilation of a kernel."""
        first, cls.at_first = cls.at_first, None
        if first is not None:
            first()
        cls._start = time.monotonic()
        if cls._start - cls._last_line > SECONDS_BETWEEN_LINES:
            cls._last_line = cls._start
            so_far = f": {cls.kernels:,} in {cls.seconds:.0f} s so far" if cls.kernels else ""
            log.info("compiling kernels (first run)%s", so_far)

    @classmethod
    def end(cls) -> None:
        """End the timing of a kernel."""
        cls.seconds += time.monotonic() - cls._start
        cls.kernels += 1
