"""The central data type: many lists of candidates with sparse features, as frozen flat arrays.

Axes: L lists, N candidates of all lists together, nnz nonzeros, D columns (features), K statistics of a
candidate, R statistics of a reference. A fold, a share or a mini-batch is a Corpus too.

A corpus may be larger than memory: its arrays are then mapped from disk. Candidates of lists in a random order would be
read page by page, so an epoch goes by parts, in a random order: a part is read in one go, and memory has it no longer
than it is used. (2 GB in 1 GB of memory, by ``benchmarks/mapped.py``: in order 3.4 seconds, by parts 4.7, shuffled as a
whole more than 400.)

Its free columns are dense scores, which no L1 penalty touches, brought to a common scale. A feature's unit decides how
fast its weight moves. Indicators have the unit one; scores are divided by their standard deviation within lists (only
differences within a list count). Weights apply to the scaled values; multiplied by the scale, they apply to the scores
as the file has them.
"""

import mmap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import InitVar, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rerank.base.errors import DataError
from rerank.kernels.compile import kernel
from rerank.storage.documents import as_json, read_object
from rerank.storage.files import DAMAGE, ArrayFile, new_directory, read_array, scratch, seal, verify

FORMAT_VERSION = 1
MIN_RELATIVE_SIZE = 1e-6  # in a free column: what is so much smaller is lost
FLOAT32_MAX = float(np.finfo(np.float32).max)  # values are float32
MAX_COLUMNS = 2**31 - 1  # columns are int32

DTYPES = {
    "lists": np.int64, "rows": np.int64, "columns": np.int32, "values": np.float32, "base": np.float64,
    "gain": np.float64, "stats": np.float64, "reference": np.float64, "weight": np.float64,
}  # fmt: skip

# What each row of an array belongs to: a list, a candidate or a nonzero.
AXES = {"columns": 2, "values": 2, "base": 1, "gain": 1, "stats": 1, "reference": 0, "weight": 0}


