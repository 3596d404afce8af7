"""A process that tries inputs: when it crashes or hangs, its inputs are still there, and another takes its place."""

import contextlib
import faulthandler
import logging
import multiprocessing
import os
import resource
import shutil
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from .judging import Outcome, judge, write_case
from .targets import make_case, warm_up

SECONDS = 300.0  # for one input, kernels it is the first to need included; more is a hang
STARTING = 1200.0  # for a process, until it has its samples
ROOM = 768 << 20  # bytes of address space for one input, and
ROOM_PER_BYTE = 40  # for each byte of its files
_STARTING = threading.Lock()  # the environment is that of all threads


class Tried(NamedTuple):
    """What came of an input."""

    target: str
    outcome: Outcome
    seconds: float
    damaged: str = ""
    large: bool = False


Try = Callable[[int, int, str | None, Path], Tried]


def try_input(seed: int, number: int, only: str | None, directory: Path) -> Tried:
    """Make input ``number`` in ``directory`` and try it within a bound of memory."""
    try:
        case = make_case(seed, number, only)
        write_case(case, directory)
    except Exception:
        return Tried(only or "?", Outcome("the fuzzer's own fault", traceback.format_exc()), 0.0)
    size = sum(map(len, case.files.values()))
    start = time.perf_counter()
    with _bounded(ROOM + ROOM_PER_BYTE * size):
        outcome = judge(case, directory, seed, number)
    return Tried(case.target, outcome, time.perf_counter() - start, case.damaged, case.large)


@contextlib.contextmanager
def _bounded(room: int):
    """No more than ``room`` bytes of address space beyond those in use."""
    used = 0  # where the system does not say
    with contextlib.suppress(OSError), open("/proc/self/status") as lines:
        used = next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmSize:")), 0)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if used:
        resource.setrlimit(resource.RLIMIT_AS, (used + room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _work(connection: Connection, directory: Path, try_one: Try) -> None:
    """Try what comes over ``connection`` until there is nothing more."""
    logging.getLogger("rerank").addHandler(logging.NullHandler())
    logging.getLogger("rerank").propagate = False
    with open(directory / "crash.txt", "w") as log, contextlib.suppress(EOFError):
        faulthandler.enable(log)
        if try_one is try_input:
            warm_up()
        connection.send("ready")
        while True:
            seed, number, only = connection.recv()
            place = directory / "input"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            connection.send(try_one(seed, number, only, place))


class Worker:
    """A process and what it has been given; inputs lie in ``directory``/input.

    checked: kernels look for indices out of bounds, which are errors then; they are compiled into a cache of their own.
    start: "spawn", or "fork" for a copy of this process, which has its samples and kernels already.
    """

    def __init__(
        self,
        directory: Path,
        *,
        checked: bool = False,
        kernels: Path | None = None,
        try_one: Try = try_input,
        start: str = "spawn",
    ):
        self.directory, self.checked, self.kernels, self.try_one = directory, checked, kernels, try_one
        self._context: Any = multiprocessing.get_context(start)
        directory.mkdir(parents=True, exist_ok=True)
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None

    def start(self) -> Connection:
        """The connection to the process, which is started if there is none."""
        if self._process is not None and self._process.is_alive() and self._connection is not None:
            return self._connection
        self._connection, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_work, args=(theirs, self.directory, self.try_one), daemon=True)
        with _STARTING, _environment(self.checked, self.kernels):
            self._process.start()
        theirs.close()
        if not self._connection.poll(STARTING) or self._connection.recv() != "ready":
            raise RuntimeError(f"a process that tries inputs is not ready after {STARTING:.0f} s")
        return self._connection

    def run(self, seed: int, number: int, only: str | None = None, seconds: float = SECONDS) -> Tried:
        """Try an input; the end of the process, or of the time, is an outcome too."""
        connection, start = self.start(), time.perf_counter()
        connection.send((seed, number, only))
        try:
            if connection.poll(seconds):
                found: Tried = connection.recv()
                return found
            self.stop()
            kind, details = "hang", f"no answer within {seconds:.0f} s"
        except (EOFError, ConnectionResetError):
            assert self._process is not None
            self._process.join()
            kind, details = "crash", f"exit code {self._process.exitcode}"
        details += "\n" + (self.directory / "crash.txt").read_text()
        target = only or make_case(seed, number).target
        return Tried(target, Outcome(kind, details), time.perf_counter() - start)

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = self._connection = None


@contextlib.contextmanager
def _environment(checked: bool, kernels: Path | None):
    """The environment of a process whose kernels check bounds."""
    if not checked:
        yield
        return
    before = dict(os.environ)
    os.environ |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(kernels)}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
