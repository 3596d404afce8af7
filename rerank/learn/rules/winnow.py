"""Winnow: multiplicative updates, unnormalised and normalised (Littlestone 1988; Zhang, section 1).

Winnow keeps positive weights. The balanced form has two of them for a column, one for z_j and one for −z_j, which start
at μ: μ·e^{θ_j} and μ·e^{−θ_j}, where θ_j ← θ_j + η·z_j. So the column weighs

    a_j = μ·(e^{θ_j} − e^{−θ_j}).

The normalised form scales all of them to the sum W: w_j = d·a_j with d = W/Z (see ``winnow_mass``). The log-weights
are kept within |θ| ≤ 300, so that no number overflows.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from rerank.base.ranges import Range
from rerank.kernels.compile import by_type
from rerank.learn.average import average_anew
from rerank.learn.base import Learner, State
from rerank.learn.predictor import assign
from rerank.learn.rules.winnow_mass import add_mass, mass_of, set_scale
from rerank.learn.settings import Positive
from rerank.learn.workspace import Scratch

LIMIT = 300.0  # of |θ|
REACH = 2.0**20  # Z and the sums of the average start again where Z has become this many times larger or smaller


@dataclass(frozen=True, kw_only=True)
class Multiplicative(Learner):
    """A learner whose updates are θ ← θ − rate·g, θ being its memory; ``total`` is W, None for 2μ a weight."""

    normalised: ClassVar[bool] = False
    # W (0 where nothing is normalised), Z and what rounding took from it, Z at the last renewal
    whole: ClassVar[tuple[str, ...]] = ("total", "mass", "carry", "start")

    eta: Positive | None = 0.01
    mu: Annotated[float, Range(1e-100, 1e20)] = 0.01  # so that (2μ·sinh LIMIT)² and 4μ² are ordinary numbers

    def init(self, columns: int, candidates: int = 0) -> State:
        state = super().init(columns, candidates)._replace(memory=np.zeros(columns + 1))
        now, total = self.named(state).now, getattr(self, "total", None)
        now.mass = now.start = 2.0 * (self.mu * (columns + (self.base_rate > 0)))
        if self.normalised:
            now.total = now.mass if total is None else total
        set_scale(now)
        return state


@by_type
def multiply(state: Any, scratch: Scratch, count: int, rate: float, params: Any) -> None:
    """θ ← θ − rate·g, within its limits; a = μ(e^θ − e^−θ), and d = W/Z.

    Where Z leaves its reach, Z and the sums start again, so that they remain sums of numbers not too far apart.
    """
    theta, w, now, mu = state.memory, scratch.extra, state.now, params.mu
    for r in range(count):
        j = scratch.column[r]
        theta[j] = min(max(theta[j] - rate * scratch.value[r], -LIMIT), LIMIT)
        x = math.expm1(abs(theta[j]))  # without cancellation and exactly odd in θ
        w[r] = math.copysign(mu * (x + x / (1.0 + x)), theta[j])
        if now.total > 0.0:  # one after the other, so that what came in goes out again to the last bit
            add_mass(now, -mass_of(state.a[j], mu))
            add_mass(now, mass_of(w[r], mu))
    far = now.total > 0.0 and not now.start / REACH <= now.mass <= now.start * REACH
    if far:
        average_anew(state)
    for r in range(count):
        assign(state, scratch.column[r], w[r])
    if far:  # sum up Z from all columns; the base score's counts where it is learned
        now.mass = now.carry = 0.0
        for j in range(state.a.shape[0] - (params.base_rate == 0.0)):
            add_mass(now, mass_of(state.a[j], mu))
        now.start = now.mass
    set_scale(now)
