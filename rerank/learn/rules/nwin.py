"""Balanced Winnow, normalised (Littlestone 1988; Zhang, section 1)."""

from dataclasses import dataclass
from typing import ClassVar

from rerank.learn.rules.uwin import UWin
from rerank.learn.settings import Positive


@dataclass(frozen=True, kw_only=True)
class NWin(UWin):
    """Balanced Winnow whose positive weights, 2D of them if balanced, keep the sum W.

    >>> from rerank.learn.learned import learned
    >>> learned(NWin(mu=1, eta=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'short': 0.3987}

    Reference: Littlestone 1988; Zhang, section 1. Memory: 24 bytes a column, 16 without the average.

    After every update all are multiplied by d = W/Z (Zhang, section 1).

    Parameters
    ----------
    total: W > 0, the sum of positive weights; None for that at the start.
    loss, eta, mu, balanced, update, base, base_rate: see UWin.
    """

    name: ClassVar[str] = "nwin"
    normalised: ClassVar[bool] = True

    total: Positive | None = None
