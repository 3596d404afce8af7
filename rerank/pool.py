"""Workers for tasks, memory and time: what a machine, or several, have for work.

An ordered, lazy map over tasks has one window of futures, whoever computes them; no result depends on who does. Workers
are processes of this machine (by loky) or those of a Dask cluster. What a piece of work has taken is measured with the
processes that it has started.
"""

import logging
import os
import resource
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import BrokenExecutor, CancelledError, wait
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from textwrap import shorten
from typing import Any, Self, TypeVar

import psutil

from rerank.base.errors import RecipeError, RerankError, RunError, UnforeseenError, Warnings, collected_warnings
from rerank.base.interrupts import defer_signals, mask_sigint

log = logging.getLogger("rerank")
Task = TypeVar("Task")
Result = TypeVar("Result")
PATIENCE = 5.0  # seconds: starting workers takes two or three, and memory
FREE_PORT = "127.0.0.1:0"  # a port that is free
CONNECT_SECONDS = 10  # in which a scheduler and the first of its workers must answer
LIBRARIES = ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR", "NUMBA")
THREADS = {f"{library}_NUM_THREADS": "1" for library in LIBRARIES}  # there are as many workers as cores
GROUPS, OWN_GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
SAMPLE_INTERVAL = 0.1  # seconds between two memory samples
SAMPLING_SHARE = 0.02  # of the time, at most, goes into looking at processes, which is slow where many run


class Engine:
    """Carries out tasks, by the workers of ``pool`` or in this process; a context manager, which frees the workers.

    patience: seconds of work in this process before there are workers. workers: how many tasks that need much memory
    are done at once; with patience, one. No result depends on any of this.
    """

    def __init__(self, pool: Any = None, patience: float = 0.0) -> None:
        self._pool, self._patience = pool, patience
        self.workers: int = 1 if pool is None or patience else pool.workers

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Generator[Result, None, None]:
        """Yield the results of ``function`` on ``tasks``, in their order; what it raises comes in place of its result.

        function: defined at module level, and pure: a task whose worker dies is carried out again. tasks: small values
        that can be pickled, with data given by path; at most 2 · workers + 1 are drawn ahead of the results.

        Raises
        ------
        RunError: workers die repeatedly, or cannot be reached.
        """
        from rerank.base.progress import Compilation  # rich: only where there is work

        pool, rest, spent = self._pool, iter(tasks), 0.0
        while (pool is None or spent < self._patience) and (batch := list(islice(rest, 1))):
            clock = time.monotonic() - Compilation.seconds  # compiling is soon over
            result = function(*batch)
            spent += time.monotonic() - Compilation.seconds - clock
            yield result
        start = list(islice(rest, 2))
        if len(start) < 2:  # a single task is not worth a worker
            yield from map(function, start)
            return
        self._patience = 0.0  # now there are workers
        window = deque[Any]()
        try:
            for task in chain(start, rest):
                with defer_signals():  # an interrupt meanwhile would leave half a future, or half a worker
                    window.append((task, pool.submit(carry_out, function, task)))
                if len(window) > 2 * pool.workers:
                    yield _first(window, pool, function)
            while window:
                yield _first(window, pool, function)
        finally:
            for _, future in window:
                with suppress(RuntimeError):  # of a Dask client that is closed before its map
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
    for retries in reversed(range(pool.tries)):
        try:
            result, warnings = future.result()
        except pool.death:
            if retries:
                wait([other for _, other in window])
                with defer_signals():
                    future = pool.submit(carry_out, function, task)
        except (CancelledError, OSError):  # those of tasks are wrapped
            raise RunError("the Dask scheduler is gone; start it again and continue with --resume") from None
        else:
            for level, message in warnings:
                log.log(level, "%s", message)
            return result
    raise RunError(
        f"a worker died 3 times over the same work, {shorten(str(task), 100)}; most often memory runs out: "
        f"take fewer workers than {pool.workers} (`--workers`), or smaller parts (`data.shard_size`)"
    )


