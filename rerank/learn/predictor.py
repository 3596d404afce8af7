"""The predictor, which is the state of every learner, and the average of all predictors of a training:

    score(y) = β·b(y) + w·φ(y),    w_j = d·sign(a_j)·max(|a_j| − τ·|v_j|, 0),    β = base + base_rate·w_D.

A learner changes a_j (and v_j) in the columns of an update, and the scale d and the threshold τ, which is how weights
move that no update touches: all of them in proportion, or toward 0 by the same amount. A rule whose untouched weights
move in other ways (momentum, Adam, Nesterov, a decay of each column by its own gradients) has no such form, and is no
learner here: a score would cost a pass over all columns.

The base score is column D, the one after the last, with the values base_rate·b(y); no threshold reaches it. Nor does
one reach the free columns of a corpus, its first ones. Both may have scales of their own.

In the average, predictor k has the weight c_k, the lists that it survived; it takes no loop over all columns. While a_j
and v_j stay what they are under the predictors a..b,

    Σ_k c_k w_kj = sign(a_j)·(|a_j|·(P_e − P_{a−1}) − |v_j|·(Q_e − Q_{a−1})),   P = Σ c_k d_k, Q = Σ c_k d_k τ_k,

where e is the last k ≤ b with τ_k·|v_j| < |a_j|. Where a threshold rises, this is entered in a column's sum just before
the column changes (``flush_columns``), and at the end of an epoch for all columns. Where τ = 0 the sums telescope:

    Σ_k c_k w_kj = P·a_j − Σ_updates P_now·Δa_j,

and u_j ← u_j + P_now·Δa_j, where the change is made (``add``), is all that there is to do.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from rerank.base.errors import RecipeError
from rerank.kernels.compile import body, by_type, kernel, prefetch
from rerank.learn.scoring import Weights, dot, single
from rerank.learn.workspace import ListArrays, Scratch

# State.numbers: d, that of free columns, and of the base score; τ; |v_j| where all columns have the same; Σ c_k·d_k;
# how many numbers of a cell there would be without an average (0: cells have no sums). Numbers of the rule follow.
NUMBERS = ("d", "d_free", "d_base", "tau", "slope", "survived", "cell")
# State.counts: updates, lists that the current predictor survived, all lists seen (Σ c_k), those of them that are not
# in lazy sums yet, and how many columns, the first ones, are free.
COUNTS = ("updates", "alive", "seen", "pending", "free")
LINE = 8  # float64 in a line of the processor's caches
MAX_MATRIX_COLUMNS = 8192  # the matrix then takes half a gigabyte
# A column's cell in an epoch: Σ c_k w_k up to a predictor, its index in the sums, and P and Q there. They lie together:
# entering a column costs one access to memory.
CELL = np.dtype((np.record, [("total", float), ("at", np.int64), ("P", float), ("Q", float)]))


class State(NamedTuple):
    """The state that training changes, as it is stored, for D columns and N candidates; arrays that a rule does not
    need have no numbers.

    cells: float64 [D + 1], a_j; or [D + 1, m] with a_j first, and beside it what the rule remembers of the column. The
        last number of such a cell is its sum for the average, where the rule has no threshold and an average is wanted.
    v: float64 [D + 1]: |v_j|; [0] where it is the number ``slope`` in all columns that a threshold reaches.
    memory: float64 [D + 1]: what the rule remembers of a column and scores need not pass over.
    sums: float64 [D + 1]: of the average; [0] where none is wanted, or cells have them.
    numbers: float64, see ``NUMBERS``; counts: int64 [5], see ``COUNTS``.
    matrix: float64 [D + 1, D + 1]: what belongs to a pair of columns; [0, 0] for none.
    alpha: float64 [N]: dual variables of candidates; [0] for none.
    """

    cells: np.ndarray
    v: np.ndarray
    memory: np.ndarray
    sums: np.ndarray
    numbers: np.ndarray
    counts: np.ndarray
    matrix: np.ndarray
    alpha: np.ndarray


class Predictor(NamedTuple):
    """A ``State`` as rules and kernels see it: views, in which numbers have names."""

    a: np.ndarray  # float64 [D + 1]
    v: np.ndarray
    memory: np.ndarray
    sums: np.ndarray  # float64 [D + 1], or [0] without an average
    cells: np.ndarray  # [D + 1]: records of the numbers that ``Learner.cell`` names
    now: Any  # the record of ``NUMBERS``, and of those that ``Learner.whole`` names
    counts: Any  # the record of ``COUNTS``
    matrix: np.ndarray
    alpha: np.ndarray


@cache
def record_of(names: tuple[str, ...], kind: np.dtype, size: int) -> np.dtype:
    """The type of a record of ``size`` numbers of which the first have ``names``."""
    offsets = [kind.itemsize * index for index in range(len(names))]
    shape: Any = {"names": names, "formats": [kind] * len(names), "offsets": offsets}
    return np.dtype((np.record, np.dtype(shape | {"itemsize": kind.itemsize * size})))


def predictor_view(state: State, cell: tuple[str, ...] = ("a",), whole: tuple[str, ...] = ()) -> Predictor:
    """Views of ``state`` whose numbers have names, those of a cell and of the rule as a whole among them.

    Where cells have fewer numbers, as with a full matrix, there are no records of them.
    """
    cells = state.cells.reshape(len(state.cells), -1)
    if cells.shape[1] < len(cell):
        cells = np.empty((0, len(cell)))
    return Predictor(
        state.cells if state.cells.ndim == 1 else state.cells[:, 0], state.v, state.memory, sums_of(state),
        cells.view(record_of(cell, cells.dtype, cells.shape[1]))[:, 0],
        state.numbers.view(record_of((*NUMBERS, *whole), state.numbers.dtype, state.numbers.size))[0],
        state.counts.view(record_of(COUNTS, state.counts.dtype, state.counts.size))[0],
        state.matrix, state.alpha,
    )  # fmt: skip


def new_state(
    columns: int, *, cell: int = 1, shrinks: bool = False, rest: int = 0,
    matrix: bool = False, candidates: int = 0,
) -> State:  # fmt: skip
    """A state with a = 0, d = 1 and τ = 0: every score is that of the base.

    cell: how many numbers of a column lie together; shrinks: is there a threshold, so that sums are lazy? matrix:
    whether there is one; rest: how many numbers the rule remembers as a whole.
    """
    D = columns + 1
    if matrix and columns > MAX_MATRIX_COLUMNS:
        raise RecipeError(
            f"a full matrix over {columns:,} columns is more than the {MAX_MATRIX_COLUMNS:,} that are allowed; "
            "use a diagonal covariance, or fewer features",
            key="covariance",
        )
    in_cells = cell > 1 and not shrinks
    numbers = np.concatenate([[1.0, 1.0, 1.0, 0.0, 1.0, 0.0, cell if in_cells else 0], np.zeros(rest)])
    return State(
        cells=np.zeros(D) if cell == 1 else cells_of(D, line_of(cell + in_cells)),
        v=np.zeros(0),
        memory=np.zeros(0),
        sums=np.zeros(0 if in_cells else D),
        numbers=numbers,
        counts=np.zeros(5, np.int64),
        matrix=np.eye(D) if matrix else np.zeros((0, 0)),
        alpha=np.zeros(candidates),
    )


def cells_of(columns: int, numbers: int) -> np.ndarray:
    """float64 [columns, numbers], all 0: cells of 2, 4 or 8 numbers lie within one line of the processor's caches."""
    room = np.zeros(columns * numbers + LINE)
    first = -room.ctypes.data // room.itemsize % LINE
    return room[first : first + columns * numbers].reshape(columns, numbers)