@dataclass(frozen=True)
class Corpus:
    """Lists of candidates, ready for the kernels; all arrays are read-only.

    | field     | dtype, shape     | meaning |
    |-----------|------------------|---------|
    | lists     | int64 [L + 1]    | candidates of list i are lists[i]..lists[i + 1] |
    | rows      | int64 [N + 1]    | nonzeros of candidate y are rows[y]..rows[y + 1] |
    | columns   | int32 [nnz]      | feature columns, sorted and unique within a row |
    | values    | float32 [nnz]    | feature values |
    | base      | float64 [N]      | the generator's score, higher is better |
    | gain      | float64 [N]      | sentence-level quality to maximise |
    | stats     | float64 [N, K]   | sufficient statistics of one metric |
    | reference | float64 [L, R]   | the per-list part of the statistics |
    | weight    | float64 [L]      | importance of a list |

    ``width`` is D, the number of columns that exist (whether used or not);
    ``free`` is the number of leading columns that no penalty touches (dense scores); ``about`` is the provenance:
    metric signature, digests of inputs, counts of what was skipped or pruned. ``cuts`` (int64 [P + 1]) are the numbers
    of the lists at which parts begin, and L; by default there is one.
    """

    lists: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    base: np.ndarray
    gain: np.ndarray
    stats: np.ndarray
    reference: np.ndarray
    weight: np.ndarray
    width: int
    about: dict[str, Any] = field(default_factory=dict)
    free: int = 0
    cuts: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    trusted: InitVar[bool] = False  # made from a checked corpus: its nonzeros are not checked again

    def __post_init__(self, trusted: bool) -> None:
        for name, dtype in DTYPES.items():
            object.__setattr__(self, name, freeze(np.ascontiguousarray(getattr(self, name), dtype=dtype)))
        cuts = self.cuts if len(self.cuts) > 1 else (0, self.lists.size - 1)
        object.__setattr__(self, "cuts", np.asarray(cuts, np.int64))
        # Kernels rely on these invariants, and those of ``_disorder``, without checking them again.
        if self.lists.ndim != 1 or self.lists.size < 1 or self.lists[0] != 0 or self.lists[-1] < 0:
            raise DataError("the list offsets of a corpus are damaged; build it again (rerank run)")
        L, N = self.list_count, self.candidate_count
        sizes = L, N, self.columns.size
        wrong = (
            not 0 <= self.free <= self.width
            or not (self.cuts[0] == 0 and self.cuts[-1] == L and (np.diff(self.cuts) >= 0).all())
            or self.rows.shape != (N + 1,)
            or self.rows[0] != 0
            or self.rows[-1] != self.columns.size
            or any(getattr(self, name).shape[:1] != (sizes[axis],) for name, axis in AXES.items())
            or [getattr(self, name).ndim for name in AXES] != [1, 1, 1, 1, 2, 2, 1]
        )
        if wrong:
            raise DataError("the arrays of a corpus do not fit together; build it again (rerank run)")
        for part in () if trusted else self.parts():
            if disorder := _disorder(part):
                raise DataError(f"a corpus holds {disorder}; build it again (rerank run)")

    @property
    def list_count(self) -> int:
        """Number of lists L."""
        return self.lists.size - 1

    @property
    def candidate_count(self) -> int:
        """Number of candidates N."""
        return int(self.lists[-1])

    @property
    def nonzeros(self) -> int:
        """Number of stored feature values."""
        return int(self.columns.size)

    def __reduce__(self) -> tuple[Any, ...]:
        """A corpus that was loaded, or a part of one, is sent to other processes by its path."""
        call: tuple[Any, ...] | None = self.__dict__.get("_call")
        if call is not None:
            return call
        return partial(Corpus, trusted=True, **{each.name: getattr(self, each.name) for each in fields(self)}), ()

    def _derived(self, new: "Corpus", *call: Any) -> "Corpus":
        """``new``, which a ``call`` of one of its methods makes of this one."""
        if "_call" in self.__dict__:
            new.__dict__.update(_call=(call[0], (self, *call[1:])), _path=self.__dict__["_path"])
        return new

    def _rows_of(self, *indices: Any) -> dict[str, Any]:
        """The rows of all arrays for these lists, candidates and nonzeros."""
        return {name: getattr(self, name)[indices[axis]] for name, axis in AXES.items()}

    def slice(self, first: int, last: int) -> "Corpus":
        """Lists first..last - 1; the nonzeros are views, not copies."""
        a, b = int(self.lists[first]), int(self.lists[last])
        p, q = int(self.rows[a]), int(self.rows[b])
        new = replace(
            self, trusted=True, lists=self.lists[first : last + 1] - a, rows=self.rows[a : b + 1] - p,
            cuts=np.unique(np.clip(self.cuts, first, last)) - first,
            **self._rows_of(slice(first, last), slice(a, b), slice(p, q)),
        )  # fmt: skip
        return self._derived(new, Corpus.slice, first, last)

    def parts(self, order: Iterable[int] | None = None) -> Iterator["Corpus"]:
        """Yield the parts that an epoch visits one after the other, in the ``order`` of their numbers.

        Of several parts of a mapped corpus, one at a time is in memory.
        """
        if self.cuts.size == 2:
            yield self
            return
        for k in range(self.cuts.size - 1) if order is None else order:
            part = self.slice(int(self.cuts[k]), int(self.cuts[k + 1]))
            for name in DTYPES:
                _advise(getattr(part, name), "MADV_WILLNEED")
            try:
                yield part
            finally:
                for name in DTYPES:
                    _advise(getattr(part, name), "MADV_DONTNEED")

    def in_part(self, number: int, choices: np.ndarray) -> np.ndarray:
        """The choices of a part's lists, as its own candidates, given those of all lists (int64 [L], -1 for none)."""
        first, last = self.cuts[number : number + 2]
        own, before = choices[first:last], self.lists[first]
        return np.where(own >= 0, own - before, -1) if before else own

    def take(self, indices: Sequence[int] | np.ndarray, about: dict[str, Any] | None = None) -> "Corpus":
        """The lists ``indices`` in that order, as a copy: of several mapped parts, to disk; about: the provenance."""
        lists = np.asarray(indices, dtype=np.int64)
        about = self.about if about is None else about
        if "_path" in self.__dict__ and self.cuts.size > 2 and (np.diff(lists) > 0).all():
            ends = np.searchsorted(lists, self.cuts)
            new = self._copy(
                replace(part.only(lists[a:b] - first), about=about, trusted=True)
                for part, first, a, b in zip(self.parts(), self.cuts[:-1], ends[:-1], ends[1:], strict=True)
            )
        else:
            new = replace(self.only(lists), about=about, trusted=True)
        return self._derived(new, Corpus.take, lists, about)

    def only(self, lists: np.ndarray, candidates: np.ndarray | None = None) -> "Corpus":
        """The ``lists``, in memory, with all of their candidates or those that are in ``candidates`` (both int64, then
        increasing)."""
        if candidates is None:
            sizes, candidates = np.diff(self.lists)[lists], ranges_of(self.lists, lists)
        else:
            bounds = np.searchsorted(candidates, self.lists)
            sizes = bounds[lists + 1] - bounds[lists]
        entries = ranges_of(self.rows, candidates)
        return replace(
            self, trusted=True, lists=offsets(sizes), rows=offsets(np.diff(self.rows)[candidates]), cuts=self.cuts[:0],
            **self._rows_of(lists, candidates, entries),
        )  # fmt: skip

    def take_share(self, share: float, seed: int) -> "Corpus":
        """The share of the lists that ``share_of`` draws."""
        return self if share == 1 else self.take(share_of(self.list_count, share, seed))

    def keep_columns(self, keep: np.ndarray) -> "Corpus":
        """The same lists with only the columns where ``keep`` (bool [D]) holds; column numbers stay."""
        if "_path" in self.__dict__ and self.cuts.size > 2:
            new = self._copy(part.keep_columns(keep) for part in self.parts())
        else:
            mask = keep[self.columns]
            columns, values = self.columns[mask], self.values[mask]
            new = replace(self, trusted=True, rows=offsets(mask)[self.rows], columns=columns, values=values)
        return self._derived(new, Corpus.keep_columns, keep)

    def _copy(self, parts: Iterable["Corpus"]) -> "Corpus":
        """``parts`` as a corpus that is mapped from files without names, next to those of this one."""
        with scratch(self.__dict__["_path"]) as folder:  # what is mapped of it stays
            save_joined(folder / "corpus", parts, synced=False)
            return Corpus.load(folder / "corpus", trusted=True)

    def save(self, directory: Path | str) -> None:
        """Write a directory of .npy files, header.json and checksums, which appears under its name only when complete.

        Raises RunError: the directory cannot be written.
        """
        save_joined(directory, self.parts())

    @staticmethod
    def load(
        directory: Path | str, origin: Path | str | None = None, *, mmap: bool = True, trusted: bool = False
    ) -> "Corpus":
        """Read what ``save`` wrote, memory-mapped by default, and check it, once in a process.

        origin: what the user has to remove if it is damaged; trusted: it is not checked.

        Raises DataError: a file is missing or damaged, or another version wrote it.
        """
        source = Path(directory).absolute()
        identity = None if trusted else _identity(source)
        trusted |= identity in _identities
        try:
            if not trusted:
                verify(source)
            header = read_object(source / "header.json")
            if header["version"] != FORMAT_VERSION:
                raise DataError(f"format version {header['version']}, expected {FORMAT_VERSION}")
            arrays: dict[str, Any] = {
                name: read_array(source / f"{name}.npy", dtype, mmap=mmap) for name, dtype in DTYPES.items()
            }
            width, free, cuts = int(header["width"]), int(header["free"]), np.asarray(header["cuts"])
            corpus = Corpus(**arrays, width=width, free=free, cuts=cuts, about=dict(header["about"]), trusted=trusted)
            for part in () if trusted else corpus.parts():
                if not all(np.isfinite(array).all() for array in (part.values, part.base, part.gain, part.weight)):
                    raise DataError("a corpus holds numbers that are not finite; build it again (rerank run)")
        except (DataError, *DAMAGE) as error:
            message = error.message if isinstance(error, DataError) else f"not a readable corpus: {error}"
            advice = "" if origin is None else f"; remove {origin} and run again"
            raise DataError(f"{message}{advice}", path=str(source)) from error
        _identities.add(identity)
        if mmap:
            corpus.__dict__.update(_call=(Corpus.load, (source, origin)), _path=source)
        return corpus


