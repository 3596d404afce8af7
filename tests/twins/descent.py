"""Steps along subgradients: perceptron, SGD, dual averaging and its voted form, and truncated gradient."""

from typing import Any

import numpy as np
from entries import UPDATES, descending, losses
from reference_walks import Made, Step, linear


def perceptron(width: int, *_: Any) -> Step:
    """Collins (2002), Fig. 2, with the counts of Freund & Schapire (1999), Fig. 1."""
    return sgd(width, eta=1.0, schedule="constant")


def sgd(width: int, *_: Any, eta: float, schedule: str) -> Step:
    """Update k: w ← w − η_k·weight·g with η_k = η/√k or η (Zhang 2004, Alg. 1)."""
    state: dict[str, Any] = {"w": np.zeros(width), "k": 0}

    def step(a: np.ndarray, rows: np.ndarray, weight: float) -> Made:
        g = (a[:, None] * rows).sum(axis=0)
        state["k"] += 1
        rate = eta / np.sqrt(state["k"]) if schedule == "sqrt" else eta
        state["w"] = state["w"] - rate * weight * g
        return linear(state["w"])

    return step


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


class Truncation:
    """Langford et al. (2009): w ← T(w − α·g), T truncating the weights up to θ, but the base score's and the first
    ``free``."""

    def __init__(
        self, width: int, free: int, _: bool, *, eta: float, l1: float, theta: float | None = None, every: int = 1
    ) -> None:
        self.w, self.k, self.gap = np.zeros(width), 0, np.inf
        self.eta, self.l1, self.every = eta, l1, every
        self.theta = np.inf if theta is None else theta
        self.penalised = (np.arange(width) < width - 1) & (np.arange(width) >= free)

    def __call__(self, a: np.ndarray, rows: np.ndarray, weight: float) -> Made:
        g = (a[:, None] * rows).sum(axis=0)
        self.k += 1
        alpha = self.eta / np.sqrt(self.k)
        w = self.w - alpha * weight * g
        self.gap = min(self.gap, float(np.abs(np.abs(w) - self.theta).min(initial=np.inf)))
        if self.k % self.every == 0:
            near = self.penalised & (np.abs(w) <= self.theta)
            w = np.where(near, np.sign(w) * np.maximum(np.abs(w) - self.every * alpha * self.l1, 0.0), w)
        self.w = w
        return linear(w)


def exact_sgd(learner: Any) -> bool:
    """A constant step that is a power of two."""
    dyadic = learner.schedule == "constant" and np.frexp(learner.eta)[0] == 0.5
    return bool(dyadic) and exact_loss(learner)


def exact_loss(learner: Any) -> bool:
    return learner.loss in ("perceptron", "hinge", "cost")


PERCEPTRON: list[dict[str, Any]] = [{}, {"base": 0.0}, {"base": 0.5, "base_rate": 0.25}]
SGD: list[dict[str, Any]] = [
    {},
    {"loss": "perceptron", "eta": 1.0, "schedule": "constant", "base": 0.0},
    {"loss": "hinge", "eta": 0.5, "schedule": "constant", "base": 0.5, "base_rate": 0.25},
    {"loss": "hinge", "eta": 1.0, "update": "mistakes", "base_rate": 0.5},
    {"loss": "cost", "eta": 0.25, "schedule": "constant"},
    {"loss": "cost", "eta": 0.5, "update": "mistakes"},
    {"loss": "logistic", "eta": 0.5, "base_rate": 0.25},
    {"loss": "logistic", "eta": 1.0, "schedule": "constant", "update": "mistakes"},
    {"loss": "exponential", "eta": 0.05},
    {"loss": "log", "eta": 0.5, "base_rate": 0.25},
    {"loss": "log", "eta": 1.0, "schedule": "constant", "update": "mistakes", "base": 0.5},
    {"loss": "bayes", "eta": 2.0},
    {"loss": "listnet", "eta": 0.5, "base_rate": 0.25},
    {"loss": "listmle", "eta": 0.25, "base": 0.5},
    {"loss": "lambdarank", "eta": 1.0},
]
RDA: list[dict[str, Any]] = [
    {},
    {"l1": 0.015625, "update": "mistakes"},
    {"l1": 0.015625, "l2": 0.0625, "update": "always", "base": 0.5, "base_rate": 0.25},
    {"loss": "perceptron", "eta": 0.5, "l2": 0.125, "update": "mistakes"},
    {"loss": "exponential", "l2": 0.0625, "eta": 8.0, "update": "always"},
    {"loss": "log", "l1": 0.0078125, "update": "always", "base_rate": 0.25},
]
VOTED_RDA: list[dict[str, Any]] = [{}, {"l1": 0.015625, "base_rate": 0.25}]
TRUNCATED: list[dict[str, Any]] = [
    {},
    {"l1": 0.01, "base": 0.5, "base_rate": 0.25},
    {"loss": "logistic", "eta": 2.0, "l1": 0.02, "theta": 0.7},
    {"loss": "log", "l1": 0.01, "every": 3, "update": "mistakes"},
    {"loss": "exponential", "eta": 0.25, "l1": 0.01, "every": 2},
]

STEPS = UPDATES | losses("perceptron hinge cost logistic log bayes")
STEPS |= {"eta": [0.25, 1.0], "schedule": ["sqrt", "constant"]}
AVERAGED = UPDATES | {"eta": [0.5, 1.0, 3.0], "l1": [0.0, 0.125, 0.25, 1.0], "l2": [0.0, 0.5]}
SHRUNK = UPDATES | {"eta": [0.5, 1.0, 3.0], "l1": [0.0, 0.05, 0.1, 0.4]}
SHRUNK |= {"theta": [None, None, 0.6, 1.5], "every": [1, 1, 2, 3]}

ENTRIES = {
    "perceptron": descending(perceptron, PERCEPTRON, {}, exact=lambda _: True),
    "sgd": descending(sgd, SGD, STEPS, "eta", exact_sgd),
    "rda": descending(rda, RDA, AVERAGED | losses("perceptron hinge log"), "eta", exact_loss),
    "vrda": descending(rda, VOTED_RDA, AVERAGED | losses("hinge logistic log"), "eta", exact_loss),
    "tg": descending(Truncation, TRUNCATED, SHRUNK | losses("hinge logistic log"), "eta theta"),
}
