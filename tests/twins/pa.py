"""Passive-aggressive learning, and the walk over pairs of oracle and rival that other learners share with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from entries import Entry
from reference import Predictor, Trace, decision_gap, dense
from reference_pairs import ORACLES, Pairs

from rerank.data.corpus import Corpus
from rerank.learn.rules.pa import PassiveAggressive


class Step(NamedTuple):
    """What a rule does with one z: its loss, the new weights (None where it leaves them), the distance from the
    decision to do so, and whether this is a mistake (None: the scores say so)."""

    loss: float
    w: np.ndarray | None
    gap: float
    mistake: bool | None = None


# w, z [D + 1], β·(b(y*) − b(y')), weight and, for the loss cost, the margin asked for
Learn = Callable[..., Step]


def walk(
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Iterable[Sequence[int]],
    learn: Learn,
    *,
    top: int,
    base: float,
    base_rate: float,
    any_ties: bool = False,
    pairs: Pairs = ORACLES,
    cost: bool = False,
) -> Trace:
    """Let ``learn`` see z = φ(y*) − φ(y') of the ``top`` first pairs of every list, in turn.

    With ``cost`` rivals of an oracle come by score − tilt·gain (mistakes are still those of scores), and the margin
    asked for is tilt·(gain(y*) − gain(y')).
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
            plain, t = pairs.in_turn(epoch, i, f, gain, at, any_ties), pairs.source.tilt
            shown = (pairs.in_turn(epoch, i, f, gain, at, any_ties, t) if cost else plain)[:top]
            seen = np.column_stack([phi[of_list] * touched[:D], b * (base > 0.0 or touched[D])])
            if f.size:
                size = trace.size(phi[of_list], b)
                same = pairs.gap("cost" * cost, f, gain, seen, size)
                trace.gap = min(trace.gap, decision_gap(f, seen, size), same)
            made = 0
            for turn, (star, rival) in enumerate(shown):
                z = rows[of_list][star] - rows[of_list][rival]
                asked = (t * (gain[star] - gain[rival]),) if cost else ()
                step = learn(w, z, base * (b[star] - b[rival]), corpus.weight[i], *asked)
                trace.gap = min(trace.gap, step.gap if (touched & (z != 0.0)).any() else np.inf)
                if turn == 0:
                    mistake = step.mistake if step.mistake is not None else not f[plain[0][0]] > f[plain[0][1]]
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
    loss: str,
    **shared: Any,
) -> Trace:
    """w ← w + weight·τ·z wherever the margin is below 1, or below what the loss cost asks for."""

    def learn(w: np.ndarray, z: np.ndarray, fixed: float, weight: float, asked: float = 1.0) -> Step:
        m = fixed + float(w @ z)
        missing = max(0.0, asked - m)
        if missing == 0.0 or not z.any():
            return Step(missing, None, abs(asked - m))
        return Step(missing, w + weight * step_size(variant, C, missing, z) * z, abs(asked - m))

    return walk(corpus, oracle, orders, learn, cost=loss == "cost", **shared)


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
    {"loss": "cost"},
    {"loss": "cost", "variant": "hard", "base": 0.5, "base_rate": 0.25, "top": 2},
    {"loss": "cost", "variant": "2", "C": 2.0, "top": 3, "base": 0.0},
]

ENTRIES = {"pa": Entry(VARIANTS, pa, binary_pa, frozenset({"C"}))}
