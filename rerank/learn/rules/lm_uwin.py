"""Regularised Winnow, unnormalised (Zhang, section 2.2)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.kernels.by_type import body
from rerank.learn.base import learners
from rerank.learn.hooks import climb, update
from rerank.learn.passes import dual_pass
from rerank.learn.rules.winnow import Multiplicative, multiply
from rerank.learn.settings import Positive
from rerank.learn.workspace import Scratch


@learners.add("lm-uwin")
@dataclass(frozen=True, kw_only=True)
class LMUWin(Multiplicative):
    """Regularised Winnow, unnormalised.

    >>> from rerank.learn.learned import learned
    >>> learned(LMUWin(mu=1, eta=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': -0.0401, 'short': 0.4848}

    Reference: Zhang, section 2.2. Memory: 24 bytes a column, 16 without the average.

    Parameters
    ----------
    eta: > 0; rate of the dual variables.
    mu: 1e-100 to 1e20; the prior: both parts of every weight start with it.
    C: > 0; limit on a dual variable, times the weight of its list; None for none, where all margins can be 1.
    base: weight of the base score at the start; base_rate: ≥ 0, 0 keeps it there, ρ > 0 adds the weight of one more
        balanced feature, ρ·b(y).
    """

    name: ClassVar[str] = "lm-uwin"
    passes: ClassVar[Any] = dual_pass
    dual: ClassVar[bool] = True
    sources: ClassVar[tuple[str, ...]] = ("oracle",)  # were y* another one on every visit, α·z were no term of a dual
    mixes: ClassVar[tuple[str, ...]] = ()  # dual variables belong to the lists of a section

    C: Positive | None = 1.0


@body(climb, LMUWin)
def regularised_winnow(missing: float, size: float, params: Any) -> float:
    """α ← clip(α + η·(1 − m)) (Zhang, section 2.2)."""
    return float(params.eta * missing)


@body(update, LMUWin)
def follow(state: Any, scratch: Scratch, count: int, n: int, change: float, params: Any) -> None:
    """θ ← θ + Δα·z: both parts of w_j are multiplied by e^{±Δα·z_j}. On lists of two, this ascends the dual
    Σ α − Σ_j μ·(e^{θ_j} + e^{−θ_j}) or, normalised, Σ α − W·ln Σ_j μ·(e^{θ_j} + e^{−θ_j})."""
    multiply(state, scratch, count, change, params.mu, params.base_rate)
