"""Passive-aggressive learning (Crammer et al. 2006): the smallest step that gives a list's worst rival its margin.

The margin asked for is 1, or with the loss ``cost`` what the rival costs: tilt·(gain(y*) − gain(y')). With pairs of
oracle and rival this is the max-loss update of section 8, with those of hope and fear it is MIRA as machine translation
uses it (Chiang 2012, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from rerank.kernels.compile import kernel
from rerank.learn.base import learners, require, require_choice, require_common, require_count
from rerank.learn.judge import (
    difference,
    duel,
    duellists,
    face,
    look_ahead,
    look_up,
    score_list,
    squared_norm,
)
from rerank.learn.log import LogRoom, record
from rerank.learn.losses import rivals
from rerank.learn.pairs import confront_next
from rerank.learn.rules.additive import ALIVE, WEIGHT, Additive, AdditiveState, add, count_update, survive
from rerank.learn.scoring import ONE, THREE, TWO
from rerank.learn.workspace import LOSS, MISTAKES, ListArrays, Scratch

VARIANTS = ("hard", "1", "2")
PA_LOSSES = ("hinge", "cost")


class PASettings(NamedTuple):
    """The parameters for kernels."""

    variant: int
    C: float
    top: int
    cost: bool
    base: float
    base_rate: float
    any_ties: bool


@kernel
def margin(w: np.ndarray, t: Scratch, count: int) -> float:
    """w·z for the z in ``t.value``, in four sums that the processor computes at once."""
    j, z = t.column, t.value
    one = two = three = four = 0.0
    end = np.uint64(count)
    quarters = end - end % np.uint64(4)
    for r in range(np.uint64(0), quarters, np.uint64(4)):
        one += w[j[r]] * z[r]
        two += w[j[r + ONE]] * z[r + ONE]
        three += w[j[r + TWO]] * z[r + TWO]
        four += w[j[r + THREE]] * z[r + THREE]
    for r in range(quarters, end):
        one += w[j[r]] * z[r]
    return float((one + two) + (three + four))


@kernel
def step_size(variant: int, C: float, loss: float, norm: float) -> float:
    """τ: loss/‖z‖², at most C (PA-I), or loss/(‖z‖² + 1/2C) (PA-II)."""
    if variant == 2:
        return loss / (norm + 0.5 / C)
    tau = loss / norm
    return min(C, tau) if variant == 1 else tau


@kernel
def costliest(data: ListArrays, i: int, scores: np.ndarray, any_ties: bool) -> int:
    """The rival of list i with the highest score − tilt·gain; these are left in ``scores`` for further rivals."""
    first, last = data.lists[i], data.lists[i + 1]
    for y in range(first, last):
        scores[y - first] -= data.pairs.tilt * data.gain[y]
    _, rival = rivals(first, last, scores, data.gain, data.oracle[i], any_ties, 0.0)
    return rival


@kernel
def pa_epoch(
    data: ListArrays,
    order: np.ndarray,
    state: AdditiveState,
    t: Scratch,
    log: LogRoom,
    tally: np.ndarray,
    q: PASettings,
) -> None:
    """Pass over ``order``: w ← w + τz while w·z is below the margin asked for (Crammer et al. 2006, Fig. 1).

    Up to ``q.top`` pairs of a list take their turn. Mistakes are judged by scores alone, as in ``judge``.
    """
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        i = order[at]
        look_up(data, order, at, state.w)
        two = duel(data, i, q.any_ties)
        if two:
            star, rival = duellists(data, i, tally)
        else:
            score_list(data, i, state.w, q.base + q.base_rate * state.base[WEIGHT], t.scores)
            star, rival = face(data, i, t, q.any_ties, tally)
            if q.cost and rival >= 0 and len(data.pairs.others) == 0:
                rival = costliest(data, i, t.scores, q.any_ties)
        for number in range(q.top):
            if rival < 0:
                break
            count, b = difference(data, star, rival, t), data.base[star] - data.base[rival]
            z_base = q.base_rate * b
            m = q.base * b + z_base * state.base[WEIGHT] + margin(state.w, t, count)
            asked = data.pairs.tilt * (data.gain[star] - data.gain[rival]) if q.cost else 1.0
            norm, loss = squared_norm(t, count) + z_base * z_base, max(0.0, asked - m)
            if number == 0:
                tally[LOSS] += loss
                tally[MISTAKES] += two and not m > 0.0
            if loss > 0.0 and norm > 0.0:
                tau = data.weight[i] * step_size(q.variant, q.C, loss, norm)
                record(log, i, t.who, t.a, 2, tau, state.counts[ALIVE])
                count_update(tally, norm)
                add(state, t, count, -tau, z_base)
            if two:
                break
            if number + 1 < q.top:
                star, rival = confront_next(data, i, t.scores, q.any_ties, star, rival)
        survive(state.counts)


@learners.add("pa")
@dataclass(frozen=True)
class PassiveAggressive(Additive):
    """Passive-aggressive learning.

    Parameters
    ----------
    variant: "hard" (the margin whatever it takes), "1" (steps of at most C) or "2" (steps damped by 1/2C).
    C: > 0; aggressiveness of the variants 1 and 2.
    top: how many pairs of a list to learn from, those of the best-scoring rivals first.
    loss: "hinge" (asks for a margin of 1) or "cost" (for tilt·(gain(y*) − gain(y')), the tilt being the pair source's).
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 learns it as the weight of
        a feature ρ·b(y).
    """

    name: ClassVar[str] = "pa"

    variant: Literal["hard", "1", "2"] = "1"
    C: float = 1.0
    top: int = 1
    loss: Literal["hinge", "cost"] = "hinge"
    base: float = 1.0
    base_rate: float = 0.0

    def __post_init__(self) -> None:
        require_choice("variant", self.variant, VARIANTS)
        require("C", self.C, low=0.0, strict=True)
        require_count("top", self.top)
        require_choice("loss", self.loss, PA_LOSSES)
        require_common(self)

    def walk(
        self,
        data: ListArrays,
        part: np.ndarray,
        state: AdditiveState,
        lazy: None,  # noqa: ARG002
        space: Scratch,
        room: LogRoom,
        tally: np.ndarray,
        any_ties: bool,
    ) -> None:
        """See ``Learner.walk``."""
        q = PASettings(
            variant=VARIANTS.index(self.variant),
            C=float(self.C),
            top=self.top,
            cost=self.loss == "cost",
            base=float(self.base),
            base_rate=float(self.base_rate),
            any_ties=any_ties,
        )
        pa_epoch(data, part, state, space, room, tally, q)
