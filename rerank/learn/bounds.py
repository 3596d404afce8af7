"""Mistake bounds as a diagnostic: what the theorems say about a run's first pass, next to what happened.

For any u, over the M updates of the first pass over n lists (z = φ(y*) − φ(y') of an update, R the largest ‖z‖), with
m = u·z of every list's candidates, the smallest of a right and a wrong one:

* perceptron: M ≤ L(u) + ‖u‖R√M with L(u) = Σ max(0, 1 − m), so that √M is at most (‖u‖R + √(‖u‖²R² + 4L(u)))/2; and
  M ≤ (‖u‖R + √(Σ max(0, 1 − m)²))² (Freund & Schapire 1999, Theorem 2; Collins 2002, Theorem 2). Every u may be scaled:
  shown is the smaller bound at the best of SCALES scales;
* voted RDA with λ₁ = 0, with hinge or perceptron loss, *is* the perceptron: all weights are its own times a positive
  d_k. The step η changes nothing, and the factor two of its theorem is not needed. (λ₂ scales alike, unless there is a
  learned base score or a free column, which it leaves alone);
* voted RDA with a penalty (Xu et al. 2013; Gao et al. 2013, Theorem 1), at u as it is:
  M ≤ L(u) + M·Δ(u) + (η‖u‖²/2 + R²/η)·√M, with L over the updates, Δ(u) = Ψ(u) − mean Ψ(w_k),
  Ψ(w) = λ₁‖w‖₁ + λ₂‖w‖²/2 over the columns that are not free;
* where u separates the updates with margin γ at norm 1, and λ₁ = 0: M ≤ (R/γ)²;
* the same with logistic loss, of which each of M mistakes has at least ln 2: M·ln 2 ≤ the right-hand side of Theorem 1
  with ln(1 + e^−u·z) for L and the largest gradient for R;
* AROW with a full matrix, over all updates, U of which were no mistakes: M ≤ L(u) + √((r‖u‖² + Σ (u·z)²)·(ln det(I +
  Σ zzᵀ/r) + U)) − U (Crammer et al. 2009, Theorem 2). Diagonals have none;
* normalised Winnow with X the largest |z_j|: M·(1 − ηX²‖u‖₁/2) ≤ L(u) + ‖u‖₁·K/η, where K is the divergence of the
  balanced u from equal weights, Σ q_j ln(2D·q_j) with q_j = |u_j|/‖u‖₁. Where u has no loss and η is best, this is
  Zhang's bound (section 1); with losses it follows by the same steps (Kivinen & Warmuth 1997). The unnormalised has
  none at a given η.

The last two are shown at the best of SCALES scales of u. Mistakes between candidates without a difference are no
updates; each is a list with a loss of 1 or more.

L is over all lists where u is scaled: over the updates alone, u = 0 has L = M, and the best bound would be M itself,
whatever happened. Over all lists u = 0 gives n.

u is the average that training returned; with a learned weight of the base score, u and z hold its coordinate too. These
theorems begin at w_1 = 0: of a base score with a weight from the start they say nothing (``fixed_base``), and no bound
is given.

Their other theorem is about the vote: the predictors of one pass choose wrongly on a new list of the same source with a
probability of at most 2E[M]/(n + 1) (Helmbold & Warmuth 1995; Gao et al. 2013, Theorem 2; Xu et al. 2013, Corollary 1),
whatever the learner: ``vote_error`` at the observed M. Beside it, ``vote_error_SPLIT`` is the share of a test split's
lists for which the vote of all epochs does not choose one of the best.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeGuard

import numpy as np

from rerank.data.corpus import Corpus
from rerank.data.shards import Corpora, own, parts
from rerank.kernels.compile import kernel
from rerank.learn.base import Learner, Weights
from rerank.learn.judge import base_of, subgradient
from rerank.learn.log import UpdateLog
from rerank.learn.replay import Replay, Updates, VoteRoom, load, stretches
from rerank.learn.rules.arow import AROW
from rerank.learn.rules.perceptron import Perceptron
from rerank.learn.rules.rda import RDA
from rerank.learn.rules.uwin import NWin
from rerank.learn.rules.winnow import LIMIT
from rerank.learn.scoring import scores
from rerank.learn.workspace import ListArrays, Scratch

Bounds = dict[str, float | bool]
HINGES = "hinge", "perceptron"  # losses whose updates on mistakes are those of the theorems
SCALES = 200  # of u: those at which so many lists, evenly chosen by their margins, just have no loss


class DualRule(NamedTuple):
    """The rule by which predictor k follows from the sum s of k subgradients: w = −sign(s)·max(|s| − k·l1, 0)·d_k.

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
    replay = Replay(log, corpus, 0.0, pairwise=False)
    base = np.zeros(replay.updates.lists.size)
    expand_updates(replay.data, replay.updates, float(base_rate), replay.space, replay.room, base)
    end = int(replay.room.first[-1])
    return Differences(replay.room.first, replay.room.columns[:end].copy(), replay.room.value[:end].copy(), base)


