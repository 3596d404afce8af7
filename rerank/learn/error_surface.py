"""A metric of sufficient statistics as a function of few dense weights: at a point, and exactly along a line.

The corpus score of the best candidates is constant in the weights except where some list's best candidate changes.
Along a line these places are the crossings of the lists' upper envelopes (Och 2003, section 4), and from one interval
to the next the summed statistics differ by one exchanged candidate.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rerank.base.errors import DataError
from rerank.data.corpus import frozen
from rerank.kernels.compile import kernel
from rerank.metrics.metric import Metric
from rerank.metrics.oracle import rows_of_scores


@kernel
def is_ahead(y: int, z: int, gamma: float, intercept: np.ndarray, slope: np.ndarray, ties: np.ndarray) -> bool:
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
                    if not is_ahead(y, t, 0.0, intercept, slope, ties):
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
                where = int(np.argwhere(~np.isfinite(array))[0][0])
                i = int(np.searchsorted(lists, where, side="right")) - 1
                raise DataError(
                    f"candidate {where - lists[i] + 1} of list {i + 1} has a {name} that is not a finite number"
                )
        sizes = np.diff(lists)
        owner = np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)
        begins = lists[:-1].astype(np.int32)
        by_size = [begins[sizes == n, None] + np.arange(n, dtype=np.int32) for n in np.unique(sizes)]
        arrays = (lists, features.T, base, ties, stats, reference, owner)
        lists, columns, base, ties, stats, reference, owner = (frozen(np.ascontiguousarray(each)) for each in arrays)
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
            apart = column - column[heads]  # exactly 0 where all candidates are alike
            apart -= (np.bincount(self.owner, weights=apart, minlength=sizes.size) / sizes)[self.owner]
            spread[j] = np.sqrt(np.mean(apart**2)) if apart.size else 0.0
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
            about = self.lists, intercept, slope, self.ties, self.stats, self.reference
            edges, values = self.metric.along(*about, order)
            return Line(edges, np.asarray(self.metric.scores(values[:, None], total)))
        intercept, slope = (frozen(np.ascontiguousarray(array)) for array in (intercept, slope))
        longest = int(np.diff(self.lists).max(initial=0))
        first, hull, since = np.empty(self.lists.size - 1, np.int64), np.empty(longest, np.int32), np.empty(longest)
        at, old, new = np.empty(slope.size), np.empty(slope.size, np.int32), np.empty(slope.size, np.int32)
        E = envelopes(self.lists, order, intercept, slope, self.ties, hull, since, first, at, old, new)
        ranking = np.argsort(at[:E], kind="stable")  # stable: crossings of one list stay in order
        sums = np.empty((E + 1, self.stats.shape[1]))
        interval_sums(first, ranking, old, new, self.stats, sums)
        edges = at[ranking]
        wide = np.ones(E + 1, np.bool_)
        wide[1:-1] = edges[1:] > edges[:-1]  # no interval lies between crossings at one place
        return Line(edges[wide[1:]], np.asarray(self.metric.scores(sums[wide], total)))
