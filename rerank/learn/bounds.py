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

import numpy as np
from scipy.sparse import csr_matrix, hstack

from rerank.data.corpus import Corpus
from rerank.learn.epoch import UpdateLog, replay_corpus
from rerank.learn.learner import Learner, Weights
from rerank.learn.rules.additive import Perceptron
from rerank.learn.rules.dual_averaging import RDA
from rerank.learn.rules.gaussian import AROW
from rerank.learn.rules.winnow import MAX_LOG_WEIGHT, NWin
from rerank.learn.scoring import scores

Bounds = dict[str, float | bool]
HINGES = "hinge", "perceptron"  # losses whose updates on mistakes are those of the theorems
SCALES = 200  # of u: those at which so many lists, evenly chosen by their margins, just have no loss


def theorem_of(learner: Learner) -> str | None:
    """Return whose theorem speaks of a learner: "dual" averaging's (or the perceptron's), "arow", "winnow", or None."""
    if not learner.pairwise or getattr(learner, "update", "mistakes") != "mistakes":
        return None
    if isinstance(learner, AROW):
        return "arow" if learner.top == 1 and learner.covariance == "full" else None
    if isinstance(learner, NWin):
        return "winnow" if learner.loss in HINGES else None
    return "dual" if isinstance(learner, (RDA, Perceptron)) else None


def differences(log: UpdateLog, lists: Corpus, base_rate: float) -> csr_matrix:
    """Return z = −g of every update, times the weight of its list: [M, D + 1], the base score as base_rate·b(y)."""
    log, corpus = replay_corpus(log, lists)
    updates = log.arrays()
    a = -updates["a"] * np.repeat(corpus.weight[updates["lists"]], np.diff(updates["first"]))
    coefficients = csr_matrix((a, updates["candidate"], updates["first"]), (log.updates, corpus.candidate_count))
    shape = corpus.candidate_count, corpus.width
    features = csr_matrix((corpus.values.astype(np.float64), corpus.columns, corpus.rows), shape)
    base = csr_matrix(coefficients.dot(base_rate * corpus.base)).T
    return hstack([coefficients.dot(features), base], format="csr")


def list_margins(lists: Corpus, targets: np.ndarray, u: Weights, *, any_ties: bool) -> np.ndarray:
    """float64 [L]: the lowest score of a list's right candidates minus the highest of the wrong ones, times the list's
    weight; ∞ where all are right. No update of the list has a smaller u·z.

    targets: int64 [L], the oracles. any_ties: whether every candidate with the oracle's gain is right.
    """
    margins = np.full(lists.list_count, np.inf)
    sizes, score = np.diff(lists.lists), scores(lists, u)
    full = sizes > 0
    first, best = lists.lists[:-1][full], np.repeat(targets[full], sizes[full])
    right = lists.gain == lists.gain[best] if any_ties else np.arange(score.size) == best
    lowest = np.minimum.reduceat(np.where(right, score, np.inf), first) if first.size else np.zeros(0)
    highest = np.maximum.reduceat(np.where(right, -np.inf, score), first) if first.size else np.zeros(0)
    margins[full] = (lowest - highest) * lists.weight[full]
    return margins


def best_scale(margins: np.ndarray, bound_at: Callable[[float, np.ndarray], float]) -> Bounds:
    """Return the smallest bound over scales of a u with margins m of all lists (float64 [L]).

    bound_at: of a scale and of every list's max(0, 1 − scale·m); at the scale 0 it is the number of lists. At the scale
    1/m a list of margin m just has no loss: these are tried, at most SCALES of them.
    """
    margins = margins[np.isfinite(margins)]
    best: Bounds = {"scale": 0.0, "loss_u": float(margins.size), "bound": float(margins.size)}
    positive = np.sort(margins[margins > 0.0])
    indices = np.unique(np.linspace(0, positive.size - 1, min(SCALES, positive.size)).astype(np.int64))
    for scale in (1.0 / positive[indices]).tolist():
        losses = np.maximum(0.0, 1.0 - scale * margins)
        bound = bound_at(scale, losses)
        if bound < best["bound"]:
            best = {"scale": scale, "loss_u": float(losses.sum()), "bound": float(bound)}
    return best


