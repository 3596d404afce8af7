"""Winnow: multiplicative updates, unnormalised and normalised (Littlestone 1988; Zhang, section 1).

Winnow keeps positive weights. A column's starts at its prior μ_j, and is a_j = μ_j·e^{θ_j}, where θ_j ← θ_j + η·z_j.
The balanced form has two of them for a column, one for z_j and one for −z_j, so that the column weighs

    a_j = μ_j·(e^{θ_j} − e^{−θ_j}).

The normalised form scales all of them to the sum W:

    w_j = d·a_j,   d = W/Z,   Z = Σ_j μ_j·(e^{θ_j} + e^{−θ_j}) = Σ_j √(a_j² + 4μ_j²), or Σ_j a_j.

The log-weights are kept within |θ| ≤ 300, so that no number overflows.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.base.errors import RecipeError
from rerank.kernels.by_type import by_type
from rerank.kernels.compile import kernel
from rerank.learn.average import average_anew
from rerank.learn.base import Learner, State
from rerank.learn.predictor import BASE_SCALE, FREE_SCALE, REST, SCALE, assign, fresh
from rerank.learn.settings import Positive
from rerank.learn.workspace import Scratch

LIMIT = 300.0  # of |θ|
LEAST_MU, GREATEST_MU = 1e-100, 1e20  # between them (2μ·sinh LIMIT)² and 4μ² are ordinary numbers
REACH = 2.0**20  # Z and the sums of the average start again where Z has become this many times larger or smaller
# Of State.numbers: W (0 where nothing is normalised), Z and what rounding took from it, Z at the last renewal.
W, Z, CARRY, START = range(REST, REST + 4)


@dataclass(frozen=True, kw_only=True)
class Multiplicative(Learner):
    """A learner whose updates are θ ← θ − rate·g, θ being its memory; ``total`` is W, None for ‖μ‖₁ over all weights.

    A state has every column's own μ_j in place of slopes where they are not ``mu``: see ``with_prior``.
    """

    normalised: ClassVar[bool] = False

    eta: Positive | None = 0.01
    mu: Positive = 0.01
    balanced: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_priors(np.array([self.mu]), "mu")

    @property
    def begins_at_zero(self) -> bool:
        return self.balanced

    def init(self, columns: int, candidates: int = 0) -> State:
        state = fresh(columns, memory=True, rest=4, candidates=candidates if self.dual else 0)
        return self._begun(state, self.mu, self.mu * (columns + (self.base_rate > 0)))

    def with_prior(self, state: State, prior: np.ndarray) -> State:
        """A fresh ``state`` in which the columns have the priors ``prior`` (float64 [D]); the base score has ``mu``.

        Raises
        ------
        RecipeError: a prior is not between 1e-100 and 1e20.
        """
        require_priors(prior, "prior")
        every = np.append(prior, self.mu)
        norm = float((every if self.base_rate > 0 else prior).sum())
        return self._begun(state._replace(v=every), every, norm)

    def fresh_like(self, arrays: Mapping[str, np.ndarray], columns: int) -> State:
        """With room for priors of columns where ``arrays`` has some."""
        state, own = self.init(columns), arrays.get("v", np.empty(0))
        if not own.size:
            return state
        if own.size == columns + 1 and not np.all((own >= LEAST_MU) & (own <= GREATEST_MU)):
            raise RecipeError(f"its priors are not numbers from {LEAST_MU:g} to {GREATEST_MU:g}")
        return state._replace(v=np.full(columns + 1, self.mu))

    def _begun(self, state: State, mu: float | np.ndarray, norm: float) -> State:
        """``state`` with the weights and the sums of the priors ``mu`` (a number, or float64 [D + 1]); norm: ‖μ‖₁ of
        those that are learned."""
        mass, total = (1.0 + self.balanced) * norm, getattr(self, "total", None)
        if self.normalised:
            state.numbers[W] = mass if total is None else total
        if not self.balanced:
            state.cells[:] = mu
        state.numbers[[Z, START]] = mass
        set_scale(state.numbers)
        return state


def require_priors(mu: np.ndarray, key: str) -> None:
    """Refuse priors that are not between LEAST_MU and GREATEST_MU."""
    for wrong in mu[~((mu >= LEAST_MU) & (mu <= GREATEST_MU))][:1]:
        raise RecipeError(f"found {float(wrong)!r}; expected a number from {LEAST_MU:g} to {GREATEST_MU:g}", key=key)


@by_type
def multiply(state: Any, scratch: Scratch, count: int, rate: float, params: Any) -> None:
    """θ ← θ − rate·g, within its limits; a = μ(e^θ − e^−θ) or μe^θ, and d = W/Z.

    Where Z leaves its reach, Z and the sums start again, so that they remain sums of numbers not too far apart.
    """
    theta, w, numbers, a = state.memory, scratch.extra, state.numbers, state.cells
    for r in range(count):
        j = scratch.column[r]
        mu = prior_of(state, j, params.mu)
        theta[j] = min(max(theta[j] - rate * scratch.value[r], -LIMIT), LIMIT)
        w[r] = weight_of(theta[j], mu) if params.balanced else mu * math.exp(theta[j])
        if numbers[W] > 0.0:  # one after the other, so that what came in goes out again to the last bit
            add_mass(numbers, -mass_of(a[j], mu, params.balanced))
            add_mass(numbers, mass_of(w[r], mu, params.balanced))
    far = numbers[W] > 0.0 and not numbers[START] / REACH <= numbers[Z] <= numbers[START] * REACH
    if far:
        average_anew(state)
    for r in range(count):
        assign(state, scratch.column[r], w[r])
    if far:
        weigh_anew(state, params)
    set_scale(numbers)


@by_type
def prior_of(state: Any, j: int, mu: float) -> float:
    """μ_j."""
    return float(state.v[j] if state.v.shape[0] > 0 else mu)


@kernel
def weight_of(theta: float, mu: float) -> float:
    """μ(e^θ − e^−θ), without cancellation and exactly odd in θ."""
    x = math.expm1(abs(theta))
    return math.copysign(mu * (x + x / (1.0 + x)), theta)


@kernel
def mass_of(w: float, mu: float, balanced: bool) -> float:
    """The positive weights of a column that weighs w: μ(e^θ + e^−θ), or w itself."""
    return math.sqrt(w * w + 4.0 * mu * mu) if balanced else w


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
        add_mass(state.numbers, mass_of(state.cells[j], prior_of(state, j, params.mu), params.balanced))
    state.numbers[START] = state.numbers[Z]
