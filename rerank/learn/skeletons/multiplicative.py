"""Balanced Winnow: multiplicative updates, unnormalised and normalised (Littlestone 1988; Zhang, section 1).

Winnow keeps positive weights. Its balanced form has two of them for a column j, one for z_j and one for −z_j. Both
start at the prior μ and are multiplied by e^{±ηz_j}, so they are μe^{θ_j} and μe^{−θ_j}, and the column weighs

    w_j = μ·(e^{θ_j} − e^{−θ_j}),   θ_j ← θ_j + η·z_j.

The normalised form scales all 2D of them to the sum W:

    d·w_j,   d = W/Z,   Z = Σ_j μ·(e^{θ_j} + e^{−θ_j}) = Σ_j √(w_j² + 4μ²).

Only the columns of z are touched: w and Z are kept, and d is a number next to w.

The average needs no second loop. w_j stays the same between the updates that touch it, so with P = Σ d over the lists
seen and P_now its value before an update,

    Σ_k c_k d_k w_kj = P·w_j − Σ_updates P_now·Δw_j.

The log-weights are kept within |θ| ≤ 300, so that no number overflows.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.kernels.by_type import body, by_type
from rerank.kernels.compile import kernel
from rerank.learn.apart import ByColumn, TrainedApart
from rerank.learn.base import Learner, Weights
from rerank.learn.judge import look_up, score_list
from rerank.learn.passes import gradient_pass, repeat_steps
from rerank.learn.settings import Positive, settings_of
from rerank.learn.skeletons.additive import counted
from rerank.learn.steps import SEEN, beta, close, coordinate, look_up_weights, outlive, scale_of, score, step, survive
from rerank.learn.workspace import ListArrays, Scratch

LIMIT = 300.0  # of |θ|
LEAST_MU, LARGEST_MU = 1e-100, 1e20  # between them (2μ·sinh LIMIT)² and 4μ² are ordinary numbers
REACH = 2.0**20  # Z and P start again where Z has become so many times larger or smaller
# Indices of WinnowState.base and WinnowState.norm.
THETA, WEIGHT, SUM = range(3)
Z, CARRY, START, P = range(4)


class WinnowState(NamedTuple):
    """What training changes; D columns, N candidates. ``u`` holds Σ P_now·Δw."""

    theta: ByColumn  # float64 [D]
    w: ByColumn  # float64 [D]: μ(e^θ − e^−θ), not normalised
    u: ByColumn  # float64 [D]
    counts: np.ndarray  # int64 [3]: updates; lists the current predictor survived; lists seen (Σ c_k)
    base: np.ndarray  # float64 [3]: θ, w and u of the base score
    norm: np.ndarray  # float64 [4]: Z and what rounding took from it, Z at the last renewal, P since then
    alpha: np.ndarray  # float64 [N]: dual variables, [0] where there are none


@dataclass(frozen=True, kw_only=True)
class Multiplicative(Learner):
    """A learner with a WinnowState whose updates are θ ← θ − rate·g; ``total`` is W, None for 2·D·μ (‖μ‖₁)."""

    normalised: ClassVar[bool] = False
    passes: ClassVar[Any] = gradient_pass
    replays: ClassVar[Any] = repeat_steps
    mixes: ClassVar[tuple[str, ...]] = ("updates", "mean")
    keeps: ClassVar[bool] = False
    local: ClassVar[bool] = False  # sums run over all columns

    eta: Positive = 0.01
    mu: Positive = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if not LEAST_MU <= self.mu <= LARGEST_MU:
            raise RecipeError(f"found {self.mu!r}; expected a number from {LEAST_MU:g} to {LARGEST_MU:g}", key="mu")

    def settings(self, state: WinnowState, any_ties: bool = False) -> Any:
        """See ``Learner.settings``; ``total`` is W."""
        if not self.normalised:
            return settings_of(self, any_ties)
        total = getattr(self, "total", None)
        return settings_of(self, any_ties, total=float(self._mass(state.w.size) if total is None else total))

    def init(self, columns: int, candidates: int = 0) -> WinnowState:  # noqa: ARG002
        theta, w, u = np.zeros((3, columns))
        mass = self._mass(columns)
        norm = np.array([mass, 0.0, mass, 0.0])
        return WinnowState(theta, w, u, np.zeros(3, np.int64), np.zeros(3), norm, np.zeros(0))

    def weights(self, state: WinnowState) -> np.ndarray:
        return np.asarray(scale_of(state, self.settings(state)) * state.w)

    def nonzero_weights(self, state: WinnowState) -> int:
        return int(np.count_nonzero(state.w))

    def average(self, state: WinnowState) -> Weights:
        seen, total = max(1, int(state.counts[SEEN])), state.norm[P]
        weight = (total * state.base[WEIGHT] - state.base[SUM]) / seen
        return Weights((total * state.w - state.u) / seen, float(self.base + self.base_rate * weight))

    def combined(self, apart: TrainedApart, rule: str) -> WinnowState:  # noqa: ARG002
        """See ``Learner.combined``: θ = Σ share·θ_s, the weighted geometric mean of the positive weights."""
        theta, weight = apart.mean(lambda end: end.theta), apart.mean(lambda end: end.base[THETA])
        w, counts = 2.0 * self.mu * np.sinh(theta), counted(apart)
        mass = 2.0 * self.mu * (np.cosh(theta).sum() + (np.cosh(weight) if self.base_rate > 0 else 0.0))
        total = apart.summed(lambda end: end.norm[P] * end.w - end.u)
        survived = apart.summed(lambda end: end.norm[P] * end.base[WEIGHT] - end.base[SUM])
        base = np.array([weight, 2.0 * self.mu * np.sinh(weight), -survived])
        return WinnowState(theta, w, -total, counts, base, np.array([mass, 0.0, mass, 0.0]), np.zeros(0))

    def _mass(self, columns: int) -> float:
        """‖μ‖₁: the sum of all positive weights at the start, those of a learned base score too."""
        return 2.0 * self.mu * (columns + (self.base_rate > 0))


@by_type
def total_of(q: Any) -> float:
    """W; 0 where nothing is normalised."""
    return 0.0


@kernel
def weight_of(theta: float, mu: float) -> float:
    """μ(e^θ − e^−θ), without cancellation and exactly odd in θ."""
    x = math.expm1(abs(theta))
    return math.copysign(mu * (x + x / (1.0 + x)), theta)


@kernel
def mass_of(w: float, mu: float) -> float:
    """μ(e^θ + e^−θ) of a column that weighs w."""
    return math.sqrt(w * w + 4.0 * mu * mu)


@kernel
def add_mass(norm: np.ndarray, x: float) -> None:
    """Z ← Z + x; the carry makes the sum as good as one in twice the precision (Neumaier 1974)."""
    total = norm[Z] + x
    norm[CARRY] += (norm[Z] - total) + x if abs(norm[Z]) >= abs(x) else (x - total) + norm[Z]
    norm[Z] = total


@kernel
def replace_mass(norm: np.ndarray, old: float, new: float) -> None:
    """Z ← Z − old + new: one after the other, so that what came in goes out again to the last bit."""
    add_mass(norm, -old)
    add_mass(norm, new)


@body(scale_of, Multiplicative)
def normaliser(state: Any, q: Any) -> float:
    """d = W/Z; 1 where nothing is normalised."""
    mass = state.norm[Z] + state.norm[CARRY]
    return total_of(q) / mass if total_of(q) > 0.0 and mass > 0.0 else 1.0


@body(beta, Multiplicative)
def beta_scaled(state: Any, q: Any) -> float:
    """The base score's weight is normalised with the others."""
    return float(q.base + q.base_rate * scale_of(state, q) * state.base[WEIGHT])


