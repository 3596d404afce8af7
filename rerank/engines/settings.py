"""The engine that carries out the tasks of a run; results do not depend on it."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict

from rerank.base.errors import RecipeError
from rerank.base.ranges import Range
from rerank.engines.base import Engine, LocalEngine

__all__ = ["Engine", "EngineSettings", "LocalEngine", "open_engine"]
PATIENCE = 5.0  # seconds: starting workers takes two or three, and memory


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
    from rerank.engines.workers import Dask, Processes  # with what only work that is distributed needs

    workers = workers or cores()
    if name == "local" or (name == "auto" and workers == 1):
        return LocalEngine()
    if name == "dask":
        return Engine(Dask(workers, settings.address))
    return Engine(Processes(workers), patience=PATIENCE if name == "auto" else 0.0)


def cores() -> int:
    """The number of processors that this process may use."""
    from joblib.externals.loky import cpu_count

    return int(cpu_count())
