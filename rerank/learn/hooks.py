"""The parts of a pass that learners fill in over lists, each in its own way (see ``by_type``).

Arguments mean the same everywhere: ``state`` is the predictor and what the learner remembers, ``params`` its settings
as numbers. A subgradient g, or a difference vector z, of ``count`` columns is in ``scratch.column`` and
``scratch.value``; that of the base score, where it is learned, is its last one. ``n`` is the number of its candidates,
in ``scratch.who`` with coefficients ``scratch.a``.
"""

from typing import Any, NamedTuple

from rerank.kernels.compile import by_type
from rerank.learn.workspace import ListArrays, Scratch

IDLE, UPDATE, SKIP = range(3)  # what was done about a pair: nothing; an update; none, as the variance was too small


class Lesson(NamedTuple):
    """The outcome of ``update_pair``."""

    m: float  # the margin, before the update
    loss: float
    rate: float  # what the log keeps of it: τ, or the part of the margin that is not learned
    done: int


@by_type
def learn(state: Any, scratch: Scratch, count: int, n: int, rate: float, params: Any) -> None:
    """Learn from the subgradient g of a list; ``rate``: its weight, or how far a dual variable or τ moves."""


@by_type
def update_pair(
    state: Any, sums: Any, scratch: Scratch, count: int, fixed: float, cost: float, weight: float, params: Any
) -> Lesson:
    """Learn from z of a list of this weight where the margin w·z + ``fixed`` (not learned) is short; ``cost``: by how
    much gains differ, times the tilt."""
    return Lesson(0.0, 0.0, 0.0, IDLE)


@by_type
def rates_of(m: float, v: float, weight: float, params: Any) -> tuple[float, float, float, float]:
    """(loss, α, β, ξ): what is missing of the margin m of a list of this weight, and how far that moves the Gaussian.

    α, β and ξ may be anything where the loss is 0.
    """
    return 0.0, 0.0, 0.0, 0.0


@by_type
def exact_rates(scratch: Scratch, count: int, m: float, v: float, weight: float, params: Any) -> tuple[float, float]:
    """(α, ξ) for ``covariance: exact``, from every Σ_jj z_j² in ``scratch.extra``."""
    return 0.0, 0.0


@by_type
def gather(data: ListArrays, scratch: Scratch, n: int, last: int, loss: Any, params: Any) -> int:
    """Sum up g, with the base score's part at the column ``last``; returns ``count``. Losses have one of their own."""
    return 0


@by_type
def rescale_column(state: Any, j: int, x: float, params: Any) -> float:
    """c_j ← max(c_j, x), with what is remembered of the column in the new unit; returns 1/c_j."""
    return 1.0


@by_type
def update_column(state: Any, j: int, g: float, inverse: float, speed: float, params: Any) -> None:
    """Learn from g_j/c_j, with 1/c_j = ``inverse`` and √(t/N) = ``speed``, which is 1 for the base score."""


@by_type
def set_scales(state: Any, params: Any) -> None:
    """Set what moves all weights at once, at the end of an update."""
