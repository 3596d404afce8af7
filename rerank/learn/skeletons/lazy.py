"""What learners share whose weights shrink without being touched: counters, lazy sums of predictors, free columns.

A column keeps a_j, and weighs sign(a_j)·max(|a_j| − τ_k·v_j, 0)·d_k under predictor k, or a_j·f_k where it is free. The
average is exact and nothing loops over all columns: while a_j stays the same for the predictors a..b,

    Σ_k c_k w_kj = sign(a_j)·(|a_j|·(P_e − P_{a−1}) − v_j·(Q_e − Q_{a−1})),   P = Σ c_k d_k, Q = Σ c_k d_k τ_k,

where e is the last k ≤ b with τ_k·v_j < |a_j|; and a_j·(F_b − F_{a−1}), F = Σ c_k f_k, for free columns. It is entered
in a column's total just before the column changes.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.by_type import body, by_type
from rerank.kernels.compile import kernel, kernel_of
from rerank.learn.apart import ByColumn, TrainedApart, cells_of
from rerank.learn.base import Learner, Weights
from rerank.learn.passes import gradient_pass, repeat_steps
from rerank.learn.skeletons.additive import counted, require_average
from rerank.learn.steps import ALIVE, UPDATES, beta, outlive, scale_of, settle
from rerank.learn.workspace import ListArrays, Scratch

# A column's cell in an epoch: Σ c_k w_k up to a predictor, its place in the sums, and P and Q there. They lie together:
# entering a column costs one access to memory.
TOTAL_SO_FAR, AT, P_AT, Q_AT = range(4)
# Indices of a state's counts after UPDATES and ALIVE: lists not in the sums yet, Σ c_k, how many columns are free; and,
# of its base, Σ c_k β_k.
PENDING, TOTAL, FREE = range(2, 5)
SUM = 1
GUESSES = 6  # of where a column leaves, before the rest is bisected


class PredictorSums(NamedTuple):
    """Sums over the predictors of an epoch, k0 being the first: those of predictor k are at k − k0 + 1, 0 at 0."""

    P: np.ndarray  # float64 [updates + 2]
    Q: np.ndarray  # float64 [updates + 2]
    F: np.ndarray  # float64 [updates + 2]
    level: np.ndarray  # float64 [updates + 2]: τ_k
    cells: ByColumn  # float64 [D, 4]: see TOTAL_SO_FAR
    k0: int


@by_type
def level_of(state: Any, q: Any) -> float:
    """τ of the current predictor."""
    return float(state.counts[UPDATES])


@by_type
def free_scale(state: Any, q: Any) -> float:
    """f of the current predictor."""
    return float(scale_of(state, q))


@by_type
def summed_column(state: Any, j: int, last: int, sums: PredictorSums, free: int, q: Any) -> float:
    """Σ c_k w_kj over the predictors up to ``last`` of ``sums``, from the one after that in the column's cell."""
    return 0.0


@by_type
def summed(a: float, slope: float, cell: np.ndarray, last: int, sums: PredictorSums) -> float:
    """sign(a)·(|a|·(P_e − P_first) − v·(Q_e − Q_first))."""
    size, e = abs(a), last
    if not size > 0.0:
        return float(size)  # 0, or not a number: there is no last predictor to look up
    if not sums.level[e] * slope < size:
        e = last_active(size, slope, sums.level, int(cell[AT]), last)
    total = size * (sums.P[e] - cell[P_AT]) - slope * (sums.Q[e] - cell[Q_AT])
    return float(total if a > 0 else -total)


@kernel
def last_active(size: float, slope: float, level: np.ndarray, first: int, last: int) -> int:
    """The last predictor of first..last − 1 before which no τ·slope is ``size`` or more; ``first`` is not looked at.

    τ never falls, and mostly rises like a line: some places are guessed between two that are known before the rest is
    bisected.
    """
    near, far, low, high, guesses = first, last, level[first], level[last], 0
    while far - near > 1:
        part = 0.5
        if guesses < GUESSES:
            part = (size / slope - low) / (high - low)
            part = min(part, 1.0) if part >= 0.0 else 0.0  # 0 for what is not a number, too
        at = near + 1 + int(part * (far - near - 2))
        if level[at] * slope < size:
            near, low = at, level[at]
        else:
            far, high = at, level[at]
        guesses += 1
    return near


@kernel
def first_penalised(data: ListArrays, y: int) -> int:
    """Where candidate y's nonzeros in columns that are not free begin; columns rise within a row."""
    p, end = data.rows[y], data.rows[y + 1]
    while p < end and data.columns[p] < data.free:
        p += 1
    return int(p)


@kernel
def shrink(a: float, threshold: float) -> float:
    """sign(a)·max(|a| − threshold, 0)."""
    return max(a - threshold, 0.0) + min(a + threshold, 0.0)


