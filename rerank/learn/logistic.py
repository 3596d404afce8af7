"""Conditional logistic regression over lists of few dense features, to the optimum.

The probability that candidate y of list i is the right one is p_i(y) = e^{w·x_y} / Σ e^{w·x} (McFadden 1974, the
conditional logit; for N-best parses Johnson et al. 1999). Where several candidates are equally good, any of them is
right, as in Riezler et al. 2000 and Charniak & Johnson 2005:

    L(w) = −Σ_i log Σ_{y best} p_i(y) + (l2/2)·‖w‖²

This is not convex where a list has several best candidates. Started at w = 0, it has nevertheless done at least as well
as the pointwise regression of every candidate's rightness on all data that were tried, and better where lists differ in
level.
"""

from __future__ import annotations

import math

import numpy as np

from rerank.kernels.compile import kernel

L2 = 1.0  # against the sum over lists, with features of unit deviation: scikit-learn's C = 1
ITERATIONS = 200


@kernel
def conditional_loss(
    lists: np.ndarray,
    x: np.ndarray,
    gain: np.ndarray,
    weight: np.ndarray,
    w: np.ndarray,
    scores: np.ndarray,
    gradient: np.ndarray,
) -> float:
    """−Σ_i weight_i · log Σ_{y best} p_i(y); its gradient is added to ``gradient`` (float64 [F]).

    lists: int64 [L + 1]; x: float64 [N, F]; gain: float64 [N]; weight: float64 [L]; scores: float64 [longest list],
    scratch.
    """
    total = 0.0
    for i in range(lists.shape[0] - 1):
        first, last = lists[i], lists[i + 1]
        top, best, top_best = -math.inf, -math.inf, -math.inf
        for y in range(first, last):
            score = 0.0
            for j in range(w.shape[0]):
                score += w[j] * x[y, j]
            scores[y - first] = score
            top = max(top, score)
            if gain[y] > best:
                best, top_best = gain[y], score
            elif gain[y] == best:
                top_best = max(top_best, score)
        Z, Z_best = 0.0, 0.0
        for y in range(first, last):
            Z += math.exp(scores[y - first] - top)
            if gain[y] == best:
                Z_best += math.exp(scores[y - first] - top_best)
        if last == first:
            continue
        total += weight[i] * (top + math.log(Z) - top_best - math.log(Z_best))
        for y in range(first, last):
            a = math.exp(scores[y - first] - top) / Z
            if gain[y] == best:
                a -= math.exp(scores[y - first] - top_best) / Z_best
            for j in range(w.shape[0]):
                gradient[j] += weight[i] * a * x[y, j]
    return total


@kernel
def center(lists: np.ndarray, x: np.ndarray) -> None:
    """Subtract the mean of its list from every feature: differences within a list are all that counts."""
    for i in range(lists.shape[0] - 1):
        for j in range(x.shape[1]):
            mean = 0.0
            for y in range(lists[i], lists[i + 1]):
                mean += x[y, j] / (lists[i + 1] - lists[i])
            for y in range(lists[i], lists[i + 1]):
                x[y, j] -= mean


def fit_logistic(lists: np.ndarray, x: np.ndarray, gain: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """float64 [F]: the weights w of x (float64 [N, F], centred and scaled here) that minimise L(w), by L-BFGS.

    They apply to the values as they came; only the penalty is on features divided by their standard deviation within
    lists. A feature that is the same throughout every list weighs 0.
    """
    from scipy.optimize import minimize  # it takes half a second to load, and most recipes have no dense columns

    center(lists, x)
    deviation = np.sqrt(np.mean(x**2, axis=0)) if x.shape[0] else np.zeros(x.shape[1])
    scale = np.divide(1.0, deviation, out=np.zeros(x.shape[1]), where=(deviation > 0) & np.isfinite(deviation))
    x *= scale
    scores = np.empty(int(np.diff(lists).max(initial=0)))

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        """L(w) and its gradient."""
        gradient = L2 * w
        return conditional_loss(lists, x, gain, weight, w, scores, gradient) + 0.5 * L2 * float(w @ w), gradient

    found = minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
    return np.asarray(found.x * scale)
