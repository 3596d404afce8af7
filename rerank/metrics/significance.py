"""Whether the difference between two selections of candidates is more than chance.

All tests take the statistics of two systems' selections from the same lists. The difference is the score of A
minus the score of B. Every sum of rows has a score, so a resampled corpus costs a sum, not a new evaluation.
"""

import inspect
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rerank.base.errors import DataError, RecipeError
from rerank.base.interrupts import check
from rerank.data.symbols import mix
from rerank.kernels.compile import kernel
from rerank.metrics.metric import Metric, TestName

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE, _LOW, _S32 = np.uint64(1), np.uint64(63), np.uint64(32)


def begin(seed: int) -> np.ndarray:
    """uint64 [1]: where the random numbers of ``seed`` begin."""
    return np.asarray(inspect.unwrap(mix)(np.array([seed % (1 << 64)], np.uint64) + _GOLDEN))


@kernel
def resampled_sums(rows: np.ndarray, swap: bool, counter: np.ndarray, sums: np.ndarray) -> None:
    """Add to every row of ``sums`` L of the L ``rows``, drawn with replacement, or with ``swap`` those that a fair coin
    selects; the counter advances."""
    L, W = rows.shape
    state, many, bits = counter[0], np.uint64(L), np.uint64(0)
    for b in range(sums.shape[0]):
        for n in range(L):
            i, share = np.uint64(n), 1.0
            if not swap:
                state += _GOLDEN
                i = ((mix(state) >> _S32) * many) >> _S32  # uniform in 0..L - 1 up to L / 2^32
            else:
                if i & _LOW == np.uint64(0):
                    state += _GOLDEN
                    bits = mix(state)
                share = np.float64(bits & _ONE)
                bits >>= _ONE
            for k in range(W):
                sums[b, k] += share * rows[i, k]
    counter[0] = state


MAX_DRAWS = 10_000_000  # draws between two checks for a signal
ROUNDING = 1e-12  # of the scores: differences this little below the observed one count as at least as large


@dataclass(frozen=True)
class Significance:
    """Outcome of a test: ``difference`` is A − B, ``p`` two-sided, ``low``..``high`` an interval of the difference."""

    test: str
    difference: float
    p: float
    low: float
    high: float

    def as_dict(self) -> dict[str, Any]:
        """The entry in metrics.json: test, difference, p, interval."""
        return {"test": self.test, "difference": self.difference, "p": self.p, "interval": [self.low, self.high]}


def compare(
    metric: Metric,
    a: np.ndarray,
    b: np.ndarray,
    reference: np.ndarray,
    *,
    test: TestName = "approximate_randomization",
    samples: int = 10_000,
    seed: int = 1,
    confidence: float = 0.95,
) -> Significance:
    """Test whether selections A and B differ in the metric's primary measure.

    Parameters
    ----------
    a, b: float64 [L, K], statistics of the candidates that A and B chose, list by list.
    reference: float64 [L, R].
    test: approximate_randomization (Noreen 1989; Riezler & Maxwell 2005), paired_bootstrap (Koehn 2004), paired_t on
        the lists' gains, or mcnemar on the lists that are entirely right.
    samples, seed: the number of resampled corpora, and the seed of their random numbers.
    confidence: of the interval (from 0 to 1), which every test makes of what p comes from: it leaves out 0 where p is
        below 1 − confidence, and nowhere else.
    """
    a, b, reference = (np.ascontiguousarray(array, dtype=np.float64) for array in (a, b, reference))
    if a.shape != b.shape or a.ndim != 2 or reference.shape[:1] != a.shape[:1] or not a.size:
        raise DataError(
            f"statistics of shapes {a.shape} and {b.shape} with references of shape {reference.shape}; "
            "two selections from the same, at least one, lists are expected"
        )
    if test not in _TESTS:
        raise RecipeError(f"found {test!r}, expected one of {', '.join(_TESTS)}", key="test")
    return Significance(test, *_TESTS[test](_Pair(metric, a, b, reference, samples, seed), confidence))