Identity = tuple[tuple[str, int, int, int], ...]
_identities: set[Identity | None] = set()  # of corpora that this process has checked; tasks often open the same


def _identity(directory: Path) -> Identity | None:
    """Path, inode, time and size of each file; None if one is missing."""
    try:
        stats = [(str(path), path.stat()) for path in sorted(directory.iterdir())]
    except OSError:
        return None
    return tuple((path, at.st_ino, at.st_mtime_ns, at.st_size) for path, at in stats)


def _advise(array: np.ndarray, advice: str) -> None:
    """Tell the system how the pages of a mapped array will be used; others stay as they are."""
    buffer: Any = array
    while isinstance(buffer, np.ndarray):
        buffer = buffer.base
    if isinstance(buffer, mmap.mmap) and array.size and hasattr(mmap, advice):
        begin = array.ctypes.data - np.frombuffer(buffer, np.uint8).ctypes.data
        first = begin // mmap.PAGESIZE * mmap.PAGESIZE
        buffer.madvise(getattr(mmap, advice), first, begin + array.nbytes - first)


def concatenate(parts: Sequence[Corpus]) -> Corpus:
    """One corpus of all lists of ``parts``, in order. ``about`` is that of the first part.

    Raises DataError: there are no parts, or their feature tables or metrics differ.
    """
    if len({(part.width, part.free) for part in parts}) != 1:
        raise DataError(f"cannot join corpora with {sorted({p.width for p in parts})} columns; use one feature table")
    if len({(part.stats.shape[1], part.reference.shape[1]) for part in parts}) != 1:
        raise DataError("cannot join corpora with statistics of different metrics; use one metric")
    arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in AXES}
    lists = offsets(np.concatenate([np.diff(part.lists) for part in parts]))
    rows = offsets(np.concatenate([np.diff(part.rows) for part in parts]))
    first = parts[0]
    width, free, about = first.width, first.free, first.about
    return Corpus(lists=lists, rows=rows, width=width, free=free, about=about, trusted=True, **arrays)


