"""Minimum error rate training (Och 2003): few dense weights, set so that the corpus score itself is best.

From a point, the metric is computed exactly along lines in several directions; the step goes to the best interval of
the best line, until no line holds anything better. Restarts from random points guard against poor local optima.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.base.interrupts import check
from rerank.base.ranges import Checked, NotNegative, Range
from rerank.learn.error_surface import ErrorSurface, Line
from rerank.metrics.metric import Metric

NARROW = 1e-9  # of the reach: shorter intervals are due to rounding, and not stepped to


@dataclass(frozen=True)
class MertSettings(Checked):
    """The settings of MERT's search.

    Parameters
    ----------
    random: how many random directions to search along, besides every single feature.
    patience: where no direction holds anything better, draw random directions again, this many times in a row.
    restarts: how many searches from random points to make, besides the one from the start.
    iterations: steps of a search at most.
    tolerance: a step must raise the score by more than this.
    noise: how far random points lie from the start in every weight at most, where 1 is the mean weight and all features
        have unit variance within lists.
    seed: of directions and random starts.
    """

    random: Annotated[int, Range(0, 10_000)] = 20
    patience: Annotated[int, Range(0, 10_000)] = 1
    restarts: Annotated[int, Range(0, 10_000)] = 5
    iterations: Annotated[int, Range(1, 100_000)] = 100
    tolerance: NotNegative = 1e-4
    noise: NotNegative = 0.25
    seed: Annotated[int, Range(0)] = 1


class Point(NamedTuple):
    """Weights (float64 [F]), the score there, and how many steps led there."""

    weights: np.ndarray
    score: float
    steps: int


class Direction(NamedTuple):
    """A direction d (float64 [F]): slope d·φ(y) of the candidates (float64 [N]), and the candidates sorted by it."""

    d: np.ndarray
    slope: np.ndarray
    order: np.ndarray


def best_step(line: Line, reach: float, sign: float = 1.0) -> tuple[float, float]:
    """The γ in the middle of the best interval of a line, and how good it is there (higher is better); among equally
    good ones the widest, then the nearest to γ = 0.

    The intervals before the first and after the last edge count as 2·``reach`` wide. ``sign``: the factor of scores so
    that higher is better.
    """
    if not line.edges.size:
        return 0.0, sign * float(line.scores[0])
    ends = np.concatenate([[line.edges[0] - 2 * reach], line.edges, [line.edges[-1] + 2 * reach]])
    width, middle, levels = np.diff(ends), (ends[1:] + ends[:-1]) / 2, sign * line.scores
    usable = width > NARROW * (reach + np.abs(middle))
    usable[np.searchsorted(line.edges, 0.0)] = True
    width, middle, levels = width[usable], middle[usable], levels[usable]
    top = np.flatnonzero(levels == levels.max())
    k = int(top[np.lexsort((np.abs(middle[top]), -width[top]))[0]])
    return float(middle[k]), float(levels[k])


class Searcher:
    """Searches over a surface.

    spread: float64 [F], deviation of the features within lists; scale: the sum of absolute weights of every point, 0
    for any.
    """

    def __init__(self, surface: ErrorSurface, settings: MertSettings, start: np.ndarray) -> None:
        """Sort once by every feature that differs within a list, for all lines along it."""
        self.surface, self.settings, self.start, self.spread = surface, settings, start, surface.spread()
        self.coordinates = [self.direction(d) for d in np.eye(surface.width)[self.spread > 0]]
        self.scale = 0.0 if surface.base.any() else float(np.abs(start).sum())

    def direction(self, d: np.ndarray) -> Direction:
        """The direction d, with the candidates sorted by it."""
        slope = self.surface.linear(d)
        return Direction(d, slope, self.surface.order(slope))

    def scaled(self, w: np.ndarray) -> np.ndarray:
        """w scaled to the sum that all points have."""
        norm = float(np.abs(w).sum())
        return w * (self.scale / norm) if self.scale > 0 and norm > 0 else w

    def per_spread(self, numbers: np.ndarray) -> np.ndarray:
        """``numbers`` for features of unit variance, for the features as they are; 0 where one changes nothing."""
        out = np.zeros_like(numbers)
        np.divide(numbers, self.spread, out=out, where=self.spread > 0)
        return out

    def random_start(self, random: np.random.Generator) -> np.ndarray:
        """The start with noise on every feature."""
        noise = random.uniform(-self.settings.noise, self.settings.noise, self.surface.width)
        weights = np.abs(self.start * self.spread)[self.spread > 0]
        unit = float(weights.mean()) if weights.any() else 1.0
        return self.scaled(self.start + self.per_spread(noise * unit))

    def draw(self, random: np.random.Generator) -> list[Direction]:
        """Random directions, for features of unit variance."""
        drawn = self.per_spread(random.standard_normal((self.settings.random, self.surface.width)))
        return [self.direction(d) for d in drawn if d.any()]

    def search(self, run: int) -> Point:
        """Search number ``run``: from the start for 0, else from a random point."""
        random = np.random.default_rng([self.settings.seed, run])
        start = self.start if run == 0 else self.random_start(random)
        point, drawn, draws = Point(start, self.surface.score(start), 0), self.draw(random), 1
        while point.steps < self.settings.iterations:
            check()
            further = self.further(point, [*self.coordinates, *drawn])
            if further is not None:
                point, draws = further, 1
            elif draws <= self.settings.patience and drawn:
                drawn, draws = self.draw(random), draws + 1
            else:
                break
        return point

    def further(self, point: Point, directions: list[Direction]) -> Point | None:
        """The point that the best step leads to; None where none is better."""
        surface, sign, tolerance, w = self.surface, self.surface.metric.sign, self.settings.tolerance, point.weights
        intercept, length, steps = surface.linear(w) + surface.base, float(np.abs(w * self.spread).sum()) or 1.0, []
        for d, slope, order in directions:
            reach = length / float(np.abs(d * self.spread).sum())
            steps.append(best_step(surface.line(intercept, slope, order), reach, sign))
        gains = np.array([there - sign * point.score for _, there in steps])
        for k in np.argsort(-gains, kind="stable"):
            if gains[k] <= tolerance:
                break
            ahead = self.scaled(w + steps[k][0] * directions[k].d)
            score = surface.score(ahead)
            # Where candidates tie except for rounding, a line may promise what its point does not keep.
            if sign * (score - point.score) > tolerance:
                return Point(ahead, score, point.steps + 1)
        return None


class MertResult(NamedTuple):
    """The result of MERT.

    weights: float64 [F], scaled to the sum of absolute weights of the start (unless there are base scores, whose
    weight of 1 gives the scale); score, start_score: the metric there and at the start; runs: where all searches ended,
    the one from the start first.
    """

    weights: np.ndarray
    score: float
    start_score: float
    runs: list[Point]


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
) -> MertResult:
    """Weights for which the best candidates of all lists together score best.

    Parameters
    ----------
    lists: int64 [L + 1]; features: float64 [N, F]; stats: float64 [N, K] and reference: float64 [L, R] of ``metric``.
    start: float64 [F], the weights to start from.
    base: float64 [N], a fixed part of every candidate's score; none by default.
    ties: float64 [N], among equal scores the higher of these is first, then the lower index; ``base`` by default.

    The result is never worse than the start. The same settings give the same bits.
    """
    settings = settings or MertSettings()
    surface = ErrorSurface.of(lists, features, stats, reference, metric, base, ties)
    start = np.array(start, np.float64)
    if start.shape != (surface.width,) or not np.isfinite(start).all():
        raise RecipeError(
            f"found {start.tolist()}; expected {surface.width} finite numbers, one per feature", key="start"
        )
    searcher = Searcher(surface, settings, start)
    runs = [searcher.search(run) for run in range(settings.restarts + 1)]
    best = max(runs, key=lambda run: metric.sign * run.score)  # the first of equals
    return MertResult(best.weights, best.score, surface.score(start), runs)
