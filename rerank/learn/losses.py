"""Losses as coefficients: the subgradient of a list's loss is Σ_y a_y φ(y)."""

import math
from typing import Literal, get_args

import numpy as np

from rerank.kernels.compile import kernel

# From LOGISTIC on they are positive everywhere, from LOG on of all candidates.
PERCEPTRON, HINGE, COST, LOGISTIC, EXPONENTIAL, LOG, BAYES, LISTNET, LISTMLE, LAMBDARANK = range(10)
Loss = Literal[
    "perceptron", "hinge", "cost", "logistic", "exponential", "log", "bayes", "listnet", "listmle", "lambdarank"
]  # fmt: skip
LOSSES: dict[str, int] = {name: number for number, name in enumerate(get_args(Loss))}
OF_GAINS = ("bayes", "listnet", "listmle", "lambdarank")  # of all candidates and their gains, whatever the oracle
PAIRWISE = (PERCEPTRON, HINGE, COST, LOGISTIC, EXPONENTIAL)  # losses of oracle and rival alone
LINEAR_BELOW = 30.0  # the exponential loss is linear for margins below −LINEAR_BELOW: its slope stays finite


@kernel
def rivals(
    first: int, last: int, scores: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool, tilt: float
) -> tuple[int, int]:
    """(y*, y'): the oracle, and the candidate with the highest score − tilt·gain that is not one; -1 if there is none.

    With ``any_ties`` every candidate with the oracle's gain is an oracle, and the best-scoring of them plays y*.
    ``scores`` counts from ``first``; among equals the first candidate is taken.
    """
    star, rival, highest = oracle, -1, 0.0
    for y in range(first, last):
        if y == oracle:
            continue
        if any_ties and gain[y] == gain[oracle]:
            if scores[y - first] > scores[star - first]:
                star = y
            continue
        height = scores[y - first] - tilt * gain[y]
        if rival < 0 or height > highest:
            rival, highest = y, height
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
def surprise(
    first: int, last: int, scores: np.ndarray, gain: np.ndarray, star: int, any_ties: bool, log_z: float, p: np.ndarray
) -> float:
    """−log P(O), and P(y) − [y ∈ O]·P(y)/P(O) in place of ``p`` = P(y): O is y* or, with ``any_ties``, every candidate
    with its gain, of which y* has the best score (Charniak & Johnson 2005, section 3).

    No right candidate is a rival of another: they share what P(O) gains as they share P(O).
    """
    Z = 0.0  # of the oracles, in units of e^{score(y*)}
    for y in range(first, last):
        if y == star or (any_ties and gain[y] == gain[star]):
            Z += math.exp(scores[y - first] - scores[star - first])
    for y in range(first, last):
        if y == star or (any_ties and gain[y] == gain[star]):
            p[y - first] -= math.exp(scores[y - first] - scores[star - first]) / Z
    return float(max(0.0, log_z - scores[star - first] - math.log(Z)))


@kernel
def divergence(first: int, last: int, scores: np.ndarray, gain: np.ndarray, log_z: float, p: np.ndarray) -> float:
    """Σ q(y)·log(q(y)/P(y)), and P(y) − q(y) in place of ``p`` = P(y): q is the softmax of gains, so that every
    candidate is to be chosen as its gain says (ListNet: Cao et al. 2007, with the divergence for their cross entropy).
    """
    top, Z, total = gain[first], 0.0, 0.0
    for y in range(first, last):
        top = max(top, gain[y])
    for y in range(first, last):
        Z += math.exp(gain[y] - top)
    for y in range(first, last):
        q = math.exp(gain[y] - top) / Z
        total += q * ((gain[y] - top - math.log(Z)) - (scores[y - first] - log_z))
        p[y - first] -= q
    return float(max(0.0, total))


@kernel
def order_surprise(first: int, last: int, scores: np.ndarray, gain: np.ndarray, a: np.ndarray) -> float:
    """−log P(order by gains), and its gradient in ``a``, where P is Plackett & Luce's: each candidate in turn is chosen
    among those whose gain is no higher (ListMLE: Xia et al. 2008; equal gains as in Breslow 1974).

    Candidates with the lowest gain are not chosen: whoever is left comes last.
    """
    lowest, level, total = math.inf, -math.inf, 0.0
    for y in range(first, last):
        lowest, level = min(lowest, gain[y]), max(level, gain[y])
        a[y - first] = 0.0
    while level > lowest:
        top, below, chosen, Z = -math.inf, lowest, 0, 0.0
        for y in range(first, last):
            if gain[y] <= level:
                top = max(top, scores[y - first])
        for y in range(first, last):
            if gain[y] == level:
                total -= scores[y - first]
                a[y - first] -= 1.0
                chosen += 1
            elif gain[y] < level:
                below = max(below, gain[y])
            if gain[y] <= level:
                Z += math.exp(scores[y - first] - top)
        total += chosen * (top + math.log(Z))
        for y in range(first, last):
            if gain[y] <= level:
                a[y - first] += chosen * (math.exp(scores[y - first] - top) / Z)
        level = below
    return float(max(0.0, total))


