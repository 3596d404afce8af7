"""Additive updates: perceptron, SGD, passive-aggressive learning and truncated gradient."""

from typing import Any

import numpy as np
from entries import UPDATES, descending, exact_loss, losses, walking
from reference_walks import Made, Rule, Shown, Step, linear


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


def step_size(variant: str, C: float, loss: float, z: np.ndarray) -> float:
    """Crammer et al. (2006), Fig. 1."""
    match variant:
        case "hard":
            return loss / float(z @ z)
        case "1":
            return min(C, loss / float(z @ z))
    return loss / (float(z @ z) + 1.0 / (2.0 * C))


def pa(_: int, *, variant: str, C: float) -> Rule:
    """w ← w + weight·τ·z wherever the margin is below 1, or below what the loss cost asks for."""

    def learn(w: np.ndarray, z: np.ndarray, fixed: float, weight: float, asked: float = 1.0) -> Shown:
        m = fixed + float(w @ z)
        missing = max(0.0, asked - m)
        if missing == 0.0 or not z.any():
            return Shown(missing, None, abs(asked - m))
        return Shown(missing, w + weight * step_size(variant, C, missing, z) * z, abs(asked - m))

    return learn


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
PA: list[dict[str, Any]] = [
    {},
    {"variant": "hard", "base": 0.0},
    {"variant": "hard", "base": 0.5, "base_rate": 0.25, "top": 2},
    {"variant": "1", "C": 0.1, "top": 3},
    {"variant": "2", "C": 2.0, "top": 3, "base_rate": 0.25},
    {"loss": "cost"},
    {"loss": "cost", "variant": "hard", "base": 0.5, "base_rate": 0.25, "top": 2},
    {"loss": "cost", "variant": "2", "C": 2.0, "top": 3, "base": 0.0},
]
TRUNCATED: list[dict[str, Any]] = [
    {},
    {"l1": 0.01, "base": 0.5, "base_rate": 0.25},
    {"loss": "logistic", "eta": 2.0, "l1": 0.02, "theta": 0.7},
    {"loss": "log", "l1": 0.01, "every": 3, "update": "mistakes"},
    {"loss": "logistic", "eta": 0.25, "l1": 0.01, "every": 2},
]

STEPS = UPDATES | losses("perceptron hinge cost logistic log bayes")
STEPS |= {"eta": [0.25, 1.0], "schedule": ["sqrt", "constant"]}
SHRUNK = UPDATES | {"eta": [0.5, 1.0, 3.0], "l1": [0.0, 0.05, 0.1, 0.4]}
SHRUNK |= {"theta": [None, None, 0.6, 1.5], "every": [1, 1, 2, 3]}

ENTRIES = {
    "perceptron": descending(perceptron, PERCEPTRON, {}, exact=lambda _: True),
    "sgd": descending(sgd, SGD, STEPS, "eta", exact_sgd),
    "pa": walking(pa, PA, {"variant": ["hard", "1", "2"], "C": [0.01, 0.3, 5.0], "loss": ["hinge", "cost"]}, "C"),
    "tg": descending(Truncation, TRUNCATED, SHRUNK | losses("hinge log"), "eta theta"),
}
