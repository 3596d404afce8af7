"""This process at first, and worker processes once the work turns out to be long."""

import time
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

from rerank.engines.base import Engine
from rerank.engines.processes import ProcessEngine

PATIENCE = 5.0  # seconds: starting workers takes two or three, and memory
Task = TypeVar("Task")
Result = TypeVar("Result")


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
        """See ``Engine``. Only time spent in ``function`` counts."""
        rest, taken = iter(tasks), 0.0
        if self._processes is not None and (self._processes.started or self._patience <= 0):
            yield from self._processes.map(function, rest)
            return
        for task in rest:
            start = time.monotonic()
            result = function(task)
            taken += time.monotonic() - start
            yield result
            if self._processes is not None and taken > self._patience:
                yield from self._processes.map(function, rest)
                return

    def expect_long(self) -> None:
        """See ``Engine``: workers take over without further patience."""
        self._patience = 0.0

    def close(self) -> None:
        if self._processes is not None:
            self._processes.close()

    def stop(self) -> None:
        if self._processes is not None:
            self._processes.stop()
