"""The workspace of a pass over lists: a view of the corpus, scratch space, counters, the parts that learners fill in,
each in its own way (see ``by_type``), and the vectors that updates are made of.

Arguments of these mean the same everywhere: ``state`` is the predictor and what the learner remembers, ``params`` its
settings as numbers. A subgradient g, or a difference vector z, of ``count`` columns is in ``scratch.column`` and
``scratch.value``; that of the base score, where it is learned, is its last one. ``n`` is the number of its candidates,
in ``scratch.who`` with coefficients ``scratch.a``.
"""

from typing import Any, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import by_type, kernel, prefetch
from rerank.learn.pairs import ORACLES
from rerank.learn.scoring import ONE, THREE, TWO, single

NO_UPDATE, UPDATE, SKIP = range(3)  # the outcomes of ``update_pair``; SKIP: an update whose variance is too small
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


class PairUpdate(NamedTuple):
    """The result of ``update_pair``."""

    m: float  # the margin, before the update
    loss: float
    rate: float  # for the log: τ, or the part of the margin that is not learned
    outcome: int


@by_type
def learn(state: Any, scratch: Scratch, count: int, n: int, rate: float, params: Any) -> None:
    """Learn from the subgradient g of a list; ``rate``: its weight, or how far a dual variable or τ moves."""


@by_type
def update_pair(
    state: Any, sums: Any, scratch: Scratch, count: int, offset: float, cost: float, weight: float, params: Any
) -> PairUpdate:
    """Learn from z of a list of this weight where the margin w·z + ``offset`` (not learned) is short; ``cost``: by how
    much gains differ, times the tilt."""
    return PairUpdate(0.0, 0.0, 0.0, NO_UPDATE)


@by_type
def gaussian_step(m: float, v: float, weight: float, params: Any) -> tuple[float, float, float, float]:
    """Return (loss, α, β, ξ): what the margin m of a list of this weight lacks, and how far that moves the Gaussian.

    α, β and ξ may be anything where the loss is 0.
    """
    return 0.0, 0.0, 0.0, 0.0


@by_type
def exact_step(scratch: Scratch, count: int, m: float, v: float, weight: float, params: Any) -> tuple[float, float]:
    """(α, ξ) for ``covariance: exact``, from every Σ_jj z_j² in ``scratch.extra``."""
    return 0.0, 0.0


@by_type
def sum_subgradient(data: ListArrays, scratch: Scratch, n: int, last: int, loss: Any, params: Any) -> int:
    """Sum up g, with the base score's part at the column ``last``; returns ``count``. Losses have one of their own."""
    return 0


@by_type
def rescale_column(state: Any, j: int, x: float, params: Any) -> float:
    """c_j ← max(c_j, x), with the numbers of the column in the new unit; returns 1/c_j."""
    return 1.0


@by_type
def update_column(state: Any, j: int, g: float, inverse: float, speed: float, params: Any) -> None:
    """Learn from g_j/c_j, with 1/c_j = ``inverse`` and √(t/N) = ``speed``, which is 1 for the base score."""


@by_type
def set_scales(state: Any, params: Any) -> None:
    """Set the numbers that move all weights at once, at the end of an update."""


@kernel
def look_ahead(data: ListArrays, order: np.ndarray, at: int) -> None:
    """Prefetch the next lists of ``order`` while list ``at`` is worked on: offsets first, then nonzeros."""
    n = order.shape[0]
    if at + 12 < n:
        prefetch(data.lists, order[at + 12])  # and its oracle
    if at + 8 < n:
        i = order[at + 8]
        first, last = data.lists[i], data.lists[i + 1]
        for y in range(first, last if last < first + 64 else first + 64, 8):
            prefetch(data.rows, y)
            prefetch(data.gain, y)
            prefetch(data.base, y)
        prefetch(data.weight, i)
    if at + 4 < n:
        i = order[at + 4]
        begin, end = data.rows[data.lists[i]], data.rows[data.lists[i + 1]]
        end = end if end < begin + 256 else begin + 256  # the processor itself prefetches the rest
        for p in range(begin, end, 16):
            prefetch(data.columns, p)
        for p in range(begin, end, 8):  # 8 float64 are a line of the caches, 16 float32
            prefetch(data.values, p)


@kernel
def copy_row(data: ListArrays, y: int, a: float, column: np.ndarray, value: np.ndarray) -> int:
    """a·φ(y) of one row, without zeros; returns the number of its columns."""
    size = data.rows[y + 1] - data.rows[y]
    begin, count, zeros = np.uint64(data.rows[y]), np.uint64(size), 0
    for r in range(count):
        column[r] = data.columns[begin + r]
    for r in range(count):
        value[r] = a * single(data.values[begin + r])
        zeros += value[r] == 0.0
    return size if zeros == 0 else drop_zeros(size, column, value)


