"""What a pass over lists works on: a view of the corpus, scratch space, counters, and the parts that learners fill in,
each in its own way (see ``by_type``).

Arguments of these mean the same everywhere: ``state`` is the predictor and what the learner remembers, ``params`` its
settings as numbers. A subgradient g, or a difference vector z, of ``count`` columns is in ``scratch.column`` and
``scratch.value``; that of the base score, where it is learned, is its last one. ``n`` is the number of its candidates,
in ``scratch.who`` with coefficients ``scratch.a``.
"""

from typing import Any, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import by_type
from rerank.learn.pairs import ORACLES

# Of a column's values among candidates: the least, the greatest, and how many have one.
SPREAD = np.dtype((np.record, [("least", float), ("greatest", float), ("owners", np.int64)]))


class EpochStats(NamedTuple):
    """The counts of one pass."""

    lists: int
    mistakes: int  # lists whose oracle did not score strictly highest; with other pair sources: whose y* not above y'
    updates: int
    loss: float  # summed over the lists, before their updates
    skipped: int  # updates that were left out because numbers became too small for them


TALLY = np.dtype((np.record, list(EpochStats.__annotations__.items())))


def new_tally() -> Any:
    """EpochStats for kernels, all 0: a record."""
    return np.zeros(1, TALLY)[0]


class ListArrays(NamedTuple):
    """The arrays of a Corpus that training reads, the oracles, and which pairs of candidates are compared."""

    lists: np.ndarray
    rows: np.ndarray
    columns: np.ndarray  # as uint32: numba need not check for negative ones
    values: np.ndarray  # float32: kernels read single(values[p])
    base: np.ndarray
    gain: np.ndarray
    weight: np.ndarray
    oracle: np.ndarray  # int64 [L], -1 for empty lists
    pairs: Any  # the settings of a pair source
    free: int  # how many columns, the first ones, have no penalty


class Scratch(NamedTuple):
    """Space that kernels write; M candidates of the longest list, T columns of the longest subgradient."""

    scores: np.ndarray  # float64 [M]
    who: np.ndarray  # int64 [M]: the candidates of a subgradient
    a: np.ndarray  # float64 [M]: and their coefficients
    column: np.ndarray  # uint32 [T], or as many as a list has nonzeros: of a subgradient or difference vector
    value: np.ndarray  # float64 [T]: and their values
    extra: np.ndarray  # float64 [T]: what else a learner needs per column
    spread: np.ndarray  # SPREAD [T + 1], or [0] as ``sums``
    sums: np.ndarray  # float64 [D], all 0, or [0] where no subgradient has more than two candidates: see ``accumulate``


def view(corpus: Corpus, oracle: np.ndarray, pairs: Any = ORACLES) -> ListArrays:
    """The corpus for kernels.

    Offsets and oracles lie side by side, so that a list visited at random costs one memory access for both. So that no
    kernel compiles twice, all arrays are frozen, and there is room for two lists at least: a single number would be
    contiguous, which is another type.
    """
    sides = np.full((max(corpus.list_count, 2) + 1, 2), -1)
    sides[: corpus.list_count + 1, 0], sides[: corpus.list_count, 1] = corpus.lists, oracle
    sides.flags.writeable = False
    return ListArrays(
        lists=sides[:, 0],
        rows=corpus.rows,
        columns=corpus.columns.view(np.uint32),
        values=corpus.values,
        base=corpus.base,
        gain=corpus.gain,
        weight=corpus.weight,
        oracle=sides[:-1, 1],
        pairs=pairs,
        free=corpus.free,
    )


def scratch_for(corpus: Corpus, pairwise: bool) -> Scratch:
    """Scratch space for subgradients of a list, or where they are ``pairwise``, of two candidates."""
    longest = max(2, int(np.diff(corpus.lists).max(initial=0)))
    widest = mentions = 2 * int(np.diff(corpus.rows).max(initial=0)) + 1  # the base score may be one more column
    D = 0
    if not pairwise:
        D, nonzeros = corpus.width, int(np.diff(corpus.rows[corpus.lists]).max(initial=0))
        widest, mentions = max(widest, 1 + min(D, nonzeros)), max(mentions, 1 + nonzeros)
    return Scratch(
        scores=np.empty(longest),
        who=np.empty(longest, np.int64),
        a=np.empty(longest),
        column=np.empty(mentions, np.uint32),
        value=np.empty(widest),
        extra=np.empty(widest),
        spread=np.empty(widest + 1 if D else 0, SPREAD),
        sums=np.zeros(D),
    )


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
