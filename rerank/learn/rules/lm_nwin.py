"""Regularised Winnow, normalised (Zhang, section 2.2)."""

from dataclasses import dataclass
from typing import ClassVar

from rerank.learn.rules.lm_uwin import LMUWin
from rerank.learn.settings import Positive


@dataclass(frozen=True, kw_only=True)
class LMNWin(LMUWin):
    """Regularised Winnow whose positive weights, 2D of them if balanced, keep the sum W.

    >>> from rerank.learn.learned import learned
    >>> learned(LMNWin(mu=1, eta=0.1), {"fluent": 1}, {"fluent": -1, "short": 2})
    {'fluent': -0.0394, 'short': 0.4776}

    Reference: Zhang, section 2.2. Memory: 24 bytes a column, 16 without the average.

    Parameters
    ----------
    total: W > 0, the sum of positive weights; None for that at the start. No margin can exceed W·max|z_j|: it has to
        allow for margins of 1.
    eta, mu, balanced, C, tolerance, base, base_rate: see LMUWin.
    """

    name: ClassVar[str] = "lm-nwin"
    normalised: ClassVar[bool] = True

    total: Positive | None = None
