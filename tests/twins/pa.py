"""Passive-aggressive learning, and the walk over pairs of oracle and rival that other learners share with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from entries import Entry
from reference import Predictor, Trace, decision_gap, dense
from reference_pairs import ORACLES, Pairs

from rerank.corpus import Corpus
from rerank.learn.pa import PassiveAggressive


class Step(NamedTuple):
    """What a rule does with one z: its loss, the new weights (None where it leaves them), the distance from the
    decision to do so, and whether this is a mistake (None: the scores say so)."""

    loss: float
    w: np.ndarray | None
    gap: float
    mistake: bool | None = None


Learn = Callable[[np.ndarray, np.ndarray, float, float], Step]  # w, z [D + 1], β·(b(y*) − b(y')), weight


def walk(
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Iterable[Sequence[int]],
    learn: Learn,
    *,
    top: int,
    base: float,
    base_rate: float,
    any_ties: bool,
    pairs: Pairs,
) -> Trace:
    """Let ``learn`` see z = φ(y*) − φ(y') of the ``top`` first pairs of every list, in turn.

    The gap is of decisions that rounding could turn: not between scores that no update has touched.
    """
    phi, D = dense(corpus), corpus.width
    rows = np.column_stack([phi, base_rate * corpus.base])
    w, touched = np.zeros(D + 1), np.zeros(D + 1, bool)
    trace = Trace([Predictor(w[:D], 1.0, base)])
    for epoch, order in enumerate(orders):
        trace.begin_epoch()
        for i in order:
            of_list = slice(corpus.lists[i], corpus.lists[i + 1])
            b = corpus.base[of_list]
            f = trace.predictors[-1].scores(phi[of_list], b)
            gain, at = corpus.gain[of_list], oracle[i] - corpus.lists[i]
            shown = pairs.in_turn(epoch, i, f, gain, at, any_ties)[:top]
            seen = np.column_stack([phi[of_list] * touched[:D], b * (base > 0.0 or touched[D])])
            trace.gap = min(trace.gap, decision_gap(f, seen) if f.size else np.inf, pairs.gap("", f, gain, seen))
            made = 0
            for turn, (star, rival) in enumerate(shown):
                z = rows[of_list][star] - rows[of_list][rival]
                step = learn(w, z, base * (b[star] - b[rival]), corpus.weight[i])
                trace.gap = min(trace.gap, step.gap if (touched & (z != 0.0)).any() else np.inf)
                if turn == 0:
                    mistake = step.mistake if step.mistake is not None else not f[star] > f[rival]
                    trace.mistakes[-1] += mistake
                    trace.loss[-1] += step.loss
                if step.w is not None:
                    if made > 0:
                        trace.survived[-1] = 0  # made and ended within one list
                    w, touched, made = step.w, touched | (step.w != w), made + 1
                    trace.update(i, Predictor(w[:D], 1.0, base + base_rate * w[D]), -corpus.weight[i] * z, z)
            trace.survived[-1] += made == 0
    return trace


def step_size(variant: str, C: float, loss: float, z: np.ndarray) -> float:
    """Crammer et al. (2006), Fig. 1."""
    match variant:
        case "hard":
            return loss / float(z @ z)
        case "1":
            return min(C, loss / float(z @ z))
    return loss / (float(z @ z) + 1.0 / (2.0 * C))


def pa(
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Iterable[Sequence[int]],
    *,
    variant: str,
    C: float,
    top: int,
    base: float,
    base_rate: float,
    any_ties: bool = False,
    pairs: Pairs = ORACLES,
) -> Trace:
    """w ← w + weight·τ·z wherever the margin is below 1."""

    def learn(w: np.ndarray, z: np.ndarray, fixed: float, weight: float) -> Step:
        m = fixed + float(w @ z)
        loss = max(0.0, 1.0 - m)
        if loss == 0.0 or not z.any():
            return Step(loss, None, abs(1.0 - m))
        return Step(loss, w + weight * step_size(variant, C, loss, z) * z, abs(1.0 - m))

    return walk(corpus, oracle, orders, learn, top=top, base=base, base_rate=base_rate, any_ties=any_ties, pairs=pairs)


def binary_pa(learner: PassiveAggressive, X: np.ndarray, y: np.ndarray, epochs: int) -> tuple[np.ndarray, int]:
    """The same on examples z = y·x: (w, mistakes)."""
    w, mistakes = np.zeros(X.shape[1]), 0
    for z in np.tile(y[:, None] * X, (epochs, 1)):
        m = w @ z
        mistakes += m <= 0.0
        if m < 1.0:
            w = w + step_size(learner.variant, learner.C, 1.0 - m, z) * z
    return w, int(mistakes)


VARIANTS: list[dict[str, Any]] = [
    {},
    {"variant": "hard", "base": 0.0},
    {"variant": "hard", "base": 0.5, "base_rate": 0.25, "top": 2},
    {"variant": "1", "C": 0.25, "base_rate": 0.5},
    {"variant": "1", "C": 0.1, "top": 3},
    {"variant": "2", "C": 0.5},
    {"variant": "2", "C": 2.0, "top": 3, "base_rate": 0.25},
]

ENTRIES = {"pa": Entry(VARIANTS, pa, binary_pa, frozenset({"C"}))}
