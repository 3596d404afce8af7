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

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.learn.base import Learner, Weights, learners, require, require_common
from rerank.learn.judge import base_of, judge, look_ahead, score_list, squared_radius, subgradient
from rerank.learn.log import LogRoom, UpdateLog, record
from rerank.learn.rules.additive import ALIVE, NOW, M, close, count_update, survive
from rerank.learn.voting.votes import Replay, Updates, VoteRoom, Votes, emit, load
from rerank.learn.workspace import ListArrays, Scratch

LIMIT = 300.0  # of |θ|
LEAST_MU, LARGEST_MU = 1e-100, 1e20  # between them (2μ·sinh LIMIT)² and 4μ² are ordinary numbers
LARGEST_RATE = 1e300
REACH = 2.0**20  # Z and P start again where Z has become so many times larger or smaller
# Indices of WinnowState.base and WinnowState.norm.
THETA, WEIGHT, SUM = range(3)
Z, CARRY, START, P = range(4)


class WinnowState(NamedTuple):
    """What training changes; D columns, N candidates. ``u`` holds Σ P_now·Δw."""

    theta: np.ndarray  # float64 [D]
    w: np.ndarray  # float64 [D]: μ(e^θ − e^−θ), not normalised
    u: np.ndarray  # float64 [D]
    counts: np.ndarray  # int64 [3]: updates; lists the current predictor survived; lists seen (Σ c_k)
    base: np.ndarray  # float64 [3]: θ, w and u of the base score
    norm: np.ndarray  # float64 [4]: Z and what rounding took from it, Z at the last renewal, P since then
    alpha: np.ndarray  # float64 [N]: dual variables, [0] where there are none


class WinnowSettings(NamedTuple):
    """The parameters for kernels."""

    loss: int
    eta: float
    mu: float
    total: float  # W, 0 where nothing is normalised
    base: float
    base_rate: float
    always: bool
    any_ties: bool


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


@kernel
def normaliser(state: WinnowState, q: WinnowSettings) -> float:
    """d = W/Z; 1 where nothing is normalised."""
    mass = state.norm[Z] + state.norm[CARRY]
    return q.total / mass if q.total > 0.0 and mass > 0.0 else 1.0


@kernel
def score_scaled(data: ListArrays, i: int, w: np.ndarray, d: float, beta: float, scores: np.ndarray) -> None:
    """β·b(y) + d·w·φ(y) for the candidates of list i."""
    score_list(data, i, w, 0.0, scores)
    first = data.lists[i]
    for y in range(first, data.lists[i + 1]):
        scores[y - first] = beta * data.base[y] + d * scores[y - first]


@kernel
def weigh_anew(state: WinnowState, mu: float, base_rate: float) -> None:
    """Sum up Z from all columns."""
    state.norm[Z] = state.norm[CARRY] = 0.0
    for j in range(state.w.shape[0]):
        add_mass(state.norm, mass_of(state.w[j], mu))
    if base_rate > 0.0:
        add_mass(state.norm, mass_of(state.base[WEIGHT], mu))
    state.norm[START] = state.norm[Z]


@kernel
def average_anew(state: WinnowState) -> None:
    """P ← 0; what all columns have added to the average so far is −u from now on."""
    for j in range(state.w.shape[0]):
        state.u[j] -= state.norm[P] * state.w[j]
    state.base[SUM] -= state.norm[P] * state.base[WEIGHT]
    state.norm[P] = 0.0


