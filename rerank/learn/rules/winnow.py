"""Winnow: multiplicative updates, unnormalised and normalised (Littlestone 1988; Zhang, section 1).

Winnow keeps positive weights. The balanced form has two of them for a column, one for z_j and one for −z_j, which start
at μ: μ·e^{θ_j} and μ·e^{−θ_j}, where θ_j ← θ_j + η·z_j. So the column weighs

    a_j = μ·(e^{θ_j} − e^{−θ_j}).

The normalised form scales all of them to the sum W: w_j = d·a_j with

    d = W/Z,   Z = Σ_j μ·(e^{θ_j} + e^{−θ_j}) = Σ_j √(a_j² + 4μ²).

The log-weights are kept within |θ| ≤ 300, so that no number overflows.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from rerank.base.ranges import Positive, Range
from rerank.kernels.compile import by_type, kernel
from rerank.learn.learner import Learner, State, Update
from rerank.learn.predictor import assign, average_anew
from rerank.learn.workspace import Scratch

MAX_LOG_WEIGHT = 300.0  # of |θ|
MAX_MASS_RATIO = 2.0**20  # Z and the sums of the average start again where Z has grown or shrunk by this factor
MAX_RATE = 1e300


@dataclass(frozen=True, kw_only=True)
class Multiplicative(Learner):
    """A learner whose updates are θ ← θ − rate·g, θ being its memory; ``total`` is W, None for 2μ a weight."""

    normalised: ClassVar[bool] = False
    # W (0 where nothing is normalised), Z and what rounding took from it, Z at the last renewal
    whole: ClassVar[tuple[str, ...]] = ("total", "mass", "carry", "start")

    eta: Positive | None = 0.01
    mu: Annotated[float, Range(1e-100, 1e20)] = 0.01  # so that (2μ·sinh MAX_LOG_WEIGHT)² and 4μ² are ordinary numbers

    def init(self, columns: int, candidates: int = 0) -> State:
        state = super().init(columns, candidates)._replace(memory=np.zeros(columns + 1))
        now, total = self.view(state).now, getattr(self, "total", None)
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
        theta[j] = min(max(theta[j] - rate * scratch.value[r], -MAX_LOG_WEIGHT), MAX_LOG_WEIGHT)
        x = math.expm1(abs(theta[j]))  # without cancellation and exactly odd in θ
        w[r] = math.copysign(mu * (x + x / (1.0 + x)), theta[j])
        if now.total > 0.0:  # one after the other, so that what came in goes out again to the last bit
            add_mass(now, -mass_of(state.a[j], mu))
            add_mass(now, mass_of(w[r], mu))
    far = now.total > 0.0 and not now.start / MAX_MASS_RATIO <= now.mass <= now.start * MAX_MASS_RATIO
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


@dataclass(frozen=True, kw_only=True)
class UWin(Multiplicative):
    """Balanced Winnow, unnormalised; with another loss than the perceptron's: exponentiated gradient steps.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(UWin(mu=1, eta=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 0.4027}

    Reference: Littlestone 1988; Zhang, section 1. Memory: 24 bytes a column, 16 without the average.

    Parameters
    ----------
    loss: the name of a loss, or its import path.
    eta: > 0; rate of the log-weights, times the weight of the list.
    mu: 1e-100 to 1e20; both parts of every weight start with it.
    update: "mistakes" (only where the current predictor errs) or "always" (on every loss).
    base: weight of the base score at the start, compared with steps of about 2·mu·eta; base_rate: ≥ 0, 0 keeps it
        there, ρ > 0 adds the weight of one more feature, ρ·b(y).
    """

    name: ClassVar[str] = "uwin"

    loss: str = "perceptron"
    eta: Positive = 0.01
    update: Update = "mistakes"

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
        """θ ← θ + η·z, that is, both parts of w_j are multiplied by e^{±ηz_j} (Zhang, section 1)."""
        rate = min(params.eta * weight, MAX_RATE)
        multiply(state, scratch, count, rate, params)


@dataclass(frozen=True, kw_only=True)
class NWin(UWin):
    """Balanced Winnow whose 2D positive weights keep the sum W: all are multiplied by d = W/Z.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(NWin(mu=1, eta=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 0.3987}

    Reference: Littlestone 1988; Zhang, section 1. Memory: 24 bytes a column, 16 without the average.

    Parameters
    ----------
    total: W > 0, the sum of positive weights; None for that at the start.
    loss, eta, mu, update, base, base_rate: see UWin.
    """

    name: ClassVar[str] = "nwin"
    normalised: ClassVar[bool] = True

    total: Positive | None = None


@kernel
def mass_of(w: float, mu: float) -> float:
    """The positive weights of a column that weighs w: μ(e^θ + e^−θ)."""
    return math.sqrt(w * w + 4.0 * mu * mu)


@kernel
def set_scale(now: Any) -> None:
    """d = W/Z; 1 where nothing is normalised."""
    mass = now.mass + now.carry
    now.d = now.d_free = now.d_base = now.total / mass if now.total > 0.0 and mass > 0.0 else 1.0


@kernel
def add_mass(now: Any, x: float) -> None:
    """Z ← Z + x; the carry makes the sum as good as one in twice the precision (Neumaier 1974)."""
    before = now.mass
    total = before + x
    now.carry += (before - total) + x if abs(before) >= abs(x) else (x - total) + before
    now.mass = total
