"""Mistake bounds as a diagnostic: what the theorems say about a run's first pass, next to what happened.

For any u, over the updates of the first pass (z = φ(y*) − φ(y') of an update, M of them):

* voted RDA (Xu et al. 2013; Gao et al. 2013, Theorem 1):
  M ≤ L(u) + M·Δ(u) + (η‖u‖²/2 + G²/η)·√M, with L(u) = Σ loss(u), Δ(u) = Ψ(u) − mean Ψ(w_k),
  Ψ(w) = λ₁‖w‖₁ + λ₂‖w‖²/2 over the columns that are not free, and G the largest norm of a subgradient; it needs a loss
  of at least 1 on a mistake (hinge);
* perceptron (Collins 2002, Theorem 2; Freund & Schapire 1999): with ‖u‖ = 1 and γ > 0,
  M ≤ ((R + D)/γ)², D² = Σ max(0, γ − u·z)²;
* where u separates these updates with margin γ at norm 1: M ≤ 2(R/γ)² for voted RDA with λ₁ = 0 (λ₂ scales all weights
  alike and changes no mistake, unless there is a learned base score or a free column, which it leaves alone); (R/γ)²
  for the perceptron.

u is the average that training returned. With a learned weight of the base score, u and z hold its coordinate too; these
theorems do not cover a base score with a weight from the start (w_1 ≠ 0), which ``fixed_base`` reports.
"""

import math
from typing import NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.data.shards import Lists
from rerank.kernels.compile import kernel
from rerank.learn.base import Learner, Weights
from rerank.learn.judge import base_of, subgradient
from rerank.learn.log import UpdateLog
from rerank.learn.losses import LOG
from rerank.learn.replay import Replay, Updates, VoteRoom, load, stretches
from rerank.learn.rules.perceptron import Perceptron
from rerank.learn.rules.rda import RDA
from rerank.learn.workspace import ListArrays, Scratch

Bounds = dict[str, float | bool]


class DualRule(NamedTuple):
    """How predictor k follows from the sum s of k subgradients: w = −sign(s)·max(|s| − k·l1, 0)·d_k.

    d_k = 1 / (k·l2 + eta·√k), or 1 where eta is 0; the base score weighs base − base_rate·d_k·s_b (l2 = 0).
    """

    eta: float
    l1: float
    l2: float
    base: float
    base_rate: float

    @staticmethod
    def of(learner: Learner) -> "DualRule | None":
        """That of a learner; None where its predictors do not follow from such a sum, and no theorem is known."""
        if not isinstance(learner, (RDA, Perceptron)):
            return None
        eta, l1, l2 = (float(getattr(learner, name, 0.0)) for name in ("eta", "l1", "l2"))
        return DualRule(eta, l1, l2, float(learner.base), float(learner.base_rate))


class Differences(NamedTuple):
    """The subgradients of M updates, each with the weight of its list."""

    first: np.ndarray  # int64 [M + 1]: entries of update k are first[k]..first[k + 1]
    columns: np.ndarray  # int32 [entries]
    delta: np.ndarray  # float64 [entries]: what is added to s_j
    base: np.ndarray  # float64 [M]: what is added to the base score's s


class PrefixSums(NamedTuple):
    """Sums over the k before, for k = 0..M, of what d_k = 1/(kλ₂ + η√k) and k give (float64 [M + 1])."""

    d: np.ndarray
    kd: np.ndarray
    dd: np.ndarray  # d_k²
    kdd: np.ndarray
    kkdd: np.ndarray


@kernel
def expand_updates(
    data: ListArrays, log: Updates, base_rate: float, t: Scratch, room: VoteRoom, base: np.ndarray
) -> None:
    """Sum up the subgradient of every update, in the order in which training did."""
    for k in range(log.lists.shape[0]):
        weight, at = data.weight[log.lists[k]], room.first[k]
        n = load(log, k, t)
        count = subgradient(data, t, n)
        for r in range(count):
            room.columns[at + r], room.value[at + r] = t.column[r], weight * t.value[r]
        room.first[k + 1] = at + count
        base[k] = weight * (base_of(data, t, n) * base_rate)


def expand(log: UpdateLog, corpus: Corpus, base_rate: float) -> Differences:
    """The logged updates as vectors over the columns of the training ``corpus``, the base score as base_rate·b(y)."""
    replay = Replay(log, corpus, 0.0, LOG)
    base = np.zeros(replay.updates.lists.size)
    expand_updates(replay.data, replay.updates, float(base_rate), replay.space, replay.room, base)
    end = int(replay.room.first[-1])
    return Differences(replay.room.first, replay.room.columns[:end].copy(), replay.room.value[:end].copy(), base)


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
def settle(j: int, k: int, rule: DualRule, s: np.ndarray, since: np.ndarray, sums: PrefixSums) -> float:
    """Σ Ψ over |w_j| under the predictors from since[j] up to k, all made from the current s_j; 0 for none."""
    size, a, b = abs(s[j]), since[j], k
    if b * rule.l1 >= size > 0.0:
        b = math.ceil(size / rule.l1) - 1
    if size == 0.0 or b < a:
        return 0.0
    # |w_kj| = (|s| − k·λ₁)·d_k for k = a..b, and its square
    linear = size * (sums.d[b + 1] - sums.d[a]) - rule.l1 * (sums.kd[b + 1] - sums.kd[a])
    square = size * size * (sums.dd[b + 1] - sums.dd[a])
    square -= 2.0 * size * rule.l1 * (sums.kdd[b + 1] - sums.kdd[a])
    square += rule.l1 * rule.l1 * (sums.kkdd[b + 1] - sums.kkdd[a])
    return float(rule.l1 * linear + 0.5 * rule.l2 * square)


