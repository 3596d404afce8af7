"""The worker's side of an engine: how a process becomes a worker, and how a task runs in one."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

WATCH_SECONDS = 1.0

# One thread a worker: as many workers as cores leave none for more.
THREADS = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR", "NUMBA")
}
logger = logging.getLogger("rerank")


class Done(NamedTuple):
    """A result, and the warnings (level, message) that were logged on the way to it."""

    result: Any
    warnings: list[tuple[int, str]]


class _Keep(logging.Handler):
    """Keeps messages instead of showing them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.kept: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """See ``logging.Handler``."""
        self.kept.append((record.levelno, record.getMessage()))


def carry_out(function: Callable[[Any], Any], task: Any) -> Done:
    """``function(task)``, with the warnings that it logs: the run's own process shows them, in the order of tasks."""
    keep = _Keep()
    handlers, propagate, level = logger.handlers[:], logger.propagate, logger.level
    logger.handlers, logger.propagate = [keep], False
    logger.setLevel(logging.WARNING)
    try:
        return Done(function(task), keep.kept)
    finally:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def result_of(done: Done) -> Any:
    """The result, after its warnings have been logged here."""
    for level, message in done.warnings:
        logger.log(level, "%s", message)
    return done.result


def become_worker(parent: int) -> None:
    """Set up a worker process of this machine: it ends with its ``parent`` (a process id) and not by itself."""
    from joblib.externals.loky import process_executor

    # loky replaces workers that grow, and counts pages of memory-mapped corpora as growth.
    process_executor._USE_PSUTIL = False
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, however that ended."""
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)
