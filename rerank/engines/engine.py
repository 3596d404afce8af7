"""An ordered, lazy map over tasks: one window of futures, whoever computes them; no result depends on who does."""

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import CancelledError, wait
from itertools import chain, islice
from textwrap import shorten
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from rerank.base.errors import RecipeError, RunError
from rerank.base.interrupts import deferred
from rerank.base.ranges import Range
from rerank.engines.workers import Dask, Processes, carry_out

Task = TypeVar("Task")
Result = TypeVar("Result")
PATIENCE = 5.0  # seconds: starting workers takes two or three, and memory


class Engine:
    """Carries out tasks, by the workers of ``pool`` or in this process; a context manager, which frees the workers.

    patience: seconds of work in this process before there are workers. workers: how many tasks that need much memory
    are done at once; with patience, one. No result depends on any of this.
    """

    def __init__(self, pool: Any = None, patience: float = 0.0) -> None:
        self._pool, self._patience = pool, patience
        self.workers: int = 1 if pool is None or patience else pool.workers

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Generator[Result, None, None]:
        """The results of ``function`` on ``tasks``, in their order; what it raises comes in place of its result.

        function: defined at module level, and pure: a task whose worker dies is carried out again. tasks: small values
        that can be pickled, with data given by path; at most 2 · workers + 1 are drawn ahead of the results.

        Raises
        ------
        RunError: workers die repeatedly, or cannot be reached.
        """
        from rerank.base.progress import Compilation  # rich: only where there is work

        pool, rest, spent = self._pool, iter(tasks), 0.0
        while (pool is None or spent < self._patience) and (drawn := list(islice(rest, 1))):
            begun = time.monotonic() - Compilation.seconds  # compiling is soon over
            result = function(*drawn)
            spent += time.monotonic() - Compilation.seconds - begun
            yield result
        start = list(islice(rest, 2))
        if len(start) < 2:  # a single task is not worth a worker
            yield from map(function, start)
            return
        self._patience = 0.0  # now there are workers
        window = deque[Any]()
        try:
            for task in chain(start, rest):
                with deferred():  # an interrupt meanwhile would leave half a future, or half a worker
                    window.append((task, pool.submit(carry_out, function, task)))
                if len(window) > 2 * pool.workers:
                    yield _first(window, pool, function)
            while window:
                yield _first(window, pool, function)
        finally:
            for _, future in window:
                future.cancel()

    def expect_long(self) -> None:
        """Have workers take over without further patience."""
        self._patience = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(kill_workers=kind is not None)


def _first(window: deque[Any], pool: Any, function: Callable[[Any], Any]) -> Any:
    """Take the first task out of ``window``, log its warnings, and return its result; where its worker has died, it is
    tried again by itself: then no other can be to blame."""
    task, future = window.popleft()
    for left in reversed(range(pool.tries)):
        try:
            result, warnings = future.result()
        except pool.death:
            if left:
                wait([other for _, other in window])
                with deferred():
                    future = pool.submit(carry_out, function, task)
        except (CancelledError, OSError):  # those of tasks are wrapped
            raise RunError("the Dask scheduler is gone; start it again and continue with --resume") from None
        else:
            for level, message in warnings:
                logging.getLogger("rerank").log(level, "%s", message)
            return result
    raise RunError(
        f"a worker died 3 times over the same work, {shorten(str(task), 100)}; most often memory runs out: "
        f"take fewer workers than {pool.workers} (`--workers`), or smaller shards (`data.shard_size`)"
    )


class EngineSettings(BaseModel):
    """name: local (this process), processes (on this machine), dask (on a cluster, or on this machine); auto is this
    process, and processes for work that turns out to be long.

    workers: how many work at once, all cores by default; a running cluster brings its own. address: that of a running
    Dask scheduler.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["auto", "local", "processes", "dask"] = "auto"
    workers: Annotated[int, Range(1, 1024)] | None = None
    address: str | None = None


def open_engine(settings: EngineSettings) -> Engine:
    """The engine of ``settings``, to be used as a context manager."""
    name, workers = settings.name, settings.workers
    if settings.address is not None and name != "dask":
        raise RecipeError(f"the engine {name} has no address; use dask", key="engine.address")
    if name == "local" and workers not in (None, 1):
        message = f"found {workers}, but the engine local is this process alone; use processes"
        raise RecipeError(message, key="engine.workers")
    from rerank.kernels.threads import cores  # numba: only where there is work

    workers = workers or cores()
    if name == "local" or (name == "auto" and workers == 1):
        return Engine()
    if name == "dask":
        return Engine(Dask(workers, settings.address))
    return Engine(Processes(workers), patience=PATIENCE if name == "auto" else 0.0)