@kernel
def add_regularisers(
    first: np.ndarray,
    columns: np.ndarray,
    delta: np.ndarray,
    before: int,
    rule: DualRule,
    s: np.ndarray,
    since: np.ndarray,
    sums: PrefixSums,
    free: int,
    total: float,
) -> float:
    """``total`` plus what columns weighed until these updates touched them (lazily, like the average).

    ``before``: how many updates come before these; ``s`` (float64 [D]) and ``since`` (int64 [D]) are 0 before the first
    and kept from call to call; ``sums``: see ``prefix_sums``; ``free``: how many columns, the first ones, are not part
    of Ψ.
    """
    for k in range(before, before + first.shape[0] - 1):
        for e in range(first[k - before], first[k - before + 1]):
            j = columns[e]
            if j >= free:
                total += settle(j, k, rule, s, since, sums)
            since[j] = k + 1
            s[j] += delta[e]
    return total


@kernel
def end_regularisers(
    M: int, rule: DualRule, s: np.ndarray, since: np.ndarray, sums: PrefixSums, free: int, total: float
) -> float:
    """Σ_{k=1..M} Ψ(w_k), w_1 = 0, over the predictors that M updates ended."""
    for j in range(free, s.shape[0]):
        total += settle(j, M - 1, rule, s, since, sums)
    return total


def prefix_sums(rule: DualRule, M: int) -> PrefixSums:
    """The sums for M updates of ``rule``; d_0 = 0."""
    k = np.arange(M, dtype=np.float64)
    d = np.zeros(M)
    d[1:] = 1.0 / (k[1:] * rule.l2 + rule.eta * np.sqrt(k[1:]))
    terms = d, k * d, d * d, k * d * d, k * k * d * d
    return PrefixSums(*(np.concatenate([[0.0], np.cumsum(term)]) for term in terms))


def bounds(log: UpdateLog, lists: Lists, rule: DualRule, u: Weights, *, hinge: bool) -> Bounds:
    """What the theorems allow and what was observed, for the updates of a first pass over ``lists``.

    Parameters
    ----------
    log: the updates of one pass that updated on mistakes only, each with one oracle and one rival.
    rule: of the learner; eta = 0 for the perceptron.
    u: the comparison vector.
    hinge: whether the loss was the hinge loss, to which the theorem of voted RDA applies as it stands.
    """
    M, voted = log.updates, rule.eta > 0.0 and hinge
    rate = rule.base_rate
    w_base = (u.base - rule.base) / rate if rate > 0 else 0.0
    margins, norms = np.zeros(M), np.zeros(M)
    sums = prefix_sums(rule, M if voted else 0)
    D = lists.width if voted else 0
    s, since = np.zeros(D), np.zeros(D, np.int64)
    psi, at = 0.0, 0
    for updates, part in stretches(log, lists):
        z = expand(updates, part, rate)
        end = at + updates.updates
        update_margins(z.first, z.columns, z.delta, z.base, u.w, w_base, margins[at:end], norms[at:end])
        if voted:
            psi = add_regularisers(z.first, z.columns, z.delta, at, rule, s, since, sums, lists.free, psi)
        at = end
    R = math.sqrt(float(norms.max(initial=0.0)))
    norm_u = math.hypot(u.norm, w_base)
    result: Bounds = {"mistakes": M, "radius": R, "norm_u": norm_u, "fixed_base": rule.base != 0.0}
    if M == 0 or norm_u == 0.0:
        return result
    least = float(margins.min())
    if voted:
        loss = float(np.maximum(0.0, 1.0 - margins).sum())
        penalised = u.w[lists.free :]
        psi_u = rule.l1 * float(np.abs(penalised).sum()) + 0.5 * rule.l2 * float(np.square(penalised).sum())
        delta_u = psi_u - end_regularisers(M, rule, s, since, sums, lists.free, psi) / M
        size = (rule.eta * norm_u**2 / 2 + R**2 / rule.eta) * math.sqrt(M)
        result |= {"loss_u": loss, "delta_u": delta_u, "bound": loss + M * delta_u + size}
    elif rule.eta == 0.0:
        gamma = max(float(margins.mean()), 0.0) / norm_u
        if gamma > 0.0:
            D2 = float((np.maximum(0.0, gamma - margins / norm_u) ** 2).sum())
            result |= {"gamma": gamma, "bound": ((R + math.sqrt(D2)) / gamma) ** 2}
    if least > 0.0 and rule.l1 == 0.0 and (rule.l2 == 0.0 or (rate == 0.0 and lists.free == 0)):
        gamma = least / norm_u
        result |= {"separable_gamma": gamma, "separable_bound": (2.0 if rule.eta > 0.0 else 1.0) * (R / gamma) ** 2}
    return result
