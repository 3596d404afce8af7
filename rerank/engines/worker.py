"""The worker's side of an engine: how a process becomes a worker, and how it runs a task."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from rerank.base.errors import RerankError, UnforeseenError, Warnings, collected_warnings
from rerank.base.progress import console

WATCH_SECONDS = 1.0

# One thread per worker: with as many workers as cores, there are no cores for more.
THREADS = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR", "NUMBA")
}
logger = logging.getLogger("rerank")


class Done(NamedTuple):
    """A result, and the warnings that were logged while it was computed."""

    result: Any
    warnings: Warnings


def carry_out(function: Callable[[Any], Any], task: Any) -> Done:
    """``function(task)`` with the warnings that it logs: the run's own process shows them, in the order of tasks."""
    if not console.quiet:
        logger.handlers, logger.propagate = [logging.NullHandler()], False
        logger.setLevel(logging.WARNING)
        console.quiet = True  # the run's own process shows progress
    try:
        with collected_warnings() as kept:
            return Done(function(task), kept)
    except RerankError:
        raise
    except (Exception, SystemExit) as error:
        raise UnforeseenError.of(error) from None


def result_of(done: Done) -> Any:
    """The result, after its warnings have been logged here."""
    for level, message in done.warnings:
        logger.log(level, "%s", message)
    return done.result


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """What starts within the block never sees SIGINT: an interrupt reaches this process alone, after the block.

    Processes and threads inherit the mask; a handler set by the worker itself would come too late for workers that
    are interrupted while they start.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def become_worker(parent: int) -> None:
    """Set up a worker process on this machine: it ends with its ``parent`` (a process id) and not before."""
    from joblib.externals.loky import process_executor

    # loky replaces workers that grow, and counts pages of memory-mapped corpora as growth.
    process_executor._USE_PSUTIL = False
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, however that happened."""
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)
