"""One epoch of a learner: present every list, judge it, learn from it, count; and the log of its updates, which are
repeated for votes.

``judge`` is the loss's own, ``sum_subgradient`` and ``learn`` are the learner's; which ones are meant is settled while
the epoch is compiled. Some learners learn from difference vectors z = φ(y*) − φ(y'), of several rivals in turn
(``pair_epoch``); those with a variable for every candidate have epochs of their own.

Votes are the predictors as a sequence of sparse changes. Under predictor k a candidate scores β_k·b(y) + d_k·w_k·φ(y),
and column j weighs

    w_kj = a_j − τ_k·v_j  while  |a_j| > τ_k·|v_j|,  else 0,

with a_j and v_j as the last update that touched the column left them. Rules without a growing threshold have τ = 0 and
a_j is the weight itself; where none is stored, v_j is the sign of a_j. Updates are repeated on the lists, or on what
they touched of lists that are larger than memory.
"""

from typing import Any, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.kernels.compile import by_type, kernel
from rerank.learn.losses import costliest, judge
from rerank.learn.pairs import compares_oracle, pick, pick_next
from rerank.learn.predictor import beta, close, flush_columns, look_up, score, slope_of, survive
from rerank.learn.workspace import (
    SKIP,
    UPDATE,
    ListArrays,
    Scratch,
    difference,
    learn,
    look_ahead,
    sum_subgradient,
    update_pair,
)

UPDATES, ENTRIES = 0, 1  # indices in ``LogBuffers.sizes``
DTYPES: dict[str, type] = {
    "lists": np.int64, "entries": np.int64, "candidate": np.int64, "a": np.float64, "rate": np.float64,
    "survived": np.int64,
}  # fmt: skip
ENTRY_ARRAYS = "candidate", "a"  # the others have one number per update


class LogBuffers(NamedTuple):
    """Room for the updates of a part of an epoch, or for none; ``sizes``: updates and entries so far (int64 [2])."""

    sizes: np.ndarray
    lists: np.ndarray  # int64
    entries: np.ndarray  # int64
    survived: np.ndarray  # int64
    rate: np.ndarray  # float64
    candidate: np.ndarray  # int64
    a: np.ndarray  # float64


NO_LOG = LogBuffers(np.zeros(2, np.int64), *(np.empty(0, DTYPES[name]) for name in LogBuffers._fields[1:]))


def log_buffers(corpus: Corpus, order: np.ndarray, pairwise: bool, top: int) -> LogBuffers:
    """Room for every list of ``order`` to update, ``top`` times where the loss is pairwise."""
    n = top * order.size
    entries = 2 * n if pairwise else int(np.diff(corpus.lists)[order].sum())
    lists, sizes, alive = np.empty((3, n), np.int64)
    candidate, a = np.empty(entries, np.int64), np.empty(entries)
    return LogBuffers(np.zeros(2, np.int64), lists, sizes, alive, np.empty(n), candidate, a)


@kernel
def record(log: LogBuffers, i: int, who: np.ndarray, a: np.ndarray, n: int, rate: float, alive: int) -> None:
    """Log an update on list i, if there is room for any; ``alive`` is the count of the predictor that it ends."""
    if log.lists.shape[0] == 0:
        return
    update, entry = log.sizes[UPDATES], log.sizes[ENTRIES]
    log.lists[update], log.survived[update], log.rate[update] = i, alive, rate
    count = 0
    for r in range(n):
        if a[r] != 0.0:
            log.candidate[entry + count], log.a[entry + count] = who[r], a[r]
            count += 1
    log.entries[update] = count
    log.sizes[UPDATES], log.sizes[ENTRIES] = update + 1, entry + count


@kernel
def epoch(
    data: ListArrays, order: np.ndarray, state: Any, sums: Any, scratch: Scratch, log: LogBuffers,
    tally: Any, params: Any,
) -> None:  # fmt: skip
    """Pass over ``order``: predict and, on a mistake (or always, on a loss), learn from the subgradient."""
    for at in range(order.shape[0]):
        look_ahead(data, order, at)  # memory that the next lists need
        look_up(data, order, at, state, sums, params.always)

        i = order[at]  # present
        score(data, i, state, sums, beta(state, params.base, params.base_rate), scratch.scores)

        n = judge(data, i, scratch, params.always, params.any_ties, tally, params.loss)

        if n > 0:  # learn
            # Before `close`, which sets to 0 how many lists the predictor has survived that this update ends.
            record(log, i, scratch.who, scratch.a, n, data.weight[i], state.counts.alive)
            count = sum_subgradient(data, scratch, n, state.a.shape[0] - 1, params.loss, params)
            tally.updates += 1
            if sums is not None:  # before a, v and d change: the average needs what the columns have weighed so far
                flush_columns(state, sums, scratch, count)
            learn(state, scratch, count, n, data.weight[i], params)
            close(state)  # after `learn`, in which counts.updates is that of updates before this one

        survive(state)  # count: a list counts for the predictor after it, which may have been made on it


