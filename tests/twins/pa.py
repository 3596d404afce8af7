"""Passive-aggressive learning and the second-order perceptron."""

from typing import Any

import numpy as np
from entries import walking
from reference_walks import Rule, Shown


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


def solve(covariance: str, A: np.ndarray, s: np.ndarray) -> np.ndarray:
    """A⁻¹s, with the diagonal of A alone where the covariance is diagonal."""
    return s / np.diag(A) if covariance == "diagonal" else np.linalg.solve(A, s)


def sop(width: int, *, a: float, covariance: str) -> Rule:
    """Cesa-Bianchi, Conconi & Gentile (2005), Fig. 2: A = aI + Σ weight·zzᵀ, s = Σ weight·z over the updates.

    A holds the current z when that is judged. A list of weight 0, or with two equal rows, can be a mistake, but teaches
    nothing.
    """
    state = {"A": a * np.eye(width), "s": np.zeros(width)}

    def learn(_: np.ndarray, z: np.ndarray, fixed: float, weight: float) -> Shown:
        A, s = state["A"], state["s"]
        m = fixed + float(solve(covariance, A + np.outer(z, z), s) @ z)
        mistake = m <= 0.0
        if not mistake or not z.any() or weight == 0.0:
            return Shown(max(0.0, -m), None, abs(m), mistake)
        state["A"], state["s"] = A + weight * np.outer(z, z), s + weight * z
        return Shown(-m, solve(covariance, state["A"], state["s"]), abs(m), mistake)

    return learn


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

SOP: list[dict[str, Any]] = [
    {},
    {"a": 0.25, "base": 0.0, "top": 2},
    {"a": 4.0, "base": 0.5, "base_rate": 0.25, "top": 3},
    {"covariance": "full", "base": 0.0},
    {"covariance": "full", "a": 0.5, "base": 0.25, "base_rate": 0.25, "top": 3},
]

ENTRIES = {
    "pa": walking(pa, PA, {"variant": ["hard", "1", "2"], "C": [0.01, 0.3, 5.0], "loss": ["hinge", "cost"]}, "C"),
    "sop": walking(sop, SOP, {"covariance": ["diagonal", "full"], "a": [0.1, 1.0, 8.0]}, "a"),
}
