"""The engine that carries out the tasks of a run; results do not depend on it."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict

from rerank.base.errors import RecipeError
from rerank.base.ranges import Range
from rerank.engines.base import Engine, LocalEngine

__all__ = ["Engine", "EngineSettings", "LocalEngine", "open_engine"]


class EngineSettings(BaseModel):
    """name: local (this process), processes (on this machine), dask or ray (on a cluster, or on this machine); auto is
    this process, and processes for work that turns out to be long.

    workers: how many work at once, all cores by default; a running cluster brings its own. address: that of a running
    Dask scheduler or Ray cluster.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["auto", "local", "processes", "dask", "ray"] = "auto"
    workers: Annotated[int, Range(1, 1024)] | None = None
    address: str | None = None


def open_engine(settings: EngineSettings) -> Engine:
    """The engine of ``settings``, to be used as a context manager."""
    if settings.address is not None and settings.name not in ("dask", "ray"):
        raise RecipeError(f"the engine {settings.name} has no address; use dask or ray", key="engine.address")
    if settings.name == "local":
        if settings.workers not in (None, 1):
            raise RecipeError(
                f"found {settings.workers}, but the engine local is this process alone; use processes",
                key="engine.workers",
            )
        return LocalEngine()
    from rerank.engines.dask import DaskEngine  # with what only work that is distributed needs
    from rerank.engines.processes import PatientEngine, ProcessEngine
    from rerank.engines.ray import RayEngine

    workers = settings.workers or cores()
    if settings.name == "auto":
        return PatientEngine(workers)
    if settings.name == "processes":
        return ProcessEngine(workers)
    return (DaskEngine if settings.name == "dask" else RayEngine)(workers, settings.address)


def cores() -> int:
    """The number of processors that this process may use."""
    from joblib.externals.loky import cpu_count

    return int(cpu_count())
