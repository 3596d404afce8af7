"""A suite that is told to end does: in order, so that fixtures end what they started, and then by force."""

import os
import signal
import threading
import time

import pytest

INTERVAL, POLITE = 0.5, 60.0  # seconds from one look to the next, and for an end in order


def heed_signals() -> None:
    """SIGTERM interrupts the tests as SIGINT does; in the background of a shell that would be ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


def end_with_parent() -> None:
    """Interrupt this process, one of several that run tests, when the one that started it is gone."""
    threading.Thread(target=_watch, args=(os.getppid(),), name="parent", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(INTERVAL)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(POLITE)
    os._exit(1)


def pytest_configure(config: pytest.Config) -> None:
    """For the process that tests run in, and for those that it leaves them to."""
    heed_signals()
    if hasattr(config, "workerinput"):
        end_with_parent()
