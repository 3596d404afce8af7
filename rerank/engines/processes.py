"""Worker processes on this machine, by joblib's loky: from the first task on, or once the work turns out to be long."""

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any

from rerank.base.progress import Compilation
from rerank.engines.base import (
    DEATHS,
    THREADS,
    Engine,
    Result,
    Task,
    WorkerEngine,
    become_worker,
    carry_out,
    interrupts_held_back,
    result_of,
    too_many_deaths,
)

PATIENCE = 5.0  # seconds: starting workers takes two or three, and memory


@dataclass
class Attempt:
    """A task under way; deaths: how often workers have died meanwhile."""

    function: Callable[[Any], Any]
    task: Any
    future: Any
    deaths: int = 0


class ProcessEngine(WorkerEngine[Attempt]):
    """``workers`` processes, started with the first task; dead ones are replaced and their tasks retried."""

    name = "processes"

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self._pool: Any = None

    @property
    def started(self) -> bool:
        """Whether workers have been started."""
        return self._pool is not None

    def submit(self, function: Callable[[Any], Any], task: Any) -> Attempt:
        return Attempt(function, task, self._start(function, task))

    def _start(self, function: Callable[[Any], Any], task: Any) -> Any:
        """A future of the task, in a new pool if the last one has lost a worker."""
        from joblib.externals.loky.process_executor import BrokenProcessPool, ProcessPoolExecutor

        with interrupts_held_back():
            if self._pool is not None:
                try:
                    return self._pool.submit(carry_out, function, task)
                except BrokenProcessPool:
                    self.stop()
            self._pool = ProcessPoolExecutor(
                self.workers, initializer=become_worker, initargs=(os.getpid(),), env=THREADS
            )
            return self._pool.submit(carry_out, function, task)

    def first(self, window: deque[Attempt]) -> Any:
        from joblib.externals.loky.process_executor import BrokenProcessPool

        while True:
            try:
                done = window[0].future.result()
            except BrokenProcessPool:
                self._again(window)
            else:
                window.popleft()
                return result_of(done)

    def _again(self, window: deque[Attempt]) -> None:
        """Retry the tasks in ``window`` that were lost with the pool."""
        from joblib.externals.loky.process_executor import BrokenProcessPool

        for attempt in window:
            if attempt.future.done() and isinstance(attempt.future.exception(), BrokenProcessPool):
                attempt.deaths += 1
                if attempt.deaths == DEATHS:
                    raise too_many_deaths(self.workers)
                attempt.future = self._start(attempt.function, attempt.task)

    def abandon(self, window: deque[Attempt]) -> None:
        for attempt in window:
            attempt.future.cancel()

    def close(self) -> None:
        self._shut_down(kill=False)

    def stop(self) -> None:
        self._shut_down(kill=True)

    def _shut_down(self, *, kill: bool) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, kill_workers=kill)


class PatientEngine(Engine):
    """Carries out tasks in this process for some seconds, then hands what is left to all cores of the machine.

    Once there are workers, they get all tasks.

    ``workers`` is 1: the runs of a recipe are trained one after the other, in the memory that one of them needs.
    """

    name = "auto"
    workers = 1

    def __init__(self, cores: int, patience: float = PATIENCE) -> None:
        self._processes = ProcessEngine(cores) if cores > 1 else None
        self._patience = patience

    @property
    def ahead(self) -> int:
        return super().ahead if self._processes is None else self._processes.ahead

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Generator[Result, None, None]:
        """Only time spent in ``function`` counts, but for compiling kernels, which is soon over."""
        rest, taken = iter(tasks), 0.0
        if self._processes is not None and (self._processes.started or self._patience <= 0):
            yield from self._processes.map(function, rest)
            return
        for task in rest:
            start, compiling = time.monotonic(), Compilation.seconds
            result = function(task)
            taken += time.monotonic() - start - (Compilation.seconds - compiling)
            yield result
            if self._processes is not None and taken > self._patience:
                yield from self._processes.map(function, rest)
                return

    def expect_long(self) -> None:
        """Workers take over without further patience."""
        self._patience = 0.0

    def close(self) -> None:
        if self._processes is not None:
            self._processes.close()

    def stop(self) -> None:
        if self._processes is not None:
            self._processes.stop()
