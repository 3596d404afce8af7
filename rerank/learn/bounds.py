"""Mistake bounds as a diagnostic: what the theorems say of a run's first pass, beside what happened.

For any u, over the updates of the first pass (z = φ(y*) − φ(y') of an update, M of them):

* voted RDA (Xu et al. 2011; Gao et al. 2013, Theorem 1):
  M ≤ L(u) + M·Δ(u) + (η‖u‖²/2 + G²/η)·√M, with L(u) = Σ loss(u), Δ(u) = Ψ(u) − mean Ψ(w_k),
  Ψ(w) = λ₁‖w‖₁ + λ₂‖w‖²/2 over the columns that are not free, and G the largest norm of a subgradient; it needs a loss
  of at least 1 on a mistake (hinge);
* perceptron (Collins 2002, Theorem 2; Freund & Schapire 1999): with ‖u‖ = 1 and γ > 0,
  M ≤ ((R + D)/γ)², D² = Σ max(0, γ − u·z)²;
* where u separates these updates with margin γ at norm 1: M ≤ 2(R/γ)² for voted RDA with λ₁ = 0 (λ₂ scales all weights
  alike and changes no mistake, unless there is a learned base score or a free column, which it leaves alone); (R/γ)²
  for the perceptron.

u is the average that training returned. With a learned weight of the base score, u and z hold its coordinate too; a
base score that weighs something from the start (w_1 ≠ 0) is no part of these theorems, which ``fixed_base`` says.
"""

from __future__ import annotations

import math

import numpy as np

from rerank.compile import kernel
from rerank.corpus import Corpus
from rerank.learn.base import DualRule, Weights
from rerank.learn.differences import Differences

Bounds = dict[str, float | bool]


@kernel
def update_margins(
    first: np.ndarray,
    columns: np.ndarray,
    delta: np.ndarray,
    delta_base: np.ndarray,
    w: np.ndarray,
    w_base: float,
    margins: np.ndarray,
    norms: np.ndarray,
) -> None:
    """u·z and ‖z‖² of every update, z = −Δs."""
    for k in range(margins.shape[0]):
        margin, norm = -delta_base[k] * w_base, delta_base[k] * delta_base[k]
        for e in range(first[k], first[k + 1]):
            margin -= delta[e] * w[columns[e]]
            norm += delta[e] * delta[e]
        margins[k], norms[k] = margin, norm


@kernel
def regularisers(
    first: np.ndarray,
    columns: np.ndarray,
    delta: np.ndarray,
    rule: DualRule,
    s: np.ndarray,
    since: np.ndarray,
    sums: np.ndarray,
    free: int,
) -> float:
    """Σ_{k=1..M} Ψ(w_k) over the predictors that the M updates ended, w_1 = 0 (lazily, as the average).

    ``free``: so many columns, the first ones, are no part of Ψ.

    ``s`` (float64 [D], 0), ``since`` (int64 [D], 0) are scratch; ``sums`` (float64 [5, M + 1]) holds the prefix sums of
    d, k·d, d², k·d² and k²·d².
    """
    M = first.shape[0] - 1
    for k in range(M):
        d = 1.0 / (k * rule.l2 + rule.eta * math.sqrt(k)) if k > 0 else 0.0
        sums[0, k + 1] = sums[0, k] + d
        sums[1, k + 1] = sums[1, k] + k * d
        sums[2, k + 1] = sums[2, k] + d * d
        sums[3, k + 1] = sums[3, k] + k * d * d
        sums[4, k + 1] = sums[4, k] + k * k * d * d
    total = 0.0
    for k in range(M + 1):
        begin, end = (first[k], first[k + 1]) if k < M else (0, s.shape[0])
        for e in range(begin, end):
            j = columns[e] if k < M else e
            size, a = abs(s[j]), since[j]
            b = min(k, M - 1)
            if b * rule.l1 >= size > 0.0:
                b = math.ceil(size / rule.l1) - 1
            if size > 0.0 and b >= a and j >= free:
                # |w_kj| = (|s| − k·λ₁)·d_k for k = a..b, and its square
                linear = size * (sums[0, b + 1] - sums[0, a]) - rule.l1 * (sums[1, b + 1] - sums[1, a])
                square = size * size * (sums[2, b + 1] - sums[2, a])
                square -= 2.0 * size * rule.l1 * (sums[3, b + 1] - sums[3, a])
                square += rule.l1 * rule.l1 * (sums[4, b + 1] - sums[4, a])
                total += rule.l1 * linear + 0.5 * rule.l2 * square
            since[j] = k + 1
            if k < M:
                s[j] += delta[e]
    return total


def bounds(passed: Differences, rule: DualRule, u: Weights, corpus: Corpus, *, hinge: bool) -> Bounds:
    """What the theorems allow and what was observed, for the updates ``passed`` of a first pass over ``corpus``.

    Parameters
    ----------
    passed: the updates of one pass that updated on mistakes only, one oracle and one rival each.
    rule: of the learner; eta = 0 for the perceptron.
    u: the comparison vector.
    hinge: whether the loss was the hinge loss, to which the theorem of voted RDA applies as it stands.
    """
    M = passed.base.size
    rate = rule.base_rate
    w_base = (u.base - rule.base) / rate if rate > 0 else 0.0
    margins, norms = np.zeros(M), np.zeros(M)
    update_margins(passed.first, passed.columns, passed.delta, passed.base, u.w, w_base, margins, norms)
    R = math.sqrt(float(norms.max(initial=0.0)))
    norm_u = math.sqrt(float(u.w @ u.w) + w_base * w_base)
    found: Bounds = {"mistakes": M, "radius": R, "norm_u": norm_u, "fixed_base": rule.base != 0.0}
    if M == 0 or norm_u == 0.0:
        return found
    least = float(margins.min())
    if rule.eta > 0.0 and hinge:
        loss = float(np.maximum(0.0, 1.0 - margins).sum())
        penalised = u.w[corpus.free :]
        psi_u = rule.l1 * float(np.abs(penalised).sum()) + 0.5 * rule.l2 * float(penalised @ penalised)
        D = corpus.width
        sums = np.zeros((5, M + 1))
        scratch = np.zeros(D), np.zeros(D, np.int64)
        psi = regularisers(passed.first, passed.columns, passed.delta, rule, *scratch, sums, corpus.free) / M
        size = (rule.eta * norm_u**2 / 2 + R**2 / rule.eta) * math.sqrt(M)
        found |= {"loss_u": loss, "delta_u": psi_u - psi, "bound": loss + M * (psi_u - psi) + size}
    elif rule.eta == 0.0:
        gamma = max(float(margins.mean()), 0.0) / norm_u
        if gamma > 0.0:
            D2 = float((np.maximum(0.0, gamma - margins / norm_u) ** 2).sum())
            found |= {"gamma": gamma, "bound": ((R + math.sqrt(D2)) / gamma) ** 2}
    if least > 0.0 and rule.l1 == 0.0 and (rule.l2 == 0.0 or (rate == 0.0 and corpus.free == 0)):
        gamma = least / norm_u
        found |= {"separable_gamma": gamma, "separable_bound": (2.0 if rule.eta > 0.0 else 1.0) * (R / gamma) ** 2}
    return found
