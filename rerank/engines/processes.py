"""Worker processes on this machine, by joblib's loky."""

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rerank.engines.base import DEATHS, WorkerEngine, too_many_deaths
from rerank.engines.worker import THREADS, become_worker, carry_out, interrupts_held_back, result_of


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
        """Have workers been started?"""
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
