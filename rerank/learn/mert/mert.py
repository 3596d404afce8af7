"""Minimum error rate training (Och 2003): few dense weights, set so that the corpus score itself is best.

From a point, the metric is computed exactly along lines in several directions; the step goes to the best interval of
the best line, until no line holds anything better. Restarts from random points guard against poor local optima.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.learn.mert.error_surface import ErrorSurface, Line
from rerank.learn.mert.search import Map, MertSettings, OnStep, Search, Searcher
from rerank.metrics.base import Metric
from rerank.metrics.significance import Significance, compare

__all__ = ["Line", "MertResult", "MertSettings", "Search", "line_scores", "mert"]


class MertResult(NamedTuple):
    """The result of MERT.

    weights: float64 [F], scaled to the sum of absolute weights of the start (unless there are base scores, whose
    weight of 1 gives the scale); score, start_score: the metric there and at the start; history: one dict per step of
    the chosen search (run, iteration, direction, step, score, weights); runs: all searches, the one from the start
    first; interval: test and confidence interval of score − start_score, if asked for.
    """

    weights: np.ndarray
    score: float
    start_score: float
    history: list[dict[str, Any]]
    runs: list[Search]
    interval: Significance | None


def mert(
    lists: np.ndarray,
    features: np.ndarray,
    stats: np.ndarray,
    reference: np.ndarray,
    metric: Metric,
    start: np.ndarray,
    settings: MertSettings | None = None,
    base: np.ndarray | None = None,
    *,
    ties: np.ndarray | None = None,
    names: Sequence[str] | None = None,
    on_step: OnStep | None = None,
) -> MertResult:
    """Weights for which the best candidates of all lists together score best.

    Parameters
    ----------
    lists: int64 [L + 1]; features: float64 [N, F]; stats: float64 [N, K] and reference: float64 [L, R] of ``metric``.
    start: float64 [F], the weights to start from.
    base: float64 [N], a fixed part of every candidate's score; none by default.
    ties: float64 [N], among equal scores the higher of these is first, then the lower index; ``base`` by default.
    names: those of the features, for the history.
    on_step: called with every line of the history, while no other thread does.

    The result is never worse than the start, judged without a window. The same settings give the same bits.
    """
    settings = settings or MertSettings()
    surface = ErrorSurface.of(lists, features, stats, reference, metric, base, ties)
    start = np.array(start, np.float64)
    if start.shape != (surface.width,) or not np.isfinite(start).all():
        raise RecipeError(
            f"found {start.tolist()}; expected {surface.width} finite numbers, one per feature", key="start"
        )
    labels = list(names or (f"feature {j + 1}" for j in range(surface.width)))
    with _threads(settings.workers) as (run_all, halted):
        over_runs, over_lines = (run_all, map) if settings.restarts else (map, run_all)
        searcher = Searcher(surface, settings, start, labels, on_step, halted, over_lines)
        runs = list(over_runs(searcher.search, range(settings.restarts + 1)))
    best = max(runs, key=lambda run: run.level)  # the first of equals
    interval = None
    if settings.bootstrap and surface.reference.shape[0]:
        rows = surface.rows(best.weights), surface.rows(start)
        interval = compare(
            metric, *rows, surface.reference, test="paired_bootstrap", samples=settings.bootstrap, seed=settings.seed
        )
    return MertResult(best.weights, best.score, runs[0].start_score, best.history, runs, interval)


@contextmanager
def _threads(count: int) -> Iterator[tuple[Map, Event]]:
    """A map over this many threads, in order, and the event that ends them early, after an error or an interrupt."""
    halted = Event()
    if count == 1:
        yield map, halted
        return
    with ThreadPoolExecutor(count) as pool:
        try:
            yield pool.map, halted
        finally:
            halted.set()
            pool.shutdown(cancel_futures=True)


def line_scores(
    lists: np.ndarray,
    features: np.ndarray,
    stats: np.ndarray,
    reference: np.ndarray,
    metric: Metric,
    weights: np.ndarray,
    direction: np.ndarray,
    base: np.ndarray | None = None,
    *,
    ties: np.ndarray | None = None,
) -> Line:
    """The metric at ``weights`` + γ·``direction`` (float64 [F] each) for all γ; the other parameters are those of
    ``mert``.
    """
    surface = ErrorSurface.of(lists, features, stats, reference, metric, base, ties)
    weights, direction = (np.array(vector, np.float64) for vector in (weights, direction))
    return surface.line(surface.linear(weights) + surface.base, surface.linear(direction))
