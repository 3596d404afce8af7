"""Naive dense twins of the learners: every predictor is a full vector that is kept, every sum runs over all of them.

A twin follows the papers' boxes line by line. Sums over a row are taken in one fixed way, so that candidates with the
same row have the same score, and on dyadic numbers all sums are exact.
"""

import itertools
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit, logsumexp

from rerank.data.corpus import Corpus
from rerank.learn.epoch import Votes
from rerank.metrics.metric import oracles

EPS = float(np.finfo(float).eps)
NEGLIGIBLE = 1e-12  # what is smaller, relative to what has been added up, is taken for rounding by adaptive steps
NOTABLE = 1e-3  # a weight counts as having been so large at least, where gaps are told from rounding
OF_GAINS = ("bayes", "listnet", "listmle", "lambdarank")  # losses that gains decide, whatever the oracle
POSITIVE = ("log", *OF_GAINS)  # losses of lists, which are learned from whatever their values


class Predictor(NamedTuple):
    """score(y) = β·b(y) + d · v·φ(y); the weights are w = d·v (v is exact on dyadic numbers, d is not)."""

    v: np.ndarray
    d: float
    beta: float

    @property
    def w(self) -> np.ndarray:
        return self.d * self.v

    @property
    def sizes(self) -> np.ndarray:
        """|w| and |β|: [D + 1]."""
        return np.abs(np.append(self.w, self.beta))

    def scores(self, phi: np.ndarray, base: np.ndarray) -> np.ndarray:
        return self.beta * base + self.d * (phi * self.v).sum(axis=1)


def residues(votes: Votes) -> bool:
    """Whether a weight was ever what rounding left of 0, where a subgradient cancels: its sign is anybody's guess."""
    size = np.abs(votes.value)
    return bool(((size > 0) & (size < 1e-12)).any())


@dataclass
class Trace:
    """What a training did. Predictor k (from 0) was made by update k; ``survived[k]`` is its c."""

    predictors: list[Predictor]
    survived: list[int] = field(default_factory=lambda: [0])
    deltas: list[np.ndarray] = field(default_factory=list)  # weight · g, the base score's coordinate last: [D + 1]
    lists_of_updates: list[int] = field(default_factory=list)
    mistakes: list[int] = field(default_factory=list)  # per epoch, as the following
    updates: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    gap: float = np.inf  # the smallest distance from a decision that rounding could turn; of scores, see decision_gap
    condition: float = 1.0  # how many times the rounding of a score is magnified in a subgradient, where most cancels

    def __post_init__(self) -> None:
        self.largest = np.maximum(self.predictors[0].sizes, NOTABLE)  # of every predictor up to now

    def begin_epoch(self) -> None:
        for counter in (self.mistakes, self.updates, self.loss):
            counter.append(0)

    def update(self, i: int, predictor: Predictor, delta: np.ndarray) -> None:
        self.predictors.append(predictor)
        self.largest = np.maximum(self.largest, predictor.sizes)
        self.survived.append(1)  # the list on which the predictor was made
        self.deltas.append(delta)
        self.lists_of_updates.append(i)
        self.updates[-1] += 1

    def size(self, phi: np.ndarray, base: np.ndarray) -> float:
        """What the products of a list's scores have come to by now: what is left of weights that cancel is rounding."""
        return size_of(self.largest, phi, base)

    def average(self) -> tuple[np.ndarray, float]:
        """Σ c_k w_k / Σ c_k, and the same of β."""
        c = np.array(self.survived, float)
        if c.sum() == 0:
            return self.predictors[0].w, self.predictors[0].beta
        w = sum(c_k * p.w for c_k, p in zip(c, self.predictors, strict=True)) / c.sum()
        return w, float(sum(c_k * p.beta for c_k, p in zip(c, self.predictors, strict=True)) / c.sum())


def dense(corpus: Corpus) -> np.ndarray:
    """φ of all candidates: float64 [N, D]."""
    entries = corpus.values.astype(float), corpus.columns, corpus.rows
    return np.asarray(csr_matrix(entries, shape=(corpus.candidate_count, corpus.width)).toarray())


def oracle_and_rival(f: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool) -> tuple[int, int | None]:
    """y* and y', the best candidate that is no oracle; of equals the given oracle, then the lower index."""
    if f.size == 0:
        return -1, None
    oracles = [oracle] + [y for y in range(f.size) if any_ties and y != oracle and gain[y] == gain[oracle]]
    others = [y for y in range(f.size) if y not in oracles]
    return max(oracles, key=lambda y: f[y]), max(others, key=lambda y: f[y], default=None)


