"""Losses as coefficients: the subgradient of a list's loss is Σ_y a_y φ(y)."""

from __future__ import annotations

import math

import numpy as np

from rerank.compile import kernel

PERCEPTRON, HINGE, LOGISTIC, LOG, BAYES = 0, 1, 2, 3, 4
LOSSES: dict[str, int] = {"perceptron": PERCEPTRON, "hinge": HINGE, "logistic": LOGISTIC, "log": LOG, "bayes": BAYES}
PAIRWISE = (PERCEPTRON, HINGE, LOGISTIC)  # losses of oracle and rival alone


@kernel
def rivals(first: int, last: int, scores: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool) -> tuple[int, int]:
    """(y*, y'): the oracle and the best-scoring candidate that is none, -1 where there is no such candidate.

    With ``any_ties`` every candidate with the oracle's gain is an oracle, and the best-scoring of them plays y*.
    ``scores`` counts from ``first``; among equal scores the first candidate is taken.
    """
    star, rival = oracle, -1
    for y in range(first, last):
        if y == oracle:
            continue
        if any_ties and gain[y] == gain[oracle]:
            if scores[y - first] > scores[star - first]:
                star = y
        elif rival < 0 or scores[y - first] > scores[rival - first]:
            rival = y
    return star, rival


@kernel
def softmax(n: int, scores: np.ndarray, p: np.ndarray) -> float:
    """p_y = e^{score(y)} / Z for the first n scores; returns log Z."""
    top = scores[0]
    for y in range(1, n):
        top = max(top, scores[y])
    Z = 0.0
    for y in range(n):
        p[y] = math.exp(scores[y] - top)
        Z += p[y]
    for y in range(n):
        p[y] /= Z
    return float(top + math.log(Z))


@kernel
def coefficients(
    loss: int,
    first: int,
    last: int,
    scores: np.ndarray,
    gain: np.ndarray,
    star: int,
    rival: int,
    who: np.ndarray,
    a: np.ndarray,
) -> tuple[float, int]:
    """Value of a list's loss and its subgradient (Gao et al., eqs. 5-7): candidates ``who`` with coefficients ``a``.

    m = score(y*) − score(y'). perceptron max(0, −m) and hinge max(0, 1 − m): −1 on y*, +1 on y'; logistic
    log(1 + e^{−m}): ∓1/(1 + e^m); log −log P(y*): P(y) − [y = y*]; Bayes risk −Σ P(y) s(y):
    (E_P[s] − s(y)) · P(y), with s the gain. Returns (value, number of candidates).
    """
    if loss in (LOG, BAYES):
        n = last - first
        log_z = softmax(n, scores, a)
        expected = 0.0
        for y in range(n):
            who[y] = first + y
            expected += a[y] * gain[first + y]
        if loss == LOG:
            a[star - first] -= 1.0
            return log_z - scores[star - first], n
        for y in range(n):
            a[y] *= expected - gain[first + y]
        return -expected, n
    m = scores[star - first] - scores[rival - first]
    size, value = 1.0, max(0.0, 1.0 - m)
    if loss == PERCEPTRON:
        value = max(0.0, -m)
    elif loss == LOGISTIC:
        value = max(0.0, -m) + math.log1p(math.exp(-abs(m)))
        size = 1.0 / (1.0 + math.exp(m)) if m < 0 else math.exp(-m) / (1.0 + math.exp(-m))
    who[0], a[0] = star, -size
    who[1], a[1] = rival, size
    return value, 2


@kernel
def accumulate(
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    who: np.ndarray,
    a: np.ndarray,
    n: int,
    g: np.ndarray,
    seen: np.ndarray,
    stamp: int,
    touched: np.ndarray,
) -> int:
    """g ← Σ a_y φ(y) over the first n candidates ``who``, in that order; lists its columns in ``touched``.

    ``g`` (float64 [D]) needs no clearing: a column whose ``seen`` is not ``stamp`` starts from 0. Returns the number of
    columns touched.
    """
    count = 0
    for i in range(n):
        if a[i] == 0.0:
            continue
        for p in range(rows[who[i]], rows[who[i] + 1]):
            j = columns[p]
            if seen[j] != stamp:
                seen[j] = stamp
                g[j] = 0.0
                touched[count] = j
                count += 1
            g[j] += a[i] * values[p]
    return count