@body(score, Multiplicative)
def score_scaled(data: ListArrays, i: int, state: Any, q: Any, scores: np.ndarray) -> None:
    """β·b(y) + d·w·φ(y)."""
    score_list(data, i, state.w, 0.0, scores)
    first, d, weight = data.lists[i], scale_of(state, q), beta(state, q)
    for y in range(first, data.lists[i + 1]):
        scores[y - first] = weight * data.base[y] + d * scores[y - first]


@body(look_up_weights, Multiplicative)
def look_up_scaled(data: ListArrays, order: np.ndarray, at: int, state: Any, lazy: Any, q: Any) -> None:
    """The weights."""
    look_up(data, order, at, state.w)


@body(coordinate, Multiplicative)
def coordinate_scaled(state: Any, j: int, free: int, q: Any) -> tuple[float, float]:
    """Weights that are not normalised."""
    return state.w[j], 0.0


@by_type
def weigh_anew(state: Any, mu: float, base_rate: float) -> None:
    """Sum up Z from all columns."""
    state.norm[Z] = state.norm[CARRY] = 0.0
    for j in range(state.w.shape[0]):
        add_mass(state.norm, mass_of(state.w[j], mu))
    if base_rate > 0.0:
        add_mass(state.norm, mass_of(state.base[WEIGHT], mu))
    state.norm[START] = state.norm[Z]


@by_type
def average_anew(state: Any) -> None:
    """P ← 0; what all columns have added to the average so far is −u from now on."""
    for j in range(state.w.shape[0]):
        state.u[j] -= state.norm[P] * state.w[j]
    state.base[SUM] -= state.norm[P] * state.base[WEIGHT]
    state.norm[P] = 0.0


@body(step, Multiplicative)
def multiply(state: Any, t: Scratch, count: int, n: int, rate: float, g_base: float, free: int, q: Any) -> None:
    """θ ← θ − rate·g; a new predictor begins.

    Where Z leaves its reach, Z and P start again, so that P·w and Z remain sums of numbers not too far apart.
    """
    norm, base = state.norm, state.base
    for r in range(count):
        j = t.column[r]
        state.theta[j] = min(max(state.theta[j] - rate * t.value[r], -LIMIT), LIMIT)
        t.extra[r] = weight_of(state.theta[j], q.mu)
        if total_of(q) > 0.0:
            replace_mass(norm, mass_of(state.w[j], q.mu), mass_of(t.extra[r], q.mu))
    base[THETA] = min(max(base[THETA] - rate * g_base, -LIMIT), LIMIT)
    w_base = weight_of(base[THETA], q.mu)
    if total_of(q) > 0.0:
        replace_mass(norm, mass_of(base[WEIGHT], q.mu), mass_of(w_base, q.mu))
    far = total_of(q) > 0.0 and not norm[START] / REACH <= norm[Z] <= norm[START] * REACH
    if far:
        average_anew(state)
    for r in range(count):
        j = t.column[r]
        state.u[j] += norm[P] * (t.extra[r] - state.w[j])
        state.w[j] = t.extra[r]
    base[SUM] += norm[P] * (w_base - base[WEIGHT])
    base[WEIGHT] = w_base
    if far:
        weigh_anew(state, q.mu, q.base_rate)
    close(state.counts)


@body(outlive, Multiplicative)
def outlive_scaled(state: Any, q: Any) -> None:
    """On this list, the weights of the current predictor are d·w."""
    survive(state.counts)
    state.norm[P] += scale_of(state, q)
