"""Memory and time: what a piece of work has taken, with the processes it has started, and what a process may take."""

import logging
import resource
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from rerank.base.errors import RecipeError

log = logging.getLogger("rerank")
GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
INTERVAL = 0.1  # seconds between two memory samples
SHARE = 0.02  # of the time, at most, goes into looking at processes, which is slow where many run


class Usage:
    """Measures its block; afterwards ``as_dict`` has the numbers.

    Memory is what the processes hold in RAM for themselves, sampled and added up; pages of memory-mapped files do not
    count, as the system takes them back when it needs room.
    """

    def __init__(self) -> None:
        self.seconds = self.cpu_seconds = 0.0
        self.peak_memory_bytes = 0
        self._own, self._cpu = psutil.Process(), dict[int, float]()  # by process, which may have ended
        self._stop = threading.Event()
        self._sampler = threading.Thread(target=self._sample, name="usage", daemon=True)

    def __enter__(self) -> "Usage":
        self._start = time.monotonic()
        self._look()
        self._before = sum(self._cpu.values())
        self._sampler.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._sampler.join()
        self._look()
        self.seconds, self.cpu_seconds = time.monotonic() - self._start, sum(self._cpu.values()) - self._before

    def as_dict(self) -> dict[str, Any]:
        """``seconds``, ``cpu_seconds`` and ``peak_memory_bytes``."""
        times = {"seconds": round(self.seconds, 3), "cpu_seconds": round(self.cpu_seconds, 3)}
        return {**times, "peak_memory_bytes": self.peak_memory_bytes}

    def _sample(self) -> None:
        pause = INTERVAL
        while not self._stop.wait(pause):
            begun = time.monotonic()
            self._look()
            pause = max(INTERVAL, (time.monotonic() - begun) / SHARE)

    def _look(self) -> None:
        """Take the memory of all processes, and the time that they have taken."""
        held = 0
        with suppress(psutil.Error):  # one that ended meanwhile: the next look finds the others
            for process in (self._own, *self._own.children(recursive=True)):
                held += own_memory(process)
                self._cpu[process.pid] = sum(process.cpu_times()[:2])
        self.peak_memory_bytes = max(self.peak_memory_bytes, held)


def own_memory(process: psutil.Process) -> int:
    """The bytes that a process holds in RAM, without mapped files, which give way."""
    info = process.memory_info()
    return int(info.rss - getattr(info, "shared", 0))


def allowed() -> int:
    """The bytes that this process may take: the memory of the machine, or a lower limit of its control group, of the
    groups around it, or of its address space."""
    limits: list[int] = [psutil.virtual_memory().total]
    for line in OWN.read_text().splitlines() if OWN.is_file() else ():
        group = GROUPS / line.rpartition(":")[2].lstrip("/")
        files = [place / "memory.max" for place in (group, *group.parents) if place.is_relative_to(GROUPS)]
        held = [file.read_text().strip() for file in files if file.is_file()]
        limits += [int(text) for text in held if text.isdigit()]  # or max
    space = resource.getrlimit(resource.RLIMIT_AS)[0]
    return min(limits if space == resource.RLIM_INFINITY else [*limits, space])


def require(need: float, what: str, advice: str, key: str) -> None:
    """Refuse work that needs more bytes than there may be beside what this process holds, and warn where it needs more
    than half of those that are free. what: takes them; advice: how to need fewer, with ``key``."""
    room = max(0, allowed() - own_memory(psutil.Process()))
    said = f"{what} takes {need / 1e9:.1f} GB"
    if need > room:
        raise RecipeError(f"{said}, and this process may have {room / 1e9:.1f} GB more; {advice}", key=key)
    if need > (free := min(room, psutil.virtual_memory().available)) / 2:
        log.warning("%s; %.1f GB of memory are free", said, free / 1e9)