def margins_of(z: Differences, w: np.ndarray, w_base: float) -> tuple[np.ndarray, np.ndarray]:
    """float64 [M] each: u·z and ‖z‖² of every update, z = −Δs, summed in the order of its entries."""
    M = z.base.size
    update = np.append(np.arange(M), np.repeat(np.arange(M), np.diff(z.first)))
    products = np.append(z.base * w_base, z.delta * w[z.columns])
    return np.bincount(update, -products, M), np.bincount(update, np.append(z.base, z.delta) ** 2, M)


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
    z: Differences,
    past: int,
    rule: DualRule,
    s: np.ndarray,
    since: np.ndarray,
    sums: PrefixSums,
    free: int,
    total: float,
) -> float:
    """``total`` plus what columns, but the ``free`` first, weighed until these updates, after others, touched them."""
    for k in range(past, past + z.base.shape[0]):
        for e in range(z.first[k - past], z.first[k - past + 1]):
            j = z.columns[e]
            if j >= free:
                total += settle(j, k, rule, s, since, sums)
            since[j] = k + 1
            s[j] += z.delta[e]
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


@kernel
def compare_ends(
    lists: np.ndarray, gain: np.ndarray, target: np.ndarray, several: bool, score: np.ndarray, margins: np.ndarray
) -> None:
    """The lowest right score of every list less the highest wrong one; ``several``: the target's gain is right."""
    for i in range(lists.shape[0] - 1):
        right, wrong = np.inf, -np.inf
        for y in range(lists[i], lists[i + 1]):
            if y == target[i] or (several and gain[y] == gain[target[i]]):
                right = min(right, score[y])
            else:
                wrong = max(wrong, score[y])
        margins[i] = right - wrong


def list_margins(lists: Corpora, targets: np.ndarray, u: Weights, *, any_ties: bool) -> np.ndarray:
    """float64 [L]: the lowest score of a list's right candidates minus the highest of the wrong ones, times the list's
    weight; ∞ where all are right. No update of the list has a smaller u·z.

    targets: int64 [L], the oracles. any_ties: whether every candidate with the oracle's gain is right.
    """
    margins = np.full(lists.list_count, np.inf)
    for place, part in parts(lists):
        found = margins[place.lists : place.lists + part.list_count]
        compare_ends(part.lists, part.gain, own(targets, place, part), any_ties, scores(part, u), found)
        found *= part.weight
    return margins


def best_scale(margins: np.ndarray, bound_at: Callable[[float, np.ndarray], float]) -> Bounds:
    """The smallest bound over scales of a u with margins m of all lists (float64 [L]).

    bound_at: of a scale and of every list's max(0, 1 − scale·m); at the scale 0 it is the number of lists.
    """
    margins = margins[np.isfinite(margins)]
    best: Bounds = {"scale": 0.0, "loss_u": float(margins.size), "bound": float(margins.size)}
    for scale in (1.0 / scales_of(margins)).tolist():
        short = np.maximum(0.0, 1.0 - scale * margins)
        bound = bound_at(scale, short)
        if bound < best["bound"]:
            best = {"scale": scale, "loss_u": float(short.sum()), "bound": float(bound)}
    return best


# Bounds at a scale of u, ``short`` being every list's max(0, 1 − scale·m) (float64 [L]).


def perceptron_bound(size: float, scale: float, short: np.ndarray) -> float:
    """The perceptron's; size: ‖u‖R."""
    reach = scale * size
    linear = (reach + math.sqrt(reach**2 + 4.0 * float(short.sum()))) ** 2 / 4.0
    return min(linear, (reach + math.sqrt(float(np.square(short).sum()))) ** 2)


