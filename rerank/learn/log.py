"""The updates of a training run, for voting and bounds: as coefficients of candidates, and as sparse vectors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rerank.compile import kernel
from rerank.corpus import Corpus
from rerank.learn.losses import accumulate


class LogRoom(NamedTuple):
    """Room for the updates of a part of an epoch; ``used``: updates and entries so far (int64 [2])."""

    used: np.ndarray
    lists: np.ndarray  # int64
    entries: np.ndarray  # int64
    survived: np.ndarray  # int64
    candidate: np.ndarray  # int64
    a: np.ndarray  # float64


@kernel
def record(log: LogRoom, i: int, who: np.ndarray, a: np.ndarray, n: int, survived: int) -> None:
    """Log an update on list i; ``survived`` is the count of the predictor that it ends."""
    update, entry = log.used[0], log.used[1]
    log.lists[update], log.survived[update] = i, survived
    count = 0
    for r in range(n):
        if a[r] != 0.0:
            log.candidate[entry + count], log.a[entry + count] = who[r], a[r]
            count += 1
    log.entries[update] = count
    log.used[0], log.used[1] = update + 1, entry + count


class UpdateLog:
    """The updates of a training run: which list, and the coefficient of each candidate in the subgradient.

    Update k used g = Σ_y a_y φ(y) of one list; the sparse vector is summed up again from the corpus when it is
    needed, in the same order, so it has the same bits. ``survived[k]`` is c_k, the lists that predictor k survived
    (Freund & Schapire 1999): it starts at 1 for the list on which the predictor was made, at 0 for w_1 = 0.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[np.ndarray, ...]] = []  # lists, entries, candidate, a, survived
        self._alive = 0  # c of the predictor that is still alive

    def add_room(self, room: LogRoom, alive: int) -> None:
        """The updates in ``room``, and the count of the predictor that is alive after them."""
        n, entries = (int(x) for x in room.used)
        arrays = room.lists[:n], room.entries[:n], room.candidate[:entries], room.a[:entries], room.survived[:n]
        self._parts.append(tuple(array.copy() for array in arrays))
        self._alive = alive

    @property
    def updates(self) -> int:
        """Number of updates M; there are M + 1 predictors."""
        return sum(part[0].size for part in self._parts)

    def marks(self) -> tuple[int, int]:
        """Where the log stands; see ``cut``."""
        return len(self._parts), self._alive

    def cut(self, marks: tuple[int, int]) -> UpdateLog:
        """The log as it was at ``marks``."""
        log = UpdateLog()
        log._parts, log._alive = self._parts[: marks[0]], marks[1]
        return log

    def head(self, updates: int) -> UpdateLog:
        """The first ``updates`` updates alone."""
        arrays = self.arrays()
        first = arrays["first"][: updates + 1]
        return UpdateLog.from_arrays(
            {
                "lists": arrays["lists"][:updates],
                "first": first,
                "candidate": arrays["candidate"][: first[-1]],
                "a": arrays["a"][: first[-1]],
                "survived": arrays["survived"][: updates + 1],
            }
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """lists int64 [M], first int64 [M + 1], candidate int64 and a float64 [entries], survived int64 [M + 1]."""
        empty = (
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
            np.zeros(0),
            np.zeros(0, np.int64),
        )
        lists, entries, candidate, a, survived = (
            np.concatenate(column) for column in zip(*(self._parts or [empty]), strict=True)
        )
        first = np.concatenate([[0], np.cumsum(entries)]).astype(np.int64)
        survived = np.append(survived, self._alive).astype(np.int64)
        return {"lists": lists, "first": first, "candidate": candidate, "a": a, "survived": survived}

    @staticmethod
    def from_arrays(arrays: dict[str, np.ndarray]) -> UpdateLog:
        """The inverse of ``arrays``."""
        log = UpdateLog()
        entries, survived = np.diff(arrays["first"]), arrays["survived"]
        log._parts = [(arrays["lists"], entries, arrays["candidate"], arrays["a"], survived[:-1])]
        log._alive = int(survived[-1])
        return log


class Votes(NamedTuple):
    """The updates as vectors: what exact voting needs, without the training corpus; M updates, M + 1 predictors."""

    first: np.ndarray  # int64 [M + 1]: entries of update k are first[k]..first[k + 1]
    columns: np.ndarray  # int32 [entries]
    delta: np.ndarray  # float64 [entries]: what is added to s_j
    base: np.ndarray  # float64 [M]: what is added to the base score's s
    survived: np.ndarray  # int64 [M + 1]: c_k

    def arrays(self) -> dict[str, np.ndarray]:
        """The fields by name."""
        return dict(self._asdict())

    @staticmethod
    def from_arrays(arrays: dict[str, np.ndarray]) -> Votes:
        """The inverse of ``arrays``."""
        return Votes(**arrays)


@kernel
def expand_counts(rows: np.ndarray, first: np.ndarray, candidate: np.ndarray, sizes: np.ndarray) -> None:
    """Upper limits on the columns of every update: the nonzeros of its candidates."""
    for k in range(sizes.shape[0]):
        for e in range(first[k], first[k + 1]):
            sizes[k] += rows[candidate[e] + 1] - rows[candidate[e]]


@kernel
def expand_updates(
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    corpus_base: np.ndarray,
    weight: np.ndarray,
    lists: np.ndarray,
    entry: np.ndarray,
    candidate: np.ndarray,
    a: np.ndarray,
    base_rate: float,
    g: np.ndarray,
    seen: np.ndarray,
    touched: np.ndarray,
    first: np.ndarray,
    out_columns: np.ndarray,
    out_delta: np.ndarray,
    out_base: np.ndarray,
) -> None:
    """Sum up the subgradient of every update, in the order in which training did."""
    at = 0
    for k in range(lists.shape[0]):
        first[k] = at
        n = entry[k + 1] - entry[k]
        who, size = candidate[entry[k] : entry[k + 1]], a[entry[k] : entry[k + 1]]
        count = accumulate(rows, columns, values, who, size, n, g, seen, k + 1, touched)
        for r in range(count):
            j = touched[r]
            out_columns[at], out_delta[at] = j, weight[lists[k]] * g[j]
            at += 1
        total = 0.0
        for r in range(n):
            total += size[r] * corpus_base[who[r]]
        out_base[k] = weight[lists[k]] * (total * base_rate)
    first[lists.shape[0]] = at


def expand(log: UpdateLog, corpus: Corpus, base_rate: float) -> Votes:
    """The logged updates as vectors over the columns of the training ``corpus``, the base score as base_rate·b(y)."""
    arrays = log.arrays()
    M, D = arrays["lists"].size, corpus.width
    sizes = np.zeros(M, np.int64)
    expand_counts(corpus.rows, arrays["first"], arrays["candidate"], sizes)
    room = int(np.minimum(sizes, D).sum())
    first, base = np.zeros(M + 1, np.int64), np.zeros(M)
    columns, delta = np.empty(room, np.int32), np.empty(room)
    expand_updates(
        corpus.rows,
        corpus.columns,
        corpus.values,
        corpus.base,
        corpus.weight,
        arrays["lists"],
        arrays["first"],
        arrays["candidate"],
        arrays["a"],
        base_rate,
        np.empty(D),
        np.full(D, -1, np.int64),
        np.empty(D, np.int64),
        first,
        columns,
        delta,
        base,
    )
    return Votes(first, columns[: first[-1]].copy(), delta[: first[-1]].copy(), base, arrays["survived"])
