"""Interrupts: SIGINT, SIGTERM and SIGHUP end a run in an orderly way; a second one ends it at once.

The first signal raises ``Interrupted`` in the main thread: at once, or, inside ``defer_signals()``, at the next
``check()`` or the end of the block. Work that must not be torn apart (an epoch's bookkeeping, two renames that belong
together) is done in such a block.

Threads of a pool receive no signals: after the first signal, ``check()`` ends what they are doing. It also ends what
has run past its ``Deadline``.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import ClassVar

SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
ONE_SIGNAL_SECONDS = 0.5  # seconds: some tools signal both the process and its group, which counts as one signal
PIECE = 1 << 26  # steps of work without a look at signals: a tenth of a second, or two


class Interrupted(KeyboardInterrupt):
    """The run was told to stop; like ``KeyboardInterrupt`` it passes ``except Exception``."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def exit_code(self) -> int:
        """The exit code that shells expect of a process ended by a signal."""
        return 128 + self.number


class GivenUpError(Exception):
    """Work has reached its ``Deadline``."""


class Deadline:
    """The end of work: after some ``seconds``, or at ``end()``, which any thread may call."""

    thread: ClassVar = threading.local()  # ``deadline``: the one that a thread works under

    def __init__(self, seconds: float) -> None:
        self._seconds, self._ended = seconds, False

    def end(self) -> None:
        """Let the work end at once."""
        self._ended = True

    def __enter__(self) -> None:
        """For this many seconds within the block, ``check()`` in this thread finds nothing; then ``GivenUpError``."""
        self.thread.deadline, self._last = self, time.monotonic() + self._seconds

    def __exit__(self, *_error: object) -> None:
        del self.thread.deadline

    @property
    def over(self) -> bool:
        """Whether the work has to end."""
        return self._ended or time.monotonic() > self._last


class _Waiting:
    """The first signal: ``number`` until it is raised, ``first`` while signals are taken; ``blocks`` that defer it."""

    number: int | None = None
    first: int | None = None
    blocks = 0


@contextmanager
def defer_signals() -> Iterator[None]:
    """Within the block a signal waits for ``check()``, or for the end of the outermost block.

    Only the main thread receives signals; in other threads the block changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _Waiting.blocks += 1
    try:
        yield
    finally:
        _Waiting.blocks -= 1
    if not _Waiting.blocks:
        check()


def signal_pending() -> bool:
    """Whether a signal has arrived that has not been raised yet."""
    return _Waiting.number is not None


def check() -> None:
    """Stopping is safe: raise ``Interrupted`` if a signal is pending, also within ``defer_signals()`` or in a thread,
    and ``GivenUpError`` if this thread's deadline is over.
    """
    if (deadline := getattr(Deadline.thread, "deadline", None)) is not None and deadline.over:
        raise GivenUpError
    main = threading.current_thread() is threading.main_thread()
    number = _Waiting.number if main else _Waiting.first
    if number is None:
        return
    if main:
        _Waiting.number = None
    raise Interrupted(number)


def pieces(number: int, cost: int) -> Iterator[tuple[int, int]]:
    """The range of ``number`` equal tasks in parts (first, last + 1), before each of which ``check()`` looks.

    cost: of a task, in steps of a nanosecond or two; a part has ``PIECE`` of them, or is a single task.
    """
    step = max(1, PIECE // max(1, cost))
    for first in range(0, number, step):
        check()
        yield first, min(first + step, number)


def _receive(number: int, _frame: FrameType | None) -> None:
    _Waiting.number = _Waiting.first = number
    if not _Waiting.blocks:
        check()


@contextmanager
def mask_sigint() -> Iterator[None]:
    """A process started within the block never sees SIGINT, which reaches this process alone, after the block.

    It inherits the mask; a handler that it set itself would come too late for one that is interrupted as it starts.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def take_signals() -> Iterator[None]:
    """Take over the signals within the block (main thread only); those that the caller ignored stay ignored."""
    numbers = [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    watcher = threading.Thread(target=_watch, args=(reading, numbers), name="interrupts", daemon=True)
    watcher.start()
    wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    before = {number: signal.signal(number, _receive) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        _Waiting.number = _Waiting.first = None
        os.close(writing)  # the watcher sees the end of the pipe
        watcher.join(timeout=1)


def _watch(reading: int, numbers: list[int]) -> None:
    """End the process at the second signal, even in compiled code, where none of our handlers runs."""
    first: float | None = None
    while signals := os.read(reading, 1):
        if signals[0] in numbers:
            if first is not None and time.monotonic() - first > ONE_SIGNAL_SECONDS:
                _leave(signals[0])
            first = time.monotonic() if first is None else first
    os.close(reading)


def _leave(number: int) -> None:
    with suppress(OSError):
        cursor = b"\x1b[?25h\n" if sys.stderr.isatty() else b""  # a progress bar hides the cursor
        os.write(2, cursor + b"error: stopped at once\n")
    os._exit(128 + number)
