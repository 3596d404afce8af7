"""The Winnow family: both positive weights of every column are kept, and multiplied."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from entries import BASES, UPDATES, Entry, descending, losses
from reference import Predictor, Trace, decision_gap, oracle_and_rival
from reference_walks import Made, Orders, Step, linear, visits

from rerank.data.corpus import Corpus


def norm_of(normalised: bool, total: float | None, parts: np.ndarray, learned: bool) -> float | None:
    """W, None where nothing is normalised."""
    sizes = parts if learned else parts[:, :-1]
    return (float(sizes.sum()) if total is None else total) if normalised else None


def combined(parts: np.ndarray, W: float | None, learned: bool) -> Made:
    """parts [2, D + 1]: the positive weights of [z, −z], the base score's last."""
    coordinates = parts if learned else parts[:, :-1]
    d = 1.0 if W is None or coordinates.size == 0 else W / coordinates.sum()
    v = parts[0] - parts[1]
    return Made(v[:-1], d, d * v[-1])


def winnow(normalised: bool) -> Callable[..., Step]:
    """Zhang, section 1: on a mistake (or a loss) w_j ← w_j·exp(−η·g_j) over [φ, −φ], and Σ w = W if normalised."""

    def make(width: int, _: int, learned: bool, *, eta: float, mu: float, total: float | None = None) -> Step:
        state = {"parts": np.full((2, width), mu)}
        W = norm_of(normalised, total, state["parts"], learned)

        def step(a: np.ndarray, rows: np.ndarray, weight: float) -> Made:
            g = (a[:, None] * rows).sum(axis=0)
            state["parts"] = state["parts"] * np.exp(-eta * weight * np.array([g, -g]))
            return combined(state["parts"], W, learned)

        return step

    return make


def newton(parts: np.ndarray, z: np.ndarray, W: float | None, learned: bool) -> tuple[float, float]:
    """1/−D'' along the dual of [z, −z], and the longest step; 0 where nothing changes."""
    own = parts * combined(parts, W, learned).d
    both = np.array([z, -z]) if learned else np.array([z, -z]) * (np.arange(z.size) < z.size - 1)
    mean = (own * both).sum()
    curvature = (own * both**2).sum() - (0.0 if W is None else mean**2 / W)
    return (1.0 / curvature, 1.0 / np.abs(both).max()) if curvature > 0 and both.any() else (0.0, np.inf)


def large_margin(
    rule: str,
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Orders,
    *,
    C: float | None,
    base: float,
    base_rate: float,
    eta: float | None = 0.0,
    mu: float = 0.0,
    total: float | None = None,
    any_ties: bool = False,
) -> Trace:
    """Zhang, section 2: α ← clip(α + η(1 − m), 0, C), η = 1/‖z‖² for lm-perc; a margin of 1 ± 1e-12 is one of 1."""
    start = np.full((2, corpus.width + 1), mu)
    W = norm_of(rule == "lm-nwin", total, start, base_rate > 0)
    alpha, s = np.zeros(corpus.candidate_count), np.zeros(corpus.width + 1)
    trace = Trace([Predictor(s[:-1], 1.0, base)])
    for at in visits(trace, corpus, oracle, orders, base_rate):
        star, rival = oracle_and_rival(at.f, at.gain, at.oracle, any_ties)
        if rival is None:
            trace.survived[-1] += 1
            continue
        if trace.deltas:
            trace.gap = min(trace.gap, decision_gap(at.f, at.seen, at.size))
        missing = 1.0 - (at.f[star] - at.f[rival])
        trace.mistakes[-1] += not at.f[star] > at.f[rival]
        trace.loss[-1] += max(0.0, missing)
        z, y, limit = at.rows[star] - at.rows[rival], corpus.lists[at.i] + rival, np.inf
        rate, longest = eta, np.inf
        if rule == "lm-perc":
            rate = 1.0 / (z @ z) if z.any() else 0.0
        elif rate is None:  # Newton's, by which no weight changes by more than a factor of e
            rate, longest = newton(start * np.exp(np.array([s, -s])), z, W, base_rate > 0)
        if C is not None:
            limit = C * at.weight
        elif at.weight == 0.0:
            limit = 0.0
        target = alpha[y] + np.clip(rate * missing, -longest, longest)
        if abs(missing) < 1e-12 or rate == 0.0 or np.clip(target, 0.0, limit) == alpha[y]:
            trace.survived[-1] += 1
            if trace.deltas and abs(missing) > 1e-13:
                trace.gap = min(trace.gap, abs(missing))
            continue
        trace.gap = min(trace.gap, abs(missing), abs(target), abs(target - limit))
        change, alpha[y] = np.clip(target, 0.0, limit) - alpha[y], np.clip(target, 0.0, limit)
        s = s + change * z
        made = linear(s) if rule == "lm-perc" else combined(start * np.exp(np.array([s, -s])), W, base_rate > 0)
        trace.update(at.i, Predictor(made.v, made.d, base + base_rate * made.beta), -change * z)
    return trace


UWIN: list[dict[str, Any]] = [
    {"eta": 0.25, "mu": 0.5},
    {"eta": 0.125, "mu": 2.0, "base": 0.5, "base_rate": 0.25},
    {"loss": "exponential", "eta": 0.00390625, "mu": 0.5, "update": "always", "base": 0.5},
    {"loss": "log", "eta": 0.125, "mu": 0.5, "update": "always", "base_rate": 0.25},
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
    {"eta": None, "mu": 0.5, "base_rate": 0.25},
]
LM_NWIN: list[dict[str, Any]] = [
    {"eta": 0.0625, "mu": 0.5, "total": 16.0},
    {"eta": 0.03125, "mu": 2.0, "C": None, "base": 0.5, "base_rate": 0.25},
    {"eta": 0.125, "total": 8.0, "C": 0.5},
    {"eta": None, "mu": 0.5, "total": 16.0},
]
LM_PERC: list[dict[str, Any]] = [{}, {"C": 0.25}, {"C": None, "base": 0.5, "base_rate": 0.25}]

CHOICES: dict[str, list[Any]] = UPDATES | {"eta": [0.01, 0.125, 0.5], "mu": [0.01, 0.5, 2.0]}
TOTALS: dict[str, list[Any]] = {"total": [None, 0.5, 8.0]}
LIMITS: dict[str, list[Any]] = {"C": [None, 0.1, 1.0]} | BASES
ASCENTS: dict[str, list[Any]] = LIMITS | {"eta": [0.01, 0.25, None], "mu": [0.01, 0.5]}


def ascending(rule: str, variants: list[dict[str, Any]], choices: dict[str, list[Any]], positive: str) -> Entry:
    """A learner with duals."""
    return Entry(variants, choices, partial(large_margin, rule), frozenset(positive.split()), duals=True)


ENTRIES = {
    "uwin": descending(winnow(False), UWIN, CHOICES | losses("perceptron perceptron log"), "eta mu"),
    "nwin": descending(winnow(True), NWIN, CHOICES | TOTALS | losses("perceptron perceptron log"), "eta mu total"),
    "lm-uwin": ascending("lm-uwin", LM_UWIN, ASCENTS, "eta mu C"),
    "lm-nwin": ascending("lm-nwin", LM_NWIN, ASCENTS | TOTALS, "eta mu C total"),
    "lm-perc": ascending("lm-perc", LM_PERC, LIMITS, "C"),
}
