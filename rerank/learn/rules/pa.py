"""Passive-aggressive learning (Crammer et al. 2006): the smallest step that gives a list's worst rival its margin.

The margin asked for is 1, or with the loss ``cost`` what the rival costs: tilt·(gain(y*) − gain(y')). With pairs of
oracle and rival this is the max-loss update of section 8, with those of hope and fear it is MIRA as machine translation
uses it (Chiang 2012, section 3).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from rerank.kernels.by_type import body, by_type
from rerank.kernels.compile import kernel
from rerank.learn.base import learners
from rerank.learn.judge import difference, squared_norm
from rerank.learn.losses import COST
from rerank.learn.passes import pair_pass
from rerank.learn.scoring import ONE, THREE, TWO
from rerank.learn.settings import Count, Positive
from rerank.learn.skeletons.additive import WEIGHT, Additive, add
from rerank.learn.steps import IDLE, UPDATE, Lesson, learn_pair
from rerank.learn.workspace import ListArrays, Scratch

HARD, PA_1, PA_2 = range(3)


@learners.add("pa")
@dataclass(frozen=True, kw_only=True)
class PassiveAggressive(Additive):
    """Passive-aggressive learning.

    Parameters
    ----------
    variant: "hard" (the margin whatever it takes), "1" (steps of at most C) or "2" (steps damped by 1/2C).
    C: > 0; aggressiveness of the variants 1 and 2.
    top: how many pairs of a list to learn from, those of the best-scoring rivals first.
    loss: "hinge" (asks for a margin of 1) or "cost" (for tilt·(gain(y*) − gain(y')), the tilt being the pair source's).
    base, base_rate: see Learner.
    """

    name: ClassVar[str] = "pa"
    passes: ClassVar[Any] = pair_pass

    variant: Literal["hard", "1", "2"] = "1"
    C: Positive = 1.0
    top: Count = 1
    loss: Literal["hinge", "cost"] = "hinge"


@by_type
def step_size(loss: float, norm: float, q: Any) -> float:
    """τ: loss/‖z‖², at most C (PA-I), or loss/(‖z‖² + 1/2C) (PA-II) (Crammer et al. 2006, Fig. 1)."""
    if q.variant == PA_2:
        return float(loss / (norm + 0.5 / q.C))
    return float(min(q.C, loss / norm)) if q.variant == PA_1 else loss / norm


@body(learn_pair, PassiveAggressive)
def pass_or_attack(
    data: ListArrays, i: int, star: int, rival: int, fixed: float, state: Any, lazy: Any, t: Scratch, q: Any
) -> Lesson:  # fmt: skip
    """w ← w + τz while w·z is below the margin asked for (Crammer et al. 2006, Fig. 1)."""
    count, z_base = difference(data, star, rival, t), q.base_rate * (data.base[star] - data.base[rival])
    m = fixed + z_base * state.base[WEIGHT] + margin(state.w, t, count)
    asked = data.pairs.tilt * (data.gain[star] - data.gain[rival]) if q.loss == COST else 1.0
    norm, loss = squared_norm(t, count) + z_base * z_base, max(0.0, asked - m)
    if not (loss > 0.0 and norm > 0.0):
        return Lesson(m, loss, count, norm, 0.0, IDLE)
    tau = data.weight[i] * step_size(loss, norm, q)
    add(state, t, count, -tau, z_base)
    return Lesson(m, loss, count, norm, tau, UPDATE)


@kernel
def margin(w: np.ndarray, t: Scratch, count: int) -> float:
    """w·z for the z in ``t.value``, in four sums that the processor computes at once."""
    j, z = t.column, t.value
    one = two = three = four = 0.0
    end = np.uint64(count)
    quarters = end - end % np.uint64(4)
    for r in range(np.uint64(0), quarters, np.uint64(4)):
        one += w[j[r]] * z[r]
        two += w[j[r + ONE]] * z[r + ONE]
        three += w[j[r + TWO]] * z[r + TWO]
        four += w[j[r + THREE]] * z[r + THREE]
    for r in range(quarters, end):
        one += w[j[r]] * z[r]
    return float((one + two) + (three + four))
