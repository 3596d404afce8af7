"""Balanced Winnow, unnormalised and normalised (Littlestone 1988; Zhang, section 1)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.learn.rules.winnow import Multiplicative, multiply
from rerank.learn.settings import Positive, Update
from rerank.learn.workspace import Scratch

GREATEST_RATE = 1e300


@dataclass(frozen=True, kw_only=True)
class UWin(Multiplicative):
    """Balanced Winnow, unnormalised; with another loss than the perceptron's: exponentiated gradient steps.

    >>> from rerank.learn.learned import learned
    >>> learned(UWin(mu=1, eta=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 0.4027}

    Reference: Littlestone 1988; Zhang, section 1. Memory: 24 bytes a column, 16 without the average.

    Parameters
    ----------
    loss: the name of a loss, or its import path.
    eta: > 0; rate of the log-weights, times the weight of the list.
    mu: 1e-100 to 1e20; both parts of every weight start with it.
    update: "mistakes" (only where the current predictor errs) or "always" (on every loss).
    base: weight of the base score at the start, compared with steps of about 2·mu·eta; base_rate: ≥ 0, 0 keeps it
        there, ρ > 0 adds the weight of one more feature, ρ·b(y).
    """

    name: ClassVar[str] = "uwin"

    loss: str = "perceptron"
    eta: Positive = 0.01
    update: Update = "mistakes"

    @staticmethod
    def learn(state: Any, scratch: Scratch, count: int, n: int, weight: float, params: Any) -> None:
        """θ ← θ + η·z, that is, both parts of w_j are multiplied by e^{±ηz_j} (Zhang, section 1)."""
        rate = min(params.eta * weight, GREATEST_RATE)
        multiply(state, scratch, count, rate, params)


@dataclass(frozen=True, kw_only=True)
class NWin(UWin):
    """Balanced Winnow whose 2D positive weights keep the sum W: all are multiplied by d = W/Z.

    >>> from rerank.learn.learned import learned
    >>> learned(NWin(mu=1, eta=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 0.3987}

    Reference: Littlestone 1988; Zhang, section 1. Memory: 24 bytes a column, 16 without the average.

    Parameters
    ----------
    total: W > 0, the sum of positive weights; None for that at the start.
    loss, eta, mu, update, base, base_rate: see UWin.
    """

    name: ClassVar[str] = "nwin"
    normalised: ClassVar[bool] = True

    total: Positive | None = None
