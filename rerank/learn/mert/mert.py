"""Minimum error rate training (Och 2003): few dense weights, set so that the corpus score itself is best.

From a point, the metric is computed exactly along lines in several directions; the step goes to the best interval of
the best line, until no line holds anything better. Restarts from random points guard against poor local optima.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Lock
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.ranges import Checked, Range
from rerank.learn.mert.error_surface import ErrorSurface, Line
from rerank.learn.settings import NotNegative
from rerank.metrics.base import Metric
from rerank.metrics.significance import Significance, compare


@dataclass(frozen=True)
class MertSettings(Checked):
    """The settings of MERT's search.

    Parameters
    ----------
    coordinate: search along every single feature.
    random: how many random directions to search along as well.
    patience: where no direction holds anything better, draw random directions again, this many times in a row.
    restarts: how many searches from random points to make, besides the one from the start.
    iterations: steps of a search at most.
    tolerance: a step must raise the score by more than this.
    window, smoothing: an interval is judged by its own score and those of this many intervals on each side, by their
        mean or their min (Cer, Jurafsky & Manning 2008); 0: by its own alone.
    interval: a random start is the start with noise between these two on every weight, where 1 is the mean weight
        and all features have unit variance within lists; one pair, or one per feature.
    seed: of directions and random starts.
    workers: threads over searches, or, without restarts, over directions; results do not depend on their number.
    bootstrap: resampled corpora for the confidence in the improvement; 0: none.
    """

    coordinate: bool = True
    random: Annotated[int, Range(0, 10_000)] = 20
    patience: Annotated[int, Range(0, 10_000)] = 1
    restarts: Annotated[int, Range(0, 10_000)] = 5
    iterations: Annotated[int, Range(1, 100_000)] = 100
    tolerance: NotNegative = 1e-4
    window: Annotated[int, Range(0, 100_000)] = 0
    smoothing: Literal["mean", "min"] = "mean"
    interval: Sequence[float] | Sequence[Sequence[float]] = (-0.25, 0.25)
    seed: Annotated[int, Range(0)] = 1
    workers: Annotated[int, Range(1, 1024)] = 1
    bootstrap: Annotated[int, Range(0, 1_000_000)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.coordinate and not self.random:
            raise RecipeError("found 0 and no coordinates; expected a direction to search in", key="random")

    def ranges(self, width: int) -> np.ndarray:
        """float64 [F, 2]: ``interval`` for every one of F = ``width`` features."""
        try:
            ranges = np.array(self.interval, np.float64)
        except (TypeError, ValueError):
            ranges = np.empty(0)
        known = ranges.shape in ((2,), (width, 2))
        if not known or not np.isfinite(ranges).all() or (ranges[..., 0] > ranges[..., 1]).any():
            raise RecipeError(
                f"found {self.interval!r}; expected [lowest, highest], or such a pair for each of {width} features",
                key="interval",
            )
        return np.broadcast_to(ranges, (width, 2))


NARROW = 1e-9  # of the reach: shorter intervals are due to rounding, and not stepped to

OnStep = Callable[[dict[str, Any]], None]
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


class Search(NamedTuple):
    """One search: from where to where (float64 [F]), the scores there, and one history line per step.

    ``level`` is what searches are compared by: the score or, where a window smooths it, the mean of what the lines
    through the point give for it.
    """

    start: np.ndarray
    start_score: float
    weights: np.ndarray
    score: float
    level: float
    history: list[dict[str, Any]]


class Point(NamedTuple):
    """Weights (float64 [F]), the score there, and in which direction and how far the step went that led there."""

    w: np.ndarray
    score: float
    direction: str
    step: float


class Direction(NamedTuple):
    """A direction d (float64 [F]): slope d·φ(y) of the candidates (float64 [N]), and the candidates sorted by it."""

    label: str
    d: np.ndarray
    slope: np.ndarray
    order: np.ndarray


class Step(NamedTuple):
    """The best place of a line, γ = ``gamma``; how good it is there, and how good at γ = 0 (higher is better)."""

    gamma: float
    there: float
    here: float


def best_step(line: Line, reach: float, *, sign: float = 1.0, window: int = 0, smoothing: str = "mean") -> Step:
    """The middle of the best interval of a line; among equally good ones the widest, then the nearest to γ = 0.

    The intervals before the first and after the last edge count as 2·``reach`` wide. ``sign``, ``window`` and
    ``smoothing`` say how good an interval is, as in ``MertSettings``.
    """
    if not line.edges.size:
        return Step(0.0, sign * float(line.scores[0]), sign * float(line.scores[0]))
    ends = np.concatenate([[line.edges[0] - 2 * reach], line.edges, [line.edges[-1] + 2 * reach]])
    width, middle, levels = np.diff(ends), (ends[1:] + ends[:-1]) / 2, sign * line.scores
    usable = width > NARROW * (reach + np.abs(middle))
    usable[line.around(0.0)] = True
    here = int(np.count_nonzero(usable[: line.around(0.0)]))
    width, middle, levels = width[usable], middle[usable], levels[usable]
    if window:
        near = np.lib.stride_tricks.sliding_window_view(np.pad(levels, window, mode="edge"), 2 * window + 1)
        levels = near.mean(axis=1) if smoothing == "mean" else near.min(axis=1)
    top = np.flatnonzero(levels == levels.max())
    k = int(top[np.lexsort((np.abs(middle[top]), -width[top]))[0]])
    return Step(float(middle[k]), float(levels[k]), float(levels[here]))


class Searcher:
    """Searches over a surface.

    spread: float64 [F], deviation of the features within lists; scale: the sum of absolute weights of every point, 0
    for any; ranges: of random starts; halted: ends searches; over_lines: a map over directions.
    """

    def __init__(
        self,
        surface: ErrorSurface,
        settings: MertSettings,
        start: np.ndarray,
        labels: list[str],
        on_step: OnStep | None,
        halted: Event,
        over_lines: Map,
    ) -> None:
        """Sort once by every feature that differs within a list, for all lines along it."""
        self.surface, self.settings, self.start = surface, settings, start
        self.on_step, self.halted, self.over_lines, self.lock = on_step, halted, over_lines, Lock()
        self.spread, columns, unit = surface.spread(), surface.columns, np.eye(surface.width)
        searched = np.flatnonzero(self.spread) if settings.coordinate else ()
        self.coordinates = [Direction(labels[j], unit[j], columns[j], surface.order(columns[j])) for j in searched]
        self.scale = 0.0 if surface.base.any() else float(np.abs(start).sum())
        self.ranges = settings.ranges(surface.width)

    def scaled(self, w: np.ndarray) -> np.ndarray:
        """w scaled to the sum that all points have."""
        norm = float(np.abs(w).sum())
        return w * (self.scale / norm) if self.scale > 0 and norm > 0 else w

    def random_start(self, random: np.random.Generator) -> np.ndarray:
        """The start with ``ranges`` of noise on every feature, in units of the mean weight at unit variance."""
        noise = random.uniform(self.ranges[:, 0], self.ranges[:, 1])
        weights = np.abs(self.start * self.spread)[self.spread > 0]
        unit = float(weights.mean()) if weights.any() else 1.0
        return self.scaled(self.start + _quotient(noise * unit, self.spread))

    def search(self, run: int) -> Search:
        """Search number ``run``: from the start for 0, else from a random point."""
        settings, surface, sign = self.settings, self.surface, self.surface.sign
        random = np.random.default_rng([settings.seed, run])
        start = self.start if run == 0 else self.random_start(random)
        drawn, draws = self.draw(random), 1
        point = Point(start, surface.score(start), "", 0.0)
        best = Search(start, point.score, start, point.score, -np.inf, [])
        while not self.halted.is_set():
            directions = [*self.coordinates, *drawn]
            steps = self.steps(point.w, directions)
            if draws == 1:
                level = float(np.mean([s.here for s in steps])) if settings.window and steps else sign * point.score
                if level <= best.level:  # only under a window: judged by the lines through it, the step was no gain
                    break
                best = best._replace(weights=point.w, score=point.score, level=level)
                if point.direction:
                    step = {"iteration": len(best.history) + 1, "direction": point.direction, "step": point.step}
                    best.history.append({"run": run, **step, "score": point.score, "weights": point.w.tolist()})
                    if self.on_step is not None:
                        with self.lock:
                            self.on_step(best.history[-1])
            if len(best.history) == settings.iterations:
                break
            further = self.further(point, directions, steps)
            if further is not None:
                point, draws = further, 1
            elif draws <= settings.patience and drawn:
                drawn, draws = self.draw(random), draws + 1
            else:
                break
        return best

    def further(self, point: Point, directions: list[Direction], steps: list[Step]) -> Point | None:
        """The point that the best of the ``steps`` leads to; None where none is better."""
        settings, sign = self.settings, self.surface.sign
        gains = np.array([step.there - (step.here if settings.window else sign * point.score) for step in steps])
        for k in np.argsort(-gains, kind="stable"):
            if gains[k] <= settings.tolerance:
                break
            w = self.scaled(point.w + steps[k].gamma * directions[k].d)
            score = self.surface.score(w)
            # Where candidates tie except for rounding, a line may promise what its point does not keep.
            if settings.window or sign * (score - point.score) > settings.tolerance:
                return Point(w, score, directions[k].label, steps[k].gamma)
        return None

    def draw(self, random: np.random.Generator) -> list[Direction]:
        """Random directions, for features of unit variance."""
        drawn = _quotient(random.standard_normal((self.settings.random, self.surface.width)), self.spread)

        def direction(r: int) -> Direction:
            slope = self.surface.linear(drawn[r])
            return Direction(f"random {r + 1}", drawn[r], slope, self.surface.order(slope))

        return list(self.over_lines(direction, np.flatnonzero(drawn.any(axis=1)).tolist()))

    def steps(self, w: np.ndarray, directions: list[Direction]) -> list[Step]:
        """The best place in every direction from w."""
        surface, settings = self.surface, self.settings
        intercept = surface.linear(w) + surface.base
        length = float(np.abs(w * self.spread).sum()) or 1.0

        def step(direction: Direction) -> Step:
            reach = length / float(np.abs(direction.d * self.spread).sum())
            line = surface.line(intercept, direction.slope, direction.order)
            return best_step(line, reach, sign=surface.sign, window=settings.window, smoothing=settings.smoothing)

        return list(self.over_lines(step, directions))


def _quotient(numbers: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """``numbers`` for features of the given spread: divided by it, and 0 where it is 0."""
    quotient = np.zeros_like(numbers)
    np.divide(numbers, spread, out=quotient, where=spread > 0)
    return quotient


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