def line_of(numbers: int) -> int:
    """The size of a cell for this many numbers: a power of two."""
    return int(2 ** np.ceil(np.log2(numbers)))


def sums_of(state: State) -> np.ndarray:
    """float64 [D + 1]: a view of the sums of the average; [0] where none is wanted."""
    return state.cells[:, -1] if state.numbers[NUMBERS.index("cell")] else state.sums


def without_sums(state: State) -> State:
    """A new ``state`` that keeps no average."""
    size, numbers = int(predictor_view(state).now.cell), state.numbers.copy()
    if not size:
        return state._replace(sums=np.zeros(0))
    cells = cells_of(len(state.cells), line_of(size))
    cells[:] = state.cells[:, : cells.shape[1]]
    numbers[NUMBERS.index("cell")] = 0.0
    return state._replace(cells=cells, numbers=numbers)


def copy_state(state: State) -> State:
    """A copy of a state, with arrays of its own."""
    return type(state)(*(np.array(array) for array in state))


def weights_of(state: State) -> np.ndarray:
    """float64 [D + 1]: w."""
    a, v, *_, now, counts, _, _ = predictor_view(state)
    slope = np.array(v) if v.size else np.full(a.size, now.slope)
    scale = np.full(a.size, now.d)
    slope[: counts.free] = slope[-1] = 0.0
    scale[: counts.free], scale[-1] = now.d_free, now.d_base
    return np.asarray(np.sign(a) * np.maximum(np.abs(a) - now.tau * slope, 0.0) * scale)


