"""Naive dense twins of the learners: every predictor is a full vector that is kept, every sum runs over all of them.

A twin follows the papers' boxes line by line. Sums over a row are taken in one fixed way, so that candidates with the
same row have the same score, and on dyadic numbers all sums are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logsumexp

from rerank.corpus import Corpus


class Predictor(NamedTuple):
    """score(y) = β·b(y) + d · v·φ(y); the weights are w = d·v (v is exact on dyadic numbers, d is not)."""

    v: np.ndarray
    d: float
    beta: float

    @property
    def w(self) -> np.ndarray:
        return self.d * self.v

    def scores(self, phi: np.ndarray, base: np.ndarray) -> np.ndarray:
        return self.beta * base + self.d * (phi * self.v).sum(axis=1)


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
    radius: float = 0.0
    gap: float = np.inf  # the smallest distance from a decision that rounding could turn

    def begin_epoch(self) -> None:
        for counter in (self.mistakes, self.updates, self.loss):
            counter.append(0)

    def update(self, i: int, predictor: Predictor, delta: np.ndarray, z: np.ndarray) -> None:
        self.predictors.append(predictor)
        self.survived.append(1)  # the list on which the predictor was made
        self.deltas.append(delta)
        self.lists_of_updates.append(i)
        self.updates[-1] += 1
        self.radius = max(self.radius, float(np.linalg.norm(z)))

    def average(self) -> tuple[np.ndarray, float]:
        """Σ c_k w_k / Σ c_k, and the same of β."""
        c = np.array(self.survived, float)
        if c.sum() == 0:
            return self.predictors[0].w, self.predictors[0].beta
        w = sum(c_k * p.w for c_k, p in zip(c, self.predictors, strict=True)) / c.sum()
        return w, float(sum(c_k * p.beta for c_k, p in zip(c, self.predictors, strict=True)) / c.sum())


def dense(corpus: Corpus) -> np.ndarray:
    """φ of all candidates: float64 [N, D]."""
    phi = np.zeros((corpus.candidate_count, corpus.width))
    for y in range(corpus.candidate_count):
        for p in range(corpus.rows[y], corpus.rows[y + 1]):
            phi[y, corpus.columns[p]] = corpus.values[p]
    return phi


def oracle_and_rival(f: np.ndarray, gain: np.ndarray, oracle: int, any_ties: bool) -> tuple[int, int | None]:
    """y* and y', the best candidate that is no oracle; of equal scores the given oracle, then the lower index."""
    if f.size == 0:
        return -1, None
    oracles = [oracle] + [y for y in range(f.size) if any_ties and y != oracle and gain[y] == gain[oracle]]
    others = [y for y in range(f.size) if y not in oracles]
    return max(oracles, key=lambda y: f[y]), max(others, key=lambda y: f[y], default=None)


def loss_of(name: str, f: np.ndarray, gain: np.ndarray, star: int, rival: int) -> tuple[float, np.ndarray]:
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
        case "logistic":
            return float(np.logaddexp(0.0, -m)), pair * expit(-m)
        case "log":
            return float(logsumexp(f) - f[star]), P - one_hot
        case "bayes":
            return float(-(P @ gain)), P * (P @ gain - gain)
    raise ValueError(name)


def decision_gap(f: np.ndarray, rows: np.ndarray) -> float:
    """The smallest difference of scores between candidates that are not the same."""
    _, first = np.unique(rows, axis=0, return_index=True)
    return float(np.diff(np.sort(f[first])).min(initial=np.inf))


