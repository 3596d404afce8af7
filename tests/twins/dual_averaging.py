"""Dual averaging and its voted form, and with a step size a column adaptive dual averaging and FTRL-proximal."""

from typing import Any

import numpy as np
from entries import UPDATES, descending, exact_loss, losses
from reference import NEGLIGIBLE
from reference_walks import Made, Step, linear


def rda(width: int, free: int, _: bool, *, eta: float, l1: float, l2: float) -> Step:
    """w = −sign(s)·max(|s| − kλ₁, 0)/(kλ₂ + η√k); the base score has no regulariser, nor have the first ``free``.

    Xiao (2010), Alg. 1 on the lists that cause an update; Gao et al. (2013), Fig. 1 where only mistakes do.
    """
    state: dict[str, Any] = {"s": np.zeros(width), "k": 0}

    def step(a: np.ndarray, rows: np.ndarray, weight: float) -> Made:
        g = (a[:, None] * rows).sum(axis=0)
        s, k = state["s"] + weight * g, state["k"] + 1
        state.update(s=s, k=k)
        v = -np.sign(s[:-1]) * np.maximum(np.abs(s[:-1]) - k * l1, 0.0)
        v[:free] = -s[:free] * ((k * l2 + eta * np.sqrt(k)) / (eta * np.sqrt(k)) if l2 > 0 else 1.0)
        return Made(v, 1.0 / (k * l2 + eta * np.sqrt(k)), -(1.0 / (eta * np.sqrt(k))) * s[-1])

    return step


def spread(a: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(g, x): the subgradient, 0 where it may be rounding alone, and how far the candidates in it are apart."""
    top = np.abs(a).max()
    x = np.ptp(rows[a != 0], axis=0) if top > NEGLIGIBLE else np.zeros(rows.shape[1])
    g = (a[:, None] * rows).sum(axis=0)
    return np.where((x > 0) & (np.abs(g) > NEGLIGIBLE * top * x), g, 0.0), x


def penalised(width: int, free: int) -> np.ndarray:
    """bool [width]: all entries but the first ``free`` and the base score's, the last."""
    return (np.arange(width) >= free) & (np.arange(width) < width - 1)


class Scales:
    """Ross et al. (2013), Alg. 2: c, the largest x so far, and √(t/N); the last entry keeps c = 1."""

    def __init__(self, width: int, normalized: bool) -> None:
        self.on, self.c = normalized & (np.arange(width) < width - 1), np.ones(width)
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
    """Duchi et al. (2011), Fig. 1, primal-dual update with diagonal H and L1."""

    def __init__(
        self, width: int, free: int, _: bool, *, eta: float, delta: float, l1: float, normalized: bool
    ) -> None:
        self.s, self.squares, self.k = np.zeros(width), np.zeros(width), 0
        self.eta, self.delta = eta, delta
        self.l1 = np.where(penalised(width, free), l1, 0.0)
        self.scales = Scales(width, normalized)

    def __call__(self, a: np.ndarray, rows: np.ndarray, weight: float) -> Made:
        g, x = spread(a, rows)
        ratio = self.scales.grow(g, x, a)
        unit, pace = self.scales.unit, np.where(self.scales.on, self.scales.pace, 1.0)
        self.s = self.s * ratio + weight * g / unit
        self.squares = self.squares * ratio**2 + (weight * g / unit) ** 2
        self.k += 1
        H = self.delta + np.sqrt(self.squares)
        size = np.maximum(np.abs(self.s) - self.k * self.l1, 0.0)
        w = np.divide(-np.sign(self.s) * size * self.eta, H, out=np.zeros(g.size), where=H > 0)
        return linear(w / unit * pace)


class Proximal:
    """McMahan et al. (2013), Alg. 1, σ being the change of (β + √n)/α."""

    def __init__(
        self, width: int, free: int, _: bool, *, alpha: float, beta: float, l1: float, l2: float, normalized: bool
    ) -> None:
        self.z, self.n, self.q, self.w = np.zeros((4, width))
        self.alpha, self.beta = alpha, beta
        self.l1, self.l2 = (np.where(penalised(width, free), x, 0.0) for x in (l1, l2))
        self.scales = Scales(width, normalized)

    def leader(self) -> np.ndarray:
        size = -np.sign(self.z) * np.maximum(np.abs(self.z) - self.l1, 0.0)
        return np.divide(size, self.q + self.l2, out=np.zeros(size.size), where=size != 0)

    def __call__(self, a: np.ndarray, rows: np.ndarray, weight: float) -> Made:
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
        return linear(self.w)


RDA: list[dict[str, Any]] = [
    {},
    {"l1": 0.015625, "update": "mistakes"},
    {"l1": 0.015625, "l2": 0.0625, "update": "always", "base": 0.5, "base_rate": 0.25},
    {"eta": 0.5, "l2": 0.125, "update": "mistakes"},
    {"loss": "exponential", "l2": 0.0625, "eta": 8.0, "update": "always"},
    {"loss": "log", "l1": 0.0078125, "update": "always", "base_rate": 0.25},
]
VOTED_RDA: list[dict[str, Any]] = [{}, {"l1": 0.015625, "base_rate": 0.25}]
ARDA: list[dict[str, Any]] = [
    {},
    {"normalized": False, "eta": 1.0, "delta": 1.0},
    {"l1": 0.01, "base": 0.5, "base_rate": 0.25},
    {"loss": "hinge", "l1": 0.02, "normalized": False, "update": "mistakes"},
    {"loss": "log", "l1": 0.005, "delta": 0.0},
    {"loss": "exponential", "eta": 0.1, "delta": 1.0, "normalized": False},
]

FTRL: list[dict[str, Any]] = [
    {},
    {"normalized": False, "alpha": 0.5, "beta": 1.0},
    {"l1": 0.05, "l2": 0.02, "base": 0.5, "base_rate": 0.25},
    {"loss": "hinge", "l1": 0.1, "normalized": False, "update": "mistakes"},
    {"loss": "log", "l1": 0.02, "beta": 0.0},
]

AVERAGED = UPDATES | {"eta": [0.5, 1.0, 3.0], "l1": [0.0, 0.125, 0.25, 1.0], "l2": [0.0, 0.5]}
SAME: dict[str, list[Any]] = UPDATES | losses("hinge log") | {"normalized": [False, True]}
ADAPTED = {"eta": [0.25, 1.0, 3.0], "delta": [0.0, 0.01, 1.0], "l1": [0.0, 0.05, 0.2]}

ENTRIES = {
    "rda": descending(rda, RDA, AVERAGED | losses("hinge log"), "eta", exact_loss),
    "vrda": descending(rda, VOTED_RDA, AVERAGED | losses("hinge logistic log"), "eta", exact_loss),
    "arda": descending(DualAveraging, ARDA, SAME | ADAPTED | losses("hinge log bayes"), "eta"),
    "ftrl": descending(
        Proximal,
        FTRL,
        SAME | {"alpha": [0.25, 1.0, 3.0], "beta": [0.0, 0.01, 1.0], "l1": [0.0, 0.05, 0.5], "l2": [0.0, 0.1]},
        "alpha",
    ),
}
