"""Which candidate of a list is best where, along a line of weights: upper envelopes of straight lines (Och 2003).

At the point γ of the line w + γ·d a candidate scores a + γ·b, with its intercept a = w·φ (and what is fixed) and its
slope b = d·φ. The best of a list is therefore the upper envelope of its candidates' lines: it takes finitely many
candidates, of rising slope, each between two crossings.
"""

import numpy as np

from rerank.kernels.compile import kernel


@kernel
def linear_scores(columns: np.ndarray, w: np.ndarray, scores: np.ndarray) -> None:
    """Add w·φ(y) to ``scores`` (float64 [N]), feature by feature; ``columns`` float64 [F, N]."""
    for j in range(w.shape[0]):
        if w[j] != 0.0:
            for y in range(scores.shape[0]):
                scores[y] += w[j] * columns[j, y]


@kernel
def sets_in(y: int, other: int, intercept: np.ndarray, ties: np.ndarray) -> bool:
    """Does y come before a candidate of the same slope? By higher intercept, then ``ties``, then the lower index."""
    if intercept[y] != intercept[other]:
        return bool(intercept[y] > intercept[other])
    if ties[y] != ties[other]:
        return bool(ties[y] > ties[other])
    return bool(y < other)


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
                    if not sets_in(y, t, intercept, ties):
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
    """Statistics summed over the best candidates between crossings.

    ``ranking`` int64 [E]: the crossings from left to right. Row k of ``sums`` (float64 [E + 1, K]) gets the sum to the
    right of k crossings: the next row differs by the one candidate that is exchanged.
    """
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