class Processes:
    """``workers`` processes, started with the first task, and all of them anew when one has died."""

    death, tries = BrokenExecutor, 3

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._executor: Any = None

    def submit(self, *call: Any) -> Any:
        """Return a future of ``call``, a function and its arguments."""
        from joblib.externals.loky.process_executor import ProcessPoolExecutor

        with mask_sigint():
            try:
                if self._executor is not None:
                    return self._executor.submit(*call)
            except BrokenExecutor:
                self.shutdown(kill_workers=True)
            parent = (os.getpid(),)
            self._executor = ProcessPoolExecutor(self.workers, initializer=become_worker, initargs=parent, env=THREADS)
            return self._executor.submit(*call)

    def shutdown(self, kill_workers: bool) -> None:
        """Free the workers."""
        from joblib.externals.loky.backend.utils import kill_process_tree

        executor, self._executor = self._executor, None
        if executor is not None:
            # By loky itself they would live on where some task is cancelled, and the program wait for them for ever.
            for worker in list(executor._processes.values()) if kill_workers else ():
                kill_process_tree(worker)
            executor.shutdown()


class Dask:
    """The workers of the scheduler at ``address``, as many as it has threads, or ``workers`` processes of this machine.

    They need this package, and the files of the run under the same paths.
    """

    tries = 1  # the scheduler tries again itself

    def __init__(self, workers: int, address: str | None) -> None:
        try:
            dask, distributed = import_module("dask"), import_module("distributed")
        except ImportError:
            message = "the package distributed is not installed; install rerank[dask]"
            raise RecipeError(message, key="engine.name") from None
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # an error says what is lost
        settings = {"distributed.scheduler.allowed-failures": 2, "distributed.nanny.pre-spawn-environ": THREADS}
        # Without a limit of memory: pages of memory-mapped corpora would count, and make workers pause.
        local = {"n_workers": workers, "threads_per_worker": 1, "memory_limit": None, "silence_logs": logging.CRITICAL}
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()  # which would let interrupts through again
        try:
            if address:  # a client that reaches nobody is not always willing to end
                endpoint = distributed.comm.parse_host_port(address.rpartition("://")[2])
                socket.create_connection(endpoint, CONNECT_SECONDS).close()
            with ExitStack() as stack, dask.config.set(settings), mask_sigint():
                cluster = address or stack.enter_context(distributed.LocalCluster(dashboard_address=FREE_PORT, **local))
                client = stack.enter_context(distributed.Client(cluster, timeout=CONNECT_SECONDS, set_as_default=False))
                client.wait_for_workers(1, timeout=CONNECT_SECONDS)
                self.workers, self.death = sum(client.nthreads().values()), distributed.KilledWorker
                # Not its executor: that takes a result for an error whose worker died after sending it.
                self.submit, self._cluster = partial(client.submit, pure=False), stack.pop_all()
        # MemoryError: something else answers. AssertionError: the client's loop did not start in 10 s.
        except (OSError, ValueError, MemoryError, AssertionError) as error:
            message = f"no Dask scheduler with workers answers ({str(error) or 'its client did not start in time'})"
            raise RunError(f"{address}: {message}; start it, or correct --address") from None

    def shutdown(self, kill_workers: bool) -> None:  # noqa: ARG002 - nobody waits for their tasks
        """Free the workers."""
        self._cluster.close()


def carry_out(function: Callable[[Any], Any], task: Any) -> tuple[Any, Warnings]:
    """``function(task)``, and the warnings that it logs: the run's own process shows them, in the order of tasks."""
    from rerank.base.progress import console  # rich: only where there is work

    console.quiet = True  # the run's own process shows progress
    try:
        with collected_warnings() as warnings:
            return function(task), warnings
    except RerankError:
        raise
    except (Exception, SystemExit) as error:
        raise UnforeseenError.of(error) from None


def check_visible(directory: Path | str) -> None:
    """Raise a RunError if this worker does not see a directory of the run, or no longer, as nobody waits for it."""
    if not Path(directory).is_dir():
        who = f"the worker {socket.gethostname()}, process {os.getpid()},"
        raise RunError(f"{directory}: {who} does not see this folder; give all machines the same one under this path")