def predictor_of(w: np.ndarray, base: float, base_rate: float) -> Weights:
    """The predictor whose w, that of column D included, is ``w`` (float64 [D + 1])."""
    return Weights(np.array(w[:-1]), float(base + base_rate * w[-1]) if base_rate else float(base))


@kernel
def shrink(a: float, threshold: float) -> float:
    """sign(a)·max(|a| − threshold, 0)."""
    return max(a - threshold, 0.0) + min(a + threshold, 0.0)


@by_type
def slope_of(state: Any, j: int) -> float:
    """|v_j|; 0 for free columns and the base score."""
    if j < state.counts.free or j == state.a.shape[0] - 1:
        return 0.0
    return float(state.v[j] if state.v.shape[0] > 0 else state.now.slope)


@by_type
def add(state: Any, j: int, x: float) -> None:
    """a_j ← a_j + x, in the average too. For rules without a threshold."""
    state.a[j] += x
    if state.sums.shape[0] > 0:
        state.sums[j] += state.now.survived * x


@by_type
def assign(state: Any, j: int, w: float) -> None:
    """a_j ← w, in the average too. For rules without a threshold."""
    if state.sums.shape[0] > 0:
        state.sums[j] += state.now.survived * (w - state.a[j])
    state.a[j] = w


@by_type
def subtract(state: Any, scratch: Scratch, count: int, rate: float) -> None:
    """a ← a − rate·g, in the average too, for the g in ``scratch``."""
    a, sums, P = state.a, state.sums, state.now.survived
    for r in range(np.uint64(count)):
        a[scratch.column[r]] -= rate * scratch.value[r]
    if sums.shape[0] > 0:
        for r in range(np.uint64(count)):
            sums[scratch.column[r]] -= P * (rate * scratch.value[r])


@by_type
def beta(state: Any, base: float, base_rate: float) -> float:
    """The weight of the base score."""
    return float(base + base_rate * (state.now.d_base * state.a[state.a.shape[0] - 1]))


@by_type
def survive(state: Any) -> None:
    """The current predictor has survived a list, the one on which it was made included."""
    state.counts.alive += 1
    state.counts.seen += 1
    state.counts.pending += 1
    state.now.survived += state.now.d


@by_type
def close(state: Any) -> None:
    """An update ends the current predictor."""
    state.counts.updates += 1
    state.counts.alive = 0


@by_type
def score_list(data: ListArrays, i: int, a: np.ndarray, d: float, weight: float, scores: np.ndarray) -> None:
    """β·b(y) + d·a·φ(y) for the candidates of list i; β is ``weight``."""
    first, last = data.lists[i], data.lists[i + 1]
    for y in range(first, last):
        total = dot(a, data.columns, data.values, data.rows[y], data.rows[y + 1])
        scores[y - first] = weight * data.base[y] + d * total