def mean_regulariser(z: csr_matrix, eta: float, l1: float, l2: float) -> float:
    """Return the mean of Ψ(w_k) over the M predictors that updates with these differences ended, w_1 = 0.

    |w_kj| = (|s_j| − k·λ₁)·d_k, d_k = 1/(kλ₂ + η√k), from the update that last touched j until the next one, or until
    the threshold reaches it: sums over k of what d_k and k give, taken at both ends.
    """
    M, by_column = z.shape[0], z.tocsc()
    k = np.arange(1, M)
    d = np.append(0.0, 1.0 / (k * l2 + eta * np.sqrt(k)))
    k = np.arange(M)
    sums = np.zeros((5, M + 1))
    np.cumsum([d, k * d, d * d, k * d * d, k * k * d * d], axis=1, out=sums[:, 1:])
    size = np.abs(np.concatenate([np.cumsum(column) for column in np.split(by_column.data, by_column.indptr[1:-1])]))
    begin, end = by_column.indices + 1, np.append(by_column.indices, M - 1)[1:]
    end[by_column.indptr[1:][np.diff(by_column.indptr) > 0] - 1] = M - 1
    if l1 > 0.0:
        end = np.minimum(end, np.ceil(size / l1) - 1).astype(np.int64)
    mask = (size > 0.0) & (end >= begin)
    size, (P, Q, PP, QP, QQ) = size[mask], sums[:, end[mask] + 1] - sums[:, begin[mask]]
    linear = size * P - l1 * Q
    square = size * size * PP - 2.0 * size * l1 * QP + l1 * l1 * QQ
    return float((l1 * linear + 0.5 * l2 * square).sum() / M)


def volume_of(z: np.ndarray, r: float) -> tuple[float, int]:
    """Return ln det(I + Σ zzᵀ/r), and how many updates AROW made where m > 0 (Crammer et al. 2009, Fig. 1).

    z: float64 [M, D + 1].
    """
    sigma, mu, volume, spare = np.eye(z.shape[1]), np.zeros(z.shape[1]), 0.0, 0
    for row in z:
        m, v = float((mu * row).sum()), (sigma * row).sum(axis=1)  # BLAS adds in an order of its own
        s = float((row * v).sum())
        volume += math.log1p(s / r)
        spare += m > 0.0
        mu += v * (max(0.0, 1.0 - m) / (r + s))
        sigma -= np.outer(v, v / (r + s))
    return volume, spare