def whitened_bound(squares: float, volume: float, spare: int, scale: float, short: np.ndarray) -> float:
    """AROW's; squares: r‖u‖² + Σ (u·z)²; volume: ln det(I + Σ zzᵀ/r); spare: how many updates were no mistakes."""
    return float(short.sum()) + scale * math.sqrt(squares * (volume + spare)) - spare


def winnow_bound(eta: float, largest: float, total: float, divergence: float, scale: float, short: np.ndarray) -> float:
    """That of normalised Winnow; largest: of all |z_j|; total: ‖u‖₁; divergence: K of the module's formula."""
    left = 1.0 - eta * largest**2 * scale * total / 2.0
    return (float(short.sum()) + scale * total * divergence / eta) / left if left > 0.0 else math.inf


@kernel
def whiten_again(z: Differences, r: float, sigma: np.ndarray, mu: np.ndarray, v: np.ndarray) -> tuple[float, int]:
    """By how much updates raise ln det(I + Σ zzᵀ/r), z being −``delta`` and −``base``, and how many were made by AROW
    where m > 0 (Crammer et al. 2009, Fig. 1); ``sigma``, that matrix's inverse, and ``mu`` follow, ``v`` is scratch."""
    D, total, spare = sigma.shape[0], 0.0, 0
    for k in range(z.base.shape[0]):
        m = -mu[D - 1] * z.base[k]
        for e in range(z.first[k], z.first[k + 1]):
            m -= mu[z.columns[e]] * z.delta[e]
        spare += m > 0.0
        for i in range(D):
            v[i] = sigma[i, D - 1] * z.base[k]
            for e in range(z.first[k], z.first[k + 1]):
                v[i] += sigma[i, z.columns[e]] * z.delta[e]
        s = z.base[k] * v[D - 1]
        for e in range(z.first[k], z.first[k + 1]):
            s += z.delta[e] * v[z.columns[e]]
        total += math.log1p(s / r)
        for i in range(D):
            mu[i] -= v[i] * (max(0.0, 1.0 - m) / (r + s))
            for j in range(D):
                sigma[i, j] -= v[i] * v[j] / (r + s)
    return total, spare


def observed(M: int, lists: int, R: float, norm: float, base: float) -> Bounds:
    """What there is to say of M mistakes on ``lists`` without a theorem; norm: ‖u‖; base: its weight from the start."""
    about: Bounds = {"mistakes": M, "lists": lists, "radius": R, "norm_u": norm}
    return about | {"vote_error": min(1.0, 2.0 * M / (lists + 1)), "fixed_base": base != 0.0}


def scaled_bounds(
    learner: AROW | NWin, log: UpdateLog, lists: Corpora, M: int, R: float, u: Weights, margins: np.ndarray
) -> Bounds:
    """The bounds of the theorems for AROW with a full matrix and normalised Winnow in a first pass with M mistakes and
    updates of ‖z‖ ≤ R, all lists of which weigh 1.

    log: the updates of the pass. u: the comparison vector; margins: of all lists under it, see ``list_margins``.
    """
    in_base = (u.base - learner.base) / learner.base_rate if learner.base_rate > 0 else 0.0
    norm = math.hypot(u.norm, in_base)
    result = observed(M, margins.size, R, norm, learner.base)
    if M == 0 or norm == 0.0 or learner.base != 0.0:
        return result
    sigma, (mu, room) = np.eye(lists.width + 1 if isinstance(learner, AROW) else 0), np.zeros((2, lists.width + 1))
    squares, volume, largest, spare = 0.0, 0.0, 0.0, 0
    for updates, part in stretches(log, lists):
        z = expand(updates, part, learner.base_rate)
        squares += float(np.square(margins_of(z, u.w, in_base)[0]).sum())
        largest = max(largest, float(np.abs(z.delta).max(initial=0.0)), float(np.abs(z.base).max(initial=0.0)))
        if isinstance(learner, AROW):
            more = whiten_again(z, float(learner.r), sigma, mu, room)
            volume, spare = volume + more[0], spare + more[1]
    if isinstance(learner, AROW):
        return result | best_scale(margins, partial(whitened_bound, learner.r * norm**2 + squares, volume, spare))
    if learner.eta * largest * log.updates > LIMIT:
        return result  # a log-weight may have been held at its limit, of which no theorem knows
    sizes = np.abs(np.append(u.w, in_base))
    total, sizes = float(sizes.sum()), sizes[sizes > 0.0]
    D = lists.width + (learner.base_rate > 0)
    divergence = float((sizes / total * np.log(2.0 * D * sizes / total)).sum())
    return result | best_scale(margins, partial(winnow_bound, learner.eta, largest, total, divergence))


