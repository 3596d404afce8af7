"""Workers of a Dask cluster: one that is running already, or one of processes on this machine."""

import logging
from collections import deque
from collections.abc import Callable
from importlib import import_module
from typing import Any

from rerank.base.errors import RecipeError, RunError
from rerank.engines.base import DEATHS, WorkerEngine, carry_out, interrupts_held_back, result_of, too_many_deaths

SECONDS = 10  # within which a scheduler and the first of its workers must answer


class DaskEngine(WorkerEngine[Any]):
    """Tasks go to the scheduler at ``address``, or to ``workers`` processes on this machine, with one thread each.

    A running cluster has as many workers as it has threads, whatever ``workers`` says. Its workers need this package,
    and the files of the run under the same paths.
    """

    name = "dask"

    def __init__(self, workers: int, address: str | None) -> None:
        try:
            dask: Any = import_module("dask")
            distributed: Any = import_module("distributed")
        except ImportError:
            message = "the package distributed is not installed; install rerank[dask]"
            raise RecipeError(message, key="engine.name") from None
        super().__init__(workers)
        self._distributed = distributed
        self._cluster: Any = None
        with dask.config.set({"distributed.scheduler.allowed-failures": DEATHS - 1}), interrupts_held_back():
            if address is None:
                self._cluster = distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    memory_limit=None,  # pages of memory-mapped corpora would count towards it, and make workers pause
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )
            self._client = self._connect(address)

    def _connect(self, address: str | None) -> Any:
        """A client of the scheduler, once that has at least one worker."""
        client = None
        try:
            client = self._distributed.Client(address or self._cluster, timeout=SECONDS, set_as_default=False)
            client.wait_for_workers(1, timeout=SECONDS)
            self.workers = sum(client.nthreads().values())
        except ValueError as error:
            raise RecipeError(
                f"found {address!r} ({error}); expected one like tcp://HOST:8786", key="engine.address"
            ) from None
        # MemoryError: something else answers. AssertionError: the client's loop did not start in 10 s.
        except (OSError, TimeoutError, MemoryError, AssertionError) as error:
            why = error if str(error) else "its client did not start in time"
            what = "the scheduler has no workers" if client is not None else f"no Dask scheduler answers ({why})"
            if client is not None:
                client.close()
            raise RunError(f"{address}: {what}; start it, or correct --address") from None
        return client

    def submit(self, function: Callable[[Any], Any], task: Any) -> Any:
        return self._client.submit(carry_out, function, task, pure=False)

    def first(self, window: deque[Any]) -> Any:
        """The scheduler itself retries tasks of dead workers."""
        future = window.popleft()
        try:
            return result_of(future.result())
        except self._distributed.KilledWorker:
            raise too_many_deaths(self.workers) from None
        except (self._distributed.CancelledError, OSError) as error:
            if self._client.status == "running" and isinstance(error, OSError):
                raise  # an error of the task itself
            raise RunError("the Dask scheduler is gone; start it again and continue with --resume") from None

    def abandon(self, window: deque[Any]) -> None:
        if window and self._client.status == "running":
            self._client.cancel(list(window))

    def close(self) -> None:
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()