@kernel
def pair_epoch(
    data: ListArrays, order: np.ndarray, state: Any, sums: Any, scratch: Scratch, log: LogBuffers,
    tally: Any, params: Any,
) -> None:  # fmt: skip
    """Pass over ``order``: learn from the differences of y* and its ``params.top`` best rivals in turn.

    Mistakes are judged by scores, or by margins where a learner judges after its update. A list of two needs no scores.
    """
    for at in range(order.shape[0]):
        look_ahead(data, order, at)
        look_up(data, order, at, state, sums, False)
        i = order[at]
        first, last, alive = data.lists[i], data.lists[i + 1], state.counts.alive
        scores, gain, oracle = scratch.scores[: last - first], data.gain[first:last], data.oracle[i] - first

        two = last - first == 2 and compares_oracle(data.pairs)
        two, mistake = two and not (params.any_ties and gain[0] == gain[1]), False
        if two:
            star, rival = oracle, 1 - oracle
        else:
            score(data, i, state, sums, beta(state, params.base, params.base_rate), scratch.scores)
            star, rival = pick(scores, gain, oracle, params.any_ties, i, data.pairs)
            if rival >= 0:
                mistake = not scores[star] > scores[rival]
                # The scores themselves are reduced, once the mistake is judged: further rivals are picked by them too.
                rival = costliest(data, i, scratch.scores, scratch.scores, params.any_ties, rival, params.loss)
        tally.lists += 1
        for number in range(params.top):
            if rival < 0:
                break
            cost = data.pairs.tilt * (gain[star] - gain[rival])
            count = difference(data, first + star, first + rival, params.base_rate, state.a.shape[0] - 1, scratch)
            offset = params.base * (data.base[first + star] - data.base[first + rival])
            update = update_pair(state, sums, scratch, count, offset, cost, data.weight[i], params)
            if number == 0:
                tally.loss += update.loss
                tally.mistakes += not update.m > 0.0 if two or params.judges_after_update else mistake
            tally.skipped += update.outcome == SKIP
            if update.outcome == UPDATE:
                record(log, i, scratch.who, scratch.a, 2, update.rate, alive)
                tally.updates += 1
                close(state)
                alive = 0  # of a predictor that another update of the same list ends
            if two:
                break
            if number + 1 < params.top:
                star, rival = pick_next(scores, gain, oracle, params.any_ties, i, star, rival, data.pairs)
        survive(state)