def has_bounds(learner: Learner) -> TypeGuard[AROW | NWin]:
    """Whether ``scaled_bounds`` speaks of a learner."""
    if isinstance(learner, AROW):
        return learner.top == 1 and learner.covariance == "full" and learner.r2 is None
    mistaken = isinstance(learner, NWin) and learner.update == "mistakes" and learner.loss in HINGES
    return mistaken and learner.begins_at_zero


def scales_of(margins: np.ndarray) -> np.ndarray:
    """Positive ones of ``margins``, rising, at most SCALES: at the scale 1/m a list of margin m just has no loss."""
    positive = np.sort(margins[margins > 0.0])
    return positive[np.unique(np.linspace(0, positive.size - 1, min(SCALES, positive.size)).astype(np.int64))]


def bounds(log: UpdateLog, lists: Corpora, rule: DualRule, u: Weights, margins: np.ndarray, *, loss: str) -> Bounds:
    """The bounds of the theorems and the observed mistakes, for the updates of a first pass over ``lists``.

    Parameters
    ----------
    log: the updates of one pass that updated on mistakes only, each with one oracle and one rival.
    rule: of the learner; eta = 0 for the perceptron.
    u: the comparison vector.
    margins: of all lists under ``u``; see ``list_margins``.
    loss: of the learner; no other than "hinge", "perceptron" and, with lists that all weigh 1, "logistic" has a bound.
    """
    hinge, logistic = loss in HINGES, loss == "logistic"
    M, rate = log.updates, rule.base_rate
    linear = rule.l1 == 0.0 and (rule.l2 == 0.0 or (rate == 0.0 and lists.free == 0))
    penalised = (hinge and not linear) or logistic
    w_base = (u.base - rule.base) / rate if rate > 0 else 0.0
    own_margins, norms, coefficient = np.zeros(M), np.zeros(M), np.ones(M)
    sums = prefix_sums(rule, M if penalised else 0)
    D = lists.width if penalised else 0
    s, since = np.zeros(D), np.zeros(D, np.int64)
    psi, at = 0.0, 0
    for updates, part in stretches(log, lists):
        z = expand(updates, part, rate)
        end = at + updates.updates
        own_margins[at:end], norms[at:end] = margins_of(z, u.w, w_base)
        if logistic:
            arrays = updates.arrays()
            coefficient[at:end] = np.maximum.reduceat(np.abs(arrays["a"]), arrays["first"][:-1])
        if penalised:
            psi = add_regularisers(z, at, rule, s, since, sums, lists.free, psi)
        at = end
    steepest = math.sqrt(float(norms.max(initial=0.0)))  # of the gradients, which are −z with other losses
    own_margins /= coefficient
    R = math.sqrt(float((norms / coefficient**2).max(initial=0.0)))
    norm_u = math.hypot(u.norm, w_base)
    result = observed(M, margins.size, R, norm_u, rule.base)
    if M == 0 or norm_u == 0.0 or rule.base != 0.0:
        return result
    if penalised:
        losses = np.logaddexp(0.0, -own_margins) if logistic else np.maximum(0.0, 1.0 - own_margins)
        loss_u, least_loss = float(losses.sum()), math.log(2.0) if logistic else 1.0
        w = u.w[lists.free :]
        psi_u = rule.l1 * float(np.abs(w).sum()) + 0.5 * rule.l2 * float(np.square(w).sum())
        delta_u = psi_u - end_regularisers(M, rule, s, since, sums, lists.free, psi) / M
        size = (rule.eta * norm_u**2 / 2 + steepest**2 / rule.eta) * math.sqrt(M)
        result |= {"loss_u": loss_u, "delta_u": delta_u, "bound": (loss_u + M * delta_u + size) / least_loss}
    elif hinge:
        result |= best_scale(margins, partial(perceptron_bound, norm_u * R))
    least = float(own_margins.min())
    if least > 0.0 and linear and hinge:
        gamma = least / norm_u
        result |= {"separable_gamma": gamma, "separable_bound": (R / gamma) ** 2}
    return result
