"""Mixing of the memory of learners that were trained apart: the formulas of mixing, a family each.

Learners without one have nothing but weights, which are averaged (``shard_states.combined``).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from rerank.kernels.by_type import body
from rerank.kernels.compile import kernel
from rerank.learn.predictor import FREE_SCALE, SCALE, TAU, UPDATES, State, copy_state
from rerank.learn.rules import arda, ftrl, gaussian, rda, sop, units, winnow
from rerank.learn.rules.gaussian_full import SMALLEST
from rerank.learn.rules.truncated import Truncating
from rerank.learn.shard_states import ShardStates, combined, mean_of_weights


@body(combined, Truncating)
def means_within_a_limit(shards: ShardStates, rule: str, learner: Truncating) -> State:
    """w = Σ share·w_s; weights above the limit are exempt."""
    state, limit = mean_of_weights(shards, learner.shrinks), learner.limit()
    if limit is not None:
        state.v[:] = np.abs(state.cells) <= limit
    return state


@body(combined, rda.RDA)
def sums_of_subgradients(shards: ShardStates, rule: str, learner: rda.RDA) -> State:
    """s = Σ s_s, k = Σ k_s, as if one learner had seen all these subgradients."""
    state = learner.init(shards.columns)
    state.cells[:] = shards.summed(lambda end: end.cells)
    state = shards.completed(state, learner.shrinks)
    k = int(state.counts[UPDATES])
    rda.set_scales(state.numbers, k, float(learner.eta), float(learner.l1), float(learner.l2))
    return state


@body(combined, arda.AdaptiveRDA)
def sums_in_units(shards: ShardStates, rule: str, learner: arda.AdaptiveRDA) -> State:
    """s, Σg², t, N and k add up, as for RDA, in the largest unit that a section saw."""
    unit, in_units = largest_units(shards, lambda end: inverted(end.cells[:, arda.INVERSE]))
    state = learner.init(shards.columns)
    s = shards.summed(lambda end: in_units(end, arda.S))
    norm = root(shards.summed(lambda end: in_units(end, arda.NORM) ** 2))
    with np.errstate(divide="ignore"):
        e = learner.eta / ((learner.delta + norm) * np.where(unit > 0, unit, 1.0))
    e = np.where(norm > 0, np.minimum(e, arda.GREATEST), 0.0)
    state.cells[:] = np.stack([-s * e, s, norm, inverted(unit)], axis=1)
    state.v[:] = e[: state.v.size]
    add_sizes(state, shards)
    state = shards.completed(state, learner.shrinks)
    state.numbers[SCALE] = state.numbers[FREE_SCALE] = units.pace(state.numbers)
    state.numbers[TAU] = state.counts[UPDATES] * learner.l1
    return state


@body(combined, ftrl.FTRL)
def leaders(shards: ShardStates, rule: str, learner: ftrl.FTRL) -> State:
    """n, t and N add up, and z is what makes w the leader at the step sizes that follow.

    Precision: w = (Σ q_s)⁻¹ Σ q_s·w_s, q_s being a column's inverse step size; else means of w.
    """
    unit, in_units = largest_units(shards, lambda end: end.cells[:, ftrl.UNIT])
    state = learner.init(shards.columns)
    w = shards.mean(lambda end: end.cells[:, ftrl.W])
    if rule == "precision":
        q, weighted = pooled(shards, lambda end: in_units(end, ftrl.Q), lambda end: end.cells[:, ftrl.W])
        w = np.divide(weighted, q, out=np.zeros_like(unit), where=q > 0)
    add_sizes(state, shards)
    cells = state.cells
    cells[:, ftrl.W], cells[:, ftrl.UNIT], cells[:, ftrl.INVERSE] = w, unit, inverted(unit)
    cells[:, ftrl.ROOT] = spread = root(shards.summed(lambda end: in_units(end, ftrl.ROOT) ** 2))
    alpha = np.full(unit.size, learner.alpha * (units.pace(state.numbers) if learner.normalized else 1.0))
    bound = np.arange(unit.size) >= shards.free
    alpha[-1], bound[-1] = learner.alpha, False  # the base score's
    cells[:, ftrl.Q] = np.where(spread > 0, np.minimum((learner.beta + spread) / alpha, ftrl.GREATEST), 0.0)
    l1, l2 = np.where(bound, learner.l1, 0.0), np.where(bound, learner.l2, 0.0)
    scaled = w * np.where(unit > 0, unit, 1.0)
    idle = np.clip(shards.mean(lambda end: in_units(end, ftrl.Z)), -l1, l1)
    cells[:, ftrl.Z] = np.where(scaled == 0, idle, -(scaled * (cells[:, ftrl.Q] + l2) + np.sign(scaled) * l1))
    return shards.completed(state, learner.shrinks)


@body(combined, winnow.Multiplicative)
def means_of_log_weights(shards: ShardStates, rule: str, learner: winnow.Multiplicative) -> State:
    """θ = Σ share·θ_s, the weighted geometric mean of the positive weights."""
    state = learner.init(shards.columns)._replace(v=shards.start.v)
    state.numbers[winnow.W] = shards.start.numbers[winnow.W]
    state = learner.with_log_weights(state, shards.mean(lambda end: end.memory))
    return shards.completed(state, learner.shrinks)


@body(combined, gaussian.Gaussian)
def gaussians(shards: ShardStates, rule: str, learner: gaussian.Gaussian) -> State:
    """Means of μ and Σ, or KL (Crammer, Dredze & Pereira 2012, section 7.10):

    μ = (Σ Σ_s⁻¹)⁻¹ Σ Σ_s⁻¹μ_s, Σ⁻¹ = Σ Σ_s⁻¹, with what all of them knew at the start counted once. In the first
    round nothing was known.
    """
    state = copy_state(shards.ends[0])
    if learner.full:
        state.cells[:], state.matrix[:] = full_gaussians(shards, rule)
        return shards.completed(state, learner.shrinks)
    unit = shards.largest(lambda end: end.memory)

    def variances(end: State) -> np.ndarray:
        """Σ_jj in the common unit; see ``gaussian.variance_of``."""
        variance = end.cells[:, gaussian.VARIANCE]
        if unit.size == 0:
            return np.asarray(variance)
        with np.errstate(divide="ignore"):
            unseen = np.where(unit > 0, 1.0 / unit / unit, variance)
        rescaled = np.where(end.memory > 0, variance * ratio(end.memory, unit) ** 2, unseen)
        return np.minimum(rescaled, gaussian.GREATEST)

    if rule == "kl":
        precision, weighted = pooled(shards, lambda end: 1.0 / variances(end), lambda end: end.cells[:, gaussian.MEAN])
        mu = weighted / precision
        if not shards.fresh:
            known = 1.0 / variances(shards.start)
            precision = np.maximum(precision - (len(shards.ends) - 1) * known, known)
        variance = np.clip(1.0 / precision, SMALLEST, gaussian.GREATEST)
    else:
        mu, variance = shards.mean(lambda end: end.cells[:, gaussian.MEAN]), shards.mean(variances)
    state.cells[:, gaussian.MEAN], state.cells[:, gaussian.VARIANCE], state.memory[:] = mu, variance, unit
    return shards.completed(state, learner.shrinks)


def full_gaussians(shards: ShardStates, rule: str) -> tuple[np.ndarray, np.ndarray]:
    """μ and Σ of ``gaussians`` for full matrices."""
    if rule != "kl":
        return shards.mean(lambda end: end.cells), symmetric(shards.mean(lambda end: end.matrix))
    precision, weighted = pooled(shards, lambda end: inverse(end.matrix), lambda end: end.cells, times)
    mu = times(inverse(precision), weighted)
    if not shards.fresh:
        precision -= (len(shards.ends) - 1) * inverse(shards.start.matrix)
    return mu, symmetric(inverse(precision))


@body(combined, sop.SecondOrderPerceptron)
def sums_of_differences(shards: ShardStates, rule: str, learner: sop.SecondOrderPerceptron) -> State:
    """v = Σ v_s, A = Σ A_s, as if one learner had seen all these differences."""
    state = learner.init(shards.columns)
    if learner.full:
        sigma = inverse(shards.summed(lambda end: inverse(end.matrix)))
        v = shards.summed(lambda end: times(inverse(end.matrix), end.cells))
        state.cells[:], state.matrix[:] = times(sigma, v), symmetric(sigma)
    else:
        cells = state.cells
        cells[:, : sop.SQUARES + 1] = shards.summed(lambda end: end.cells[:, : sop.SQUARES + 1])
        cells[:, sop.W] = cells[:, sop.TOTAL] / (learner.a + cells[:, sop.SQUARES])
    return shards.completed(state, learner.shrinks)


def pooled(
    shards: ShardStates, certainty: Callable[[State], Any], mean: Callable[[State], Any], times: Any = np.multiply
) -> tuple[Any, Any]:
    """Σ P_s and Σ P_s·μ_s over the sections, P_s being the ``certainty`` of an end and μ_s its ``mean``."""
    total = weighted = 0.0
    for end in shards.ends:
        precision = certainty(end)
        total, weighted = total + precision, weighted + times(precision, mean(end))
    return total, weighted


def largest_units(
    shards: ShardStates, unit_of: Callable[[State], np.ndarray]
) -> tuple[np.ndarray, Callable[[State, int], np.ndarray]]:
    """The largest unit c_j that a section saw of every column, and what reads a number of an end's cells in them."""
    unit = shards.largest(unit_of)
    return unit, lambda end, cell: np.asarray(end.cells[:, cell] * ratio(unit_of(end), unit))


