"""The interface of engines: a lazy, ordered map over tasks, by other processes or in this one; and how a process
becomes a worker, and runs a task."""

import logging
import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from types import TracebackType
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from rerank.base.errors import RerankError, RunError, UnforeseenError, Warnings, collected_warnings

Task = TypeVar("Task")
Result = TypeVar("Result")
DEATHS = 3  # of workers on one task, after which it is given up
Attempt = TypeVar("Attempt")  # an engine's handle of a submitted task
WATCH_SECONDS = 1.0

# One thread per worker: with as many workers as cores, there are no cores for more.
THREADS = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR", "NUMBA")
}
logger = logging.getLogger("rerank")


def too_many_deaths(workers: int) -> RunError:
    """The error for a task that has cost DEATHS workers."""
    return RunError(
        f"a worker died {DEATHS} times over the same work; most often memory runs out: "
        f"take fewer workers than {workers} (`--workers`), or smaller shards (`data.shard_size`)"
    )


class Engine(ABC):
    """Carries out tasks; a context manager, which frees its workers at the end.

    name: the engine's name in recipes. workers: how many tasks run at once. A result never depends on either.
    """

    name: ClassVar[str]
    workers: int

    @property
    def ahead(self) -> int:
        """The number of tasks that may be drawn before the result of the first one is taken."""
        return 2 * self.workers + 1

    @abstractmethod
    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """The results of ``function`` on ``tasks``, in their order, each as soon as it is available.

        function: defined at module level, and pure: a task whose worker dies is carried out again. tasks: small values
        that can be pickled, with data given by path; they are drawn as needed, at most ``ahead`` of them in advance.

        Raises
        ------
        RunError: workers die repeatedly, or cannot be reached. What ``function`` raises is raised in place of its
        result.
        """

    def expect_long(self) -> None:  # noqa: B027 - most engines do not wait to see
        """Tell the engine that the work to come is long."""

    def close(self) -> None:  # noqa: B027 - there may be nothing to free
        """Free the workers."""

    def stop(self) -> None:
        """Free the workers without waiting for their current tasks."""
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.stop()


class LocalEngine(Engine):
    """One task after another in this process."""

    name = "local"
    workers = 1

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        return map(function, tasks)


class WorkerEngine(Engine, Generic[Attempt]):
    """An engine that submits tasks to workers and waits for the earliest of those under way."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    @abstractmethod
    def submit(self, function: Callable[[Any], Any], task: Any) -> Attempt:
        """Let a worker carry out ``function(task)``, without waiting for it."""

    @abstractmethod
    def first(self, window: deque[Attempt]) -> Any:
        """Wait for the first attempt in ``window``, take it out and return its result."""

    @abstractmethod
    def abandon(self, window: deque[Attempt]) -> None:
        """Nobody waits for ``window`` any more: tasks that have not begun need not begin."""

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Generator[Result, None, None]:
        """A single task is not worth a worker and is carried out here."""
        rest = iter(tasks)
        start = list(islice(rest, 2))
        if len(start) < 2:
            yield from map(function, start)
            return
        window: deque[Attempt] = deque()
        try:
            for task in chain(start, rest):
                window.append(self.submit(function, task))
                if len(window) == self.ahead:
                    yield self.first(window)
            while window:
                yield self.first(window)
        finally:
            self.abandon(window)


class Done(NamedTuple):
    """A result, and the warnings that were logged while it was computed."""

    result: Any
    warnings: Warnings


def carry_out(function: Callable[[Any], Any], task: Any) -> Done:
    """``function(task)`` with the warnings that it logs: the run's own process shows them, in the order of tasks."""
    from rerank.base.progress import console  # rich: only where something is shown

    if not console.quiet:
        logger.handlers, logger.propagate = [logging.NullHandler()], False
        logger.setLevel(logging.WARNING)
        console.quiet = True  # the run's own process shows progress
    try:
        with collected_warnings() as kept:
            return Done(function(task), kept)
    except RerankError:
        raise
    except (Exception, SystemExit) as error:
        raise UnforeseenError.of(error) from None


def result_of(done: Done) -> Any:
    """The result, after its warnings have been logged here."""
    for level, message in done.warnings:
        logger.log(level, "%s", message)
    return done.result


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """A process that starts within the block never sees SIGINT: an interrupt reaches this process alone, after the
    block.

    Processes and threads inherit the mask; a handler set by the worker itself would come too late for workers that
    are interrupted while they start.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def become_worker(parent: int) -> None:
    """Set up a worker process on this machine: it ends with its ``parent`` (a process id) and not before."""
    from joblib.externals.loky import process_executor

    # loky replaces workers that grow, and counts pages of memory-mapped corpora as growth.
    process_executor._USE_PSUTIL = False
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, however that happened."""
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)
