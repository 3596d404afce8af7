"""The loops of the twins over lists; what a learner does with what it is shown is its own."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from reference import POSITIVE, Predictor, Trace, condition, decision_gap, dense
from reference_pairs import ORACLES, Pairs

from rerank.data.corpus import Corpus

Orders = Iterable[Sequence[int]]


class Visit(NamedTuple):
    """A list at its turn, as the current predictor scores it."""

    epoch: int
    i: int
    phi: np.ndarray
    rows: np.ndarray  # φ and ρ·b: [n, D + 1]
    seen: np.ndarray  # φ and b: [n, D + 1]
    b: np.ndarray
    f: np.ndarray
    size: float  # what the products of scores come to
    gain: np.ndarray
    weight: float
    oracle: int  # its place in the list


def visits(trace: Trace, corpus: Corpus, oracle: np.ndarray, orders: Orders, base_rate: float) -> Iterator[Visit]:
    """All lists in turn."""
    phi = dense(corpus)
    rows, seen = np.column_stack([phi, base_rate * corpus.base]), np.column_stack([phi, corpus.base])
    for epoch, order in enumerate(orders):
        trace.begin_epoch()
        for i in order:
            own = slice(corpus.lists[i], corpus.lists[i + 1])
            b = corpus.base[own]
            f, size = trace.predictors[-1].scores(phi[own], b), trace.size(phi[own], b)
            yield Visit(
                epoch, i, phi[own], rows[own], seen[own], b, f, size, corpus.gain[own], corpus.weight[i],
                oracle[i] - corpus.lists[i],
            )  # fmt: skip


class Made(NamedTuple):
    """The predictor of an update: weights d·v, and the base score's learned weight, of which β is base + ρ·beta."""

    v: np.ndarray
    d: float
    beta: float


# From (a, rows, weight), the subgradient's coefficients, the predictor after the update
Step = Callable[[np.ndarray, np.ndarray, float], Made]


def linear(w: np.ndarray) -> Made:
    """Of weights whose last is the base score's."""
    return Made(w[:-1], 1.0, w[-1])


def descend(
    make: Callable[..., Step],
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Orders,
    *,
    base: float,
    base_rate: float,
    loss: str = "perceptron",
    update: str = "mistakes",
    any_ties: bool = False,
    pairs: Pairs = ORACLES,
    **own: Any,
) -> Trace:
    """make(D + 1, free, learned, **own) is a ``Step``; learned: does the base score have a weight to learn?"""
    step = make(corpus.width + 1, corpus.free, base_rate > 0, **own)
    trace = Trace([Predictor(np.zeros(corpus.width), 1.0, base)])
    for at in visits(trace, corpus, oracle, orders, base_rate):
        f = at.f
        rounded = trace.predictors[-1].v.any() or (trace.deltas and base_rate > 0)
        if rounded and f.size:
            close = pairs.gap(loss, f, at.gain, at.seen, at.size)
            trace.gap = min(trace.gap, decision_gap(f, at.seen, at.size), close)
        found = pairs.judge(at.epoch, at.i, loss, f, at.gain, at.oracle, any_ties)
        if found is None:
            trace.survived[-1] += 1
            continue
        star, rival, mistake, value, a = found
        if rounded and loss in ("hinge", "cost"):
            asked = 1.0 if loss == "hinge" else pairs.source.tilt * (at.gain[star] - at.gain[rival])
            trace.gap = min(trace.gap, abs(asked - f[star] + f[rival]))
        trace.mistakes[-1] += mistake
        trace.loss[-1] += value
        if not mistake and not (update == "always" and (loss in POSITIVE or value > 0.0)):
            trace.survived[-1] += 1
            continue
        trace.condition = max(trace.condition, condition(loss, f, at.gain, a, at.rows))
        g = (a[:, None] * at.rows).sum(axis=0)
        made = step(a, at.rows, at.weight)
        trace.update(at.i, Predictor(made.v, made.d, base + base_rate * made.beta), at.weight * g)
    trace.gap = min(trace.gap, getattr(step, "gap", np.inf))
    return trace


class Shown(NamedTuple):
    """What a rule does with one z: its loss, the new weights (None where it leaves them), the distance from the
    decision to do so, and whether this is a mistake (None: the scores say so)."""

    loss: float
    w: np.ndarray | None
    gap: float
    mistake: bool | None = None


# From w and z [D + 1], β·(b(y*) − b(y')), weight and, for the loss cost, the margin asked for
Rule = Callable[..., Shown]


def walk(
    make: Callable[..., Rule],
    corpus: Corpus,
    oracle: np.ndarray,
    orders: Orders,
    *,
    top: int,
    base: float,
    base_rate: float,
    loss: str = "hinge",
    any_ties: bool = False,
    pairs: Pairs = ORACLES,
    **own: Any,
) -> Trace:
    """Let the rule make(D + 1, **own) see z = φ(y*) − φ(y') of the ``top`` first pairs of every list, in turn.

    For the loss cost rivals of an oracle come by score − tilt·gain (mistakes are still those of scores), and the margin
    asked for is tilt·(gain(y*) − gain(y')).
    The gap is of decisions that rounding could turn: not between scores that no update has touched.
    """
    D, cost = corpus.width, loss == "cost"
    w, touched, rule = np.zeros(D + 1), np.zeros(D + 1, bool), make(D + 1, **own)
    trace = Trace([Predictor(w[:D], 1.0, base)])
    for at in visits(trace, corpus, oracle, orders, base_rate):
        f, b, gain = at.f, at.b, at.gain
        asking, t = (at.epoch, at.i, f, gain, at.oracle, any_ties), pairs.source.tilt
        plain = pairs.in_turn(*asking)
        seen = np.column_stack([at.phi * touched[:D], b * (base > 0.0 or touched[D])])
        if f.size:
            close = pairs.gap("cost" * cost, f, gain, seen, at.size)
            trace.gap = min(trace.gap, decision_gap(f, seen, at.size), close)
        made = 0
        for turn, (star, rival) in enumerate((pairs.in_turn(*asking, t) if cost else plain)[:top]):
            z = at.rows[star] - at.rows[rival]
            asked = (t * (gain[star] - gain[rival]),) if cost else ()
            shown = rule(w, z, base * (b[star] - b[rival]), at.weight, *asked)
            trace.gap = min(trace.gap, shown.gap if (touched & (z != 0.0)).any() else np.inf)
            if turn == 0:
                mistake = shown.mistake if shown.mistake is not None else not f[plain[0][0]] > f[plain[0][1]]
                trace.mistakes[-1] += mistake
                trace.loss[-1] += shown.loss
            if shown.w is not None:
                if made > 0:
                    trace.survived[-1] = 0  # made and ended within one list
                w, touched, made = shown.w, touched | (shown.w != w), made + 1
                trace.update(at.i, Predictor(w[:D], 1.0, base + base_rate * w[D]), -at.weight * z)
        trace.survived[-1] += made == 0
    return trace