def become_worker(parent: int) -> None:
    """Set up a worker process on this machine: it ends with its ``parent`` (a process id) and not before."""
    from joblib.externals.loky import process_executor

    # loky replaces workers that grow, and counts pages of memory-mapped corpora as growth.
    process_executor._USE_PSUTIL = False
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def cores() -> int:
    """The number of processors that this process may use."""
    from joblib.externals.loky import cpu_count

    return int(cpu_count())


def open_engine(name: str = "auto", workers: int | None = None, address: str | None = None) -> Engine:
    """Return an engine, to be used as a context manager; see ``EngineSettings`` of recipes."""
    if address is not None and name != "dask":
        raise RecipeError(f"the engine {name} has no address; use dask", key="engine.address")
    if name == "local" and workers not in (None, 1):
        message = f"found {workers}, but the engine local is this process alone; use processes"
        raise RecipeError(message, key="engine.workers")
    workers = workers or cores()
    if name == "local" or (name == "auto" and workers == 1):
        return Engine()
    if name == "dask":
        return Engine(Dask(workers, address))
    return Engine(Processes(workers), patience=PATIENCE if name == "auto" else 0.0)


class Usage:
    """Measures its block; afterwards ``as_dict`` has the numbers.

    Memory is what the processes hold in RAM for themselves, sampled and added up; pages of memory-mapped files do not
    count, as the system takes them back when it needs room.
    """

    def __init__(self) -> None:
        self.seconds = self.cpu_seconds = 0.0
        self.peak_memory_bytes = 0
        self._process, self._cpu = psutil.Process(), dict[int, float]()  # by process, which may have ended
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
        pause = SAMPLE_INTERVAL
        while not self._stop.wait(pause):
            start = time.monotonic()
            self._look()
            pause = max(SAMPLE_INTERVAL, (time.monotonic() - start) / SAMPLING_SHARE)

    def _look(self) -> None:
        """Take the memory of all processes, and the time that they have taken."""
        memory = 0
        with suppress(psutil.Error):  # one that ended meanwhile: the next look finds the others
            for process in (self._process, *self._process.children(recursive=True)):
                memory += own_memory(process)
                self._cpu[process.pid] = sum(process.cpu_times()[:2])
        self.peak_memory_bytes = max(self.peak_memory_bytes, memory)


def own_memory(process: psutil.Process) -> int:
    """The bytes that a process holds in RAM, without mapped files, which give way."""
    info = process.memory_info()
    return int(info.rss - getattr(info, "shared", 0))


def memory_limit() -> int:
    """The bytes that this process may take: the memory of the machine, or a lower limit of its control group, of the
    groups around it, or of its address space."""
    limits: list[int] = [psutil.virtual_memory().total]
    for line in OWN_GROUP.read_text().splitlines() if OWN_GROUP.is_file() else ():
        group = GROUPS / line.rpartition(":")[2].lstrip("/")
        files = [folder / "memory.max" for folder in (group, *group.parents) if folder.is_relative_to(GROUPS)]
        texts = [file.read_text().strip() for file in files if file.is_file()]
        limits += [int(text) for text in texts if text.isdigit()]  # or max
    space = resource.getrlimit(resource.RLIMIT_AS)[0]
    return min(limits if space == resource.RLIM_INFINITY else [*limits, space])


def require(need: float, what: str, advice: str, key: str) -> None:
    """Refuse work that needs more bytes than there may be beside what this process holds, and warn where it needs more
    than half of those that are free. what: takes them; advice: how to need fewer, with ``key``."""
    room = max(0, memory_limit() - own_memory(psutil.Process()))
    message = f"{what} takes {need / 1e9:.1f} GB"
    if need > room:
        raise RecipeError(f"{message}, and this process may have {room / 1e9:.1f} GB more; {advice}", key=key)
    if need > (free := min(room, psutil.virtual_memory().available)) / 2:
        log.warning("%s; %.1f GB of memory are free", message, free / 1e9)
