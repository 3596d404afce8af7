"""The second-order perceptron (Cesa-Bianchi, Conconi & Gentile 2005), with a diagonal or a full matrix."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from rerank.kernels.by_type import body, by_type
from rerank.kernels.compile import kernel
from rerank.learn.apart import ByColumn, TrainedApart
from rerank.learn.base import learners
from rerank.learn.judge import squared_norm
from rerank.learn.settings import Positive
from rerank.learn.skeletons.additive import history, past_of
from rerank.learn.skeletons.gaussian import MEAN, Gaussian, beta_mean, mean_of, score_means
from rerank.learn.skeletons.gaussian_full import difference_with_base, full_state, inverse, times
from rerank.learn.steps import (
    IDLE,
    IN_VAIN,
    SEEN,
    UPDATE,
    Lesson,
    beta,
    close,
    coordinate,
    inclusive,
    learn_pair,
    rates_of,
    score,
)
from rerank.learn.workspace import ListArrays, Scratch

TOTAL, SQUARES = range(1, 3)  # indices of SOPState.g after MEAN


class SOPState(NamedTuple):
    """What training changes; D columns and the base score. ``u`` holds Σ NOW·Δw, or nothing."""

    g: ByColumn  # float64 [D + 1, 3]: w = v/(a + A), v = Σ z, A = Σ z² of every column, side by side
    u: ByColumn  # float64 [D + 1]
    counts: np.ndarray  # int64 [3]: updates; lists the current predictor survived; lists seen (Σ c_k)


@learners.add("sop")
@dataclass(frozen=True, kw_only=True)
class SecondOrderPerceptron(Gaussian):
    """The second-order perceptron: a perceptron on examples whitened by those that it erred on.

    Parameters
    ----------
    a: > 0; larger means closer to the plain perceptron.
    covariance: "diagonal" or "full".
    top: how many rivals of a list to learn from, the best-scoring first.
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "sop"
    mixes: ClassVar[tuple[str, ...]] = ("sum",)

    a: Positive = 1.0
    covariance: Literal["diagonal", "full"] = "diagonal"

    @property
    def prior(self) -> float:
        return 1.0 / self.a

    def init(self, columns: int, candidates: int = 0) -> Any:
        if self.full:
            return super().init(columns, candidates)
        return SOPState(np.zeros((columns + 1, 3)), np.zeros(columns + 1), np.zeros(3, np.int64))

    def light(self, state: Any) -> Any:
        return state._replace(u=np.zeros(0))

    def past(self, state: Any) -> np.ndarray:
        return past_of(state)

    def variances(self, state: Any) -> np.ndarray:
        return super().variances(state) if self.full else 1.0 / (self.a + state.g[:-1, SQUARES])

    def combined(self, apart: TrainedApart, rule: str) -> Any:  # noqa: ARG002
        """See ``Learner.combined``: v = Σ v_s, A = Σ A_s, as if one learner had seen all these differences."""
        if self.full:
            precision = apart.summed(lambda end: inverse(end.sigma))
            v = apart.summed(lambda end: times(inverse(end.sigma), end.mu))
            sigma = inverse(precision)
            return full_state(apart, times(sigma, v), sigma)
        g = np.array(apart.summed(lambda end: end.g))
        g[:, MEAN] = g[:, TOTAL] / (self.a + g[:, SQUARES])
        u, counts = history(apart, g[:, MEAN], lambda end: end.g[:, MEAN])
        return SOPState(g, u, counts)


@body(inclusive, SecondOrderPerceptron)
def judged_with_z(q: Any) -> bool:
    """The example is in A before it is judged."""
    return True


@body(rates_of, SecondOrderPerceptron)
def second_order(m: float, v: float, weight: float, q: Any) -> tuple[float, float, float, float]:
    """With A = aI + Σ zzᵀ and w = A⁻¹ Σ z, one more z makes w + A⁻¹z·(1 − w·z)/(1 + v) (their Fig. 1)."""
    return max(0.0, -m), weight * (1.0 - m) / (1.0 + weight * v), weight / (1.0 + weight * v), weight


@body(learn_pair, SOPState)
def learn_diagonal(
    data: ListArrays, i: int, star: int, rival: int, fixed: float, state: Any, lazy: Any, t: Scratch, q: Any
) -> Lesson:  # fmt: skip
    """On a mistake, with the current example in A, v ← v + z and A ← A + z² (Cesa-Bianchi et al. 2005, Fig. 1)."""
    count = difference_with_base(data, star, rival, q.base_rate, t, state.g.shape[0] - 1)
    m = fixed + inclusive_margin(state.g, q.a, t, count)
    if m > 0.0:
        return Lesson(m, 0.0, count, 0.0, fixed, IDLE)
    if count == 0 or not data.weight[i] > 0.0:
        return Lesson(m, -m, count, 0.0, fixed, IN_VAIN)
    add_example(state, q.a, t, count, data.weight[i])
    return Lesson(m, -m, count, squared_norm(t, count), fixed, UPDATE)


@kernel
def inclusive_margin(g: np.ndarray, a: float, t: Scratch, count: int) -> float:
    """Σ v_j z_j/(a + A_j + z_j²): the margin of z when A holds it already."""
    m = 0.0
    for r in range(count):
        j, z = t.column[r], t.value[r]
        m += g[j, TOTAL] * z / (a + g[j, SQUARES] + z * z)
    return m


@by_type
def add_example(state: Any, a: float, t: Scratch, count: int, weight: float) -> None:
    """v ← v + z, A ← A + z²."""
    now, averaged = float(state.counts[SEEN]), state.u.shape[0] > 0
    for r in range(count):
        j, z = t.column[r], t.value[r]
        before = state.g[j, MEAN]
        state.g[j, TOTAL] += weight * z
        state.g[j, SQUARES] += weight * (z * z)
        state.g[j, MEAN] = state.g[j, TOTAL] / (a + state.g[j, SQUARES])
        if averaged:
            state.u[j] += now * (state.g[j, MEAN] - before)
    close(state.counts)


# w stands where the mean of a Gaussian does.
body(score, SOPState)(score_means)
body(beta, SOPState)(beta_mean)
body(coordinate, SOPState)(mean_of)
