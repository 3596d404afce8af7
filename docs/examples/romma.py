"""ROMMA, the relaxed online maximum margin algorithm (Li & Long 2002): w ← c·w + e·z."""

from dataclasses import dataclass
from typing import Any

from rerank.learn.base import Learner, State
from rerank.learn.judge import squared_norm
from rerank.learn.predictor import BASE_SCALE, FREE_SCALE, REST, SCALE, fresh, subtract

NORM = REST  # ‖w‖²


@dataclass(frozen=True, kw_only=True)
class ROMMA(Learner):
    """No parameters but base and base_rate."""

    def init(self, columns: int, candidates: int = 0) -> State:
        return fresh(columns, rest=1)

    @staticmethod
    def learn(state: Any, scratch: Any, count: int, n: int, weight: float, params: Any) -> None:
        """c = (‖z‖²‖w‖² − m)/(‖z‖²‖w‖² − m²), e = ‖w‖²(1 − m)/(‖z‖²‖w‖² − m²), with z = −g and m = w·z."""
        z2, w2, d, m = squared_norm(scratch, count), state.numbers[NORM], state.numbers[SCALE], 0.0
        for r in range(count):
            m -= d * state.cells[scratch.column[r]] * scratch.value[r]
        gap = z2 * w2 - m * m
        c, e = 1.0, 1.0 / z2 if z2 > 0.0 else 0.0
        if w2 > 0.0 and gap > 1e-9 * z2 * w2 and z2 * w2 > m:
            c, e = (z2 * w2 - m) / gap, w2 * (1.0 - m) / gap
        state.numbers[SCALE] = state.numbers[FREE_SCALE] = state.numbers[BASE_SCALE] = c * d
        subtract(state, scratch, count, e / (c * d))
        state.numbers[NORM] = c * c * w2 + 2.0 * c * e * m + e * e * z2
