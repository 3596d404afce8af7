"""Programs that tests start: how long they may take, and how they are ended."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

# Seconds that a program may take for what takes one or two on an idle machine: others may be at work, and kernels
# may have to be compiled. Only what hangs takes longer.
PATIENCE = 1200.0
POLITE = 10.0  # seconds from a request to end to the end by force


@contextmanager
def program(*command: object, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A program for the time of the block; with everything that it has started it ends then, by force if need be."""
    running = subprocess.Popen([os.fspath(part) for part in command], start_new_session=True, **options)  # type: ignore[call-overload]
    try:
        yield running
    finally:
        end(running)


def end(running: subprocess.Popen[bytes], polite: float = POLITE) -> None:
    """End the leader of a session and all that is in it: ask, wait for a while, kill."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(running.pid, number)
        with suppress(subprocess.TimeoutExpired):
            running.wait(polite if number == signal.SIGTERM else None)
