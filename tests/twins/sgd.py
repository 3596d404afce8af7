"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from entries import Entry
from reference import Trace

from rerank.data.corpus import Corpus
from rerank.learn.rules.sgd import SGD
from twins.truncated import Step, descend, descend_on_examples


def steps(width: int, eta: float, schedule: str) -> Step:
    """Update k: w ← w − η_k·weight·g with η_k = η/√k or η (Zhang 2004, Alg. 1)."""
    state = {"w": np.zeros(width), "k": 0}

    def step(a: np.ndarray, rows: np.ndarray, weight: float) -> np.ndarray:
        g = (a[:, None] * rows).sum(axis=0)
        state["k"] += 1
        rate = eta / np.sqrt(state["k"]) if schedule == "sqrt" else eta
        state["w"] = state["w"] - rate * weight * g
        return state["w"]

    return step


def sgd(
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Iterable[Sequence[int]],
    *,
    eta: float,
    schedule: str,
    **parameters: Any,
) -> Trace:
    """Steps along the subgradients of lists; ρ·b is the last feature."""
    return descend(corpus, oracle, orders, steps(corpus.width + 1, eta, schedule), **{"any_ties": False} | parameters)


def binary_sgd(learner: SGD, X: np.ndarray, y: np.ndarray, epochs: int) -> tuple[np.ndarray, int]:
    """The same on examples z = y·x: (w, mistakes)."""
    step = steps(X.shape[1], learner.eta, learner.schedule)
    return descend_on_examples(learner.loss, learner.update, X, y, epochs, step)


VARIANTS: list[dict[str, Any]] = [
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
]


def exact(learner: SGD) -> bool:
    """A constant step that is a power of two."""
    dyadic = learner.schedule == "constant" and np.frexp(learner.eta)[0] == 0.5
    return bool(dyadic) and learner.loss in ("perceptron", "hinge", "cost")


ENTRIES = {"sgd": Entry(VARIANTS, sgd, binary_sgd, frozenset({"eta"}), exact)}
