"""The cost of a piece of work: seconds, processor time and memory of this process and of those it has started."""

import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any

import psutil

INTERVAL = 0.1  # seconds between two memory samples
SHARE = 0.02  # of the time, at most, goes into looking for new processes, which is slow where many run


class Usage:
    """Measures its block; afterwards ``as_dict`` has the numbers.

    Memory is what the processes hold in RAM for themselves, sampled and added up; pages of memory-mapped files do not
    count, as the system takes them back when it needs room.
    """

    def __init__(self) -> None:
        self.seconds = self.cpu_seconds = 0.0
        self.peak_memory_bytes = 0
        self._own = psutil.Process()
        self._workers: dict[int, psutil.Process] = {}
        self._cpu_before: dict[int, float] = {}
        self._cpu: dict[int, float] = {}
        self._stop = threading.Event()
        self._sampler = threading.Thread(target=self._sample, name="usage", daemon=True)

    def __enter__(self) -> "Usage":
        self._start, self._cpu_start = time.monotonic(), time.process_time()
        self._look_for_workers()
        self._cpu_before = dict(self._cpu)
        self._look_at_memory()
        self._sampler.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._sampler.join()
        self._look_for_workers()
        self._look_at_memory()
        self.seconds = time.monotonic() - self._start
        of_workers = sum(seconds - self._cpu_before.get(pid, 0.0) for pid, seconds in self._cpu.items())
        self.cpu_seconds = time.process_time() - self._cpu_start + of_workers

    def as_dict(self) -> dict[str, Any]:
        """``seconds``, ``cpu_seconds`` and ``peak_memory_bytes``."""
        times = {"seconds": round(self.seconds, 3), "cpu_seconds": round(self.cpu_seconds, 3)}
        return {**times, "peak_memory_bytes": self.peak_memory_bytes}

    def _sample(self) -> None:
        due = time.monotonic() + 1.0
        while not self._stop.wait(INTERVAL):
            self._look_at_memory()
            if (start := time.monotonic()) >= due:
                self._look_for_workers()
                due = start + max(1.0, (time.monotonic() - start) / SHARE)

    def _look_for_workers(self) -> None:
        with suppress(psutil.Error):  # one that ended meanwhile: the next look finds the others
            self._workers = {process.pid: process for process in self._own.children(recursive=True)}
            for pid, process in self._workers.items():
                with suppress(psutil.Error):
                    times = process.cpu_times()
                    self._cpu[pid] = times.user + times.system

    def _look_at_memory(self) -> None:
        held = 0
        for process in (self._own, *self._workers.values()):
            with suppress(psutil.Error):
                info = process.memory_info()
                held += info.rss - getattr(info, "shared", 0)
        self.peak_memory_bytes = max(self.peak_memory_bytes, held)
