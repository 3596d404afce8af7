"""What an engine is: a lazy, ordered map over tasks, by other processes or in this one."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain, islice
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

from rerank.base.errors import RunError

Task = TypeVar("Task")
Result = TypeVar("Result")
DEATHS = 3  # of workers on one task, after which it is given up
Attempt = TypeVar("Attempt")  # an engine's handle of a submitted task


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
        """How many tasks may be drawn before the result of the first one is taken."""
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
        """Have a worker carry out ``function(task)``, without waiting for it."""

    @abstractmethod
    def first(self, window: deque[Attempt]) -> Any:
        """Wait for the first attempt in ``window``, take it out and return its result."""

    @abstractmethod
    def abandon(self, window: deque[Attempt]) -> None:
        """Nobody waits for ``window`` any more: tasks that have not begun need not begin."""

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Generator[Result, None, None]:
        """See ``Engine``. A single task is not worth a worker and is carried out here."""
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
