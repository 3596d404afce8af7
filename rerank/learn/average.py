"""The average of all predictors, weighted by the lists c_k that they survived, without a loop over all columns.

While a_j and v_j stay what they are under the predictors a..b,

    Σ_k c_k w_kj = sign(a_j)·(|a_j|·(P_e − P_{a−1}) − |v_j|·(Q_e − Q_{a−1})),   P = Σ c_k d_k, Q = Σ c_k d_k τ_k,

where e is the last k ≤ b with τ_k·|v_j| < |a_j|. Where a threshold rises, this is entered in a column's sum just before
the column changes (``settle``), and at the end of an epoch for all columns. Where τ = 0 the sums telescope:

    Σ_k c_k w_kj = P·a_j − Σ_updates P_now·Δa_j,

and u_j ← u_j + P_now·Δa_j, where the change is made (``predictor.add``), is all that there is to do.
"""

from typing import Any, NamedTuple

import numpy as np

from rerank.kernels.compile import body, by_type, kernel, prefetch
from rerank.learn.predictor import State, cells_of, look_up_sum, named, score, score_list, score_shrunk, slope_of
from rerank.learn.workspace import ListArrays, Scratch

# A column's cell in an epoch: Σ c_k w_k up to a predictor, its place in the sums, and P and Q there. They lie together:
# entering a column costs one access to memory.
CELL = np.dtype((np.record, [("total", float), ("at", np.int64), ("P", float), ("Q", float)]))


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
    return PredictorSums(P, Q, F, tau, cells, int(named(state).counts.updates))


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
def summed(a: float, slope: float, cell: Any, last: int, sums: PredictorSums) -> float:
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
def settle_column(state: Any, j: int, last: int, sums: PredictorSums) -> None:
    """Enter what column j weighed, up to the current predictor, at ``last`` of ``sums``, into its total."""
    cell, a = sums.cells[j], state.a[j]
    if j < state.counts.free:
        cell.total += a * (sums.F[last] - sums.F[cell.at])
    elif j < state.a.shape[0] - 1:
        cell.total += summed(a, slope_of(state, j), cell, last, sums)
    cell.at, cell.P, cell.Q = last, sums.P[last], sums.Q[last]


@by_type
def settle(state: Any, sums: PredictorSums, scratch: Scratch, count: int) -> None:
    """Enter what the columns of g have weighed so far into lazy sums, before they change."""
    if state.sums.shape[0] > 0:
        close_predictor(state, sums)
        last = state.counts.updates - sums.k0 + 1
        for r in range(np.uint64(count)):
            settle_column(state, scratch.column[r], last, sums)


@kernel
def flush(state: Any, sums: PredictorSums) -> None:
    """Bring the sum of every column up to date; nothing lazy is left."""
    if state.sums.shape[0] > 0:
        close_predictor(state, sums)
    for j in range(state.sums.shape[0]):
        column: Any = np.uint32(j)  # as lists have them, for which this is compiled anyway
        settle_column(state, column, state.counts.updates - sums.k0 + 1, sums)
        state.sums[j] = sums.cells[j].total


@by_type
def average_anew(state: Any) -> None:
    """Σ c_k d_k ← 0, where τ = 0: what all columns have added to the average so far is −u from here on."""
    for j in range(state.sums.shape[0]):
        state.sums[j] -= state.now.survived * state.a[j]
    state.now.survived = 0.0


def average_of(state: State, shrinks: bool) -> np.ndarray:
    """float64 [D + 1]: Σ c_k w_k / Σ c_k"""
    a, _, _, sums, _, now, counts, _, _ = named(state)
    if sums.size == 0 and counts.updates > 0:
        raise ValueError("this state keeps no average; train without `without_average`")
    if counts.seen == 0 or sums.size == 0:
        return np.zeros(len(state.cells))
    if shrinks:
        return np.asarray(sums / counts.seen)
    return np.asarray(now.survived / counts.seen * a - sums / counts.seen)