@by_type
def score(data: ListArrays, i: int, state: Any, sums: Any, weight: float, scores: np.ndarray) -> None:
    """β·b(y) + w·φ(y) for the candidates of list i; β is ``weight``."""
    score_list(data, i, state.a, state.now.d, weight, scores)


@kernel
def score_shrunk(data: ListArrays, i: int, state: Any, weight: float, scores: np.ndarray) -> None:
    """``score`` where a threshold reaches the columns that are not free, or these have another scale than the free."""
    a, v, tau, first = state.a, state.v, state.now.tau, data.lists[i]
    d, f, slope = state.now.d, state.now.d_free, state.now.slope
    for y in range(first, data.lists[i + 1]):
        middle, end, total = data.rows[y], data.rows[y + 1], 0.0
        while middle < end and data.columns[middle] < data.free:  # columns rise within a row
            middle += 1
        free = dot(a, data.columns, data.values, data.rows[y], middle)
        for p in range(np.uint64(middle), np.uint64(end)):
            j = data.columns[p]
            total += shrink(a[j], tau * (v[j] if v.shape[0] > 0 else slope)) * single(data.values[p])
        scores[y - first] = weight * data.base[y] + (f * free + d * total)


@by_type
def look_up(data: ListArrays, order: np.ndarray, at: int, state: Any, sums: Any, average: bool) -> None:
    """Prefetch a_j of every column of the next list, up to 256 of them, while list ``at`` is worked on.

    With ``average`` what the average has of the column too, for learners that learn from every list.
    """
    if at + 1 < order.shape[0]:
        i = order[at + 1]
        begin, end = data.rows[data.lists[i]], data.rows[data.lists[i + 1]]
        for p in range(np.uint64(begin), np.uint64(end if end < begin + 256 else begin + 256)):
            prefetch(state.a, data.columns[p])
            if average:
                look_up_sum(data.columns[p], state, sums)


@by_type
def look_up_sum(j: Any, state: Any, sums: Any) -> None:
    """Prefetch the sum of column j."""
    if state.sums.shape[0] > 0:
        prefetch(state.sums, j)


class PredictorSums(NamedTuple):
    """Sums over the predictors of an epoch, k0 being the first: those of predictor k are at k − k0 + 1, 0 at 0."""

    P: np.ndarray  # float64 [updates + 2]
    Q: np.ndarray  # float64 [updates + 2]
    F: np.ndarray  # float64 [updates + 2]: P for free columns
    tau: np.ndarray  # float64 [updates + 2]: τ_k
    cells: np.ndarray  # CELL [D + 1]
    k0: int


def begin_sums(state: State, visits: int) -> PredictorSums:
    """Sums over the predictors that so many visits can make; without room where ``state`` keeps no average."""
    columns = state.sums.size
    P, Q, F, tau = np.zeros((4, visits + 2 if columns else 0))
    cells = cells_of(columns, 4).view(CELL)[:, 0]
    cells["total"] = state.sums
    return PredictorSums(P, Q, F, tau, cells, int(predictor_view(state).counts.updates))


@body(look_up_sum, PredictorSums)
def look_up_cell(j: Any, state: Any, sums: PredictorSums) -> None:
    """Prefetch the cell of column j."""
    if sums.cells.shape[0] > 0:
        prefetch(sums.cells, j)


@body(score, PredictorSums)
def score_plain_or_shrunk(
    data: ListArrays, i: int, state: Any, sums: PredictorSums, weight: float, scores: np.ndarray
) -> None:  # fmt: skip
    """``score`` where a threshold may have risen; by a plain sum where nothing shrinks."""
    if state.now.tau * state.now.slope > 0.0 or (data.free > 0 and state.now.d != state.now.d_free):
        score_shrunk(data, i, state, weight, scores)
    else:
        score_list(data, i, state.a, state.now.d, weight, scores)


