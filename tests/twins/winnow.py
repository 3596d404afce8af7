"""The Winnow family: both positive weights of every column are kept, and multiplied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from entries import Entry
from reference import POSITIVE, Predictor, Trace, decision_gap, dense, oracle_and_rival
from reference_pairs import ORACLES, Pairs
from scipy.special import expit

from rerank.data.corpus import Corpus
from rerank.learn.rules.large_margin import LMPerceptron, LMUWin
from rerank.learn.rules.winnow import UWin

Orders = Iterable[Sequence[int]]


def norm_of(normalised: bool, total: float | None, mu: float, coordinates: int) -> float | None:
    """W, None where nothing is normalised."""
    return (2 * mu * coordinates if total is None else total) if normalised else None


def winnow_predictor(parts: np.ndarray, W: float | None, base: float, base_rate: float) -> Predictor:
    """parts [2, D + 1]: the positive weights of [z, −z], the base score's last."""
    coordinates = parts if base_rate > 0 else parts[:, :-1]
    d = 1.0 if W is None or coordinates.size == 0 else W / coordinates.sum()
    v = parts[0] - parts[1]
    return Predictor(v[:-1], d, base + base_rate * d * v[-1])


def note_gap(trace: Trace, f: np.ndarray, rows: np.ndarray, size: float) -> None:
    """The scores of a list after the first update: before it they are multiples of base scores, and exact."""
    if trace.deltas:
        trace.gap = min(trace.gap, decision_gap(f, rows, size))


def winnow(
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Orders,
    *,
    normalised: bool,
    loss: str,
    eta: float,
    mu: float,
    update: str,
    base: float,
    base_rate: float,
    total: float | None = None,
    any_ties: bool = False,
    pairs: Pairs = ORACLES,
) -> Trace:
    """Zhang, section 1: on a mistake (or a loss) w_j ← w_j·exp(−η·g_j) over [φ, −φ], and Σ w = W if normalised."""
    phi, D = dense(corpus), corpus.width
    rows, seen = np.column_stack([phi, base_rate * corpus.base]), np.column_stack([phi, corpus.base])
    parts, W = np.full((2, D + 1), mu), norm_of(normalised, total, mu, D + (base_rate > 0))
    trace = Trace([winnow_predictor(parts, W, base, base_rate)])
    for epoch, order in enumerate(orders):
        trace.begin_epoch()
        for i in order:
            of_list = slice(corpus.lists[i], corpus.lists[i + 1])
            gain = corpus.gain[of_list]
            f = trace.predictors[-1].scores(phi[of_list], corpus.base[of_list])
            size = trace.size(phi[of_list], corpus.base[of_list])
            if f.size:
                note_gap(trace, f, seen[of_list], size)
            if trace.deltas:
                trace.gap = min(trace.gap, pairs.gap(loss, f, gain, seen[of_list], size))
            found = pairs.judge(epoch, i, loss, f, gain, oracle[i] - corpus.lists[i], any_ties)
            if found is None:
                trace.survived[-1] += 1
                continue
            star, rival, mistake, value, a = found
            if trace.deltas and loss in ("hinge", "cost"):
                target = 1.0 if loss == "hinge" else pairs.source.tilt * (gain[star] - gain[rival])
                trace.gap = min(trace.gap, abs(target - f[star] + f[rival]))
            trace.mistakes[-1] += mistake
            trace.loss[-1] += value
            if not mistake and not (update == "always" and (loss in POSITIVE or value > 0.0)):
                trace.survived[-1] += 1
                continue
            g = (a[:, None] * rows[of_list]).sum(axis=0)
            rate = eta * corpus.weight[i]
            parts = parts * np.exp(-rate * np.array([g, -g]))
            z = g if loss in ("log", "bayes") else rows[of_list][star] - rows[of_list][rival]
            trace.update(i, winnow_predictor(parts, W, base, base_rate), rate * g, z)
    return trace


def uwin(corpus: Corpus, oracle: np.ndarray, orders: Orders, **parameters: Any) -> Trace:
    return winnow(corpus, oracle, orders, normalised=False, **parameters)


def nwin(corpus: Corpus, oracle: np.ndarray, orders: Orders, **parameters: Any) -> Trace:
    return winnow(corpus, oracle, orders, normalised=True, **parameters)


