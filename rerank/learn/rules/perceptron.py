"""The perceptron on lists (Collins 2002): w ← w + φ(y*) − φ(ŷ) on a mistake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from rerank.kernels.compile import kernel
from rerank.learn.base import DualRule, learners, require_common
from rerank.learn.judge import base_of, judge, look_ahead, score_list, squared_radius, subgradient
from rerank.learn.log import LogRoom, record
from rerank.learn.losses import PERCEPTRON
from rerank.learn.rules.additive import ALIVE, WEIGHT, Additive, AdditiveState, add, count_update, survive
from rerank.learn.workspace import ListArrays, Scratch


class PerceptronSettings(NamedTuple):
    """The parameters for kernels."""

    base: float
    base_rate: float
    any_ties: bool


@kernel
def perceptron_epoch(
    data: ListArrays,
    order: np.ndarray,
    state: AdditiveState,
    t: Scratch,
    log: LogRoom,
    tally: np.ndarray,
    q: PerceptronSettings,
) -> None:
    """Pass over ``order`` (Collins 2002, Fig. 2)."""
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        i = order[at]
        score_list(data, i, state.w, q.base + q.base_rate * state.base[WEIGHT], t.scores)
        n = judge(data, i, t, PERCEPTRON, False, q.any_ties, tally)
        if n > 0:
            rate = data.weight[i]
            record(log, i, t.who, t.a, n, rate, state.counts[ALIVE])
            count, g_base = subgradient(data, t, n), q.base_rate * base_of(data, t, n)
            count_update(tally, squared_radius(t, count, g_base, PERCEPTRON))
            add(state, t, count, rate, g_base)
        survive(state.counts)


@learners.add("perceptron")
@dataclass(frozen=True)
class Perceptron(Additive):
    """The structured perceptron.

    Parameters
    ----------
    base: weight of the base score at the start, compared with updates of size 1; base_rate: ≥ 0, 0 keeps it there,
        ρ > 0 learns it as the weight of a feature ρ·b(y).
    """

    name: ClassVar[str] = "perceptron"

    base: float = 1.0
    base_rate: float = 0.0

    def __post_init__(self) -> None:
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
        q = PerceptronSettings(float(self.base), float(self.base_rate), any_ties)
        perceptron_epoch(data, part, state, space, room, tally, q)

    def dual_rule(self) -> DualRule:
        """See ``Learner.dual_rule``: w = −s."""
        return DualRule(eta=0.0, l1=0.0, l2=0.0, base=float(self.base), base_rate=float(self.base_rate))