def add_sizes(state: State, shards: ShardStates) -> None:
    """t and N of all sections; see ``units``."""
    sizes = [units.TIMES, units.SQUARES]
    state.numbers[sizes] = shards.summed(lambda end: end.numbers[sizes])


def ratio(size: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """size/unit; 1 where there is no unit."""
    return np.asarray(np.divide(size, unit, out=np.ones_like(unit), where=unit > 0))


def inverted(x: np.ndarray) -> np.ndarray:
    """1/x; 0 where x is 0."""
    return np.asarray(np.divide(1.0, x, out=np.zeros_like(x), where=x > 0))


def root(squares: Any) -> Any:
    """√ of sums that rounding may have made negative."""
    return np.sqrt(np.maximum(squares, 0.0))


@kernel
def invert(a: np.ndarray) -> None:
    """A symmetric, positive definite matrix becomes its inverse, by Gauss-Jordan elimination."""
    for k in range(a.shape[0]):
        pivot = a[k, k]
        a[k, k] = 1.0
        for j in range(a.shape[1]):
            a[k, j] /= pivot
        for i in range(a.shape[0]):
            factor = a[i, k]
            if i != k and factor != 0.0:
                a[i, k] = 0.0
                for j in range(a.shape[1]):
                    a[i, j] -= factor * a[k, j]


def inverse(matrix: np.ndarray) -> np.ndarray:
    """The inverse of a symmetric, positive definite matrix; LAPACK's bits depend on the number of its threads."""
    result = np.array(matrix, np.float64)
    invert(result)
    return result


def times(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The product of a matrix and a vector, likewise in a fixed order."""
    return np.asarray((matrix * x).sum(axis=1))


def symmetric(matrix: np.ndarray) -> np.ndarray:
    """``matrix``, without what rounding has made of its symmetry."""
    return np.asarray((matrix + matrix.T) / 2.0)