def perceptron(
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Iterable[Sequence[int]],
    *,
    base: float,
    base_rate: float,
    any_ties: bool = False,
) -> Trace:
    """Collins (2002), Fig. 2, with the counts of Freund & Schapire (1999), Fig. 1; ρ·b is the last feature."""
    phi, D = dense(corpus), corpus.width
    rows = np.column_stack([phi, base_rate * corpus.base])
    w = np.zeros(D + 1)
    trace = Trace([Predictor(w[:D], 1.0, base)])
    for order in orders:
        trace.begin_epoch()
        for i in order:
            of_list = slice(corpus.lists[i], corpus.lists[i + 1])
            f = trace.predictors[-1].scores(phi[of_list], corpus.base[of_list])
            star, rival = oracle_and_rival(f, corpus.gain[of_list], oracle[i] - corpus.lists[i], any_ties)
            if rival is None or f[star] > f[rival]:
                trace.survived[-1] += 1
                continue
            z = rows[of_list][star] - rows[of_list][rival]
            w = w + corpus.weight[i] * z
            trace.update(i, Predictor(w[:D], 1.0, base + base_rate * w[D]), -corpus.weight[i] * z, z)
            trace.mistakes[-1] += 1
            trace.loss[-1] += f[rival] - f[star]
    return trace


def rda_predictor(s: np.ndarray, k: int, eta: float, l1: float, l2: float, base: float, base_rate: float) -> Predictor:
    """w = −sign(s)·max(|s| − kλ₁, 0)/(kλ₂ + η√k); the base score's coordinate (the last) has no regulariser."""
    if k == 0:
        return Predictor(np.zeros(s.size - 1), 1.0, base)
    v = -np.sign(s[:-1]) * np.maximum(np.abs(s[:-1]) - k * l1, 0.0)
    return Predictor(v, 1.0 / (k * l2 + eta * np.sqrt(k)), base - base_rate * (1.0 / (eta * np.sqrt(k))) * s[-1])


def rda(
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Iterable[Sequence[int]],
    *,
    loss: str,
    eta: float,
    l1: float,
    l2: float,
    update: str,
    base: float,
    base_rate: float,
    any_ties: bool = False,
) -> Trace:
    """Xiao (2010), Alg. 1 on the lists that cause an update; Gao et al. (2013), Fig. 1 where only mistakes do."""
    phi = dense(corpus)
    rows = np.column_stack([phi, base_rate * corpus.base])
    s, k = np.zeros(corpus.width + 1), 0
    trace = Trace([rda_predictor(s, k, eta, l1, l2, base, base_rate)])
    for order in orders:
        trace.begin_epoch()
        for i in order:
            of_list = slice(corpus.lists[i], corpus.lists[i + 1])
            gain = corpus.gain[of_list]
            f = trace.predictors[-1].scores(phi[of_list], corpus.base[of_list])
            star, rival = oracle_and_rival(f, gain, oracle[i] - corpus.lists[i], any_ties)
            if rival is None:
                trace.survived[-1] += 1
                continue
            value, a = loss_of(loss, f, gain, star, rival)
            mistake = not f[star] > f[rival]
            if k > 0:
                seen = decision_gap(f, np.column_stack([phi, corpus.base])[of_list])
                trace.gap = min(trace.gap, seen, abs(1.0 - f[star] + f[rival]) if loss == "hinge" else np.inf)
            trace.mistakes[-1] += mistake
            trace.loss[-1] += value
            if not mistake and not (update == "always" and (loss in ("logistic", "log", "bayes") or value > 0.0)):
                trace.survived[-1] += 1
                continue
            g = (a[:, None] * rows[of_list]).sum(axis=0)
            s, k = s + corpus.weight[i] * g, k + 1
            z = rows[of_list][star] - rows[of_list][rival] if loss in ("perceptron", "hinge", "logistic") else g
            trace.update(i, rda_predictor(s, k, eta, l1, l2, base, base_rate), corpus.weight[i] * g, z)
    return trace


def votes(trace: Trace, corpus: Corpus) -> np.ndarray:
    """Every predictor gives its c to the candidate of highest score, then highest base score, then lowest index."""
    phi, counted = dense(corpus), np.zeros(corpus.candidate_count)
    for predictor, c in zip(trace.predictors, trace.survived, strict=True):
        f = predictor.scores(phi, corpus.base)
        for first, last in zip(corpus.lists[:-1], corpus.lists[1:], strict=True):
            if last > first:
                counted[min(range(first, last), key=lambda y: (-f[y], -corpus.base[y], y))] += c
    return counted


