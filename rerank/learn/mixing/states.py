"""The formulas by which the states of every family of learners are combined (see ``combining``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rerank.learn.mixing.combining import FAMILIES, Family, TrainedApart
from rerank.learn.rules.adaptive import (
    BASE_NORM,
    CELL_DUAL,
    CELL_NORM,
    CELL_SCALE,
    CELL_STEP,
    AdaptiveRDA,
    AdaptiveState,
)
from rerank.learn.rules.adaptive import LARGEST as LARGEST_STEP
from rerank.learn.rules.additive import ALIVE, NOW, SUM, WEIGHT, Additive, AdditiveState
from rerank.learn.rules.ftrl import FTRL, LARGEST, ROOT, SCALE, FTRLState, Q, Z
from rerank.learn.rules.gaussian import LARGEST as LARGEST_VARIANCE
from rerank.learn.rules.gaussian import MEAN, SMALLEST, VARIANCE, Gaussian, GaussianState
from rerank.learn.rules.gaussian_full import FullState
from rerank.learn.rules.large_margin import LargeMarginWinnow, LMPerceptron
from rerank.learn.rules.rda import RDA, RDAState
from rerank.learn.rules.sop import SQUARES, TOTAL, SecondOrderPerceptron, SOPState
from rerank.learn.rules.sop import WEIGHT as SOP_WEIGHT
from rerank.learn.rules.truncated import TruncatedState, Truncating
from rerank.learn.rules.units import pace
from rerank.learn.rules.winnow import SUM as WINNOW_SUM
from rerank.learn.rules.winnow import THETA, Multiplicative, P, WinnowState
from rerank.learn.rules.winnow import WEIGHT as WINNOW_WEIGHT


def counted(apart: TrainedApart) -> np.ndarray:
    """All counts added up; the new predictor has survived no list yet."""
    counts = np.asarray(apart.summed(lambda end: end.counts))
    counts[ALIVE] = 0
    return counts


def summed_predictors(apart: TrainedApart, last: Any) -> np.ndarray:
    """Σ c_k w_k over the predictors of all sections, for states that keep u = Σ NOW·Δ; ``last`` reads their weights."""
    return np.asarray(apart.summed(lambda end: end.counts[NOW] * last(end) - end.u))


def additive(learner: Additive, apart: TrainedApart, rule: str) -> AdditiveState:  # noqa: ARG001
    """w = Σ share·w_s."""
    w, counts = apart.mean(lambda end: end.w), counted(apart)
    weight = apart.mean(lambda end: end.base[WEIGHT])
    base = np.array([weight, 0.0])
    base[SUM] = counts[NOW] * weight - apart.summed(lambda end: end.counts[NOW] * end.base[WEIGHT] - end.base[SUM])
    light = apart.start.u.size == 0
    u = np.zeros(0) if light else counts[NOW] * w - summed_predictors(apart, lambda end: end.w)
    return AdditiveState(w, u, counts, base)


def rda(learner: RDA, apart: TrainedApart, rule: str) -> RDAState:  # noqa: ARG001
    """s = Σ s_s, k = Σ k_s: the state of one learner that has seen all these subgradients."""
    counts = _with_free(counted(apart), apart)
    s, total = apart.summed(lambda end: end.s), apart.summed(lambda end: end.total)
    return RDAState(s, total, counts, apart.summed(lambda end: end.base))


def adaptive(learner: AdaptiveRDA, apart: TrainedApart, rule: str) -> AdaptiveState:  # noqa: ARG001
    """s = Σ s_s, Σg² = Σ Σg²_s, t, N and k: as for RDA, in the largest unit that a section has seen."""
    unit = _largest(apart, lambda end: end.cells[:, CELL_SCALE])
    cells = np.zeros_like(apart.ends[0].cells)

    def in_units(end: AdaptiveState, cell: int) -> np.ndarray:
        return np.asarray(end.cells[:, cell] * _ratio(end.cells[:, CELL_SCALE], unit))

    cells[:, CELL_SCALE] = unit
    cells[:, CELL_DUAL] = apart.summed(lambda end: in_units(end, CELL_DUAL))
    cells[:, CELL_NORM] = _root(apart.summed(lambda end: in_units(end, CELL_NORM) ** 2))
    spread = (learner.delta + cells[:, CELL_NORM]) * (unit if learner.normalized else 1.0)
    with np.errstate(divide="ignore"):
        step = np.minimum(learner.eta / spread, LARGEST_STEP)
    cells[:, CELL_STEP] = np.where(cells[:, CELL_NORM] > 0, step, 0.0)
    base = np.array(apart.summed(lambda end: end.base))
    base[BASE_NORM] = _root(apart.summed(lambda end: end.base[BASE_NORM] ** 2))
    total, counts = apart.summed(lambda end: end.total), _with_free(counted(apart), apart)
    return AdaptiveState(cells, total, apart.summed(lambda end: end.norm), counts, base)


def ftrl(learner: FTRL, apart: TrainedApart, rule: str) -> FTRLState:
    """Precision: w = (Σ q_s)⁻¹ Σ q_s·w_s, q_s being a column's inverse step size; else means of w. n, t and N add up.

    z is what makes w the leader at the step sizes of all these subgradients together.
    """
    unit = _largest(apart, lambda end: end.cells[:, SCALE])

    def in_units(end: FTRLState, cell: int) -> np.ndarray:
        return np.asarray(end.cells[:, cell] * _ratio(end.cells[:, SCALE], unit))

    def weights(end: FTRLState) -> np.ndarray:
        return np.append(end.w, end.base[WEIGHT])

    if rule == "precision":
        sure = sum(in_units(end, Q) for end in apart.ends)
        weighted = sum(in_units(end, Q) * weights(end) for end in apart.ends)
        w = np.divide(weighted, sure, out=np.zeros_like(unit), where=sure > 0)
    else:
        w = apart.mean(weights)
    cells, norm = np.zeros_like(apart.ends[0].cells), apart.summed(lambda end: end.norm)
    cells[:, SCALE] = unit
    cells[:, ROOT] = root = _root(apart.summed(lambda end: in_units(end, ROOT) ** 2))
    alpha = np.full(unit.size, learner.alpha * (pace(norm) if learner.normalized else 1.0))
    bound = np.arange(unit.size) >= apart.free
    alpha[-1], bound[-1] = learner.alpha, False  # the base score's coordinate
    cells[:, Q] = np.where(root > 0, np.minimum((learner.beta + root) / alpha, LARGEST), 0.0)
    l1, l2 = np.where(bound, learner.l1, 0.0), np.where(bound, learner.l2, 0.0)
    own = w * np.where(unit > 0, unit, 1.0)
    idle = np.clip(apart.mean(lambda end: in_units(end, Z)), -l1, l1)
    cells[:, Z] = np.where(own == 0, idle, -(own * (cells[:, Q] + l2) + np.sign(own) * l1))
    counts = counted(apart)
    light = apart.start.u.size == 0
    u = np.zeros(0) if light else counts[NOW] * w[:-1] - summed_predictors(apart, lambda end: end.w)
    survived = apart.summed(lambda end: end.counts[NOW] * end.base[WEIGHT] - end.base[SUM])
    return FTRLState(w[:-1], u, cells, norm, counts, np.array([w[-1], counts[NOW] * w[-1] - survived]))


def truncating(learner: Truncating, apart: TrainedApart, rule: str) -> TruncatedState:  # noqa: ARG001
    """w = Σ share·w_s; the thresholds start again from 0, so that a_j = w_j."""
    w, counts = apart.mean(lambda end: learner.last(end).w), _with_free(counted(apart), apart)
    theta = learner.reach()[0]
    exempt = np.zeros(0, np.bool_) if theta is None else np.abs(w) > theta
    base = np.array([apart.mean(lambda end: end.base[WEIGHT]), apart.summed(lambda end: end.base[SUM])])
    return TruncatedState(w, exempt, apart.summed(lambda end: end.total), np.zeros(1), counts, base)


def multiplicative(learner: Multiplicative, apart: TrainedApart, rule: str) -> WinnowState:  # noqa: ARG001
    """θ = Σ share·θ_s: the weighted geometric mean of the positive weights."""
    theta, weight = apart.mean(lambda end: end.theta), apart.mean(lambda end: end.base[THETA])
    w, counts = 2.0 * learner.mu * np.sinh(theta), counted(apart)
    mass = 2.0 * learner.mu * (np.cosh(theta).sum() + (np.cosh(weight) if learner.base_rate > 0 else 0.0))
    total = apart.summed(lambda end: end.norm[P] * end.w - end.u)
    survived = apart.summed(lambda end: end.norm[P] * end.base[WINNOW_WEIGHT] - end.base[WINNOW_SUM])
    base = np.array([weight, 2.0 * learner.mu * np.sinh(weight), -survived])
    return WinnowState(theta, w, -total, counts, base, np.array([mass, 0.0, mass, 0.0]), np.zeros(0))


def gaussian(learner: Gaussian, apart: TrainedApart, rule: str) -> Any:  # noqa: ARG001
    """KL: μ = (Σ Σ_s⁻¹)⁻¹ Σ Σ_s⁻¹μ_s, Σ⁻¹ = Σ Σ_s⁻¹, with what all of them knew at the start counted once.

    In the first round nothing was known, and Σ⁻¹ is that of Crammer et al. 2012. Else means of μ and Σ.
    """
    if isinstance(apart.start, FullState):
        return _gaussian_full(apart, rule)
    unit = _largest(apart, lambda end: end.scale)

    def variances(state: GaussianState) -> np.ndarray:
        """Σ_jj in the common unit; see ``variance_of`` of ``gaussian``."""
        variance = state.g[:, VARIANCE]
        if unit.size == 0:
            return np.asarray(variance)
        with np.errstate(divide="ignore"):
            unseen = np.where(unit > 0, 1.0 / unit / unit, variance)
        return np.minimum(
            np.where(state.scale > 0, variance * _ratio(state.scale, unit) ** 2, unseen), LARGEST_VARIANCE
        )

    if rule == "kl":
        known = 1.0 / variances(apart.start)
        precision, weighted = np.zeros_like(known), np.zeros_like(known)
        for end in apart.ends:
            own = 1.0 / variances(end)
            precision += own
            weighted += own * end.g[:, MEAN]
        mu = weighted / precision
        if not apart.fresh:
            precision = np.maximum(precision - (len(apart.ends) - 1) * known, known)
        variance = np.clip(1.0 / precision, SMALLEST, LARGEST_VARIANCE)
    else:
        mu, variance = apart.mean(lambda end: end.g[:, MEAN]), apart.mean(variances)
    u, counts = _history(apart, mu, lambda end: end.g[:, MEAN])
    return GaussianState(np.stack([mu, variance], axis=1), u, unit, counts)


def _gaussian_full(apart: TrainedApart, rule: str) -> FullState:
    """``gaussian`` for full matrices."""
    if rule == "kl":
        known = np.linalg.inv(apart.start.sigma)
        precision, weighted = np.zeros_like(known), np.zeros(len(known))
        for end in apart.ends:
            own = np.linalg.inv(end.sigma)
            precision += own
            weighted += own @ end.mu
        mu = np.linalg.solve(precision, weighted)
        if not apart.fresh:
            precision -= (len(apart.ends) - 1) * known
        sigma = np.linalg.inv(precision)
    else:
        mu, sigma = apart.mean(lambda end: end.mu), apart.mean(lambda end: end.sigma)
    u, counts = _history(apart, mu, lambda end: end.mu)
    return FullState(mu, u, (sigma + sigma.T) / 2.0, counts)


def second_order(learner: SecondOrderPerceptron, apart: TrainedApart, rule: str) -> Any:  # noqa: ARG001
    """v = Σ v_s and A = Σ A_s: the state of one learner that has seen all these differences."""
    if isinstance(apart.start, FullState):
        precision = apart.summed(lambda end: np.linalg.inv(end.sigma))
        v = apart.summed(lambda end: np.linalg.solve(end.sigma, end.mu))
        mu, sigma = np.linalg.solve(precision, v), np.linalg.inv(precision)
        u, counts = _history(apart, mu, lambda end: end.mu)
        return FullState(mu, u, (sigma + sigma.T) / 2.0, counts)
    g = np.array(apart.summed(lambda end: end.g))
    g[:, SOP_WEIGHT] = g[:, TOTAL] / (learner.a + g[:, SQUARES])
    u, counts = _history(apart, g[:, SOP_WEIGHT], lambda end: end.g[:, SOP_WEIGHT])
    return SOPState(g, u, counts)


def _history(apart: TrainedApart, mu: np.ndarray, last: Any) -> tuple[np.ndarray, np.ndarray]:
    """u = Σ NOW·Δ of the combined state, and its counts."""
    counts = counted(apart)
    if apart.start.u.size == 0:
        return np.zeros(0), counts
    return counts[NOW] * mu - summed_predictors(apart, last), counts


def _with_free(counts: np.ndarray, apart: TrainedApart) -> np.ndarray:
    """``counts`` of learners with lazy sums; the number of free columns is not added up."""
    counts[4] = max(int(end.counts[4]) for end in apart.ends)
    return counts


def _largest(apart: TrainedApart, of: Any) -> np.ndarray:
    """The element-wise maximum over the ends."""
    found = np.array(of(apart.ends[0]))
    for end in apart.ends[1:]:
        np.maximum(found, of(end), out=found)
    return found


def _ratio(own: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """own/unit; 1 where there is no unit."""
    return np.asarray(np.divide(own, unit, out=np.ones_like(unit), where=unit > 0))


def _root(squares: Any) -> Any:
    """√ of sums that rounding may have made negative."""
    return np.sqrt(np.maximum(squares, 0.0))


FAMILIES.update(
    {
        Additive: Family(("updates", "mean"), additive, (AdditiveState,)),
        # Thresholds start again for all columns.
        Truncating: Family(("updates", "mean"), truncating, (TruncatedState,), local=False),
        # Sums run over all columns.
        Multiplicative: Family(("updates", "mean"), multiplicative, (WinnowState,), keeps=False, local=False),
        Gaussian: Family(("kl", "mean", "updates"), gaussian, (GaussianState, FullState)),
        RDA: Family(("sum",), rda, (RDAState,)),
        AdaptiveRDA: Family(("sum",), adaptive, (AdaptiveState,)),
        FTRL: Family(("precision", "updates", "mean"), ftrl, (FTRLState,)),
        SecondOrderPerceptron: Family(("sum",), second_order, (SOPState, FullState)),
        # Dual variables of candidates belong to the lists of a section.
        LMPerceptron: None,
        LargeMarginWinnow: None,
    }
)