@kernel
def lambda_loss(first: int, last: int, scores: np.ndarray, gain: np.ndarray, who: np.ndarray, a: np.ndarray) -> float:
    """Σ |ΔNDCG|·log(1 + e^{−m}) over pairs of different gain, m the margin of the better, and its gradient in ``a``,
    ΔNDCG being what NDCG changes by if the two change places (LambdaRank: Burges et al. 2006; Burges 2010, section 4).

    A gain g is worth 2^g − 1. The places are held fixed. ``who`` is space for them.
    """
    n, ideal, total = last - first, 0.0, 0.0
    for y in range(n):
        place, best = 1, 1
        for z in range(n):
            place += scores[z] > scores[y] or (scores[z] == scores[y] and z < y)
            best += gain[first + z] > gain[first + y] or (gain[first + z] == gain[first + y] and z < y)
        who[y], a[y] = place, 0.0
        ideal += (2.0 ** gain[first + y] - 1.0) / math.log2(1.0 + best)
    if not ideal > 0.0:
        return 0.0
    for y in range(n):
        worth, discount = 2.0 ** gain[first + y], 1.0 / math.log2(1.0 + who[y])
        for z in range(n):
            if gain[first + y] > gain[first + z]:
                moved = discount - 1.0 / math.log2(1.0 + who[z])
                size = abs((worth - 2.0 ** gain[first + z]) * moved) / ideal
                value, slope = logistic(scores[y] - scores[z])
                total += size * value
                a[y] -= size * slope
                a[z] += size * slope
    return float(total)


@kernel
def logistic(m: float) -> tuple[float, float]:
    """log(1 + e^{−m}) and 1/(1 + e^m)."""
    value = max(0.0, -m) + math.log1p(math.exp(-abs(m)))
    return value, 1.0 / (1.0 + math.exp(m)) if m < 0 else math.exp(-m) / (1.0 + math.exp(-m))


@kernel
def coefficients(
    loss: int,
    first: int,
    last: int,
    scores: np.ndarray,
    gain: np.ndarray,
    star: int,
    rival: int,
    any_ties: bool,
    tilt: float,
    who: np.ndarray,
    a: np.ndarray,
) -> tuple[float, int]:
    """Value of a list's loss and its subgradient (Gao et al., eqs. 5-7): candidates ``who`` with coefficients ``a``.

    m = score(y*) − score(y'), s the gain. perceptron max(0, −m), hinge max(0, 1 − m) and cost-augmented hinge
    max(0, tilt·(s(y*) − s(y')) − m): −1 on y*, +1 on y'; logistic log(1 + e^{−m}): ∓1/(1 + e^m); exponential
    e^{−m}: ∓e^{−m}; log −log P(O): see ``surprise``; Bayes risk −Σ P(y) s(y): (E_P[s] − s(y)) · P(y);
    listnet: see ``divergence``; listmle: ``order_surprise``; lambdarank: ``lambda_loss``.
    Returns (value, number of candidates).
    """
    value = 0.0
    if loss >= LOG:
        n = last - first
        if loss == LAMBDARANK:
            value = lambda_loss(first, last, scores, gain, who, a)
        elif loss == LISTMLE:
            value = order_surprise(first, last, scores, gain, a)
        if loss >= LISTMLE:
            for y in range(n):
                who[y] = first + y
            return value, n
        log_z = softmax(n, scores, a)
        expected, low, high = 0.0, math.inf, -math.inf
        for y in range(n):
            who[y] = first + y
            expected += a[y] * gain[first + y]
            low, high = min(low, gain[first + y]), max(high, gain[first + y])
        if loss == LOG:
            return surprise(first, last, scores, gain, star, any_ties, log_z, a), n
        if loss == LISTNET:
            return divergence(first, last, scores, gain, log_z, a), n
        expected = min(max(expected, low), high)  # undoes rounding: gains that are all alike teach nothing
        for y in range(n):
            a[y] *= expected - gain[first + y]
        return -expected, n
    m = scores[star - first] - scores[rival - first]
    size, value = 1.0, max(0.0, 1.0 - m)
    if loss == PERCEPTRON:
        value = max(0.0, -m)
    elif loss == COST:
        value = max(0.0, tilt * (gain[star] - gain[rival]) - m)
    elif loss == EXPONENTIAL:
        size = math.exp(min(-m, LINEAR_BELOW))
        value = size * (1.0 + max(0.0, -m - LINEAR_BELOW))
    elif loss == LOGISTIC:
        value, size = logistic(m)
    who[0], a[0] = star, -size
    who[1], a[1] = rival, size
    return value, 2