def score_interval(
    metric: Metric,
    rows: np.ndarray,
    reference: np.ndarray,
    other: np.ndarray | None = None,
    *,
    samples: int = 10_000,
    seed: int = 1,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Percentiles of a selection's scores on corpora of lists drawn with replacement (the bootstrap), or of how far
    they are above those of an ``other`` one.

    rows, other: float64 [L, K], the statistics of the candidates that were chosen; reference: float64 [L, R].
    """
    if other is not None:
        scores = _Pair(metric, rows, other, reference, samples, seed).bootstrap()
    else:
        sums = _sums(np.hstack([rows, reference]), samples, seed)
        scores = np.asarray(metric.scores(*np.split(sums, [rows.shape[1]], axis=1)))
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(scores, [tail, 100.0 - tail])
    return float(low), float(high)


class _Pair(NamedTuple):
    """Two selections from the same lists, by their statistics, and how many corpora are drawn of them, from a seed."""

    metric: Metric
    a: np.ndarray
    b: np.ndarray
    reference: np.ndarray
    samples: int
    seed: int

    @property
    def scores(self) -> list[float]:
        """The scores of A and of B."""
        total = self.reference.sum(axis=0)
        return [float(self.metric.scores(rows.sum(axis=0), total)) for rows in (self.a, self.b)]

    def bootstrap(self) -> np.ndarray:
        """Differences on corpora of lists drawn with replacement: float64 [samples]."""
        K = self.a.shape[1]
        sums = _sums(np.hstack([self.a, self.b, self.reference]), self.samples, self.seed)
        a, b, reference = np.split(sums, [K, 2 * K], axis=1)
        return np.asarray(self.metric.scores(a, reference) - self.metric.scores(b, reference))


def _sums(rows: np.ndarray, samples: int, seed: int, *, swap: bool = False) -> np.ndarray:
    """float64 [samples, W]: ``resampled_sums`` of ``rows`` (float64 [L, W]), in several calls."""
    sums, counter = np.zeros((samples, rows.shape[1])), begin(seed)
    step = max(1, MAX_DRAWS // max(1, rows.shape[0]))
    for first in range(0, samples, step):
        check()
        resampled_sums(rows, swap, counter, sums[first : first + step])
    return sums


Outcome = tuple[float, float, float, float]  # of a test, see ``Significance``


def _outcome(pair: _Pair, chance: np.ndarray, confidence: float) -> Outcome:
    """The outcome where ``chance`` (float64 [samples]) are differences that chance makes if the systems are alike.

    p = (r + 1) / (R + 1) is the share of those that are as far from 0 as ours, which counts as one of them, so that p
    is never 0. The interval is ours ± the smallest distance that would have been reached by too many of them for a p
    below 1 − confidence.
    """
    one, other = pair.scores
    size, difference, distance = np.abs(chance), one - other, abs(one - other)
    near = size >= distance - ROUNDING * max(abs(one), abs(other))
    distances = np.append(np.where(near, np.maximum(size, distance), size), distance)
    p = float(np.mean(distances >= distance))
    rank = math.ceil((1.0 - confidence) * distances.size)
    width = float(np.partition(distances, -rank)[-rank])
    return difference, p, difference - width, difference + width


def _approximate_randomization(pair: _Pair, confidence: float) -> Outcome:
    """Exchange A's and B's choice in lists by a fair coin; those on which they agree are not drawn."""
    metric, a, b, reference, samples, seed = pair
    total, change = reference.sum(axis=0), b - a
    swaps = _sums(change[change.any(axis=1)], samples, seed, swap=True)
    differences = metric.scores(a.sum(axis=0) + swaps, total) - metric.scores(b.sum(axis=0) - swaps, total)
    return _outcome(pair, np.asarray(differences), confidence)


def _paired_bootstrap(pair: _Pair, confidence: float) -> Outcome:
    """Resample lists; what chance makes are the distances of the differences from their mean."""
    differences = pair.bootstrap()
    return _outcome(pair, differences - differences.mean(), confidence)


def _paired_t(pair: _Pair, confidence: float) -> Outcome:
    """Student's t on the lists' gains; the difference is that of the mean gains."""
    gaps = pair.metric.gain(pair.a, pair.reference) - pair.metric.gain(pair.b, pair.reference)
    mean = float(gaps.mean())
    if gaps.size < 2 or np.ptp(gaps) == 0:  # no spread, no t: equal gains say nothing, a constant gap says all
        certain = gaps.size > 1 and mean != 0
        return mean, 0.0 if certain else 1.0, mean, mean
    from scipy.stats import ttest_1samp  # it takes a second to load, and most tests do not need it

    result = ttest_1samp(gaps, 0.0)
    interval = result.confidence_interval(confidence)
    return mean, float(result.pvalue), float(interval.low), float(interval.high)


def _mcnemar(pair: _Pair, confidence: float) -> Outcome:
    """McNemar's exact test: of the lists that only one has right, whose number is given, does A have half?"""
    right_a, right_b = (pair.metric.perfect(rows, pair.reference) for rows in (pair.a, pair.b))
    only_a, only_b = int(np.sum(right_a & ~right_b)), int(np.sum(right_b & ~right_a))
    L, disagreements = right_a.size, only_a + only_b
    difference = (only_a - only_b) / L
    if not disagreements:
        return difference, 1.0, difference, difference
    from scipy.stats import binomtest  # see _paired_t

    result = binomtest(only_a, disagreements, 0.5)
    share = result.proportion_ci(confidence)  # of A's, Clopper and Pearson's
    low, high = (float((2 * bound - 1) * disagreements / L) for bound in share)
    return difference, float(result.pvalue), low, high


_TESTS = {
    "approximate_randomization": _approximate_randomization,
    "paired_bootstrap": _paired_bootstrap,
    "paired_t": _paired_t,
    "mcnemar": _mcnemar,
}