class UpdateLog:
    """The updates of a training run: which list, the coefficient of each candidate in the subgradient, and a rate.

    Update k used g = Σ_y a_y φ(y) of one list; the sparse vector is summed up again from the corpus when it is
    needed, in the same order, so it has the same bits. ``rate`` is a number that the update rule needs to repeat the
    update (a step size, a margin). ``survived[k]`` is c_k, the lists that predictor k survived
    (Freund & Schapire 1999): it starts at 1 for the list on which the predictor was made, at 0 for w_1 = 0.
    """

    def __init__(self) -> None:
        self._parts: list[dict[str, np.ndarray]] = []  # by name, see ``DTYPES``
        self._alive = 0  # c of the predictor that is still alive

    def add_buffers(self, room: LogBuffers, alive: int) -> None:
        """The updates in ``room``, and the count of the predictor that is alive after them."""
        sizes = {name: int(room.sizes[ENTRIES if name in ENTRY_ARRAYS else UPDATES]) for name in DTYPES}
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
        ends = dict.fromkeys(ENTRY_ARRAYS, arrays["first"][updates]) | {"first": updates + 1, "survived": updates + 1}
        arrays = {name: array[: ends.get(name, updates)].copy() for name, array in arrays.items()}
        if alive is not None:
            arrays["survived"][-1] = alive
        return UpdateLog.from_arrays(arrays)

    def arrays(self) -> dict[str, np.ndarray]:
        """By name: lists int64 [M], first int64 [M + 1], candidate int64 and a float64 [entries], rate float64 [M],
        survived int64 [M + 1]."""
        arrays = {
            name: np.concatenate([np.zeros(0, kind), *(part[name] for part in self._parts)])
            for name, kind in DTYPES.items()
        }
        arrays["entries"] = np.append(0, np.cumsum(arrays["entries"]))
        arrays["survived"] = np.append(arrays["survived"], self._alive)
        return {"first" if name == "entries" else name: array for name, array in arrays.items()}

    @staticmethod
    def from_arrays(arrays: dict[str, np.ndarray]) -> "UpdateLog":
        """The inverse of ``arrays``."""
        log, counts = UpdateLog(), arrays["survived"]
        log._parts = [arrays | {"entries": np.diff(arrays["first"]), "survived": counts[:-1]}]
        log._alive = int(counts[-1])
        return log


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
        return self._asdict()

    def check(self, width: int) -> None:
        """Raise a ValueError unless these are votes over ``width`` columns that kernels can rely on."""
        predictors, entries = self.survived.size, self.columns.size
        dtypes = {"first": np.int64, "columns": np.int32, "survived": np.int64}
        for name, array in self.arrays().items():
            size = entries if name in {"value", "slope", "columns"} else predictors
            dtype = dtypes.get(name, np.float64)
            absent = name in {"slope", "threshold"} and array.shape == (0,)
            if array.dtype != dtype or (array.shape != (size,) and not absent):
                form = f"{array.dtype} {list(array.shape)}"
                raise ValueError(f"votes: {name} is {form}; expected {np.dtype(dtype)} [{size}]")
            if not np.all(np.isfinite(array)):
                raise ValueError(f"votes: {name} holds numbers that are not finite")
        numbers = [self.columns, width - 1 - self.columns, self.threshold, self.scale, self.survived]
        steps = [np.diff(self.first), np.diff(self.threshold)]
        ends = predictors > 0 and self.first[0] == 0 and self.first[-1] == entries
        if not ends or any(np.any(array < 0) for array in numbers + steps):
            raise ValueError("votes: an array is out of order or out of range")


class Updates(NamedTuple):
    """An UpdateLog for kernels."""

    lists: np.ndarray  # int64 [M]
    first: np.ndarray  # int64 [M + 1]
    candidate: np.ndarray  # int64 [entries]
    a: np.ndarray  # float64 [entries]
    rate: np.ndarray  # float64 [M]


@kernel
def load(log: Updates, k: int, t: Scratch) -> int:
    """The candidates and coefficients of update k, in ``t.who`` and ``t.a``; returns their number."""
    n = log.first[k + 1] - log.first[k]
    for r in range(n):
        t.who[r], t.a[r] = log.candidate[log.first[k] + r], log.a[log.first[k] + r]
    return int(n)


@kernel
def repeat_updates(
    data: ListArrays, log: Updates, state: Any, sums: Any, scratch: Scratch, room: Votes, params: Any
) -> None:
    """Repeat the logged updates from subgradients, and write down the predictor after each of them."""
    write_numbers(room, 0, state, beta(state, params.base, params.base_rate))
    for k in range(log.lists.shape[0]):
        n = load(log, k, scratch)
        count = sum_subgradient(data, scratch, n, state.a.shape[0] - 1, params.loss, params)
        learn(state, scratch, count, n, log.rate[k], params)
        close(state)
        write_columns(room, k, scratch, count, state)
        write_numbers(room, k + 1, state, beta(state, params.base, params.base_rate))


@kernel
def repeat_pairs(
    data: ListArrays, log: Updates, state: Any, sums: Any, scratch: Scratch, room: Votes, params: Any
) -> None:
    """Learn from the logged pairs again, and write down the predictor after each of them."""
    write_numbers(room, 0, state, beta(state, params.base, params.base_rate))
    for k in range(log.lists.shape[0]):
        load(log, k, scratch)
        star, rival, weight = scratch.who[0], scratch.who[1], data.weight[log.lists[k]]
        count = difference(data, star, rival, params.base_rate, state.a.shape[0] - 1, scratch)
        update_pair(state, sums, scratch, count, log.rate[k], 1.0, weight, params)
        close(state)
        if sums is None:
            write_columns(room, k, scratch, count, state)
        else:
            write_correlated(room, k, sums, state)
        write_numbers(room, k + 1, state, beta(state, params.base, params.base_rate))


