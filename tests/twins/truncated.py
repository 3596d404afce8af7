"""Truncated gradient and FOBOS, and the loop of all learners that take steps along subgradients of a loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from entries import Entry
from reference import POSITIVE, Predictor, Trace, condition, decision_gap, dense
from reference_pairs import ORACLES, Pairs
from scipy.special import expit

from rerank.data.corpus import Corpus

SLOPES: dict[str, Callable[[float], float]] = {
    "perceptron": lambda m: -1.0 if m <= 0.0 else 0.0,
    "hinge": lambda m: -1.0 if m < 1.0 else 0.0,
    "cost": lambda m: -1.0 if m < 1.0 else 0.0,
    "logistic": lambda m: -expit(-m),
    "exponential": lambda m: -np.exp(-m),
    "log": lambda m: -expit(-m),
    "bayes": lambda m: -expit(m) * expit(-m),
}  # of the losses as functions of the margin z·w, on examples; Bayes risk for gains 1 and 0

Step = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def descend(
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Iterable[Sequence[int]],
    step: Step,
    *,
    loss: str,
    update: str,
    base: float,
    base_rate: float,
    any_ties: bool,
    pairs: Pairs = ORACLES,
) -> Trace:
    """step(a, rows, weight) → w is asked for the weights after every update, the base score's last: [D + 1]."""
    phi, D = dense(corpus), corpus.width
    rows = np.column_stack([phi, base_rate * corpus.base])
    trace = Trace([Predictor(np.zeros(D), 1.0, base)])
    for epoch, order in enumerate(orders):
        trace.begin_epoch()
        for i in order:
            of_list = slice(corpus.lists[i], corpus.lists[i + 1])
            gain, at = corpus.gain[of_list], oracle[i] - corpus.lists[i]
            f = trace.predictors[-1].scores(phi[of_list], corpus.base[of_list])
            seen = np.column_stack([phi, corpus.base])[of_list]
            rounded = trace.predictors[-1].v.any() or (trace.deltas and base_rate > 0)
            if rounded and f.size:
                size = trace.size(phi[of_list], corpus.base[of_list])
                trace.gap = min(trace.gap, decision_gap(f, seen, size), pairs.gap(loss, f, gain, seen, size))
            found = pairs.judge(epoch, i, loss, f, gain, at, any_ties)
            if found is None:
                trace.survived[-1] += 1
                continue
            star, rival, mistake, value, a = found
            if rounded and loss in ("hinge", "cost"):
                asked = 1.0 if loss == "hinge" else pairs.source.tilt * (gain[star] - gain[rival])
                trace.gap = min(trace.gap, abs(asked - f[star] + f[rival]))
            trace.mistakes[-1] += mistake
            trace.loss[-1] += value
            if not mistake and not (update == "always" and (loss in POSITIVE or value > 0.0)):
                trace.survived[-1] += 1
                continue
            trace.condition = max(trace.condition, condition(loss, f, gain, a, rows[of_list]))
            g = (a[:, None] * rows[of_list]).sum(axis=0)
            w = step(a, rows[of_list], corpus.weight[i])
            z = g if loss in ("log", "bayes") else rows[of_list][star] - rows[of_list][rival]
            trace.update(i, Predictor(w[:D], 1.0, base + base_rate * w[D]), corpus.weight[i] * g, z)
    return trace


def descend_on_examples(
    loss: str, update: str, X: np.ndarray, y: np.ndarray, epochs: int, step: Step
) -> tuple[np.ndarray, int]:
    """The same on examples z = y·x: (w, mistakes)."""
    w, mistakes = np.zeros(X.shape[1]), 0
    for z in np.tile(y[:, None] * X, (epochs, 1)):
        m = w @ z
        slope = SLOPES[loss](m)
        mistakes += m <= 0.0
        if m <= 0.0 or (update == "always" and slope < 0.0):
            w = step(np.array([slope, -slope]), np.array([z, 0.0 * z]), 1.0)
    return w, int(mistakes)


class Truncation:
    """Langford et al. (2009): w ← T(w − α·g), T truncating the weights up to θ; the last ``free`` entries and the
    ``first`` never."""

    def __init__(
        self, width: int, eta: float, l1: float, theta: float | None, every: int, free: int, first: int = 0
    ) -> None:
        self.w, self.k, self.gap = np.zeros(width), 0, np.inf
        self.eta, self.l1, self.every = eta, l1, every
        self.theta = np.inf if theta is None else theta
        self.penalised = (np.arange(width) < width - free) & (np.arange(width) >= first)

    def __call__(self, a: np.ndarray, rows: np.ndarray, weight: float) -> np.ndarray:
        g = (a[:, None] * rows).sum(axis=0)
        self.k += 1
        alpha = self.eta / np.sqrt(self.k)
        w = self.w - alpha * weight * g
        self.gap = min(self.gap, float(np.abs(np.abs(w) - self.theta).min(initial=np.inf)))
        if self.k % self.every == 0:
            near = self.penalised & (np.abs(w) <= self.theta)
            w = np.where(near, np.sign(w) * np.maximum(np.abs(w) - self.every * alpha * self.l1, 0.0), w)
        self.w = w
        return w


def truncated(
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Iterable[Sequence[int]],
    *,
    eta: float,
    l1: float,
    theta: float | None = None,
    every: int = 1,
    any_ties: bool = False,
    **same: Any,
) -> Trace:
    """Truncated gradient; FOBOS where θ and ``every`` are left out."""
    step = Truncation(corpus.width + 1, eta, l1, theta, every, free=1, first=corpus.free)
    trace = descend(corpus, oracle, orders, step, any_ties=any_ties, **same)
    trace.gap = min(trace.gap, step.gap)
    return trace


def binary_truncated(learner: Any, X: np.ndarray, y: np.ndarray, epochs: int) -> tuple[np.ndarray, int]:
    """On examples z = y·x."""
    theta, every = getattr(learner, "theta", None), getattr(learner, "every", 1)
    step = Truncation(X.shape[1], learner.eta, learner.l1, theta, every, free=0)
    return descend_on_examples(learner.loss, learner.update, X, y, epochs, step)


VARIANTS: list[dict[str, Any]] = [
    {},
    {"l1": 0.01, "base": 0.5, "base_rate": 0.25},
    {"loss": "logistic", "eta": 2.0, "l1": 0.02, "theta": 0.7},
    {"loss": "log", "l1": 0.01, "every": 3, "update": "mistakes"},
    {"loss": "cost", "l1": 0.005, "every": 4, "theta": 1.5},
    {"loss": "exponential", "eta": 0.25, "l1": 0.01, "every": 2},
    {"loss": "bayes", "eta": 4.0, "l1": 0.005},
    {"loss": "perceptron", "l1": 0.02},
]

ENTRIES = {
    "tg": Entry(VARIANTS, truncated, binary_truncated, frozenset({"eta"})),
    "fobos": Entry(
        [{"l1": 0.01}, {"loss": "log", "l1": 0.005, "update": "mistakes", "base_rate": 0.25}],
        truncated,
        binary_truncated,
        frozenset({"eta"}),
    ),
}
