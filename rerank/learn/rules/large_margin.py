"""Regularised Winnow and its additive kin: dual ascent, a variable per pair (Zhang, section 2; Vapnik 1998, chapter
12).

For every list the oracle y* is to be ahead of its rival y' by a margin of 1, or to pay C times what is missing. With
z = φ(y*) − φ(y') and m = score(y*) − score(y'), both at the time of the visit, the dual variable α of the pair goes up
where m < 1 and down where m > 1, within [0, C·weight]:

    lm-uwin, lm-nwin:  α ← clip(α + η·(1 − m)),        θ ← θ + Δα·z   (see ``winnow`` for the weights)
    lm-perc:           α ← clip(α + (1 − m)/‖z‖²),     w ← w + Δα·z

so θ (or w) is Σ α·z. On lists of two, these are ascents on the duals that Zhang gives:

    lm-uwin:  Σ α − Σ_j μ·(e^{θ_j} + e^{−θ_j}),   lm-nwin:  Σ α − W·ln Σ_j μ·(e^{θ_j} + e^{−θ_j}),
    lm-perc:  Σ α − ‖w‖²/2.

In longer lists, each dual variable belongs to a candidate, and moves on the visits on which that candidate is the
rival. Even if any of several oracles may play y*, it belongs to the rival, whichever oracle that was compared with.
Pair sources whose y* changes from visit to visit are refused: α·z would not be a term of a dual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.learn.base import State, learners, require, require_common
from rerank.learn.judge import base_of, judge, look_ahead, score_list, squared_norm, subgradient
from rerank.learn.log import LogRoom, record
from rerank.learn.losses import HINGE
from rerank.learn.rules.additive import ALIVE, WEIGHT, Additive, AdditiveState, add, count_update, survive
from rerank.learn.rules.winnow import WEIGHT as BASE_WEIGHT
from rerank.learn.rules.winnow import (
    Multiplicative,
    WinnowSettings,
    WinnowState,
    multiply,
    normaliser,
    outlive,
    score_scaled,
)
from rerank.learn.workspace import ListArrays, Scratch

NO_LIMIT = 1e150  # of a dual variable
ROUNDING = 1e-12  # margins so near to 1 are 1


class LMPercState(NamedTuple):
    """What training changes; D columns, N candidates. The first four are those of AdditiveState."""

    w: np.ndarray
    u: np.ndarray
    counts: np.ndarray
    base: np.ndarray
    alpha: np.ndarray  # float64 [N]: dual variables


class LMPercSettings(NamedTuple):
    """The parameters for kernels."""

    C: float
    base: float
    base_rate: float
    any_ties: bool


@kernel
def shortfall(data: ListArrays, i: int, t: Scratch, any_ties: bool, tally: np.ndarray) -> float:
    """1 − m of list i; 0 without a rival, or where only rounding differs. Counts the list, its mistake and its hinge
    loss.

    y* and y' are left in ``t.who``, the coefficients of −z in ``t.a``.
    """
    t.who[1] = -1
    judge(data, i, t, HINGE, True, any_ties, tally)
    if t.who[1] < 0:
        return 0.0
    missing = 1.0 - (t.scores[t.who[0] - data.lists[i]] - t.scores[t.who[1] - data.lists[i]])
    return missing if abs(missing) > ROUNDING else 0.0


@kernel
def ascend(alpha: np.ndarray, y: int, step: float, limit: float) -> float:
    """α_y ← α_y + step within [0, limit]; returns the change."""
    old = alpha[y]
    alpha[y] = min(max(old + step, 0.0), min(limit, NO_LIMIT))
    return float(alpha[y] - old)


@kernel
def lm_winnow_epoch(
    data: ListArrays,
    order: np.ndarray,
    state: WinnowState,
    t: Scratch,
    log: LogRoom,
    tally: np.ndarray,
    q: WinnowSettings,
    C: float,
) -> None:
    """Pass over ``order``: α ← clip(α + η(1 − m)), θ ← θ + Δα·z (Zhang, section 2.2)."""
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        i = order[at]
        d = normaliser(state, q)
        score_scaled(data, i, state.w, d, q.base + q.base_rate * d * state.base[BASE_WEIGHT], t.scores)
        missing = shortfall(data, i, t, q.any_ties, tally)
        if missing != 0.0:
            change = ascend(state.alpha, t.who[1], q.eta * missing, C * data.weight[i])
            if change != 0.0:
                record(log, i, t.who, t.a, 2, change, state.counts[ALIVE])
                count, g_base = subgradient(data, t, 2), q.base_rate * base_of(data, t, 2)
                count_update(tally, squared_norm(t, count) + g_base * g_base)
                multiply(state, t, count, change, g_base, q)
                d = normaliser(state, q)
        outlive(state, d)


@kernel
def lm_perceptron_epoch(
    data: ListArrays,
    order: np.ndarray,
    state: AdditiveState,
    alpha: np.ndarray,
    t: Scratch,
    log: LogRoom,
    tally: np.ndarray,
    q: LMPercSettings,
) -> None:
    """Pass over ``order``: α ← clip(α + (1 − m)/‖z‖²), w ← w + Δα·z (Zhang, section 2.1; no step where z = 0)."""
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        i = order[at]
        score_list(data, i, state.w, q.base + q.base_rate * state.base[WEIGHT], t.scores)
        missing = shortfall(data, i, t, q.any_ties, tally)
        if missing != 0.0:
            count, g_base = subgradient(data, t, 2), q.base_rate * base_of(data, t, 2)
            size = squared_norm(t, count) + g_base * g_base
            change = ascend(alpha, t.who[1], missing / size, q.C * data.weight[i]) if size > 0.0 else 0.0
            if change != 0.0:
                record(log, i, t.who, t.a, 2, change, state.counts[ALIVE])
                count_update(tally, size)
                add(state, t, count, change, g_base)
        survive(state.counts)


def limit_of(C: float | None) -> float:
    """The limit of a dual variable for kernels."""
    return NO_LIMIT if C is None else float(C)


def check_duals(corpus: Corpus, alpha: np.ndarray) -> None:
    """Refuse a state that was made for another corpus, before a kernel writes beyond its end.

    Raises
    ------
    ValueError: says what to call.
    """
    if alpha.size != corpus.candidate_count:
        raise ValueError(
            f"the state has {alpha.size} dual variables for {corpus.candidate_count} candidates; "
            "call init(columns, candidates), or adopt(state, candidates) to go on with another corpus"
        )


class LargeMarginWinnow(Multiplicative):
    """What lm-uwin and lm-nwin share: a dual variable per candidate."""

    sources: ClassVar[tuple[str, ...]] = ("oracle",)

    C: float | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.C is not None:
            require("C", self.C, low=0.0, strict=True)

    def init(self, columns: int, candidates: int = 0) -> WinnowState:
        """See ``Learner.init``."""
        return super().init(columns)._replace(alpha=np.zeros(candidates))

    def adopt(self, state: WinnowState, candidates: int) -> WinnowState:
        """See ``Learner.adopt``: the weights stay, the dual variables of other candidates are 0."""
        return state._replace(alpha=np.zeros(candidates))

    def share(self, state: WinnowState, first: int, last: int) -> WinnowState:
        """See ``Learner.share``: the dual variables are those of the candidates."""
        return state._replace(alpha=state.alpha[first:last])

    def begin(self, corpus: Corpus, order: np.ndarray, state: WinnowState) -> None:  # noqa: ARG002
        """See ``Learner.begin``."""
        check_duals(corpus, state.alpha)

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
        q = self.settings(state.w.size, any_ties)
        lm_winnow_epoch(data, part, state, space, room, tally, q, limit_of(self.C))


@learners.add("lm-uwin")
@dataclass(frozen=True)
class LMUWin(LargeMarginWinnow):
    """Regularised Winnow, unnormalised.

    Parameters
    ----------
    eta: > 0; rate of the dual variables.
    mu: 1e-100 to 1e20; the prior: both parts of every weight start with it.
    C: > 0; limit on a dual variable, times the weight of its list; None for none, where all margins can be 1.
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 adds the weight of one more
        balanced feature, ρ·b(y).
    """

    name: ClassVar[str] = "lm-uwin"

    eta: float = 0.01
    mu: float = 0.01
    C: float | None = 1.0
    base: float = 1.0
    base_rate: float = 0.0


@learners.add("lm-nwin")
@dataclass(frozen=True)
class LMNWin(LMUWin):
    """Regularised Winnow whose positive weights, all 2D of them, keep the sum W.

    Parameters
    ----------
    total: W > 0; None for what they sum up to at the start, 2·mu for every column. No margin can exceed W·max|z_j|: it
        has to allow for margins of 1.
    eta, mu, C, base, base_rate: see LMUWin.
    """

    name: ClassVar[str] = "lm-nwin"
    normalised: ClassVar[bool] = True

    total: float | None = None


@learners.add("lm-perc")
@dataclass(frozen=True)
class LMPerceptron(Additive):
    """The large-margin perceptron: an SVM without a free bias, by exact steps on one dual variable after another.

    Parameters
    ----------
    C: > 0; limit on a dual variable, times the weight of its list; None for none, where all margins can be 1.
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 learns it as the weight of a
        feature ρ·b(y).
    """

    name: ClassVar[str] = "lm-perc"
    sources: ClassVar[tuple[str, ...]] = ("oracle",)

    C: float | None = 1.0
    base: float = 1.0
    base_rate: float = 0.0

    def __post_init__(self) -> None:
        if self.C is not None:
            require("C", self.C, low=0.0, strict=True)
        require_common(self)

    def init(self, columns: int, candidates: int = 0) -> Any:
        """See ``Learner.init``; an LMPercState."""
        return LMPercState(*super().init(columns), np.zeros(candidates))

    def adopt(self, state: State, candidates: int) -> State:
        """See ``Learner.adopt``: the weights stay, the dual variables of other candidates are 0."""
        return state._replace(alpha=np.zeros(candidates))

    def share(self, state: State, first: int, last: int) -> State:
        """See ``Learner.share``: the dual variables are those of the candidates."""
        return state._replace(alpha=state.alpha[first:last])

    def begin(self, corpus: Corpus, order: np.ndarray, state: State) -> None:  # noqa: ARG002
        """See ``Learner.begin``."""
        check_duals(corpus, state.alpha)

    def walk(
        self,
        data: ListArrays,
        part: np.ndarray,
        state: State,
        lazy: None,  # noqa: ARG002
        space: Scratch,
        room: LogRoom,
        tally: np.ndarray,
        any_ties: bool,
    ) -> None:
        """See ``Learner.walk``."""
        q = LMPercSettings(limit_of(self.C), float(self.base), float(self.base_rate), any_ties)
        lm_perceptron_epoch(data, part, AdditiveState(*state[:4]), state.alpha, space, room, tally, q)