def large_margin(
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Orders,
    *,
    rule: str,
    C: float | None,
    base: float,
    base_rate: float,
    eta: float = 0.0,
    mu: float = 0.0,
    total: float | None = None,
    any_ties: bool = False,
) -> Trace:
    """Zhang, section 2: α ← clip(α + η(1 − m), 0, C), η = 1/‖z‖² for lm-perc; a margin of 1 ± 1e-12 is one of 1."""
    phi, D = dense(corpus), corpus.width
    rows, seen = np.column_stack([phi, base_rate * corpus.base]), np.column_stack([phi, corpus.base])
    W = norm_of(rule == "lm-nwin", total, mu, D + (base_rate > 0))
    alpha, s = np.zeros(corpus.candidate_count), np.zeros(D + 1)

    def predictor() -> Predictor:
        if rule == "lm-perc":
            return Predictor(s[:D], 1.0, base + base_rate * s[D])
        return winnow_predictor(mu * np.exp(np.array([s, -s])), W, base, base_rate)

    trace = Trace([predictor()])
    for order in orders:
        trace.begin_epoch()
        for i in order:
            of_list = slice(corpus.lists[i], corpus.lists[i + 1])
            f = trace.predictors[-1].scores(phi[of_list], corpus.base[of_list])
            star, rival = oracle_and_rival(f, corpus.gain[of_list], oracle[i] - corpus.lists[i], any_ties)
            if rival is None:
                trace.survived[-1] += 1
                continue
            note_gap(trace, f, seen[of_list], trace.size(phi[of_list], corpus.base[of_list]))
            missing = 1.0 - (f[star] - f[rival])
            trace.mistakes[-1] += not f[star] > f[rival]
            trace.loss[-1] += max(0.0, missing)
            z, y, limit = rows[of_list][star] - rows[of_list][rival], corpus.lists[i] + rival, np.inf
            rate = eta if rule != "lm-perc" else 1.0 / (z @ z) if z.any() else 0.0
            if C is not None:
                limit = C * corpus.weight[i]
            elif corpus.weight[i] == 0.0:
                limit = 0.0
            target = alpha[y] + rate * missing
            if abs(missing) < 1e-12 or rate == 0.0 or np.clip(target, 0.0, limit) == alpha[y]:
                trace.survived[-1] += 1
                if trace.deltas and abs(missing) > 1e-13:
                    trace.gap = min(trace.gap, abs(missing))
                continue
            trace.gap = min(trace.gap, abs(missing), abs(target), abs(target - limit))
            change, alpha[y] = np.clip(target, 0.0, limit) - alpha[y], np.clip(target, 0.0, limit)
            s = s + change * z
            trace.update(i, predictor(), -change * z, z)
    return trace


def lm_uwin(corpus: Corpus, oracle: np.ndarray, orders: Orders, **parameters: Any) -> Trace:
    return large_margin(corpus, oracle, orders, rule="lm-uwin", **parameters)


def lm_nwin(corpus: Corpus, oracle: np.ndarray, orders: Orders, **parameters: Any) -> Trace:
    return large_margin(corpus, oracle, orders, rule="lm-nwin", **parameters)


def lm_perc(corpus: Corpus, oracle: np.ndarray, orders: Orders, **parameters: Any) -> Trace:
    return large_margin(corpus, oracle, orders, rule="lm-perc", **parameters)


SLOPES = {
    "perceptron": lambda m: 1.0 if m <= 0.0 else 0.0,
    "hinge": lambda m: 1.0 if m < 1.0 else 0.0,
    "cost": lambda m: 1.0 if m < 1.0 else 0.0,
    "logistic": lambda m: expit(-m),
    "exponential": lambda m: np.exp(-m),
    "log": lambda m: expit(-m),
    "bayes": lambda m: expit(m) * expit(-m),
}


def scaled(theta: np.ndarray, learner: Any) -> np.ndarray:
    """The weights of log-weights θ; a learned base score that says nothing has its share of W."""
    w = 2 * learner.mu * np.sinh(theta)
    W = norm_of(learner.normalised, getattr(learner, "total", None), learner.mu, theta.size + (learner.base_rate > 0))
    if W is None:
        return w
    return W * w / (2 * learner.mu * (np.cosh(theta).sum() + (learner.base_rate > 0)))


