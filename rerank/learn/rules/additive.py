"""Learners that add a multiple of the subgradient: perceptron, gradient steps, passive-aggressive, truncated gradient.

The perceptron adds z = φ(y*) − φ(y') itself (Collins 2002), gradient descent −η_k·g, whatever the loss. A
passive-aggressive step is the smallest that gives a list's worst rival its margin (Crammer et al. 2006): 1, or with the
loss ``cost`` what the rival costs, tilt·(gain(y*) − gain(y')). With pairs of oracle and rival this is the max-loss
update of section 8, with those of hope and fear it is MIRA as machine translation uses it (Chiang 2012, section 3).

Truncated gradient (Langford, Li & Zhang 2009, section 3.3) moves all weights toward 0 too. With τ = G_k the sum of the
truncations up to update k, a column keeps

    a_j = w_j + sign(w_j)·G_k as it was last touched, and weighs sign(a_j)·max(|a_j| − G_k, 0) since.

A column can be exempt: it has v_j = 0, and keeps a_j = w_j until an update touches it. Free columns always are.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from rerank.base.ranges import Count, NotNegative, Positive
from rerank.learn.epoch import pair_epoch
from rerank.learn.learner import Learner, State, Update
from rerank.learn.losses import value_and_slope
from rerank.learn.predictor import shrink, slope_of, subtract
from rerank.learn.workspace import NO_UPDATE, UPDATE, PairUpdate, Scratch, margin, squared_norm

SQRT, CONSTANT = range(2)  # the indices of these choices in ``SGD.schedule``
HARD, PA_1, PA_2 = range(3)  # and in ``PassiveAggressive.variant``
MAX_TRUNCATION = 1e150  # of one update, so that their sum stays finite


@dataclass(frozen=True, kw_only=True)
class Perceptron(Learner):
    """The structured perceptron.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(Perceptron(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 2.0}

    Reference: Collins 2002 (EMNLP). Memory: 16 bytes a column, 8 without the average.

    Parameters
    ----------
    base: weight of the base score at the start, compared with updates of size 1; base_rate: see Learner.
    """

    name: ClassVar[str] = "perceptron"

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
        """On a mistake w ← w + φ(y*) − φ(ŷ), that is, w − g (Collins 2002, Fig. 2)."""
        subtract(state, scratch, count, weight)


@dataclass(frozen=True, kw_only=True)
class SGD(Learner):
    """Stochastic gradient descent.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(SGD(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.0879, 'short': 0.4243}

    Reference: Robbins & Monro 1951; Bottou 2010. Memory: 16 bytes a column, 8 without the average.

    Parameters
    ----------
    loss: the name of a loss, or its import path.
    eta: > 0; the step size.
    schedule: "sqrt" (update k is made with η/√k) or "constant".
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "sgd"

    loss: str = "hinge"
    eta: Positive = 0.3
    schedule: Literal["sqrt", "constant"] = "sqrt"
    update: Update = "always"

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
        """Update k is w ← w − η_k·g, with η_k = η/√k or η (Zhang 2004)."""
        eta = params.eta / math.sqrt(state.counts.updates + 1) if params.schedule == SQRT else params.eta
        subtract(state, scratch, count, eta * weight)


@dataclass(frozen=True, kw_only=True)
class PassiveAggressive(Learner):
    """Passive-aggressive learning.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(PassiveAggressive(variant="1", C=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 0.2}

    Reference: Crammer et al. 2006 (JMLR 7), Fig. 1. Memory: 16 bytes a column, 8 without the average.

    Parameters
    ----------
    variant: "hard" (the margin whatever it takes), "1" (steps of at most C) or "2" (steps damped by 1/2C).
    C: > 0; aggressiveness of the variants 1 and 2.
    top: how many pairs of a list to learn from, the best-scoring rivals first.
    loss: "hinge" (asks for a margin of 1) or "cost" (for tilt·(gain(y*) − gain(y')), the tilt being the pair source's).
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "pa"
    passes: ClassVar[Any] = pair_epoch

    variant: Literal["hard", "1", "2"] = "1"
    C: Positive = 1.0
    top: Count = 1
    loss: Literal["hinge", "cost"] = "hinge"

    @staticmethod
    def update_pair(
        state: Any, sums: Any, scratch: Scratch, count: int, offset: float, cost: float, weight: float, params: Any
    ) -> PairUpdate:  # fmt: skip
        """w ← w + τz, τ = loss/‖z‖², at most C (PA-I), or loss/(‖z‖² + 1/2C) (PA-II) (Crammer et al. 2006, Fig. 1)."""
        m, norm = offset + margin(state.a, scratch, count), squared_norm(scratch, count)
        loss, _ = value_and_slope(m, cost, params.loss)
        if not (loss > 0.0 and norm > 0.0):
            return PairUpdate(m, loss, 0.0, NO_UPDATE)
        tau = loss / (norm + 0.5 / params.C) if params.variant == PA_2 else loss / norm
        if params.variant == PA_1:
            tau = min(params.C, tau)
        tau *= weight
        subtract(state, scratch, count, -tau)
        return PairUpdate(m, loss, tau, UPDATE)

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, tau: float, params: Any) -> None:
        """w ← w − τg for g = −z, where a logged update is repeated."""
        subtract(state, scratch, count, tau)


@dataclass(frozen=True, kw_only=True)
class TruncatedGradient(Learner):
    """Gradient steps, and every this many updates a truncation of the weights.

    >>> from rerank.learn.train import weights_after
    >>> weights_after(TruncatedGradient(l1=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': 0.1222, 'short': 1.3435}

    Reference: Langford, Li & Zhang 2009 (JMLR 10), section 3.3; without ``theta`` and ``every`` FOBOS (Duchi & Singer
    2009). Memory: 16 bytes a column, 8 without the average, and 32 more in an epoch that keeps it.

    Parameters
    ----------
    loss: the name of a loss, or its import path.
    eta: > 0; the first step's size, η/√k the k-th's. The weight of a list scales its step.
    l1: ≥ 0; strength of the regulariser λ₁‖w‖₁, which spares the base score.
    theta: > 0; larger weights are not truncated; None for no limit.
    every: ≥ 1; updates from one truncation to the next; a truncation is as many times as large.
    update: "always" (on every loss) or "mistakes" (only where the current predictor errs).
    base, base_rate: see Learner.

    A truncation takes at most 1e150.
    """

    name: ClassVar[str] = "tg"
    shrinks: ClassVar[bool] = True

    loss: str = "hinge"
    eta: Positive = 1.0
    l1: NotNegative = 0.0
    theta: Positive | None = None
    every: Count = 1
    update: Update = "always"

    def init(self, columns: int, candidates: int = 0) -> State:
        state = super().init(columns, candidates)
        return state if self.theta is None else state._replace(v=np.ones(columns + 1))

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
        """w ← T(w − α_k·g, every·α_k·λ₁, θ) where ``every`` divides k, else w ← w − α_k·g, with α_k = η/√k.

        T leaves weights above θ. Those of the touched columns, before the truncation, decide which of them it reaches.
        """
        k, G = state.counts.updates + 1, state.now.tau
        alpha = params.eta / math.sqrt(k)
        for r in range(count):
            j = scratch.column[r]
            w = shrink(state.a[j], G * slope_of(state, j)) - alpha * weight * scratch.value[r]
            if state.v.shape[0] > 0:
                state.v[j] = 0.0 if abs(w) > params.theta else 1.0
            state.a[j] = w if w == 0.0 else w + math.copysign(G * slope_of(state, j), w)
        if k % params.every == 0:
            state.now.tau = G + min(params.every * alpha * params.l1, MAX_TRUNCATION)
