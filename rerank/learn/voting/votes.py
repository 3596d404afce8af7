"""Votes: the predictors of a training run as a sequence of sparse changes, which is what exact voting replays.

Under predictor k a candidate scores β_k·b(y) + d_k·w_k·φ(y), and column j weighs

    w_kj = a_j − τ_k·v_j  while  |a_j| > τ_k·|v_j|,  else 0,

with a_j and v_j as the last update that touched the column left them. Rules without a growing threshold have τ = 0 and
a_j is the weight itself; where none is stored, v_j is the sign of a_j.
"""

from typing import NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import kernel
from rerank.learn.log import UpdateLog
from rerank.learn.workspace import ListArrays, Scratch, scratch_for, view


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
    def from_arrays(arrays: dict[str, np.ndarray]) -> "Votes":
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
    threshold: np.ndarray  # float64 [M + 1]
    scale: np.ndarray
    beta: np.ndarray
    width: int  # D


@kernel
def load(log: Updates, k: int, t: Scratch) -> int:
    """The candidates and coefficients of update k, in ``t.who`` and ``t.a``; returns their number."""
    n = log.first[k + 1] - log.first[k]
    for r in range(n):
        t.who[r], t.a[r] = log.candidate[log.first[k] + r], log.a[log.first[k] + r]
    return int(n)


@kernel
def add_sizes(rows: np.ndarray, first: np.ndarray, candidate: np.ndarray, sizes: np.ndarray) -> None:
    """Upper limits on the columns of every update: the nonzeros of its candidates."""
    for k in range(sizes.shape[0]):
        for e in range(first[k], first[k + 1]):
            sizes[k] += rows[candidate[e] + 1] - rows[candidate[e]]


class Replay:
    """What a learner needs to repeat the updates of ``log`` on their ``corpus``, and where it leaves them.

    base: the weight of the base score under the first predictor; loss: the number of the loss that updates were made
    for; full: an update touches every column; slopes: slopes are stored; more: how many columns an update touches in
    addition to those of its candidates.
    """

    def __init__(
        self, log: UpdateLog, corpus: Corpus, base: float, loss: int, *,
        full: bool = False, slopes: bool = False, more: int = 0,
    ) -> None:  # fmt: skip
        arrays = log.arrays()
        self._survived = arrays.pop("survived")
        self.updates = Updates(**arrays)
        M, D = self.updates.lists.size, corpus.width
        sizes = np.zeros(M, np.int64)
        add_sizes(corpus.rows, self.updates.first, self.updates.candidate, sizes)
        room = M * D if full else int(np.minimum(sizes + more, D + more).sum())
        self.data: ListArrays = view(corpus, np.full(corpus.list_count, -1))
        self.space = scratch_for(corpus, loss)
        self.room = VoteRoom(
            first=np.zeros(M + 1, np.int64),
            columns=np.empty(room, np.int32),
            value=np.empty(room),
            slope=np.empty(room if slopes else 0),
            threshold=np.zeros(M + 1),
            scale=np.ones(M + 1),
            beta=np.full(M + 1, float(base)),
            width=D,
        )

    def votes(self) -> Votes:
        """The replayed updates."""
        room, end = self.room, int(self.room.first[-1])
        return Votes(
            first=room.first,
            columns=room.columns[:end].copy(),
            value=room.value[:end].copy(),
            slope=room.slope[: end if room.threshold.any() else 0].copy(),
            threshold=room.threshold if room.threshold.any() else np.zeros(0),
            scale=room.scale,
            beta=room.beta,
            survived=self._survived,
        )