def binary_winnow(learner: UWin, X: np.ndarray, y: np.ndarray, epochs: int) -> tuple[np.ndarray, int]:
    """Balanced Winnow on examples z = y·x: (w, mistakes)."""
    theta, mistakes = np.zeros(X.shape[1]), 0
    for z in np.tile(y[:, None] * X, (epochs, 1)):
        m = float(scaled(theta, learner) @ z)
        mistakes += m <= 0.0
        if m <= 0.0 or learner.update == "always":
            theta = theta + learner.eta * SLOPES[learner.loss](m) * z
    return scaled(theta, learner), mistakes


def binary_large_margin(learner: LMUWin | LMPerceptron, X: np.ndarray, y: np.ndarray, epochs: int) -> Any:
    """Dual ascent on examples z = y·x: (w, mistakes); weights from all duals, every time."""
    Z, mistakes = y[:, None] * X, 0
    alpha = np.zeros(len(Z))
    limit = np.inf if learner.C is None else learner.C

    def weights() -> np.ndarray:
        return alpha @ Z if isinstance(learner, LMPerceptron) else scaled(alpha @ Z, learner)

    for i in np.tile(np.arange(len(Z)), epochs):
        m = weights() @ Z[i]
        mistakes += m <= 0.0
        rate = 1.0 / (Z[i] @ Z[i]) if isinstance(learner, LMPerceptron) else learner.eta
        alpha[i] = np.clip(alpha[i] + rate * (1.0 - m), 0.0, limit)
    return weights(), int(mistakes)


POSITIVES = frozenset({"eta", "mu"})
UWIN: list[dict[str, Any]] = [
    {"eta": 0.25, "mu": 0.5},
    {"eta": 0.125, "mu": 2.0, "base": 0.5, "base_rate": 0.25},
    {"loss": "hinge", "eta": 0.125, "mu": 0.5, "update": "always"},
    {"loss": "cost", "eta": 0.125, "mu": 0.5, "update": "always"},
    {"loss": "logistic", "eta": 0.125, "mu": 0.5, "update": "always"},
    {"loss": "exponential", "eta": 0.00390625, "mu": 0.5, "update": "always", "base": 0.5},
    {"loss": "log", "eta": 0.125, "mu": 0.5, "update": "always", "base_rate": 0.25},
    {"loss": "bayes", "eta": 0.5, "mu": 0.5, "update": "always"},
]
NWIN: list[dict[str, Any]] = [
    {"eta": 0.25, "total": 32.0},
    {"eta": 0.125, "mu": 2.0, "base": 0.5, "base_rate": 0.25},
    {"loss": "logistic", "eta": 0.125, "mu": 0.5, "total": 16.0, "update": "always"},
    {"loss": "log", "eta": 0.125, "total": 24.0, "update": "always"},
]
LM_UWIN: list[dict[str, Any]] = [
    {"eta": 0.0625, "mu": 0.5},
    {"eta": 0.03125, "mu": 1.0, "C": None, "base": 0.5, "base_rate": 0.25},
    {"eta": 0.125, "mu": 0.25, "C": 0.5},
]
LM_NWIN: list[dict[str, Any]] = [
    {"eta": 0.0625, "mu": 0.5, "total": 16.0},
    {"eta": 0.03125, "mu": 2.0, "C": None, "base": 0.5, "base_rate": 0.25},
    {"eta": 0.125, "total": 8.0, "C": 0.5},
]
LM_PERC: list[dict[str, Any]] = [{}, {"C": 0.25}, {"C": None, "base": 0.5, "base_rate": 0.25}]

ENTRIES = {
    "uwin": Entry(UWIN, uwin, binary_winnow, POSITIVES),
    "nwin": Entry(NWIN, nwin, binary_winnow, POSITIVES),
    "lm-uwin": Entry(LM_UWIN, lm_uwin, binary_large_margin, POSITIVES | {"C"}, duals=True),
    "lm-nwin": Entry(LM_NWIN, lm_nwin, binary_large_margin, POSITIVES | {"C"}, duals=True),
    "lm-perc": Entry(LM_PERC, lm_perc, binary_large_margin, frozenset({"C"}), duals=True),
}
