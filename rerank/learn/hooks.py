"""The parts of a pass that learners fill in over lists, each in its own way (see ``by_type``).

Arguments mean the same everywhere: ``state`` is the predictor and what the learner remembers, ``params`` its settings
as numbers. A subgradient g, or a difference vector z, of ``count`` columns is in ``scratch.column`` and
``scratch.value``; that of the base score, where it is learned, is its last one. ``n`` is the number of its candidates,
in ``scratch.who`` with coefficients ``scratch.a``.
"""

from typing import Any, NamedTuple

from rerank.kernels.by_type import by_type
from rerank.learn.workspace import ListArrays, Scratch

# What was done about a pair: nothing was missing; an update; the variance was too small; z had nothing to teach.
IDLE, UPDATE, SKIP, IN_VAIN = range(4)


class Lesson(NamedTuple):
    """The outcome of ``update_pair``."""

    m: float  # the margin, before the update
    loss: float
    norm: float  # ‖z‖², where there was an update
    rate: float  # what the log keeps of it: τ, or the part of the margin that is not learned
    done: int


@by_type
def learn(state: Any, scratch: Scratch, count: int, n: int, rate: float, params: Any) -> None:
    """Learn from the subgradient g of a list; ``rate``: its weight, or how far a dual variable or τ moves."""


@by_type
def update_pair(
    state: Any, sums: Any, scratch: Scratch, count: int, fixed: float, asked: float, weight: float, params: Any
) -> Lesson:
    """Learn from z of a list of this weight where w·z + ``fixed`` (not learned) is short of the margin ``asked``."""
    return Lesson(0.0, 0.0, 0.0, 0.0, IDLE)


@by_type
def rates_of(m: float, v: float, weight: float, params: Any) -> tuple[float, float, float, float]:
    """(loss, α, β, ξ): what is missing of the margin m of a list of this weight, and how far that moves the Gaussian.

    α, β and ξ may be anything where the loss is 0.
    """
    return 0.0, 0.0, 0.0, 0.0


@by_type
def shrink_exactly(scratch: Scratch, count: int, m: float, v: float, weight: float, alpha: float, params: Any) -> float:
    """For ``covariance: exact``: the factors of all Σ_jj in ``scratch.extra``, which holds Σ_jj z_j²; returns α."""
    return alpha


@by_type
def gather(data: ListArrays, scratch: Scratch, n: int, last: int, loss: Any, params: Any) -> int:
    """Sum up g, with the base score's part at the column ``last``; returns ``count``. Losses have one of their own."""
    return 0
