"""The second-order perceptron (Cesa-Bianchi, Conconi & Gentile 2005), with a diagonal or a full matrix."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from rerank.learn.base import Learner, State
from rerank.learn.hooks import IDLE, UPDATE, Lesson
from rerank.learn.predictor import assign
from rerank.learn.rules.gaussian import Gaussian
from rerank.learn.settings import Positive
from rerank.learn.workspace import Scratch


@dataclass(frozen=True, kw_only=True)
class SecondOrderPerceptron(Gaussian):
    """The second-order perceptron: a perceptron on examples whitened by those that it erred on.

    >>> from rerank.learn.learned import learned
    >>> learned(SecondOrderPerceptron(), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 0.4}

    Reference: Cesa-Bianchi, Conconi & Gentile 2005 (SIAM J. Comput. 34), Fig. 1. Memory: 32 bytes a column; 8·D²
    for a full matrix, whose updates take O(D²) time.

    Parameters
    ----------
    a: > 0; larger means closer to the plain perceptron.
    covariance: "diagonal" or "full".
    top: how many rivals of a list to learn from, the best-scoring first.
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "sop"
    cell: ClassVar[tuple[str, ...]] = ("w", "total", "squares")  # w = v/(a + A), v = Σ z, A = Σ z²
    judges_after_update: ClassVar[bool] = True  # the example is in A before it is judged

    a: Positive = 1.0
    covariance: Literal["diagonal", "full"] = "diagonal"

    @property
    def prior(self) -> float:
        return 1.0 / self.a

    def init(self, columns: int, candidates: int = 0) -> State:
        return super().init(columns, candidates) if self.full else Learner.init(self, columns)

    def variances(self, state: State) -> np.ndarray:
        return super().variances(state) if self.full else 1.0 / (self.a + self.named(state).cells["squares"][:-1])

    @staticmethod
    def rates_of(m: float, v: float, weight: float, params: Any) -> tuple[float, float, float, float]:
        """With A = aI + Σ zzᵀ and w = A⁻¹ Σ z, one more z makes w + A⁻¹z·(1 − w·z)/(1 + v) (their Fig. 1)."""
        return max(0.0, -m), weight * (1.0 - m) / (1.0 + weight * v), weight / (1.0 + weight * v), weight

    @staticmethod
    def learn_diagonal(state: Any, scratch: Scratch, count: int, fixed: float, weight: float, params: Any) -> Lesson:
        """On a mistake, with the current example in A, v ← v + z and A ← A + z² (Cesa-Bianchi et al. 2005, Fig. 1)."""
        m = 0.0  # of z where A holds it already
        for r in range(count):
            cell, z = state.cells[scratch.column[r]], scratch.value[r]
            m += cell.total * z / (params.a + cell.squares + z * z)
        m += fixed
        if m > 0.0 or count == 0 or not weight > 0.0:
            return Lesson(m, max(0.0, -m), fixed, IDLE)
        for r in range(count):
            j, z = scratch.column[r], scratch.value[r]
            cell = state.cells[j]
            cell.total += weight * z
            cell.squares += weight * (z * z)
            assign(state, j, cell.total / (params.a + cell.squares))
        return Lesson(m, -m, fixed, UPDATE)
