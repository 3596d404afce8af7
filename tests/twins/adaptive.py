"""Learners with a step size a column: adaptive dual averaging and FTRL-proximal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from entries import Entry
from reference import NEGLIGIBLE, Trace

from rerank.data.corpus import Corpus
from twins.truncated import descend, descend_on_examples


def spread(a: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(g, x): the subgradient, 0 where it may be rounding alone, and how far the candidates in it are apart."""
    top = np.abs(a).max()
    x = np.ptp(rows[a != 0], axis=0) if top > NEGLIGIBLE else np.zeros(rows.shape[1])
    g = (a[:, None] * rows).sum(axis=0)
    return np.where((x > 0) & (np.abs(g) > NEGLIGIBLE * top * x), g, 0.0), x


def penalised(width: int, first: int, free: int) -> np.ndarray:
    """bool [width]: all entries but the ``first`` and the last ``free``."""
    return (np.arange(width) >= first) & (np.arange(width) < width - free)


class Scales:
    """Ross et al. (2013), Alg. 2: c, the largest x so far, and √(t/N); the last ``free`` entries keep c = 1."""

    def __init__(self, width: int, normalized: bool, free: int) -> None:
        self.on, self.c = normalized & (np.arange(width) < width - free), np.ones(width)
        self.c[self.on] = 0.0
        self.t, self.N = 0, 0.0

    def grow(self, g: np.ndarray, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Take in an update; returns old c / new c (1 where a feature is new)."""
        before, used = self.c.copy(), self.on & (g != 0)
        self.c[used] = np.maximum(self.c, x)[used]
        if used.any():
            self.t, self.N = self.t + 1, self.N + float(((g[used] / np.abs(a).max() / self.c[used]) ** 2).sum())
        return np.divide(before, self.c, out=np.ones(g.size), where=before > 0)

    @property
    def unit(self) -> np.ndarray:
        """What a feature's values are divided by."""
        return np.where(self.c > 0, self.c, 1.0)

    @property
    def pace(self) -> float:
        return float(np.sqrt(self.t / self.N)) if self.N > 0 else 1.0


class DualAveraging:
    """Duchi et al. (2011), Fig. 1, primal-dual update with diagonal H and L1 but for the last ``free`` entries and the
    ``first``."""

    def __init__(
        self, width: int, eta: float, delta: float, l1: float, normalized: bool, free: int, first: int = 0
    ) -> None:
        self.s, self.squares, self.k = np.zeros(width), np.zeros(width), 0
        self.eta, self.delta = eta, delta
        self.l1 = np.where(penalised(width, first, free), l1, 0.0)
        self.scales = Scales(width, normalized, free)

    def __call__(self, a: np.ndarray, rows: np.ndarray, weight: float) -> np.ndarray:
        g, x = spread(a, rows)
        ratio = self.scales.grow(g, x, a)
        unit, pace = self.scales.unit, np.where(self.scales.on, self.scales.pace, 1.0)
        self.s = self.s * ratio + weight * g / unit
        self.squares = self.squares * ratio**2 + (weight * g / unit) ** 2
        self.k += 1
        H = self.delta + np.sqrt(self.squares)
        size = np.maximum(np.abs(self.s) - self.k * self.l1, 0.0)
        return np.divide(-np.sign(self.s) * size * self.eta, H, out=np.zeros(g.size), where=H > 0) / unit * pace


class Proximal:
    """McMahan et al. (2013), Alg. 1, σ being the change of (β + √n)/α; the last ``free`` entries and the
    ``first`` are not shrunk."""

    def __init__(
        self, width: int, alpha: float, beta: float, l1: float, l2: float, normalized: bool, free: int, first: int = 0
    ) -> None:
        self.z, self.n, self.q, self.w = np.zeros((4, width))
        self.alpha, self.beta = alpha, beta
        self.l1, self.l2 = (np.where(penalised(width, first, free), x, 0.0) for x in (l1, l2))
        self.scales = Scales(width, normalized, free)

    def leader(self) -> np.ndarray:
        size = -np.sign(self.z) * np.maximum(np.abs(self.z) - self.l1, 0.0)
        return np.divide(size, self.q + self.l2, out=np.zeros(size.size), where=size != 0)

    def __call__(self, a: np.ndarray, rows: np.ndarray, weight: float) -> np.ndarray:
        g, x = spread(a, rows)
        ratio = self.scales.grow(g, x, a)
        self.z, self.n, self.q = self.z * ratio, self.n * ratio**2, self.q * ratio
        unit = self.scales.unit
        alpha = self.alpha * np.where(self.scales.on, self.scales.pace, 1.0)
        w = self.leader()
        for j in np.flatnonzero(g):
            n = self.n[j] + (weight * g[j] / unit[j]) ** 2
            sigma = (self.beta + np.sqrt(n)) / alpha[j] - self.q[j]
            self.z[j] += weight * g[j] / unit[j] - sigma * w[j]
            self.n[j], self.q[j] = n, self.q[j] + sigma
        self.w = np.where(g != 0, self.leader() / unit, self.w)
        return self.w


def arda(
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Iterable[Sequence[int]],
    *,
    eta: float,
    delta: float,
    l1: float,
    normalized: bool,
    any_ties: bool = False,
    **same: Any,
) -> Trace:
    step = DualAveraging(corpus.width + 1, eta, delta, l1, normalized, free=1, first=corpus.free)
    return descend(corpus, oracle, orders, step, any_ties=any_ties, **same)


def binary_arda(learner: Any, X: np.ndarray, y: np.ndarray, epochs: int) -> tuple[np.ndarray, int]:
    step = DualAveraging(X.shape[1], learner.eta, learner.delta, learner.l1, learner.normalized, free=0)
    return descend_on_examples(learner.loss, learner.update, X, y, epochs, step)


def ftrl(
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Iterable[Sequence[int]],
    *,
    alpha: float,
    beta: float,
    l1: float,
    l2: float,
    normalized: bool,
    any_ties: bool = False,
    **same: Any,
) -> Trace:
    step = Proximal(corpus.width + 1, alpha, beta, l1, l2, normalized, free=1, first=corpus.free)
    return descend(corpus, oracle, orders, step, any_ties=any_ties, **same)


def binary_ftrl(learner: Any, X: np.ndarray, y: np.ndarray, epochs: int) -> tuple[np.ndarray, int]:
    step = Proximal(
        X.shape[1], learner.alpha, learner.beta, learner.l1, learner.l2, learner.normalized, free=0
    )  # fmt: skip
    return descend_on_examples(learner.loss, learner.update, X, y, epochs, step)


ARDA: list[dict[str, Any]] = [
    {},
    {"normalized": False, "eta": 1.0, "delta": 1.0},
    {"l1": 0.01, "base": 0.5, "base_rate": 0.25},
    {"loss": "hinge", "l1": 0.02, "normalized": False, "update": "mistakes"},
    {"loss": "log", "l1": 0.005, "delta": 0.0},
    {"loss": "cost", "eta": 1.0},
    {"loss": "exponential", "eta": 0.1, "delta": 1.0, "normalized": False},
    {"loss": "bayes", "l1": 0.001, "eta": 2.0},
    {"loss": "perceptron", "eta": 1.0, "base_rate": 0.25},
]

FTRL: list[dict[str, Any]] = [
    {},
    {"normalized": False, "alpha": 0.5, "beta": 1.0},
    {"l1": 0.05, "l2": 0.02, "base": 0.5, "base_rate": 0.25},
    {"loss": "hinge", "l1": 0.1, "normalized": False, "update": "mistakes"},
    {"loss": "log", "l1": 0.02, "beta": 0.0},
    {"loss": "cost", "alpha": 1.0, "l2": 0.1},
    {"loss": "exponential", "alpha": 0.1, "beta": 1.0, "normalized": False},
    {"loss": "bayes", "l1": 0.01, "alpha": 2.0},
    {"loss": "perceptron", "alpha": 1.0, "base_rate": 0.25},
]

ENTRIES = {
    "arda": Entry(ARDA, arda, binary_arda, frozenset({"eta"})),
    "ftrl": Entry(FTRL, ftrl, binary_ftrl, frozenset({"alpha"})),
}
