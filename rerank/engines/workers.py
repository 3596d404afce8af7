"""Pools of workers, processes of this machine (by loky) or those of a Dask cluster, and what workers do."""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack
from importlib import import_module
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from rerank.base.errors import RecipeError, RerankError, RunError, UnforeseenError, Warnings, collected_warnings
from rerank.base.interrupts import held_back

ANY = "127.0.0.1:0"  # a port that is free
SECONDS = 10  # within which a scheduler and the first of its workers must answer
LIBRARIES = ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR", "NUMBA")
THREADS = {f"{library}_NUM_THREADS": "1" for library in LIBRARIES}  # there are as many workers as cores


class Processes:
    """``workers`` processes, started with the first task, and all of them anew when one has died."""

    death, tries = BrokenExecutor, 3

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._executor: Any = None

    def submit(self, *call: Any) -> Any:
        """A future of ``call``, a function and its arguments."""
        from joblib.externals.loky.process_executor import ProcessPoolExecutor

        with held_back():
            try:
                if self._executor is not None:
                    return self._executor.submit(*call)
            except BrokenExecutor:
                self.shutdown(kill_workers=True)
            own = (os.getpid(),)
            self._executor = ProcessPoolExecutor(self.workers, initializer=become_worker, initargs=own, env=THREADS)
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
        resource_tracker.ensure_running()  # which would let interrupts through again
        try:
            if address:  # a client that reaches nobody is not always willing to end
                place = distributed.comm.parse_host_port(address.rpartition("://")[2])
                socket.create_connection(place, SECONDS).close()
            with ExitStack() as opened, dask.config.set(settings), held_back():
                cluster = address or opened.enter_context(distributed.LocalCluster(dashboard_address=ANY, **local))
                client = opened.enter_context(distributed.Client(cluster, timeout=SECONDS, set_as_default=False))
                client.wait_for_workers(1, timeout=SECONDS)
                self.workers, self.death = sum(client.nthreads().values()), distributed.KilledWorker
                self.submit, self._opened = client.get_executor(pure=False).submit, opened.pop_all()
        # MemoryError: something else answers. AssertionError: the client's loop did not start in 10 s.
        except (OSError, ValueError, MemoryError, AssertionError) as error:
            said = f"no Dask scheduler with workers answers ({str(error) or 'its client did not start in time'})"
            raise RunError(f"{address}: {said}; start it, or correct --address") from None

    def shutdown(self, kill_workers: bool) -> None:  # noqa: ARG002 - nobody waits for their tasks
        """Free the workers."""
        self._opened.close()


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
