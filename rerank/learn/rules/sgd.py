"""Stochastic gradient descent: w ← w − η_k·g on every list with a loss, or on mistakes only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from rerank.kernels.compile import kernel
from rerank.learn.base import learners, require, require_choice, require_common
from rerank.learn.judge import base_of, judge, look_ahead, score_list, squared_radius, subgradient
from rerank.learn.log import LogRoom, record
from rerank.learn.losses import LOSSES
from rerank.learn.rules.additive import ALIVE, WEIGHT, Additive, AdditiveState, M, add, count_update, survive
from rerank.learn.workspace import ListArrays, Scratch


class SGDSettings(NamedTuple):
    """The parameters for kernels."""

    loss: int
    eta: float
    falling: bool
    base: float
    base_rate: float
    always: bool
    any_ties: bool


@kernel
def sgd_epoch(
    data: ListArrays,
    order: np.ndarray,
    state: AdditiveState,
    t: Scratch,
    log: LogRoom,
    tally: np.ndarray,
    q: SGDSettings,
) -> None:
    """Pass over ``order``: update k is w ← w − η_k·g, with η_k = η or η/√k (Zhang 2004)."""
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        i = order[at]
        score_list(data, i, state.w, q.base + q.base_rate * state.base[WEIGHT], t.scores)
        n = judge(data, i, t, q.loss, q.always, q.any_ties, tally)
        if n > 0:
            eta = q.eta / math.sqrt(state.counts[M] + 1) if q.falling else q.eta
            rate = eta * data.weight[i]
            record(log, i, t.who, t.a, n, rate, state.counts[ALIVE])
            count, g_base = subgradient(data, t, n), q.base_rate * base_of(data, t, n)
            count_update(tally, squared_radius(t, count, g_base, q.loss))
            add(state, t, count, rate, g_base)
        survive(state.counts)


@learners.add("sgd")
@dataclass(frozen=True)
class SGD(Additive):
    """Stochastic gradient descent.

    Parameters
    ----------
    loss: one of LOSSES.
    eta: > 0; the step size.
    schedule: "sqrt" (update k is made with η/√k) or "constant".
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 learns it as the weight of
        a feature ρ·b(y).
    """

    name: ClassVar[str] = "sgd"

    loss: str = "hinge"
    eta: float = 0.3
    schedule: Literal["sqrt", "constant"] = "sqrt"
    update: Literal["always", "mistakes"] = "always"
    base: float = 1.0
    base_rate: float = 0.0

    def __post_init__(self) -> None:
        require_choice("schedule", self.schedule, ("sqrt", "constant"))
        require("eta", self.eta, low=0.0, strict=True)
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
        q = SGDSettings(
            loss=LOSSES[self.loss],
            eta=float(self.eta),
            falling=self.schedule == "sqrt",
            base=float(self.base),
            base_rate=float(self.base_rate),
            always=self.update == "always",
            any_ties=any_ties,
        )
        sgd_epoch(data, part, state, space, room, tally, q)
