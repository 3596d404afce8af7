"""Winnow: multiplicative updates, unnormalised and normalised (Littlestone 1988; Zhang, section 1).

Winnow keeps positive weights. The balanced form has two of them for a column, one for z_j and one for −z_j, which start
at μ: μ·e^{θ_j} and μ·e^{−θ_j}, where θ_j ← θ_j + η·z_j. So the column weighs

    a_j = μ·(e^{θ_j} − e^{−θ_j}).

The normalised form scales all of them to the sum W:

    w_j = d·a_j,   d = W/Z,   Z = Σ_j μ·(e^{θ_j} + e^{−θ_j}) = Σ_j √(a_j² + 4μ²).

The log-weights are kept within |θ| ≤ 300, so that no number overflows.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from rerank.base.ranges import Range
from rerank.kernels.by_type import by_type
from rerank.kernels.compile import kernel
from rerank.learn.average import average_anew
from rerank.learn.base import Learner, State
from rerank.learn.predictor import BASE_SCALE, FREE_SCALE, REST, SCALE, assign, fresh
from rerank.learn.settings import Positive
from rerank.learn.workspace import Scratch

LIMIT = 300.0  # of |θ|
REACH = 2.0**20  # Z and the sums of the average start again where Z has become this many times larger or smaller
# Of State.numbers: W (0 where nothing is normalised), Z and what rounding took from it, Z at the last renewal.
W, Z, CARRY, START = range(REST, REST + 4)


@dataclass(frozen=True, kw_only=True)
class Multiplicative(Learner):
    """A learner whose updates are θ ← θ − rate·g, θ being its memory; ``total`` is W, None for 2μ a weight."""

    normalised: ClassVar[bool] = False

    eta: Positive | None = 0.01
    mu: Annotated[float, Range(1e-100, 1e20)] = 0.01  # so that (2μ·sinh LIMIT)² and 4μ² are ordinary numbers

    def init(self, columns: int, candidates: int = 0) -> State:
        state = fresh(columns, memory=True, rest=4, candidates=candidates if self.dual else 0)
        mass, total = 2.0 * (self.mu * (columns + (self.base_rate > 0))), getattr(self, "total", None)
        if self.normalised:
            state.numbers[W] = mass if total is None else total
        state.numbers[[Z, START]] = mass
        set_scale(state.numbers)
        return state


@by_type
def multiply(state: Any, scratch: Scratch, count: int, rate: float, params: Any) -> None:
    """θ ← θ − rate·g, within its limits; a = μ(e^θ − e^−θ), and d = W/Z.

    Where Z leaves its reach, Z and the sums start again, so that they remain sums of numbers not too far apart.
    """
    theta, w, numbers, a, mu = state.memory, scratch.extra, state.numbers, state.cells, params.mu
    for r in range(count):
        j = scratch.column[r]
        theta[j] = min(max(theta[j] - rate * scratch.value[r], -LIMIT), LIMIT)
        w[r] = weight_of(theta[j], mu)
        if numbers[W] > 0.0:  # one after the other, so that what came in goes out again to the last bit
            add_mass(numbers, -mass_of(a[j], mu))
            add_mass(numbers, mass_of(w[r], mu))
    far = numbers[W] > 0.0 and not numbers[START] / REACH <= numbers[Z] <= numbers[START] * REACH
    if far:
        average_anew(state)
    for r in range(count):
        assign(state, scratch.column[r], w[r])
    if far:
        weigh_anew(state, params)
    set_scale(numbers)


@kernel
def weight_of(theta: float, mu: float) -> float:
    """μ(e^θ − e^−θ), without cancellation and exactly odd in θ."""
    x = math.expm1(abs(theta))
    return math.copysign(mu * (x + x / (1.0 + x)), theta)


@kernel
def mass_of(w: float, mu: float) -> float:
    """The positive weights of a column that weighs w: μ(e^θ + e^−θ)."""
    return math.sqrt(w * w + 4.0 * mu * mu)


@kernel
def set_scale(numbers: np.ndarray) -> None:
    """d = W/Z; 1 where nothing is normalised."""
    mass = numbers[Z] + numbers[CARRY]
    d = numbers[W] / mass if numbers[W] > 0.0 and mass > 0.0 else 1.0
    numbers[SCALE] = numbers[FREE_SCALE] = numbers[BASE_SCALE] = d


@kernel
def add_mass(numbers: np.ndarray, x: float) -> None:
    """Z ← Z + x; the carry makes the sum as good as one in twice the precision (Neumaier 1974)."""
    before = numbers[Z]
    total = before + x
    numbers[CARRY] += (before - total) + x if abs(before) >= abs(x) else (x - total) + before
    numbers[Z] = total


@by_type
def weigh_anew(state: Any, params: Any) -> None:
    """Sum up Z from all columns; the base score's counts where it is learned."""
    state.numbers[Z] = state.numbers[CARRY] = 0.0
    for j in range(state.cells.shape[0] - (params.base_rate == 0.0)):
        add_mass(state.numbers, mass_of(state.cells[j], params.mu))
    state.numbers[START] = state.numbers[Z]
