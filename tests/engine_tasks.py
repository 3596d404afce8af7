"""Functions for engines to carry out; workers import them from here."""

import logging
import os
import signal
import time
from pathlib import Path

from programs import PATIENCE

from rerank.base.errors import DataError

logger = logging.getLogger("rerank")


def square(number: int) -> int:
    """A task; 5 cannot be squared, 3 takes a while."""
    if number == 3:
        time.sleep(0.1)
    if number == 5:
        raise DataError("five", path="numbers", line=5)
    return number * number


class StrangeError(Exception):
    """An exception that cannot be pickled, and says nothing."""

    def __init__(self, *_: object, needed: object) -> None:
        super().__init__(needed)

    def __str__(self) -> str:
        raise ValueError("no text")


def break_down(kind: str) -> str:
    """A task that ends as nobody foresaw."""
    if kind == "StrangeError":
        raise StrangeError(needed=lambda: None)
    if kind:
        raise {"KeyError": KeyError, "MemoryError": MemoryError, "SystemExit": SystemExit}[kind]()
    return kind


def warn(number: int) -> int:
    """A task that talks."""
    logger.info("nobody hears this")
    logger.warning("seen %d", number)
    return number


def die_once(task: tuple[Path, int]) -> int:
    """A task whose worker is killed the first time."""
    mark, number = task
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def die(number: int) -> int:
    """A task that no worker survives."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def own_id(_number: int) -> tuple[int, str]:
    """Which process works, and how many threads numba may use there."""
    time.sleep(0.05)
    return os.getpid(), os.environ.get("NUMBA_NUM_THREADS", "")


def meet(task: tuple[Path, int]) -> tuple[int, str]:
    """``own_id``, as soon as two processes are at work."""
    directory, _ = task
    (directory / str(os.getpid())).touch()
    end = time.monotonic() + PATIENCE
    while len(list(directory.iterdir())) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    return own_id(0)