def save_joined(
    directory: Path | str, parts: Iterable[Corpus], *, cuts: Sequence[int] = (), synced: bool = True
) -> None:
    """Save ``parts``, one at least and all with the same columns, as one corpus with the ``about`` of the first.

    Every part is written as it comes: no more than one has to be in memory. cuts: see ``Corpus``, by default the ends
    of these parts. synced: see ``new_directory``.
    """
    with new_directory(directory, synced=synced) as new, ExitStack() as files:
        arrays = {name: files.enter_context(ArrayFile(new / f"{name}.npy", dtype)) for name, dtype in DTYPES.items()}
        first, candidates, nonzeros, ends = None, 0, 0, [0]
        for part in parts:
            if first is None:
                first = part
                for name in ("lists", "rows"):
                    arrays[name].append(np.zeros(1))
            arrays["lists"].append(part.lists[1:] + candidates)
            arrays["rows"].append(part.rows[1:] + nonzeros)
            for name in list(DTYPES)[2:]:
                arrays[name].append(getattr(part, name))
            candidates, nonzeros = candidates + part.candidate_count, nonzeros + part.nonzeros
            ends.append(ends[-1] + part.list_count)
        assert first is not None
        files.close()
        header = {"version": FORMAT_VERSION, "width": first.width, "free": first.free, "about": first.about}
        (new / "header.json").write_text(as_json(header | {"cuts": list(cuts) or ends}, indent=1, sort_keys=True))
        seal(new)


def first_unfit(numbers: np.ndarray) -> int:
    """Row of the first number that features cannot hold; -1 if there is none."""
    fit = np.abs(numbers) <= FLOAT32_MAX
    return -1 if fit.all() else int(np.argmin(fit.all(axis=1)))