@by_type
def close_predictor(state: Any, sums: PredictorSums) -> None:
    """Enter the current predictor, with what it has survived since it was last entered, into the sums."""
    at, c, now, base = state.counts.updates - sums.k0 + 1, state.counts.pending, state.now, state.a.shape[0] - 1
    sums.P[at] = sums.P[at - 1] + c * now.d
    sums.Q[at] = sums.Q[at - 1] + c * now.d * now.tau
    sums.F[at] = sums.F[at - 1] + c * now.d_free
    sums.tau[at] = now.tau
    sums.cells[base].total += c * (now.d_base * state.a[base])
    state.counts.pending = 0


@kernel
def sum_weights(a: float, slope: float, cell: Any, last: int, sums: PredictorSums) -> float:
    """sign(a)·(|a|·(P_e − P_first) − |v|·(Q_e − Q_first))."""
    size, e = abs(a), last
    if not size > 0.0:
        return float(size)  # 0, or not a number: there is no last predictor to look up
    if not sums.tau[e] * slope < size:
        e = last_active(size, slope, sums.tau, cell.at, last)
    total = size * (sums.P[e] - cell.P) - slope * (sums.Q[e] - cell.Q)
    return float(total if a > 0 else -total)


@kernel
def last_active(size: float, slope: float, tau: np.ndarray, first: int, last: int) -> int:
    """The last predictor of first..last − 1 before which no τ·slope is ``size`` or more."""
    while last - first > 1:
        middle = (first + last) // 2
        if tau[middle] * slope < size:
            first = middle
        else:
            last = middle
    return first


@by_type
def flush_column(state: Any, j: int, last: int, sums: PredictorSums) -> None:
    """Enter the weights of column j, up to the current predictor, at ``last`` of ``sums``, into its total."""
    cell, a = sums.cells[j], state.a[j]
    if j < state.counts.free:
        cell.total += a * (sums.F[last] - sums.F[cell.at])
    elif j < state.a.shape[0] - 1:
        cell.total += sum_weights(a, slope_of(state, j), cell, last, sums)
    cell.at, cell.P, cell.Q = last, sums.P[last], sums.Q[last]


@by_type
def flush_columns(state: Any, sums: PredictorSums, scratch: Scratch, count: int) -> None:
    """Enter the weights of the columns of g so far into lazy sums, before they change."""
    if state.sums.shape[0] > 0:
        close_predictor(state, sums)
        last = state.counts.updates - sums.k0 + 1
        for r in range(np.uint64(count)):
            flush_column(state, scratch.column[r], last, sums)


@kernel
def flush(state: Any, sums: PredictorSums) -> None:
    """Flush the lazy sums of all columns."""
    if state.sums.shape[0] > 0:
        close_predictor(state, sums)
    for j in range(state.sums.shape[0]):
        column: Any = np.uint32(j)  # as lists have them, for which this is compiled anyway
        flush_column(state, column, state.counts.updates - sums.k0 + 1, sums)
        state.sums[j] = sums.cells[j].total


@by_type
def average_anew(state: Any) -> None:
    """Σ c_k d_k ← 0, where τ = 0: what all columns have added to the average so far is −u from here on."""
    for j in range(state.sums.shape[0]):
        state.sums[j] -= state.now.survived * state.a[j]
    state.now.survived = 0.0


def average_of(state: State, shrinks: bool) -> np.ndarray:
    """float64 [D + 1]: Σ c_k w_k / Σ c_k"""
    a, _, _, sums, _, now, counts, _, _ = predictor_view(state)
    if sums.size == 0 and counts.updates > 0:
        raise ValueError("this state keeps no average; train without `without_average`")
    if counts.seen == 0 or sums.size == 0:
        return np.zeros(len(state.cells))
    if shrinks:
        return np.asarray(sums / counts.seen)
    return np.asarray(now.survived / counts.seen * a - sums / counts.seen)
