"""Balanced Winnow, normalised (Littlestone 1988; Zhang, section 1)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from rerank.kernels.by_type import body
from rerank.learn.base import learners
from rerank.learn.rules.uwin import UWin
from rerank.learn.settings import Positive
from rerank.learn.skeletons.multiplicative import total_of


@learners.add("nwin")
@dataclass(frozen=True, kw_only=True)
class NWin(UWin):
    """Balanced Winnow whose positive weights, all 2D of them, keep the sum W.

    Parameters
    ----------
    total: W > 0; None for what they sum up to at the start, 2·mu for every column.
    loss, eta, mu, update, base, base_rate: see UWin.
    """

    name: ClassVar[str] = "nwin"
    normalised: ClassVar[bool] = True

    total: Positive | None = None


@body(total_of, NWin)
def normalised(q: Any) -> float:
    """After every update all weights are multiplied by d = W/Z (Zhang, section 1)."""
    return float(q.total)
