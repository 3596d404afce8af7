"""Dual averaging and its voted form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from entries import Entry
from reference import POSITIVE, Predictor, Trace, decision_gap, dense
from reference_pairs import ORACLES, Pairs
from scipy.special import expit

from rerank.data.corpus import Corpus
from rerank.learn.rules.rda import RDA


def rda_predictor(
    s: np.ndarray, k: int, eta: float, l1: float, l2: float, base: float, base_rate: float, free: int = 0
) -> Predictor:
    """w = −sign(s)·max(|s| − kλ₁, 0)/(kλ₂ + η√k); the base score's coordinate (the last) has no regulariser, nor have
    the first ``free``."""
    if k == 0:
        return Predictor(np.zeros(s.size - 1), 1.0, base)
    v = -np.sign(s[:-1]) * np.maximum(np.abs(s[:-1]) - k * l1, 0.0)
    v[:free] = -s[:free] * ((k * l2 + eta * np.sqrt(k)) / (eta * np.sqrt(k)) if l2 > 0 else 1.0)
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
    pairs: Pairs = ORACLES,
) -> Trace:
    """Xiao (2010), Alg. 1 on the lists that cause an update; Gao et al. (2013), Fig. 1 where only mistakes do."""
    phi = dense(corpus)
    rows = np.column_stack([phi, base_rate * corpus.base])
    s, k = np.zeros(corpus.width + 1), 0
    trace = Trace([rda_predictor(s, k, eta, l1, l2, base, base_rate, corpus.free)])
    for epoch, order in enumerate(orders):
        trace.begin_epoch()
        for i in order:
            of_list = slice(corpus.lists[i], corpus.lists[i + 1])
            gain = corpus.gain[of_list]
            f = trace.predictors[-1].scores(phi[of_list], corpus.base[of_list])
            seen = np.column_stack([phi, corpus.base])[of_list]
            found = pairs.judge(epoch, i, loss, f, gain, oracle[i] - corpus.lists[i], any_ties)
            if k > 0 and f.size:
                size = trace.size(phi[of_list], corpus.base[of_list])
                trace.gap = min(trace.gap, decision_gap(f, seen, size), pairs.gap(loss, f, gain, seen, size))
            if found is None:
                trace.survived[-1] += 1
                continue
            star, rival, mistake, value, a = found
            if k > 0:
                trace.gap = min(trace.gap, abs(1.0 - f[star] + f[rival]) if loss == "hinge" else np.inf)
            trace.mistakes[-1] += mistake
            trace.loss[-1] += value
            if not mistake and not (update == "always" and (loss in POSITIVE or value > 0.0)):
                trace.survived[-1] += 1
                continue
            g = (a[:, None] * rows[of_list]).sum(axis=0)
            s, k = s + corpus.weight[i] * g, k + 1
            z = g if loss in ("log", "bayes") else rows[of_list][star] - rows[of_list][rival]
            trace.update(i, rda_predictor(s, k, eta, l1, l2, base, base_rate, corpus.free), corpus.weight[i] * g, z)
    return trace


def binary_rda(learner: RDA, X: np.ndarray, y: np.ndarray, epochs: int) -> tuple[np.ndarray, int]:
    """(Voted) RDA on examples z = y·x (Xu et al. 2011, Alg. 1): (w, mistakes); Bayes risk for gains 1 and 0."""
    loss, eta, l1, l2, update = learner.loss, learner.eta, learner.l1, learner.l2, learner.update
    w, s, k, mistakes = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0, 0
    slopes = {
        "perceptron": lambda m: -1.0 if m <= 0.0 else 0.0,
        "hinge": lambda m: -1.0 if m < 1.0 else 0.0,
        "cost": lambda m: -1.0 if m < 1.0 else 0.0,
        "logistic": lambda m: -expit(-m),
        "exponential": lambda m: -np.exp(-m),
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


VARIANTS: list[dict[str, Any]] = [
    {},
    {"l1": 0.015625, "update": "mistakes"},
    {"l1": 0.015625, "l2": 0.0625, "update": "always", "base": 0.5, "base_rate": 0.25},
    {"loss": "perceptron", "eta": 0.5, "l2": 0.125, "update": "mistakes"},
    {"loss": "cost", "l1": 0.0078125, "update": "always", "base_rate": 0.25},
    {"loss": "logistic", "l1": 0.0078125, "update": "always"},
    {"loss": "exponential", "l2": 0.0625, "eta": 8.0, "update": "always"},
    {"loss": "log", "l1": 0.0078125, "update": "always", "base_rate": 0.25},
    {"loss": "log", "eta": 2.0, "update": "mistakes"},
    {"loss": "bayes", "l2": 0.0078125, "eta": 0.25, "update": "always"},
]


def exact(learner: RDA) -> bool:
    return learner.loss in ("perceptron", "hinge", "cost")


ENTRIES = {
    "rda": Entry(VARIANTS, rda, binary_rda, frozenset({"eta"}), exact),
    "vrda": Entry([{}, {"l1": 0.015625, "base_rate": 0.25}], rda, binary_rda, frozenset({"eta"}), exact),
}