def loss_of(
    name: str, f: np.ndarray, gain: np.ndarray, star: int, rival: int, tilt: float = 1.0, any_ties: bool = False
) -> tuple[float, np.ndarray]:
    """The value of a loss and the coefficient of every candidate in its subgradient."""
    m = f[star] - f[rival]
    one_hot = (np.arange(f.size) == star).astype(float)
    pair = (np.arange(f.size) == rival) - one_hot
    P = np.exp(f - logsumexp(f))
    match name:
        case "perceptron":
            return max(0.0, -m), pair
        case "hinge":
            return max(0.0, 1.0 - m), pair
        case "cost":
            return max(0.0, tilt * (gain[star] - gain[rival]) - m), pair
        case "exponential":
            return float(np.exp(min(-m, 30.0)) * (1.0 + max(0.0, -m - 30.0))), pair * np.exp(min(-m, 30.0))
        case "logistic":
            return float(np.logaddexp(0.0, -m)), pair * expit(-m)
        case "log":
            right = (gain == gain[star]) if any_ties else one_hot.astype(bool)
            share = np.exp(np.where(right, f, -np.inf) - logsumexp(f[right]))
            return float(logsumexp(f) - logsumexp(f[right])), P - share
        case "bayes":
            return float(-(P @ gain)), P * (P @ gain - gain)
        case "listnet":
            q = np.exp(gain - logsumexp(gain))
            return float(q @ (np.log(q) - (f - logsumexp(f)))), P - q
        case "listmle":
            value, a = 0.0, np.zeros(f.size)
            for y in np.flatnonzero(gain > gain.min()).tolist():
                below = np.where(gain <= gain[y], f, -np.inf)
                value += float(logsumexp(below) - f[y])
                a += np.exp(below - logsumexp(below)) - (np.arange(f.size) == y)
            return value, a
        case "lambdarank":
            place = 1 + np.argsort(np.argsort(-f, kind="stable"), kind="stable")
            worth, discount = 2.0**gain - 1, 1 / np.log2(1 + place)
            ideal = float(np.sort(worth)[::-1] @ (1 / np.log2(2 + np.arange(f.size))))
            value, a = 0.0, np.zeros(f.size)
            for y, z in itertools.permutations(range(f.size), 2) if ideal > 0 else ():
                if gain[y] > gain[z]:
                    size = abs((worth[y] - worth[z]) * (discount[y] - discount[z])) / ideal
                    value += float(size * np.logaddexp(0.0, f[z] - f[y]))
                    a += size * expit(f[z] - f[y]) * ((np.arange(f.size) == z).astype(float) - (np.arange(f.size) == y))
            return value, a
    raise ValueError(name)


def condition(loss: str, f: np.ndarray, gain: np.ndarray, a: np.ndarray, rows: np.ndarray) -> float:
    """How many times g = Σ a·row, relative to itself, feels the rounding of f, in the column where that is most.

    What is added up in a coefficient a, and then in g, may be far larger than its sum. Infinite where rounding decides
    whether a sum is taken for rounding alone (NEGLIGIBLE).
    """
    if not a.any():
        return 1.0
    P = np.exp(f - logsumexp(f))
    size = {"log": P + (a < 0), "bayes": P * (P @ np.abs(gain) + np.abs(gain)), "listnet": P + 1.0}.get(loss, np.abs(a))
    if loss in ("listmle", "lambdarank"):
        size = np.full(f.size, float(f.size))
    size = np.where(a != 0, size, 0.0) * (1.0 + np.abs(f).max())
    x, g = np.ptp(rows[a != 0], axis=0), np.abs((a[:, None] * rows).sum(axis=0))
    added, limit = (size[:, None] * np.abs(rows)).sum(axis=0), NEGLIGIBLE * np.abs(a).max() * x
    unsure = (x > 0) & (g > 0) & (np.abs(g - limit) < 10 * EPS * added)
    if unsure.any() or abs(np.abs(a).max() - NEGLIGIBLE) < 10 * EPS * size.max():
        return np.inf
    used = (x > 0) & (g > limit)
    return float((added[used] / g[used]).max(initial=1.0))


def size_of(weights: np.ndarray, phi: np.ndarray, base: np.ndarray) -> float:
    """The largest Σ_j |w_j φ_j| + |β b| of a list's candidates, for the |w| and |β| in ``weights``: [D + 1]."""
    return float((np.abs(phi) @ weights[:-1] + np.abs(base) * weights[-1]).max(initial=0.0))


def decision_gap(f: np.ndarray, rows: np.ndarray, size: float) -> float:
    """The smallest difference of scores between candidates that are not the same, relative to ``size``."""
    _, first = np.unique(rows, axis=0, return_index=True)
    return float(np.diff(np.sort(f[first])).min(initial=np.inf)) / (size or 1.0)


def trace_of(votes: Votes, width: int) -> Trace:
    """The predictors, as ``votes`` defines them."""
    a, v, trace = np.zeros(width), np.zeros(width), Trace([Predictor(np.zeros(width), 1.0, float(votes.beta[0]))])
    for k in range(1, votes.survived.size):
        entries = slice(votes.first[k - 1], votes.first[k])
        a[votes.columns[entries]] = votes.value[entries]
        v[votes.columns[entries]] = votes.slope[entries] if votes.slope.size else np.sign(votes.value[entries])
        threshold = votes.threshold[k] if votes.threshold.size else 0.0
        active = np.where(np.abs(a) > threshold * np.abs(v), a - threshold * v, 0.0)
        trace.predictors.append(Predictor(active, float(votes.scale[k]), float(votes.beta[k])))
    return trace


