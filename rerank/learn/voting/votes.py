"""Votes: the predictors of a training run as a sequence of sparse changes, which is what exact voting replays.

Under predictor k a candidate scores β_k·b(y) + d_k·w_k·φ(y), and column j weighs

    w_kj = a_j − τ_k·v_j  while  |a_j| > τ_k·|v_j|,  else 0,

with a_j and v_j as the last update that touched the column left them. Rules without a growing threshold have τ = 0 and
a_j is the weight itself; where none is stored, v_j is the sign of a_j.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.learn.log import UpdateLog
from rerank.learn.losses import HINGE, LOG
from rerank.learn.workspace import ListArrays, Scratch, scratch, view


class Votes(NamedTuple):
    """M updates, M + 1 predictors; predictor k was made by update k − 1."""

    first: np.ndarray  # int64 [M + 1]: entries of update k are first[k]..first[k + 1]
    columns: np.ndarray  # int32 [entries]
    value: np.ndarray  # float64 [entries]: a_j from then on
    slope: np.ndarray  # float64 [entries]: v_j from then on; [0] for the sign of a_j
    threshold: np.ndarray  # float64 [M + 1]: τ_k, never falling; [0] for 0
    scale: np.ndarray  # float64 [M + 1]: d_k ≥ 0
    beta: np.ndarray  # float64 [M + 1]: β_k
    survived: np.ndarray  # int64 [M + 1]: c_k

    def arrays(self) -> dict[str, np.ndarray]:
        """The fields by name."""
        return dict(self._asdict())

    @staticmethod
    def from_arrays(arrays: dict[str, np.ndarray]) -> Votes:
        """The inverse of ``arrays``."""
        return Votes(**arrays)

    def check(self, width: int) -> None:
        """Raise a ValueError unless these are votes over ``width`` columns that kernels can rely on."""
        whole = {"first": np.int64, "columns": np.int32, "survived": np.int64}
        for name, array in self._asdict().items():
            dtype = whole.get(name, np.float64)
            if array.ndim != 1 or array.dtype != dtype:
                raise ValueError(
                    f"votes: {name} is {array.dtype} of {array.ndim} axes; expected {np.dtype(dtype)} of 1"
                )
            if not np.all(np.isfinite(array)):
                raise ValueError(f"votes: {name} holds numbers that are not finite")
        predictors, entries = self.survived.size, self.columns.size
        sizes: dict[str, tuple[int, ...]]
        sizes = {"first": (predictors,), "scale": (predictors,), "beta": (predictors,), "value": (entries,)}
        sizes |= {"threshold": (predictors, 0), "slope": (entries, 0)}
        for name, allowed in sizes.items():
            if getattr(self, name).size not in allowed:
                raise ValueError(f"votes: {name} has {getattr(self, name).size} entries; expected {allowed[0]}")
        if (
            predictors == 0
            or self.first[0] != 0
            or self.first[-1] != entries
            or np.any(self.first[1:] < self.first[:-1])
            or np.any(self.columns < 0)
            or np.any(self.columns >= width)
            or np.any(self.threshold[1:] < self.threshold[:-1])
            or np.any(self.threshold < 0)
            or np.any(self.scale < 0)
            or np.any(self.survived < 0)
        ):
            raise ValueError("votes: an array is out of order or out of range")


class Updates(NamedTuple):
    """An UpdateLog for kernels."""

    lists: np.ndarray  # int64 [M]
    first: np.ndarray  # int64 [M + 1]
    candidate: np.ndarray  # int64 [entries]
    a: np.ndarray  # float64 [entries]
    rate: np.ndarray  # float64 [M]


class VoteRoom(NamedTuple):
    """Room for the votes of all updates; arrays as in Votes."""

    first: np.ndarray
    columns: np.ndarray
    value: np.ndarray
    slope: np.ndarray  # [0] where none is stored
    beta: np.ndarray  # float64 [M + 1]: the first is the learner's own


@kernel
def load(log: Updates, k: int, t: Scratch) -> int:
    """The candidates and coefficients of update k, in ``t.who`` and ``t.a``; returns their number."""
    n = log.first[k + 1] - log.first[k]
    for r in range(n):
        t.who[r], t.a[r] = log.candidate[log.first[k] + r], log.a[log.first[k] + r]
    return int(n)


@kernel
def emit(room: VoteRoom, k: int, t: Scratch, count: int, w: np.ndarray, sign: float, beta: float) -> None:
    """Update k left sign·w[j] in the columns of ``t.column``, and weighs the base score by β."""
    at = room.first[k]
    for r in range(count):
        room.columns[at + r], room.value[at + r] = t.column[r], sign * w[t.column[r]]
    room.first[k + 1] = at + count
    room.beta[k + 1] = beta


@kernel
def free_slopes(room: VoteRoom, k: int, free: int) -> None:
    """v_j of update k: the sign of a_j, and 0 for free columns."""
    for at in range(room.first[k], room.first[k + 1]):
        room.slope[at] = np.sign(room.value[at]) if room.columns[at] >= free else 0.0


@kernel
def emit_free(room: VoteRoom, k: int, s: np.ndarray, ratio: float, free: int) -> None:
    """Update k leaves −s_j·ratio in all free columns: f_k/d_k grows with every update."""
    end = room.first[k]
    for at in range(room.first[k], room.first[k + 1]):
        if room.columns[at] >= free:
            room.columns[end], room.value[end] = room.columns[at], room.value[at]
            if room.slope.shape[0] > 0:
                room.slope[end] = room.slope[at]
            end += 1
    for j in range(free):
        room.columns[end], room.value[end] = j, -s[j] * ratio
        if room.slope.shape[0] > 0:
            room.slope[end] = 0.0
        end += 1
    room.first[k + 1] = end


@kernel
def add_sizes(rows: np.ndarray, first: np.ndarray, candidate: np.ndarray, sizes: np.ndarray) -> None:
    """Upper limits on the columns of every update: the nonzeros of its candidates."""
    for k in range(sizes.shape[0]):
        for e in range(first[k], first[k + 1]):
            sizes[k] += rows[candidate[e] + 1] - rows[candidate[e]]


class Replay:
    """What a learner needs to repeat the updates of ``log`` on their ``corpus``, and where it leaves them.

    base: the weight of the base score under the first predictor; full: an update touches every column; slopes: slopes
    are stored; more: how many columns an update touches in addition to those of its candidates.
    """

    def __init__(
        self, log: UpdateLog, corpus: Corpus, base: float, *, full: bool = False, slopes: bool = False, more: int = 0
    ) -> None:
        arrays = log.arrays()
        self._survived = arrays.pop("survived")
        self.updates = Updates(**arrays)
        M, D = self.updates.lists.size, corpus.width
        sizes = np.zeros(M, np.int64)
        add_sizes(corpus.rows, self.updates.first, self.updates.candidate, sizes)
        room = M * D if full else int(np.minimum(sizes + more, D + more).sum())
        self.data: ListArrays = view(corpus, np.full(corpus.list_count, -1))
        # A coefficient of 0 is not logged: an update with one entry is not a pair, and is summed up in ``g``.
        pairs = np.isin(np.diff(self.updates.first), (0, 2)).all()
        self.space = scratch(corpus, HINGE if pairs else LOG)
        self.room = VoteRoom(
            np.zeros(M + 1, np.int64),
            np.empty(room, np.int32),
            np.empty(room),
            np.empty(room if slopes else 0),
            np.full(M + 1, float(base)),
        )

    def votes(self, *, scale: np.ndarray | None = None, threshold: np.ndarray | None = None) -> Votes:
        """The replayed updates; d_k is 1 and τ_k is 0 by default."""
        M, end = self.updates.lists.size, int(self.room.first[-1])
        return Votes(
            first=self.room.first,
            columns=self.room.columns[:end].copy(),
            value=self.room.value[:end].copy(),
            slope=self.room.slope[:end].copy(),
            threshold=np.zeros(0) if threshold is None else threshold,
            scale=np.ones(M + 1) if scale is None else scale,
            beta=self.room.beta,
            survived=self._survived,
        )
