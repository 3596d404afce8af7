"""Workers of a Ray cluster: one that is running already, or one on this machine."""

import logging
import os
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from rerank.base.errors import RecipeError, RunError
from rerank.engines.base import (
    DEATHS,
    THREADS,
    WorkerEngine,
    carry_out,
    interrupts_held_back,
    result_of,
    too_many_deaths,
)

SECONDS = 10  # within which a cluster must answer


class RayEngine(WorkerEngine[Any]):
    """Tasks go to the cluster at ``address``, or to ``workers`` processes on this machine; one processor per task.

    A running cluster has as many workers as it has processors, whatever ``workers`` says. Its workers need this
    package, and the files of the run under the same paths.
    """

    name = "ray"

    def __init__(self, workers: int, address: str | None) -> None:
        try:
            ray: Any = import_module("ray")
        except ImportError:
            message = "the package ray is not installed; install rerank[ray]"
            raise RecipeError(message, key="engine.name") from None
        super().__init__(workers)
        self._ray = ray
        local: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False} if address is None else {}
        if address is not None and address != "auto":
            _look_for(address)
        try:
            with interrupts_held_back(), _environment():
                ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **local)
        except (ConnectionError, TimeoutError, RuntimeError, ValueError) as error:
            raise RunError(f"{address or 'Ray'}: cannot be used ({error}); start it, or correct --address") from None
        if address is not None:
            self.workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._carry_out = ray.remote(num_cpus=1, max_retries=DEATHS - 1, retry_exceptions=False)(carry_out)

    def submit(self, function: Callable[[Any], Any], task: Any) -> Any:
        return self._carry_out.remote(function, task)

    def first(self, window: deque[Any]) -> Any:
        """Ray itself retries tasks of dead workers."""
        future, errors = window.popleft(), self._ray.exceptions
        try:
            return result_of(self._ray.get(future))
        except errors.RayTaskError as error:
            raise error.cause from None
        except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError):
            raise too_many_deaths(self.workers) from None
        except errors.RayError as error:
            raise RunError(f"the Ray cluster failed ({error}); start it again and continue with --resume") from None

    def abandon(self, window: deque[Any]) -> None:
        for future in window:
            self._ray.cancel(future)

    def close(self) -> None:
        self._ray.shutdown()


@contextmanager
def _environment() -> Iterator[None]:
    """Processes started within the block find the modules that this one finds, and compute with one thread."""
    paths = os.pathsep.join(dict.fromkeys([*filter(None, sys.path), os.getcwd()]))
    changes = {**THREADS, "PYTHONPATH": paths}
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _look_for(address: str) -> None:
    """Refuse an address where nothing answers; Ray itself would wait much longer."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise RecipeError(f"found {address!r}; expected one like HOST:6379", key="engine.address")
    try:
        socket.create_connection((host, int(port)), timeout=SECONDS).close()
    except (OSError, OverflowError) as error:
        raise RunError(f"{address}: no Ray cluster answers ({error}); start it, or correct --address") from None
