"""Events for those who watch a training: after every epoch, a ``TrainingEvent``."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from rerank.base.errors import RunError
from rerank.base.registry import Registry
from rerank.learn.base import Weights


@dataclass(frozen=True)
class TrainingEvent:
    """An epoch that has ended; of a batch learner, the optimum.

    run, seed: the run of the recipe; stage: "training", or "selection" of features; epoch: from 1, with those of a
    model that was continued from. dev, base: scores of the predictor and of the base on dev, in the metric's own sign;
    None without dev. weights: the predictor, as ``w`` (float64 [D], dense columns in units of their deviation) and
    ``base``, a copy that is read-only. history: everything else that history.jsonl has of the epoch.
    """

    run: str
    seed: int
    stage: str
    epoch: int
    dev: float | None
    base: float | None
    weights: Weights
    history: Mapping[str, Any]


Callback = Callable[[TrainingEvent], object]
callbacks: Registry[Callback] = Registry("callback")
_watcher: ContextVar[Callback | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(callback: Callback | None) -> Iterator[None]:
    """Within the block, trainings of this process and thread tell ``callback``."""
    token = _watcher.set(callback)
    try:
        yield
    finally:
        _watcher.reset(token)


def watched() -> bool:
    """Whether trainings have to be in this process, as somebody watches them here."""
    return _watcher.get() is not None


def tell(event: TrainingEvent, name: str | None) -> None:
    """Tell whoever watches, and the callback ``name`` of a recipe.

    An exception of the watcher ends the training as it is (Optuna prunes so), one of a recipe's callback as a
    ``RunError``.
    """
    if (watcher := _watcher.get()) is not None:
        watcher(event)
    if name is not None:
        try:
            callbacks.get(name)(event)
        except Exception as error:  # it is the user's: it can raise anything
            raise RunError(f"training.callback, {name}: {type(error).__name__}: {error}") from error