@by_type
def close_predictor(state: Any, sums: PredictorSums, q: Any) -> None:
    """Enter the current predictor, with what it has survived since it was last entered, into the sums."""
    at, c = state.counts[UPDATES] - sums.k0 + 1, state.counts[PENDING]
    d, level = scale_of(state, q), level_of(state, q)
    sums.P[at] = sums.P[at - 1] + c * d
    sums.Q[at] = sums.Q[at - 1] + c * d * level
    sums.F[at] = sums.F[at - 1] + c * free_scale(state, q)
    sums.level[at] = level
    state.base[SUM] += c * beta(state, q)
    state.counts[TOTAL] += c
    state.counts[PENDING] = 0


@by_type
def settle_column(state: Any, j: int, last: int, sums: PredictorSums, free: int, q: Any) -> None:
    """Enter what column j weighed, up to the current predictor, at ``last`` of ``sums``, into its total."""
    cell = sums.cells[j]
    cell[TOTAL_SO_FAR] += summed_column(state, j, last, sums, free, q)
    cell[AT], cell[P_AT], cell[Q_AT] = last, sums.P[last], sums.Q[last]


@kernel
def flush(state: Any, sums: PredictorSums, q: Any) -> None:
    """Bring every column's total up to date; nothing lazy is left."""
    if state.total.shape[0] > 0:
        close_predictor(state, sums, q)
    for j in range(state.total.shape[0]):
        column: Any = np.uint32(j)  # as lists have them, for which this is compiled anyway
        settle_column(state, column, state.counts[UPDATES] - sums.k0 + 1, sums, state.counts[FREE], q)
        state.total[j] = sums.cells[j, TOTAL_SO_FAR]


@dataclass(frozen=True, kw_only=True)
class Lazy(Learner):
    """A learner whose state has ``total`` (float64 [D], Σ c_k w_k), ``counts`` (int64 [5]) and ``base``.

    ``total`` has no numbers where no average is wanted; then there are no lazy sums.
    """

    passes: ClassVar[Any] = gradient_pass
    replays: ClassVar[Any] = repeat_steps

    @abstractmethod
    def init(self, columns: int, candidates: int = 0) -> Any:
        """See ``Learner.init``."""

    def light(self, state: Any) -> Any:
        return state._replace(total=np.zeros(0))

    def begin(self, corpus: Corpus, order: np.ndarray, state: Any) -> PredictorSums:
        """See ``Learner.begin``.

        Raises
        ------
        ValueError: the state was trained with other free columns; what it keeps of a column depends on whether it is
            free.
        """
        if state.counts[UPDATES] > 0 and state.counts[FREE] != corpus.free:
            raise ValueError(
                f"the state was trained with {state.counts[FREE]} free columns, the corpus has {corpus.free}; "
                "train on corpora of one feature table"
            )
        state.counts[FREE] = corpus.free
        k0, columns = int(state.counts[UPDATES]), state.total.size
        P, Q, F, level = np.zeros((4, order.size + 2 if columns else 0))
        cells = cells_of(columns, 4)
        cells[:, TOTAL_SO_FAR] = state.total
        return PredictorSums(P, Q, F, level, cells, k0)

    def finish(self, state: Any, lazy: PredictorSums) -> None:
        kernel_of(flush, type(self))(state, lazy, self.settings(state))

    def average(self, state: Any) -> Weights:
        require_average(state, state.total, len(state[0]))
        seen = int(state.counts[TOTAL])
        if seen == 0:
            return Weights(np.zeros(len(state[0])), float(self.base))
        return Weights(state.total / seen, float(state.base[SUM] / seen) if self.base_rate else float(self.base))

    def counted(self, apart: TrainedApart) -> np.ndarray:
        """The counts of a combined state; the number of free columns is not added up."""
        counts = counted(apart)
        counts[FREE] = max(int(end.counts[FREE]) for end in apart.ends)
        return counts

    def penalised(self, state: Any, value: float) -> np.ndarray:
        """float64 [D]: ``value`` in the columns that are not free, else 0."""
        return np.where(np.arange(len(state[0])) < state.counts[FREE], 0.0, value)


@body(settle, Lazy)
def settle_touched(state: Any, lazy: Any, t: Scratch, count: int, free: int, q: Any) -> None:
    """The current predictor ends."""
    if state.total.shape[0] > 0:
        close_predictor(state, lazy, q)
        last = state.counts[UPDATES] - lazy.k0 + 1
        for r in range(np.uint64(count)):
            settle_column(state, t.column[r], last, lazy, free, q)
    state.counts[ALIVE] = 0


@body(outlive, Lazy)
def outlive_lazy(state: Any, q: Any) -> None:
    """The list on which a predictor errs is the first that the next one counts."""
    state.counts[ALIVE] += 1
    state.counts[PENDING] += 1