@by_type
def write_numbers(room: Votes, k: int, state: Any, weight: float) -> None:
    """The numbers of predictor k, which is the current one, for ``Votes``."""
    threshold = state.now.tau if state.v.shape[0] > 0 else state.now.tau * state.now.slope
    room.beta[k], room.scale[k], room.threshold[k] = weight, state.now.d, threshold


@by_type
def write_columns(room: Votes, k: int, scratch: Scratch, count: int, state: Any) -> None:
    """The remains of update k in its columns and, where free ones have a scale of their own, in all of these."""
    at, free_scale = room.first[k], state.now.d != state.now.d_free
    for r in range(count):
        j = scratch.column[r]
        if j < state.a.shape[0] - 1 and not (free_scale and j < state.counts.free):
            at = write_column(room, at, j, 1.0, state)
    if free_scale:
        for free in range(state.counts.free):
            j = np.uint32(free)
            at = write_column(room, at, j, state.now.d_free / state.now.d, state)
    room.first[k + 1] = at


@by_type
def write_correlated(room: Votes, k: int, sz: np.ndarray, state: Any) -> None:
    """The remains of update k in all columns that an update so far was correlated with: ``sz`` is not 0."""
    at = room.first[k]
    for j in range(state.a.shape[0] - 1):
        if sz[j] != 0.0:
            at = write_column(room, at, np.uint32(j), 1.0, state)
    room.first[k + 1] = at


@by_type
def write_column(room: Votes, at: int, j: Any, factor: float, state: Any) -> int:
    """Write column j as the entry ``at``; returns the index of the next."""
    room.columns[at] = j
    room.value[at] = state.a[j] * factor
    if room.slope.shape[0] > 0:
        slope = slope_of(state, j)
        room.slope[at] = np.sign(room.value[at]) * (slope if state.v.shape[0] > 0 or slope == 0.0 else 1.0)
    return int(at + 1)


def room_for(log: UpdateLog, corpus: Corpus, *, full: bool, slopes: bool, more: int) -> tuple[Updates, Votes]:
    """The updates of ``log`` for kernels, and votes that repeating them on their ``corpus`` fills.

    full: an update touches every column; slopes: slopes are stored; more: how many columns an update touches in
    addition to those of its candidates.
    """
    arrays = log.arrays()
    counts = arrays.pop("survived")
    M, D = arrays["lists"].size, corpus.width
    nonzeros = np.append(0, np.cumsum(np.diff(corpus.rows)[arrays["candidate"]]))
    room = M * D if full else int(np.minimum(np.diff(nonzeros[arrays["first"]]), D).sum()) + M * more
    beta, scale, threshold = np.empty((3, M + 1))
    columns, value = np.empty(room, np.int32), np.empty(room)
    first, slope = np.zeros(M + 1, np.int64), np.empty(room if slopes else 0)
    return Updates(**arrays), Votes(first, columns, value, slope, threshold, scale, beta, counts)


def trim_votes(room: Votes) -> Votes:
    """Return the votes without the room that none of them took."""
    end, shrinks = int(room.first[-1]), bool(room.threshold.any())
    return room._replace(
        columns=room.columns[:end].copy(), value=room.value[:end].copy(),
        slope=room.slope[: end if shrinks else 0].copy(), threshold=room.threshold if shrinks else np.zeros(0),
    )  # fmt: skip


def replay_corpus(log: UpdateLog, lists: Corpus) -> tuple[UpdateLog, Corpus]:
    """The updates of ``log`` and a corpus that they can be repeated on in their order.

    That is ``lists`` itself or, where an epoch goes by parts, the candidates that were part of an update: what
    repeating needs grows with the updates, not with the lists.
    """
    if lists.cuts.size == 2:
        return log, lists
    arrays = log.arrays()
    visits, candidates = np.unique(arrays["lists"]), np.unique(arrays["candidate"])
    arrays["lists"] = np.searchsorted(visits, arrays["lists"])
    arrays["candidate"] = np.searchsorted(candidates, arrays["candidate"])
    return UpdateLog.from_arrays(arrays), lists.only(visits, candidates)
