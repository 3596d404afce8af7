"""A metric as a function of few dense weights, exactly along a line, and minimum error rate training (Och 2003), which
sets them so that the corpus score itself is best.

The corpus score of the best candidates is constant in the weights except where some list's best candidate changes.
Along a line these points are the crossings of the lists' upper envelopes (Och 2003, section 4), and from one interval
to the next the summed statistics differ by one exchanged candidate.

MERT computes the metric along lines in several directions from a point; the step goes to the best interval of the best
line, until no line holds anything better. Restarts from random points guard against poor local optima.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.base.interrupts import check
from rerank.base.ranges import Checked, NotNegative, Range
from rerank.data.corpus import freeze
from rerank.kernels.compile import kernel
from rerank.metrics.metric import Metric, rows_of_scores

MIN_WIDTH = 1e-9  # of an interval, in units of the reach: shorter ones are due to rounding, and not stepped to


@kernel
def precedes(y: int, z: int, gamma: float, intercept: np.ndarray, slope: np.ndarray, ties: np.ndarray) -> bool:
    """Whether y comes before z at γ: by score, then by ``ties``, then by index."""
    one, other = intercept[y] + gamma * slope[y], intercept[z] + gamma * slope[z]
    if one != other:
        return bool(one > other)
    if ties[y] != ties[z]:
        return bool(ties[y] > ties[z])
    return bool(y < z)


# At the point γ of the line w + γ·d a candidate scores a + γ·b, with its intercept a = w·φ (and what is fixed) and its
# slope b = d·φ. The best of a list is the upper envelope of its candidates' lines: finitely many candidates, of rising
# slope, each between two crossings.
@kernel
def envelopes(
    lists: np.ndarray,
    order: np.ndarray,
    intercept: np.ndarray,
    slope: np.ndarray,
    ties: np.ndarray,
    hull: np.ndarray,
    since: np.ndarray,
    first: np.ndarray,
    at: np.ndarray,
    old: np.ndarray,
    new: np.ndarray,
) -> int:
    """The upper envelopes of all lists; returns the number of crossings E.

    ``order`` int32 [N]: candidates, within every list by rising slope (in any order where slopes are equal).
    ``hull`` int32 and ``since`` float64, as long as the longest list: the candidates of an envelope, and the γ from
    which each is best. ``first`` (int64 [L]) gets the best candidate of every list for γ → −∞, -1 for empty lists; the
    first E elements of ``at`` (float64 [N]), ``old`` and ``new`` (int32 [N]) get where which candidate is followed by
    which, rising within a list.
    """
    E = 0
    for i in range(first.shape[0]):
        top = -1
        for r in range(lists[i], lists[i + 1]):
            y = order[r]
            start = -np.inf
            while top >= 0:
                t = hull[top]
                if slope[y] == slope[t]:
                    if not precedes(y, t, 0.0, intercept, slope, ties):
                        start = np.inf
                        break
                else:
                    start = (intercept[t] - intercept[y]) / (slope[y] - slope[t])
                    if start > since[top]:
                        break
                top -= 1  # y overtakes before the candidate on top would: that is never best
                start = -np.inf
            if start < np.inf:
                top += 1
                hull[top], since[top] = y, start
        first[i] = hull[0] if top >= 0 else -1
        for k in range(1, top + 1):
            at[E], old[E], new[E] = since[k], hull[k - 1], hull[k]
            E += 1
    return E


@kernel
def interval_sums(
    first: np.ndarray, ranking: np.ndarray, old: np.ndarray, new: np.ndarray, stats: np.ndarray, sums: np.ndarray
) -> None:
    """Statistics summed over the best candidates: row k of ``sums`` right of k crossings, in the order ``ranking``."""
    K = stats.shape[1]
    for k in range(K):
        sums[0, k] = 0.0
    for i in range(first.shape[0]):
        if first[i] >= 0:
            for k in range(K):
                sums[0, k] += stats[first[i], k]
    for e in range(ranking.shape[0]):
        c = ranking[e]
        for k in range(K):
            sums[e + 1, k] = sums[e, k] + (stats[new[c], k] - stats[old[c], k])


class Line(NamedTuple):
    """The metric along a line: ``scores[k]`` (float64 [E + 1]) between ``edges[k - 1]`` and ``edges[k]`` (float64 [E]).

    Edges rise strictly; the first interval begins at −∞ and the last ends at ∞.
    """

    edges: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class ErrorSurface:
    """Lists with F dense features and the statistics of their candidates; ``of`` checks and builds it.

    | field     | dtype, shape    | meaning |
    |-----------|-----------------|---------|
    | lists     | int64 [L + 1]   | candidates of list i are lists[i]..lists[i + 1] |
    | columns   | float64 [F, N]  | the features, feature by feature |
    | base      | float64 [N]     | what a candidate scores without them |
    | ties      | float64 [N]     | among equal scores the higher of these is first, then the lower index |
    | stats     | float64 [N, K]  | statistics of the candidates |
    | reference | float64 [L, R]  | statistics of the references |
    | owner     | int32 [N]       | the list of a candidate |
    | by_size   | int32 [l, n]    | for every length n, the candidates of the l lists of that length |
    """

    lists: np.ndarray
    columns: np.ndarray
    base: np.ndarray
    ties: np.ndarray
    stats: np.ndarray
    reference: np.ndarray
    owner: np.ndarray
    by_size: list[np.ndarray]
    metric: Metric

    @classmethod
    def of(
        cls,
        lists: np.ndarray,
        features: np.ndarray,
        stats: np.ndarray,
        reference: np.ndarray,
        metric: Metric,
        base: np.ndarray | None = None,
        ties: np.ndarray | None = None,
    ) -> "ErrorSurface":
        """From int64 [L + 1], float64 [N, F], [N, K], [L, R], and [N] or None: no base score, ties by ``base``."""
        lists = np.asarray(lists, np.int64)
        N = int(lists[-1]) if lists.ndim == 1 and lists.size else -1
        base = np.zeros(max(N, 0)) if base is None else np.asarray(base, np.float64)
        ties = base if ties is None else np.asarray(ties, np.float64)
        features, stats, reference = (np.asarray(array, np.float64) for array in (features, stats, reference))
        shapes = (lists.shape, features.shape, stats.shape, reference.shape, base.shape, ties.shape)
        wrong = any(array.ndim != 2 or array.shape[0] != N for array in (features, stats))
        wrong |= any(array.shape != (N,) for array in (base, ties))
        if wrong or reference.ndim != 2 or reference.shape[0] != lists.size - 1 or (np.diff(lists) < 0).any():
            raise DataError(
                "lists, features, statistics, references, base scores and ties have the shapes "
                f"{', '.join(map(str, shapes))}; expected [L + 1], [N, F], [N, K], [L, R], [N] and [N]"
            )
        for name, array in (("feature", features), ("statistic", stats), ("base score", base)):
            if not np.isfinite(array).all():
                y = int(np.argwhere(~np.isfinite(array))[0][0])
                i = int(np.searchsorted(lists, y, side="right")) - 1
                raise DataError(
                    f"candidate {y - lists[i] + 1} of list {i + 1} has a {name} that is not a finite number"
                )
        sizes = np.diff(lists)
        owner = np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)
        begins = lists[:-1].astype(np.int32)
        by_size = [begins[sizes == n, None] + np.arange(n, dtype=np.int32) for n in np.unique(sizes)]
        arrays = (lists, features.T, base, ties, stats, reference, owner)
        lists, columns, base, ties, stats, reference, owner = (freeze(np.ascontiguousarray(each)) for each in arrays)
        return cls(lists, columns, base, ties, stats, reference, owner, by_size, metric)

    @property
    def width(self) -> int:
        """F, the number of features."""
        return int(self.columns.shape[0])

    def linear(self, w: np.ndarray) -> np.ndarray:
        """float64 [N]: w·φ(y), summed in the order of the features."""
        scores = np.zeros(self.base.size)
        for j in np.flatnonzero(w):
            scores += w[j] * self.columns[j]
        return scores

    def score(self, w: np.ndarray) -> float:
        """The metric of the best candidates under w, or of the lists' orders."""
        scores = self.linear(w) + self.base
        rows = rows_of_scores(self.metric, self.lists, scores, self.ties, self.stats, self.reference)
        return self.metric.score(rows, self.reference)

    def spread(self) -> np.ndarray:
        """float64 [F]: the standard deviation of every feature from its lists' means; 0 where it changes nothing."""
        sizes = np.maximum(np.diff(self.lists), 1)
        spread = np.zeros(self.width)
        heads = self.lists[self.owner]
        for j, column in enumerate(self.columns):
            deviations = column - column[heads]  # exactly 0 where all candidates are alike
            deviations -= (np.bincount(self.owner, weights=deviations, minlength=sizes.size) / sizes)[self.owner]
            spread[j] = np.sqrt(np.mean(deviations**2)) if deviations.size else 0.0
        return spread

    def order(self, slope: np.ndarray) -> np.ndarray:
        """int32 [N]: the candidates, list after list, by rising ``slope`` (float64 [N]) within a list, and by index."""
        order = np.empty(slope.size, np.int32)
        for members in self.by_size:
            order[members] = np.take_along_axis(members, np.argsort(slope[members], axis=1, kind="stable"), axis=1)
        return order

    def line(self, intercept: np.ndarray, slope: np.ndarray, order: np.ndarray | None = None) -> Line:
        """The metric where candidates score intercept + γ·slope (float64 [N] each), for all γ.

        ``order``: the candidates by slope, if they have been sorted already.
        """
        total, order = self.reference.sum(axis=0), self.order(slope) if order is None else order
        if self.metric.ordered:
            arguments = self.lists, intercept, slope, self.ties, self.stats, self.reference
            edges, values = self.metric.along(*arguments, order)
            return Line(edges, np.asarray(self.metric.scores(values[:, None], total)))
        intercept, slope = (freeze(np.ascontiguousarray(array)) for array in (intercept, slope))
        longest = int(np.diff(self.lists).max(initial=0))
        first, hull, since = np.empty(self.lists.size - 1, np.int64), np.empty(longest, np.int32), np.empty(longest)
        at, old, new = np.empty(slope.size), np.empty(slope.size, np.int32), np.empty(slope.size, np.int32)
        E = envelopes(self.lists, order, intercept, slope, self.ties, hull, since, first, at, old, new)
        ranking = np.argsort(at[:E], kind="stable")  # stable: crossings of one list stay in order
        sums = np.empty((E + 1, self.stats.shape[1]))
        interval_sums(first, ranking, old, new, self.stats, sums)
        edges = at[ranking]
        mask = np.ones(E + 1, np.bool_)
        mask[1:-1] = edges[1:] > edges[:-1]  # no interval lies between crossings at one point
        return Line(edges[mask[1:]], np.asarray(self.metric.scores(sums[mask], total)))


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
    mask = width > MIN_WIDTH * (reach + np.abs(middle))
    mask[np.searchsorted(line.edges, 0.0)] = True
    width, middle, levels = width[mask], middle[mask], levels[mask]
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

    def rescale(self, w: np.ndarray) -> np.ndarray:
        """w scaled to the sum that all points have."""
        norm = float(np.abs(w).sum())
        return w * (self.scale / norm) if self.scale > 0 and norm > 0 else w

    def per_spread(self, numbers: np.ndarray) -> np.ndarray:
        """``numbers`` for features of unit variance, for the features as they are; 0 where one changes nothing."""
        out = np.zeros_like(numbers)
        np.divide(numbers, self.spread, out=out, where=self.spread > 0)
        return out

    def draw(self, random: np.random.Generator) -> list[Direction]:
        """Random directions, for features of unit variance."""
        directions = self.per_spread(random.standard_normal((self.settings.random, self.surface.width)))
        return [self.direction(d) for d in directions if d.any()]

    def search(self, run: int) -> Point:
        """Search number ``run``: from the start, for 0, or from there with noise on every feature."""
        random, start = np.random.default_rng([self.settings.seed, run]), self.start
        if run > 0:
            noise = random.uniform(-self.settings.noise, self.settings.noise, self.surface.width)
            weights = np.abs(start * self.spread)[self.spread > 0]
            unit = float(weights.mean()) if weights.any() else 1.0
            start = self.rescale(start + self.per_spread(noise * unit))
        point, directions, draws = Point(start, self.surface.score(start), 0), self.draw(random), 1
        while point.steps < self.settings.iterations:
            check()
            better = self.step(point, [*self.coordinates, *directions])
            if better is not None:
                point, draws = better, 1
            elif draws <= self.settings.patience and directions:
                directions, draws = self.draw(random), draws + 1
            else:
                break
        return point

    def step(self, point: Point, directions: list[Direction]) -> Point | None:
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
            weights = self.rescale(w + steps[k][0] * directions[k].d)
            score = surface.score(weights)
            # Where candidates tie except for rounding, a line may promise what its point does not keep.
            if sign * (score - point.score) > tolerance:
                return Point(weights, score, point.steps + 1)
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
