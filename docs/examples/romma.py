"""ROMMA, the relaxed online maximum margin algorithm (Li & Long 2002): w ← c·w + e·z."""

from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.learn.learner import Learner
from rerank.learn.predictor import subtract
from rerank.learn.workspace import squared_norm


@dataclass(frozen=True, kw_only=True)
class ROMMA(Learner):
    """No parameters but base and base_rate."""

    whole: ClassVar[tuple[str, ...]] = ("norm2",)  # ‖w‖²

    @staticmethod
    def learn(state: Any, scratch: Any, count: int, n: int, weight: float, params: Any) -> None:
        """c = (‖z‖²‖w‖² − m)/(‖z‖²‖w‖² − m²), e = ‖w‖²(1 − m)/(‖z‖²‖w‖² − m²), with z = −g and m = w·z."""
        now = state.now
        z2, w2, d, m = squared_norm(scratch, count), now.norm2, now.d, 0.0
        for r in range(count):
            m -= d * state.a[scratch.column[r]] * scratch.value[r]
        gap = z2 * w2 - m * m
        c, e = 1.0, 1.0 / z2 if z2 > 0.0 else 0.0
        if w2 > 0.0 and gap > 1e-9 * z2 * w2 and z2 * w2 > m:
            c, e = (z2 * w2 - m) / gap, w2 * (1.0 - m) / gap
        now.d = now.d_free = now.d_base = c * d
        subtract(state, scratch, count, e / (c * d))
        now.norm2 = c * c * w2 + 2.0 * c * e * m + e * e * z2
