"""Learners with a dual variable for every pair of a right and a wrong candidate (Zhang, section 2; Vapnik 1998, 12).

For every list the oracle y* is to be ahead of its rival y' by a margin of 1, or to pay C times what is missing. The
dual variable α of the pair goes up where m < 1 and down where m > 1, within [0, C·weight], and the weights follow by
Δα·z. In longer lists than of two, each variable belongs to a candidate, and moves on the visits on which that candidate
is the rival, whichever oracle it is compared with.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rerank.base.ranges import Positive
from rerank.kernels.compile import by_type, kernel
from rerank.learn.epoch import LogBuffers, record
from rerank.learn.learner import Learner
from rerank.learn.losses import judge
from rerank.learn.predictor import beta, close, look_up, score, subtract, survive
from rerank.learn.rules.winnow import Multiplicative, mass_of, multiply
from rerank.learn.workspace import ListArrays, Scratch, learn, look_ahead, squared_norm, sum_subgradient

NO_LIMIT = 1e150  # of a dual variable
ROUNDING = 1e-12  # margins so near to 1 are 1
ORACLES = ("oracle",)  # were y* another one on every visit, α·z were no term of a dual


@by_type
def dual_step(state: Any, scratch: Scratch, count: int, missing: float, size: float, params: Any) -> float:
    """The step of a dual variable where ``missing`` = 1 − m and ``size`` = ‖z‖²; −z is in ``scratch``."""
    return 0.0


@kernel
def dual_epoch(
    data: ListArrays, order: np.ndarray, state: Any, sums: Any, scratch: Scratch, log: LogBuffers,
    tally: Any, params: Any,
) -> None:  # fmt: skip
    """Pass over ``order``: one step α ← clip(α + dual_step(1 − m)) on every list."""
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        look_up(data, order, at, state, sums, False)
        i = order[at]
        first, who = data.lists[i], scratch.who
        score(data, i, state, sums, beta(state, params.base, params.base_rate), scratch.scores)
        who[1] = -1
        judge(data, i, scratch, True, params.any_ties, tally, params.loss)
        missing = 0.0
        if who[1] >= 0:
            missing = 1.0 - (scratch.scores[who[0] - first] - scratch.scores[who[1] - first])
        limit, y = min(min(params.C, NO_LIMIT) * data.weight[i], NO_LIMIT), who[1]
        if abs(missing) > ROUNDING and (state.alpha[y] < limit if missing > 0.0 else state.alpha[y] > 0.0):
            count = sum_subgradient(data, scratch, 2, state.a.shape[0] - 1, params.loss, params)
            size, old = squared_norm(scratch, count), state.alpha[y]
            step = dual_step(state, scratch, count, missing, size, params)
            state.alpha[y] = min(max(old + step, 0.0), limit)
            change = state.alpha[y] - old
            if change != 0.0:
                record(log, i, who, scratch.a, 2, change, state.counts.alive)
                tally.updates += 1
                learn(state, scratch, count, 2, change, params)
                close(state)
        survive(state)


@dataclass(frozen=True, kw_only=True)
class LMPerceptron(Learner):
    """The large-margin perceptron: an SVM without a free bias, by exact steps on one dual variable after another.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(LMPerceptron(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.6, 'short': 0.8}

    Reference: Zhang, section 2.1; Vapnik 1998, chapter 12. Memory: 16 bytes a column, 8 without the average; 8 a
    candidate.

    Parameters
    ----------
    C: > 0; limit on a dual variable, times the weight of its list; None for none, where all margins can be 1.
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "lm-perc"
    passes: ClassVar[Any] = dual_epoch
    dual: ClassVar[bool] = True
    judge: ClassVar[str] = "hinge"
    sources: ClassVar[tuple[str, ...]] = ORACLES

    C: Positive | None = 1.0

    @staticmethod
    def dual_step(state: Any, scratch: Scratch, count: int, missing: float, size: float, params: Any) -> float:
        """α ← clip(α + (1 − m)/‖z‖²) (Zhang, section 2.1); no step where z = 0."""
        return missing / size if size > 0.0 else 0.0

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, change: float, params: Any) -> None:
        """w ← w + Δα·z: on lists of two, an ascent on the dual Σ α − ‖w‖²/2."""
        subtract(state, scratch, count, change)


@dataclass(frozen=True, kw_only=True)
class LMUWin(Multiplicative):
    """Regularised Winnow, unnormalised.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(LMUWin(mu=1, eta=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': -0.0401, 'short': 0.4848}

    Reference: Zhang, section 2.2. Memory: 24 bytes a column, 16 without the average; 8 a candidate.

    Parameters
    ----------
    eta: > 0; rate of the dual variables. None: Newton's step for each, by which no weight changes by more than a factor
        of e.
    mu: 1e-100 to 1e20; both parts of every weight start with it.
    C: > 0; limit on a dual variable, times the weight of its list; None for none, where all margins can be 1.
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 adds the weight of one more
        feature, ρ·b(y).
    """

    name: ClassVar[str] = "lm-uwin"
    passes: ClassVar[Any] = dual_epoch
    dual: ClassVar[bool] = True
    judge: ClassVar[str] = "hinge"
    sources: ClassVar[tuple[str, ...]] = ORACLES

    eta: Positive | None = 0.01
    C: Positive | None = 1.0

    @staticmethod
    def dual_step(state: Any, scratch: Scratch, count: int, missing: float, size: float, params: Any) -> float:
        """α ← clip(α + η·(1 − m)), where η may be 1/D'' (Zhang, section 2.2)."""
        if params.eta < np.inf:
            return float(params.eta * missing)
        curvature, largest = curvature_of(state, scratch, count, params)
        step = missing / curvature if curvature > 0.0 else 0.0
        return float(min(max(step, -1.0 / largest), 1.0 / largest)) if largest > 0.0 else 0.0

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, change: float, params: Any) -> None:
        """θ ← θ + Δα·z: both parts of w_j are multiplied by e^{±Δα·z_j}. On lists of two, this ascends the dual
        Σ α − Σ_j μ·(e^{θ_j} + e^{−θ_j}) or, normalised, Σ α − W·ln Σ_j μ·(e^{θ_j} + e^{−θ_j})."""
        multiply(state, scratch, count, change, params)


@dataclass(frozen=True, kw_only=True)
class LMNWin(LMUWin):
    """Regularised Winnow whose 2D positive weights keep the sum W.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(LMNWin(mu=1, eta=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': -0.0394, 'short': 0.4776}

    Reference: Zhang, section 2.2. Memory: 24 bytes a column, 16 without the average.

    Parameters
    ----------
    total: W > 0, the sum of positive weights; None for that at the start. No margin can exceed W·max|z_j|: it has to
        allow for margins of 1.
    eta, mu, C, base, base_rate: see LMUWin.
    """

    name: ClassVar[str] = "lm-nwin"
    normalised: ClassVar[bool] = True

    total: Positive | None = None


@by_type
def curvature_of(state: Any, scratch: Scratch, count: int, params: Any) -> tuple[float, float]:
    """−D'' of the dual along one variable, Σ (w⁺ + w⁻)·z_j² and, normalised, that less (w·z)²/W; and
    max|z_j|."""
    curvature = m = largest = 0.0
    d, W = state.now.d, state.now.total
    for r in range(count):
        j, z = scratch.column[r], scratch.value[r]
        a = state.a[j]
        curvature += d * mass_of(a, params.mu) * (z * z)
        m += d * a * z
        largest = max(largest, abs(z))
    return (curvature - m * m / W if W > 0.0 else curvature), largest