def bounds(learner: Learner, log: UpdateLog, lists: Corpus, mistakes: int, u: Weights, margins: np.ndarray) -> Bounds:
    """Return the bounds of the theorems and the mistakes of a first pass over ``lists``; {} where no theorem speaks of
    the learner, or of the weights of its lists.

    log: the updates of the pass, each with one oracle and one rival. u: the comparison vector; margins: of all lists
    under it, see ``list_margins``.
    """
    theorem, loss, M, rate = theorem_of(learner), learner.loss_type().name, mistakes, learner.base_rate
    if theorem is None:
        return {}
    if (theorem != "dual" or loss == "logistic") and (lists.weight != 1).any():
        return {}
    z, vector = differences(log, lists, rate), np.append(u.w, (u.base - learner.base) / rate if rate else 0.0)
    arrays, coefficient = log.arrays(), np.ones(log.updates)
    if loss == "logistic" and log.updates:  # z of the theorems has none, gradients have
        coefficient = np.maximum.reduceat(np.abs(arrays["a"]), arrays["first"][:-1])
    lengths, m = np.sqrt(np.asarray(z.multiply(z).sum(axis=1)).ravel()), z.dot(vector) / coefficient
    R, size = float((lengths / coefficient).max(initial=0.0)), math.sqrt(float(np.square(vector).sum()))
    result: Bounds = {"mistakes": M, "lists": margins.size, "radius": R, "norm_u": size}
    result |= {"vote_error": min(1.0, 2.0 * M / (margins.size + 1)), "fixed_base": learner.base != 0.0}
    if M == 0 or size == 0.0 or learner.base != 0.0:
        return result
    if isinstance(learner, AROW):
        return result | best_scale(margins, whitened_bound(learner, z, vector))
    if isinstance(learner, NWin):
        largest = float(np.abs(z.data).max(initial=0.0))
        if learner.eta * largest * log.updates > MAX_LOG_WEIGHT:
            return result  # a log-weight may have been held at its limit, of which no theorem knows
        return result | best_scale(margins, winnow_bound(learner, lists.width, largest, vector))
    eta, l1, l2 = (float(getattr(learner, name, 0.0)) for name in ("eta", "l1", "l2"))
    linear = l1 == 0.0 and (l2 == 0.0 or (rate == 0.0 and lists.free == 0))
    if loss == "logistic" or (loss in HINGES and not linear):
        losses = np.logaddexp(0.0, -m) if loss == "logistic" else np.maximum(0.0, 1.0 - m)
        mistake_loss = math.log(2.0) if loss == "logistic" else 1.0
        w = vector[lists.free : -1]
        psi = l1 * float(np.abs(w).sum()) + 0.5 * l2 * float(np.square(w).sum())
        delta = psi - mean_regulariser(z[:, lists.free : -1], eta, l1, l2)
        reach = (eta * size**2 / 2 + float(lengths.max()) ** 2 / eta) * math.sqrt(M)
        loss_u = float(losses.sum())
        result |= {"loss_u": loss_u, "delta_u": delta, "bound": (loss_u + M * delta + reach) / mistake_loss}
    elif loss in HINGES:
        result |= best_scale(margins, perceptron_bound(size * R))
    if m.min() > 0.0 and linear and loss in HINGES:
        gamma = float(m.min()) / size
        result |= {"separable_gamma": gamma, "separable_bound": (R / gamma) ** 2}
    return result


# Bounds at a scale of u, ``short`` being every list's max(0, 1 − scale·m) (float64 [L]).


def perceptron_bound(size: float) -> Callable[[float, np.ndarray], float]:
    """The perceptron's; size: ‖u‖R."""

    def bound(scale: float, losses: np.ndarray) -> float:
        reach = scale * size
        linear = (reach + math.sqrt(reach**2 + 4.0 * float(losses.sum()))) ** 2 / 4.0
        return min(linear, (reach + math.sqrt(float(np.square(losses).sum()))) ** 2)

    return bound


def whitened_bound(learner: AROW, z: csr_matrix, u: np.ndarray) -> Callable[[float, np.ndarray], float]:
    """AROW's; z: [M, D + 1]; u: float64 [D + 1]."""
    volume, spare = volume_of(z.toarray(), learner.r)
    squares = learner.r * float(np.square(u).sum()) + float(np.square(z.dot(u)).sum())
    size = math.sqrt(squares * (volume + spare))
    return lambda scale, losses: float(losses.sum()) + scale * size - spare


def winnow_bound(learner: NWin, width: int, largest: float, u: np.ndarray) -> Callable[[float, np.ndarray], float]:
    """Normalised Winnow's; largest: of all |z_j|; u: float64 [D + 1]."""
    sizes = np.abs(u[u != 0.0])
    total, D = float(sizes.sum()), width + (learner.base_rate > 0)
    divergence = float((sizes / total * np.log(2.0 * D * sizes / total)).sum())

    def bound(scale: float, losses: np.ndarray) -> float:
        factor = 1.0 - learner.eta * largest**2 * scale * total / 2.0
        return (float(losses.sum()) + scale * total * divergence / learner.eta) / factor if factor > 0.0 else math.inf

    return bound