@kernel
def multiply(state: WinnowState, t: Scratch, count: int, rate: float, g_base: float, q: WinnowSettings) -> None:
    """θ ← θ − rate·g for the g in ``t.value`` and, for the base score, ``g_base``; a new predictor begins.

    Where Z leaves its reach, Z and P start again, so that P·w and Z remain sums of numbers not too far apart.
    """
    norm, base = state.norm, state.base
    for r in range(count):
        j = t.column[r]
        state.theta[j] = min(max(state.theta[j] - rate * t.value[r], -LIMIT), LIMIT)
        t.extra[r] = weight_of(state.theta[j], q.mu)
        if q.total > 0.0:
            replace_mass(norm, mass_of(state.w[j], q.mu), mass_of(t.extra[r], q.mu))
    base[THETA] = min(max(base[THETA] - rate * g_base, -LIMIT), LIMIT)
    w_base = weight_of(base[THETA], q.mu)
    if q.total > 0.0:
        replace_mass(norm, mass_of(base[WEIGHT], q.mu), mass_of(w_base, q.mu))
    far = q.total > 0.0 and not norm[START] / REACH <= norm[Z] <= norm[START] * REACH
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


@kernel
def outlive(state: WinnowState, d: float) -> None:
    """The current predictor has survived a list, on which its weights were d·w."""
    survive(state.counts)
    state.norm[P] += d


@kernel
def winnow_epoch(
    data: ListArrays,
    order: np.ndarray,
    state: WinnowState,
    t: Scratch,
    log: LogRoom,
    tally: np.ndarray,
    q: WinnowSettings,
) -> None:
    """Pass over ``order``: predict, and on a mistake (or, always, a loss) θ ← θ − η·weight·g (Zhang, section 1)."""
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        i = order[at]
        d = normaliser(state, q)
        score_scaled(data, i, state.w, d, q.base + q.base_rate * d * state.base[WEIGHT], t.scores)
        n = judge(data, i, t, q.loss, q.always, q.any_ties, tally)
        if n > 0:
            rate = min(q.eta * data.weight[i], LARGEST_RATE)
            record(log, i, t.who, t.a, n, rate, state.counts[ALIVE])
            count, g_base = subgradient(data, t, n), q.base_rate * base_of(data, t, n)
            count_update(tally, squared_radius(t, count, g_base, q.loss))
            multiply(state, t, count, rate, g_base, q)
            d = normaliser(state, q)
        outlive(state, d)


@kernel
def replay_winnow(
    data: ListArrays, log: Updates, state: WinnowState, t: Scratch, room: VoteRoom, scale: np.ndarray, q: WinnowSettings
) -> None:
    """Repeat the updates θ ← θ − rate·g of ``log``; ``scale`` (float64 [M + 1]) becomes the d of every predictor."""
    scale[0] = normaliser(state, q)
    for k in range(log.lists.shape[0]):
        n = load(log, k, t)
        count = subgradient(data, t, n)
        multiply(state, t, count, log.rate[k], q.base_rate * base_of(data, t, n), q)
        scale[k + 1] = normaliser(state, q)
        emit(room, k, t, count, state.w, 1.0, q.base + q.base_rate * scale[k + 1] * state.base[WEIGHT])