@kernel
def drop_zeros(count: int, column: np.ndarray, value: np.ndarray) -> int:
    """Leave out the entries that are 0; returns how many stay."""
    size = 0
    for r in range(count):
        column[size], value[size] = column[r], value[r]
        size += value[size] != 0.0
    return size


@kernel
def merge(data: ListArrays, x: int, a: float, y: int, b: float, column: np.ndarray, value: np.ndarray) -> int:
    """a·φ(x) + b·φ(y) of two rows by rising column, without zeros; returns its length."""
    p, p_end = data.rows[x], data.rows[x + 1]
    q, q_end = data.rows[y], data.rows[y + 1]
    if p == p_end:
        return copy_row(data, y, b, column, value)
    if q == q_end:
        return copy_row(data, x, a, column, value)
    count = 0
    while p < p_end and q < q_end:
        j, k = data.columns[p], data.columns[q]
        total = 0.0
        if j <= k:
            total += a * single(data.values[p])
            p += 1
        if k <= j:
            total += b * single(data.values[q])
            q += 1
        column[count], value[count] = j if j <= k else k, total
        count += total != 0.0
    while p < p_end:
        column[count], value[count] = data.columns[p], a * single(data.values[p])
        count += value[count] != 0.0
        p += 1
    while q < q_end:
        column[count], value[count] = data.columns[q], b * single(data.values[q])
        count += value[count] != 0.0
        q += 1
    return count


@kernel
def accumulate(data: ListArrays, scratch: Scratch, n: int) -> int:
    """Σ a_y φ(y) over the first n of ``scratch.who``, without zeros; ``scratch.sums`` are 0 before and after.

    A column is mentioned wherever its sum is 0, which it may be again: no branch depends on what cannot be foreseen.
    """
    column, sums = scratch.column, scratch.sums
    mentions, count = np.uint64(0), 0
    for i in range(n):
        a = scratch.a[i]
        if a == 0.0:
            continue
        for p in range(np.uint64(data.rows[scratch.who[i]]), np.uint64(data.rows[scratch.who[i] + 1])):
            j = data.columns[p]
            before = sums[j]
            sums[j] = before + a * single(data.values[p])
            column[mentions] = j
            mentions += np.uint64(before == 0.0)
    for r in range(mentions):
        j = column[r]
        column[count], scratch.value[count] = j, sums[j]
        count += sums[j] != 0.0
        sums[j] = 0.0
    return count


@kernel
def subgradient(data: ListArrays, scratch: Scratch, n: int) -> int:
    """g = Σ a_y φ(y) of the n candidates that a loss looks at; returns its length."""
    if n == 2:
        return merge(data, scratch.who[0], scratch.a[0], scratch.who[1], scratch.a[1], scratch.column, scratch.value)
    return accumulate(data, scratch, n)


@kernel
def append(scratch: Scratch, count: int, column: int, value: float) -> int:
    """Put one more entry behind those of a vector, if it is not 0; returns how many there are."""
    scratch.column[count], scratch.value[count] = column, value
    return count + (value != 0.0)


@kernel
def difference(data: ListArrays, star: int, rival: int, base_rate: float, last: int, scratch: Scratch) -> int:
    """z = φ(y*) − φ(y'), the base score at the column ``last``; the pair goes to ``scratch`` as a subgradient's."""
    scratch.who[0], scratch.a[0] = star, -1.0
    scratch.who[1], scratch.a[1] = rival, 1.0
    count = merge(data, star, 1.0, rival, -1.0, scratch.column, scratch.value)
    return append(scratch, count, last, base_rate * (data.base[star] - data.base[rival]))


@kernel
def base_of(data: ListArrays, scratch: Scratch, n: int) -> float:
    """Σ a_y b(y) over the first n candidates of ``scratch.who``."""
    total = 0.0
    for r in range(n):
        total += scratch.a[r] * data.base[scratch.who[r]]
    return total


@kernel
def margin(w: np.ndarray, scratch: Scratch, count: int) -> float:
    """w·z for the z in ``scratch.value``, in four sums that the processor computes at once."""
    j, z = scratch.column, scratch.value
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


@kernel
def inner(x: np.ndarray, y: np.ndarray, count: int) -> float:
    """x·y of the first ``count`` numbers, in four sums that the processor computes at once."""
    one = two = three = four = 0.0
    end = np.uint64(count)
    quarters = end - end % np.uint64(4)
    for r in range(np.uint64(0), quarters, np.uint64(4)):
        one += x[r] * y[r]
        two += x[r + ONE] * y[r + ONE]
        three += x[r + TWO] * y[r + TWO]
        four += x[r + THREE] * y[r + THREE]
    for r in range(quarters, end):
        one += x[r] * y[r]
    return float((one + two) + (three + four))


@kernel
def squared_norm(scratch: Scratch, count: int) -> float:
    """‖g‖² of the vector in ``scratch.value``."""
    return inner(scratch.value, scratch.value, count)