def offsets(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """int64 [n + 1]: where pieces of these lengths begin, and where the last one ends."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def freeze(array: np.ndarray) -> np.ndarray:
    """A read-only view: for kernels, read-only and writable arrays are different types."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def share_of(size: int, share: float, seed: int) -> np.ndarray:
    """int64, ascending: the indices of ``share`` of ``size`` lists or examples, at least one.

    A larger share takes all lists that a smaller one with the same seed takes.
    """
    order = np.random.default_rng([seed, size, 2]).permutation(size)  # no order of training is drawn from this 2
    return np.sort(order[: max(1, round(share * size))])


def indices_of(first: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """All indices of the ranges that begin at ``first`` (int64) and have these lengths, range by range."""
    starts = offsets(lengths)
    return np.repeat(first - starts[:-1], lengths) + np.arange(starts[-1])


def ranges_of(starts: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """All indices of the ranges starts[i]..starts[i + 1] for i in ``indices``, in order."""
    return indices_of(starts[indices], starts[indices + 1] - starts[indices])


def _disorder(corpus: Corpus) -> str:
    """The fault of offsets and columns, on which kernels rely; empty if there is none."""
    rows, columns = corpus.rows, corpus.columns
    if (np.diff(corpus.lists) < 0).any() or (np.diff(rows) < 0).any() or rows[-1] > columns.size:
        return "list or row offsets that decrease or lie outside"
    if columns.size and not 0 <= int(columns.min()) <= int(columns.max()) < corpus.width:
        return "a column outside of its width"
    rises = np.append(True, columns[1:] > columns[:-1])
    rises[rows[:-1][rows[:-1] < columns.size]] = True  # where a row begins
    return "" if rises.all() else "a row whose columns are not sorted and unique"


@kernel
def add_squares(
    lists: np.ndarray, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, sums: np.ndarray, squares: np.ndarray
) -> None:
    """Add (value − mean of its list)² over all candidates to ``squares``, for the first columns (float64 [free]).

    A column that is missing from a row is 0 there. ``sums`` is scratch (float64 [2, free]).
    """
    free, total, present = squares.shape[0], sums[0], sums[1]
    for i in range(lists.shape[0] - 1):
        size = lists[i + 1] - lists[i]
        for j in range(free):
            total[j] = present[j] = 0.0
        for y in range(lists[i], lists[i + 1]):
            for p in range(rows[y], rows[y + 1]):
                j = columns[p]
                if j >= free:
                    break
                total[j] += values[p]
                present[j] += 1
        for y in range(lists[i], lists[i + 1]):
            for p in range(rows[y], rows[y + 1]):
                j = columns[p]
                if j >= free:
                    break
                deviation = values[p] - total[j] / size
                squares[j] += deviation * deviation
        for j in range(free):
            if size > present[j]:
                mean = total[j] / size
                squares[j] += (size - present[j]) * (mean * mean)


def free_values(corpus: Corpus) -> np.ndarray:
    """float64 [N, F]: the free columns of every candidate."""
    dense, at = np.zeros((corpus.candidate_count, corpus.free)), np.flatnonzero(corpus.columns < corpus.free)
    dense[np.searchsorted(corpus.rows, at, side="right") - 1, corpus.columns[at]] = corpus.values[at]
    return dense


def dense_alone(lists: Corpus) -> Corpus:
    """The lists with their free columns alone, in memory."""
    dense = [part.keep_columns(np.arange(part.width) < part.free) for part in lists.parts()]
    return concatenate([replace(part, width=part.free, trusted=True) for part in dense])


def remarks_on(name: str, low: np.ndarray, high: np.ndarray, deviation: float = 0.0) -> list[str]:
    """Remarks on a column's numbers, given the least and the greatest in every list (float64 [L]).

    deviation: within these lists and others that are not among them.
    """
    spread, size = high - low, np.maximum(high, -low)
    if not (mask := spread > 0).any():
        return []
    spread, size, deviation = spread[mask], size[mask], max(deviation, np.sqrt(np.square(spread).mean()))
    typical, lines = float(np.median(spread)), list[str]()
    if np.median(spread / size) < MIN_RELATIVE_SIZE:
        remark = f"varies by {typical:.3g} in lists, but has the size {np.median(size):.3g}"
        lines.append(f"{name} {remark}: is it an id or a time? Leave it out, or write the differences alone")
    if typical < MIN_RELATIVE_SIZE * deviation:
        remark = f"varies by {typical:.3g} in most lists, but has the deviation {deviation:.3g}"
        lines.append(f"{name} {remark}: is some value an error? All others become equal beside it")
    return lines


def remarks_on_all(names: Iterable[str], columns: np.ndarray, lists: np.ndarray) -> list[str]:
    """``remarks_on`` columns (float64 [K, N]) of the lists lists[i]..lists[i + 1]."""
    low, high = (extreme.reduceat(columns, lists[:-1], axis=1) for extreme in (np.minimum, np.maximum))
    return [line for column in zip(names, low, high, strict=False) for line in remarks_on(*column)]


class ColumnSpread:
    """The spread of free columns within lists, summed corpus by corpus: the sums are as over all lists in one go."""

    def __init__(self, free: int) -> None:
        self._squares, self._candidates = np.zeros(free), 0
        self._sums = np.empty((2, free))

    def add(self, corpus: Corpus) -> None:
        """Add further lists, whose values must not be scaled yet."""
        add_squares(corpus.lists, corpus.rows, corpus.columns, corpus.values, self._sums, self._squares)
        self._candidates += corpus.candidate_count

    def scale(self) -> np.ndarray:
        """float64 [free]: 1 / standard deviation of every free column within lists; 1 where that is 0."""
        deviation = np.sqrt(self._squares / max(self._candidates, 1))
        scale = np.ones(self._squares.size)
        usable = (deviation > 0) & np.isfinite(deviation)
        scale[usable] = 1 / deviation[usable]
        return scale


def standard_scale(corpus: Corpus) -> np.ndarray:
    """float64 [free]: 1 / standard deviation of every free column within the lists of ``corpus``; 1 where that is 0."""
    spread = ColumnSpread(corpus.free)
    spread.add(corpus)
    return spread.scale()