class Multiplicative(Learner):
    """A learner with a WinnowState whose updates are θ ← θ − rate·g; ``total`` is W, None for 2·D·μ (‖μ‖₁)."""

    normalised: ClassVar[bool] = False

    eta: float
    mu: float
    base: float
    base_rate: float

    def __post_init__(self) -> None:
        for name in ("eta", "mu"):
            require(name, getattr(self, name), low=0.0, strict=True)
        require_common(self)
        if not LEAST_MU <= self.mu <= LARGEST_MU:
            raise RecipeError(f"found {self.mu!r}; expected a number from {LEAST_MU:g} to {LARGEST_MU:g}", key="mu")
        total = getattr(self, "total", None)
        if total is not None:
            require("total", total, low=0.0, strict=True)

    def settings(self, columns: int, any_ties: bool = False) -> WinnowSettings:
        """The parameters for kernels, for D = ``columns``."""
        total = getattr(self, "total", None)
        return WinnowSettings(
            loss=self.loss_id,
            eta=float(self.eta),
            mu=float(self.mu),
            total=float(self._mass(columns) if total is None else total) if self.normalised else 0.0,
            base=float(self.base),
            base_rate=float(self.base_rate),
            always=getattr(self, "update", "mistakes") == "always",
            any_ties=any_ties,
        )

    def init(self, columns: int, candidates: int = 0) -> WinnowState:  # noqa: ARG002
        """See ``Learner.init``."""
        theta, w, u = np.zeros((3, columns))
        mass = self._mass(columns)
        norm = np.array([mass, 0.0, mass, 0.0])
        return WinnowState(theta, w, u, np.zeros(3, np.int64), np.zeros(3), norm, np.zeros(0))

    def alive(self, state: WinnowState) -> int:
        """See ``Learner.alive``."""
        return int(state.counts[ALIVE])

    def nonzero_weights(self, state: WinnowState) -> int:
        """See ``Learner.nonzero_weights``."""
        return int(np.count_nonzero(state.w))

    def last(self, state: WinnowState) -> Weights:
        """See ``Learner.last``."""
        d = normaliser(state, self.settings(state.w.size))
        return Weights(d * state.w, float(self.base + self.base_rate * d * state.base[WEIGHT]))

    def average(self, state: WinnowState) -> Weights:
        """See ``Learner.average``."""
        seen, total = max(1, int(state.counts[NOW])), state.norm[P]
        beta = (total * state.base[WEIGHT] - state.base[SUM]) / seen
        return Weights((total * state.w - state.u) / seen, float(self.base + self.base_rate * beta))

    def votes(self, log: UpdateLog, corpus: Corpus) -> Votes:
        """See ``Learner.votes``: weights that are not normalised, and d_k."""
        replay, q = Replay(log, corpus, self.base), self.settings(corpus.width)
        state, scale = Multiplicative.init(self, corpus.width), np.empty(replay.updates.lists.size + 1)
        replay_winnow(replay.data, replay.updates, state, replay.space, replay.room, scale, q)
        return replay.votes(scale=scale)

    def updates(self, state: WinnowState) -> int:
        """See ``Learner.updates``."""
        return int(state.counts[M])

    def _mass(self, columns: int) -> float:
        """‖μ‖₁: the sum of all positive weights at the start, those of a learned base score too."""
        return 2.0 * self.mu * (columns + (self.base_rate > 0))


@learners.add("uwin")
@dataclass(frozen=True)
class UWin(Multiplicative):
    """Balanced Winnow, unnormalised; with another loss than the perceptron's: exponentiated gradient steps.

    Parameters
    ----------
    loss: one of LOSSES.
    eta: > 0; rate of the log-weights, times the weight of the list.
    mu: 1e-100 to 1e20; the prior: both parts of every weight start with it.
    update: "mistakes" (only where the current predictor errs) or "always" (on every loss).
    base: weight of the base score at the start, compared with steps of about 2·mu·eta; base_rate: ≥ 0, 0 keeps it
        there, ρ > 0 adds the weight of one more balanced feature, ρ·b(y).
    """

    name: ClassVar[str] = "uwin"

    loss: str = "perceptron"
    eta: float = 0.01
    mu: float = 0.01
    update: Literal["always", "mistakes"] = "mistakes"
    base: float = 1.0
    base_rate: float = 0.0

    def walk(
        self,
        data: ListArrays,
        part: np.ndarray,
        state: WinnowState,
        lazy: None,  # noqa: ARG002
        space: Scratch,
        room: LogRoom,
        tally: np.ndarray,
        any_ties: bool,
    ) -> None:
        """See ``Learner.walk``."""
        winnow_epoch(data, part, state, space, room, tally, self.settings(state.w.size, any_ties))


@learners.add("nwin")
@dataclass(frozen=True)
class NWin(UWin):
    """Balanced Winnow whose positive weights, all 2D of them, keep the sum W.

    Parameters
    ----------
    total: W > 0; None for what they sum up to at the start, 2·mu for every column.
    loss, eta, mu, update, base, base_rate: see UWin.
    """

    name: ClassVar[str] = "nwin"
    normalised: ClassVar[bool] = True

    total: float | None = None
