"""The updates of a training run as coefficients of candidates: what voting and bounds are made from."""

from typing import NamedTuple

import numpy as np

from rerank.kernels.compile import kernel

UPDATES, ENTRIES = 0, 1  # places in ``LogBuffers.used``
KINDS: dict[str, type] = {
    "lists": np.int64, "entries": np.int64, "candidate": np.int64, "a": np.float64, "rate": np.float64,
    "survived": np.int64,
}  # fmt: skip
OF_ENTRIES = "candidate", "a"  # the others have one number per update


class LogBuffers(NamedTuple):
    """Room for the updates of a part of an epoch; ``used``: updates and entries so far (int64 [2])."""

    used: np.ndarray
    lists: np.ndarray  # int64
    entries: np.ndarray  # int64
    survived: np.ndarray  # int64
    rate: np.ndarray  # float64
    candidate: np.ndarray  # int64
    a: np.ndarray  # float64


@kernel
def record(log: LogBuffers, i: int, who: np.ndarray, a: np.ndarray, n: int, rate: float, survived: int) -> None:
    """Log an update on list i; ``survived`` is the count of the predictor that it ends."""
    update, entry = log.used[UPDATES], log.used[ENTRIES]
    log.lists[update], log.survived[update], log.rate[update] = i, survived, rate
    count = 0
    for r in range(n):
        if a[r] != 0.0:
            log.candidate[entry + count], log.a[entry + count] = who[r], a[r]
            count += 1
    log.entries[update] = count
    log.used[UPDATES], log.used[ENTRIES] = update + 1, entry + count


class UpdateLog:
    """The updates of a training run: which list, the coefficient of each candidate in the subgradient, and a rate.

    Update k used g = Σ_y a_y φ(y) of one list; the sparse vector is summed up again from the corpus when it is
    needed, in the same order, so it has the same bits. ``rate`` is a number that the update rule needs to repeat the
    update (a step size, a margin). ``survived[k]`` is c_k, the lists that predictor k survived
    (Freund & Schapire 1999): it starts at 1 for the list on which the predictor was made, at 0 for w_1 = 0.
    """

    def __init__(self) -> None:
        self._parts: list[dict[str, np.ndarray]] = []  # by name, see ``KINDS``
        self._alive = 0  # c of the predictor that is still alive

    def add_buffers(self, room: LogBuffers, alive: int) -> None:
        """The updates in ``room``, and the count of the predictor that is alive after them."""
        sizes = {name: int(room.used[ENTRIES if name in OF_ENTRIES else UPDATES]) for name in KINDS}
        self._parts.append({name: getattr(room, name)[:size].copy() for name, size in sizes.items()})
        self._alive = alive

    @property
    def updates(self) -> int:
        """Number of updates M; there are M + 1 predictors."""
        return sum(part["lists"].size for part in self._parts)

    def marks(self) -> tuple[int, int]:
        """The end of the log so far, for ``head``: its updates, and the count of the predictor that is alive."""
        return self.updates, self._alive

    def head(self, updates: int, alive: int | None = None) -> "UpdateLog":
        """The first ``updates`` updates alone, as the log was when the predictor after them had survived ``alive``
        lists; None: at its end."""
        arrays = self.arrays()
        ends = dict.fromkeys(OF_ENTRIES, arrays["first"][updates]) | {"first": updates + 1, "survived": updates + 1}
        arrays = {name: array[: ends.get(name, updates)].copy() for name, array in arrays.items()}
        if alive is not None:
            arrays["survived"][-1] = alive
        return UpdateLog.from_arrays(arrays)

    def arrays(self) -> dict[str, np.ndarray]:
        """By name: lists int64 [M], first int64 [M + 1], candidate int64 and a float64 [entries], rate float64 [M],
        survived int64 [M + 1]."""
        arrays = {
            name: np.concatenate([np.zeros(0, kind), *(part[name] for part in self._parts)])
            for name, kind in KINDS.items()
        }
        arrays["entries"] = np.append(0, np.cumsum(arrays["entries"]))
        arrays["survived"] = np.append(arrays["survived"], self._alive)
        return {"first" if name == "entries" else name: array for name, array in arrays.items()}

    @staticmethod
    def from_arrays(arrays: dict[str, np.ndarray]) -> "UpdateLog":
        """The inverse of ``arrays``."""
        log, survived = UpdateLog(), arrays["survived"]
        log._parts = [arrays | {"entries": np.diff(arrays["first"]), "survived": survived[:-1]}]
        log._alive = int(survived[-1])
        return log