def votes(trace: Trace, corpus: Corpus) -> np.ndarray:
    """Every predictor gives its c to the candidate of highest score, then highest base score, then lowest index."""
    scores, counted = scores_of(trace, corpus), np.zeros(corpus.candidate_count)
    for first, last in zip(corpus.lists[:-1], corpus.lists[1:], strict=True):
        if last > first:
            f = scores[:, first:last]
            base = np.where(f == f.max(axis=1, keepdims=True), corpus.base[first:last], -np.inf)
            np.add.at(counted, first + base.argmax(axis=1), trace.survived)
    return counted


def scores_of(trace: Trace, corpus: Corpus) -> np.ndarray:
    """The scores of all candidates under every predictor: [K, N]."""
    phi = dense(corpus)
    return np.array([predictor.scores(phi, corpus.base) for predictor in trace.predictors])


def leads(trace: Trace, corpus: Corpus, largest: np.ndarray | None = None) -> np.ndarray:
    """By how much every predictor's winners are ahead, at least, of candidates that differ from them in what weighs
    anything: others tie, whatever rounding does.

    Relative to what the list's products come to under the predictor, or with the weights in ``largest``: [K, D + 1].
    """
    scores, rows = scores_of(trace, corpus), np.column_stack([dense(corpus), corpus.base])
    own, found = np.array([predictor.sizes for predictor in trace.predictors]), np.full(len(scores), np.inf)
    for first, last in zip(corpus.lists[:-1], corpus.lists[1:], strict=True):
        if last > first:
            f, seen = scores[:, first:last], rows[first:last]
            differ = (seen[:, None] != seen)[f.argmax(axis=1)]  # from the winner: [K, n, D + 1]
            others = (differ & (own != 0)[:, None]).any(axis=2)
            ahead = np.where(others, f.max(axis=1, keepdims=True) - f, np.inf).min(axis=1)
            size = ((own if largest is None else largest) @ np.abs(seen.T)).max(axis=1)
            found = np.minimum(found, ahead / np.where(size == 0, 1.0, size))
    return found


def voting_gap(trace: Trace, corpus: Corpus) -> float:
    """The smallest lead under any predictor after w_1, relative to the largest weights up to then (``Trace.size``)."""
    largest = np.maximum.accumulate([np.maximum(predictor.sizes, NOTABLE) for predictor in trace.predictors])
    return float(leads(trace, corpus, largest)[1:].min(initial=np.inf))


def voted_rda_bound(trace: Trace, u: np.ndarray, eta: float, l1: float, l2: float, free: int = 0) -> dict[str, float]:
    """L(u) + M·Δ(u) + (η‖u‖²/2 + G²/η)·√M over the updates of a trace (Gao et al. 2013, Theorem 1); u: [D + 1].

    The first ``free`` columns are no part of Ψ.
    """

    def psi(w: np.ndarray) -> float:
        return float(l1 * np.abs(w[free:]).sum() + 0.5 * l2 * (w[free:] ** 2).sum())

    Z = -np.array(trace.deltas)
    M = len(Z)
    loss = float(np.maximum(0.0, 1.0 - Z @ u).sum())
    delta = psi(u[:-1]) - float(np.mean([psi(predictor.w) for predictor in trace.predictors[:M]]))
    G = float(np.linalg.norm(Z, axis=1).max())
    bound = loss + M * delta + (eta * float(u @ u) / 2 + G**2 / eta) * np.sqrt(M)
    return {"loss_u": loss, "delta_u": delta, "bound": bound}


def perceptron_bound(trace: Trace, corpus: Corpus, u: np.ndarray, rate: float) -> float:
    """The smallest right-hand side over the scales c of u at which a list just has no loss, and c = 0.

    Either √M ≤ (c‖u‖R + √(c²‖u‖²R² + 4L))/2 with L = Σ max(0, 1 − c·m), or √M ≤ c‖u‖R + √(Σ max(0, 1 − c·m)²)
    (Freund & Schapire 1999, Theorem 2), m the margin of every list under u (float64 [D + 1], the base score's last).
    """
    R, margins = max(np.linalg.norm(z) for z in trace.deltas), []
    scores = dense(corpus) @ u[:-1] + rate * u[-1] * corpus.base
    for i, target in enumerate(oracles(corpus)):
        wrong = [scores[y] for y in range(corpus.lists[i], corpus.lists[i + 1]) if y != target]
        margins += [corpus.weight[i] * (scores[target] - max(wrong))] if wrong else [np.inf]
    roots = []
    for c in (0.0, *(1 / m for m in margins if 0 < m < np.inf)):
        short, size = [max(0.0, 1 - c * m) if m < np.inf else 0.0 for m in margins], c * np.linalg.norm(u) * R
        roots += [(size + np.sqrt(size**2 + 4 * sum(short))) / 2, size + np.sqrt(sum(x * x for x in short))]
    return float(min(roots) ** 2)