def voting_gap(trace: Trace, corpus: Corpus) -> float:
    """The smallest difference, under any predictor after w_1, between candidates of a list that are not the same."""
    phi = dense(corpus)
    rows = np.column_stack([phi, corpus.base])
    ranges = [slice(*pair) for pair in zip(corpus.lists[:-1], corpus.lists[1:], strict=True)]
    scores = [predictor.scores(phi, corpus.base) for predictor in trace.predictors[1:]]
    return min((decision_gap(f[r], rows[r]) for f in scores for r in ranges), default=np.inf)


def voted_rda_bound(trace: Trace, u: np.ndarray, eta: float, l1: float, l2: float) -> dict[str, float]:
    """L(u) + M·Δ(u) + (η‖u‖²/2 + G²/η)·√M over the updates of a trace (Gao et al. 2013, Theorem 1); u: [D + 1]."""

    def psi(w: np.ndarray) -> float:
        return float(l1 * np.abs(w).sum() + 0.5 * l2 * (w**2).sum())

    Z = -np.array(trace.deltas)
    M = len(Z)
    loss = float(np.maximum(0.0, 1.0 - Z @ u).sum())
    delta = psi(u[:-1]) - float(np.mean([psi(predictor.w) for predictor in trace.predictors[:M]]))
    G = float(np.linalg.norm(Z, axis=1).max())
    bound = loss + M * delta + (eta * float(u @ u) / 2 + G**2 / eta) * np.sqrt(M)
    return {"loss_u": loss, "delta_u": delta, "bound": bound}


def perceptron_bound(trace: Trace, u: np.ndarray) -> dict[str, float]:
    """((R + D)/γ)² with γ > 0 the mean margin of the updates (Freund & Schapire 1999, Theorem 2); else {}."""
    Z, unit = -np.array(trace.deltas), u / np.linalg.norm(u)
    gamma, R = float((Z @ unit).mean()), float(np.linalg.norm(Z, axis=1).max())
    if gamma <= 0.0:
        return {}
    D = np.sqrt(sum(max(0.0, gamma - float(z @ unit)) ** 2 for z in Z))
    return {"gamma": gamma, "bound": float(((R + D) / gamma) ** 2)}


def binary_perceptron(X: np.ndarray, y: np.ndarray, epochs: int) -> tuple[np.ndarray, int]:
    """Rosenblatt's rule on examples z = y·x: (w, mistakes)."""
    w, mistakes = np.zeros(X.shape[1]), 0
    for z in np.tile(y[:, None] * X, (epochs, 1)):
        if w @ z <= 0.0:
            w, mistakes = w + z, mistakes + 1
    return w, mistakes


def binary_rda(
    X: np.ndarray, y: np.ndarray, epochs: int, *, loss: str, eta: float, l1: float, l2: float, update: str
) -> tuple[np.ndarray, int]:
    """(Voted) RDA on examples z = y·x (Xu et al. 2011, Alg. 1): (w, mistakes); Bayes risk for gains 1 and 0."""
    w, s, k, mistakes = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0, 0
    slopes = {
        "perceptron": lambda m: -1.0 if m <= 0.0 else 0.0,
        "hinge": lambda m: -1.0 if m < 1.0 else 0.0,
        "logistic": lambda m: -expit(-m),
        "log": lambda m: -expit(-m),
        "bayes": lambda m: -expit(m) * expit(-m),
    }
    for z in np.tile(y[:, None] * X, (epochs, 1)):
        m = w @ z
        slope = slopes[loss](m)
        mistakes += m <= 0.0
        if m <= 0.0 or (update == "always" and slope < 0.0):
            s, k = s + slope * z, k + 1
            w = -np.sign(s) * np.maximum(np.abs(s) - k * l1, 0.0) / (k * l2 + eta * np.sqrt(k))
    return w, int(mistakes)
