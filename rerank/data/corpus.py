"""The central data type: many lists of candidates with sparse features, as frozen flat arrays.

Axes: L lists, N candidates of all lists together, nnz nonzeros, D columns (features), K statistics of a
candidate, R statistics of a reference. A fold, a shard or a mini-batch is a Corpus too.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import InitVar, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rerank.base.errors import DataError
from rerank.kernels.compile import kernel
from rerank.storage.documents import as_json, read_object
from rerank.storage.files import DAMAGE, ArrayFile, new_directory, read_array, seal, verify

FORMAT_VERSION = 1

DTYPES = {
    "lists": np.int64, "rows": np.int64, "columns": np.int32, "values": np.float32, "base": np.float64,
    "gain": np.float64, "stats": np.float64, "reference": np.float64, "weight": np.float64,
}  # fmt: skip


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
    metric signature, digests of inputs, counts of what was skipped or pruned.
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
    trusted: InitVar[bool] = False  # made from a checked corpus: its nonzeros are not checked again

    def __post_init__(self, trusted: bool) -> None:
        for name, dtype in DTYPES.items():
            object.__setattr__(self, name, frozen(np.ascontiguousarray(getattr(self, name), dtype=dtype)))
        self._check_shapes()
        code = 0 if trusted else _disorder(self.lists, self.rows, self.columns, self.width)
        if code:
            raise DataError(f"a corpus holds {_DISORDER[code]}; build it again (rerank run)")

    def _check_shapes(self) -> None:
        """Check, together with ``_disorder``, the invariants that the kernels rely on without checking them again."""
        if self.lists.ndim != 1 or self.lists.size < 1 or self.lists[0] != 0 or self.lists[-1] < 0:
            raise DataError("the list offsets of a corpus are damaged; build it again (rerank run)")
        L, N = self.list_count, self.candidate_count
        sizes = {"base": N, "gain": N, "stats": N, "reference": L, "weight": L}
        wrong = (
            not 0 <= self.free <= self.width
            or self.rows.shape != (N + 1,)
            or self.rows[0] != 0
            or not ((int(self.rows[-1]),) == self.columns.shape == self.values.shape)
            or any(getattr(self, name).shape[:1] != (size,) for name, size in sizes.items())
            or [array.ndim for array in (self.base, self.gain, self.stats, self.reference, self.weight)]
            != [1, 1, 2, 2, 1]
        )
        if wrong:
            raise DataError("the arrays of a corpus do not fit together; build it again (rerank run)")

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

    def slice(self, first: int, last: int) -> "Corpus":
        """Lists first..last - 1; the nonzeros are views, not copies."""
        a, b = int(self.lists[first]), int(self.lists[last])
        p, q = int(self.rows[a]), int(self.rows[b])
        return replace(
            self, trusted=True, lists=self.lists[first : last + 1] - a, rows=self.rows[a : b + 1] - p,
            columns=self.columns[p:q], values=self.values[p:q], base=self.base[a:b], gain=self.gain[a:b],
            stats=self.stats[a:b], reference=self.reference[first:last], weight=self.weight[first:last],
        )  # fmt: skip

    def take(self, indices: Sequence[int] | np.ndarray) -> "Corpus":
        """The lists ``indices`` in that order, as a copy."""
        chosen = np.asarray(indices, dtype=np.int64)
        return self._part(chosen, np.diff(self.lists)[chosen], _ranges(self.lists, chosen))

    def only(self, lists: np.ndarray, candidates: np.ndarray) -> "Corpus":
        """The ``lists`` with only those of their candidates that are in ``candidates`` (both int64, increasing)."""
        kept = np.searchsorted(candidates, self.lists)
        return self._part(lists, kept[lists + 1] - kept[lists], candidates)

    def _part(self, lists: np.ndarray, sizes: np.ndarray, candidates: np.ndarray) -> "Corpus":
        """The ``lists`` with ``candidates``; ``sizes``: how many of them belong to each list."""
        entries = _ranges(self.rows, candidates)
        return replace(
            self, trusted=True, lists=offsets(sizes), rows=offsets(np.diff(self.rows)[candidates]),
            columns=self.columns[entries], values=self.values[entries], base=self.base[candidates],
            gain=self.gain[candidates], stats=self.stats[candidates], reference=self.reference[lists],
            weight=self.weight[lists],
        )  # fmt: skip

    def keep_columns(self, keep: np.ndarray) -> "Corpus":
        """The same lists with only the columns where ``keep`` (bool [D]) holds; column numbers stay."""
        mask = keep[self.columns]
        kept = np.concatenate([[0], np.cumsum(mask, dtype=np.int64)])
        columns, values = self.columns[mask], self.values[mask]
        return replace(self, trusted=True, rows=kept[self.rows], columns=columns, values=values)

    def save(self, directory: Path | str) -> None:
        """Write a directory of .npy files, header.json and checksums, which appears under its name only when complete.

        Raises
        ------
        RunError: the directory cannot be written.
        """
        save_joined(directory, [self])

    @staticmethod
    def load(directory: Path | str, *, mmap: bool = True, trusted: bool = False) -> "Corpus":
        """Read what ``save`` wrote, memory-mapped by default. trusted: it has been loaded and checked before.

        Raises
        ------
        DataError: a file is missing or damaged, or another version wrote it.
        """
        source = Path(directory)
        try:
            if not trusted:
                verify(source)
            header = read_object(source / "header.json")
            if header["version"] != FORMAT_VERSION:
                raise DataError(f"format version {header['version']}, expected {FORMAT_VERSION}")
            arrays: dict[str, Any] = {
                name: read_array(source / f"{name}.npy", dtype, mmap=mmap) for name, dtype in DTYPES.items()
            }
            width, free = int(header["width"]), int(header.get("free", 0))
            corpus = Corpus(**arrays, width=width, free=free, about=dict(header["about"]), trusted=trusted)
            numbers = corpus.values, corpus.base, corpus.gain, corpus.weight
            if not trusted and not all(np.isfinite(array).all() for array in numbers):
                raise DataError("a corpus holds numbers that are not finite; build it again (rerank run)")
            return corpus
        except DataError as error:
            raise DataError(error.message, path=str(source)) from None
        except DAMAGE as error:
            raise DataError(f"not a readable corpus: {error}", path=str(source)) from error


def concatenate(parts: Sequence[Corpus]) -> Corpus:
    """One corpus of all lists of ``parts``, in order. ``about`` is that of the first part.

    Raises
    ------
    DataError: there are no parts, or their feature tables or metrics differ.
    """
    if len({(part.width, part.free) for part in parts}) != 1:
        raise DataError(f"cannot join corpora with {sorted({p.width for p in parts})} columns; use one feature table")
    if len({(part.stats.shape[1], part.reference.shape[1]) for part in parts}) != 1:
        raise DataError("cannot join corpora with statistics of different metrics; use one metric")
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("columns", "values", "base", "gain", "stats", "reference", "weight")
    }
    lists = offsets(np.concatenate([np.diff(part.lists) for part in parts]))
    rows = offsets(np.concatenate([np.diff(part.rows) for part in parts]))
    first = parts[0]
    width, free, about = first.width, first.free, first.about
    return Corpus(lists=lists, rows=rows, width=width, free=free, about=about, trusted=True, **joined)


Sizes = tuple[int, int, int]  # of a corpus: its lists, candidates and nonzeros


def save_joined(directory: Path | str, parts: Iterable[Corpus], *, synced: bool = True) -> Sizes:
    """Save ``parts``, one at least and all with the same columns, as one corpus with the ``about`` of the first.

    Every part is written as it comes: no more than one has to be in memory. synced: see ``new_directory``.
    """
    with new_directory(directory, synced=synced) as new, ExitStack() as files:
        arrays = {name: files.enter_context(ArrayFile(new / f"{name}.npy", dtype)) for name, dtype in DTYPES.items()}
        first, lists, candidates, nonzeros = None, 0, 0, 0
        for part in parts:
            if first is None:
                first = part
                for name in ("lists", "rows"):
                    arrays[name].append(np.zeros(1))
            arrays["lists"].append(part.lists[1:] + candidates)
            arrays["rows"].append(part.rows[1:] + nonzeros)
            for name in list(DTYPES)[2:]:
                arrays[name].append(getattr(part, name))
            lists, candidates = lists + part.list_count, candidates + part.candidate_count
            nonzeros += part.nonzeros
        assert first is not None
        files.close()
        header = {"version": FORMAT_VERSION, "width": first.width, "free": first.free, "about": first.about}
        (new / "header.json").write_text(as_json(header, indent=1, sort_keys=True))
        seal(new)
    return lists, candidates, nonzeros


def offsets(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """int64 [n + 1]: where pieces of these lengths begin, and where the last one ends."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def frozen(array: np.ndarray) -> np.ndarray:
    """A read-only view: for kernels, read-only and writable arrays are different types."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def _ranges(offsets: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """All indices of the ranges offsets[i]..offsets[i + 1] for i in ``chosen``, in order."""
    lengths = offsets[chosen + 1] - offsets[chosen]
    starts = np.repeat(offsets[chosen] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return starts + np.arange(lengths.sum())


_DISORDER = {
    1: "list or row offsets that decrease or lie outside",
    2: "a column outside of its width",
    3: "a row whose columns are not sorted and unique",
}


@kernel
def _disorder(lists: np.ndarray, rows: np.ndarray, columns: np.ndarray, width: int) -> int:
    for i in range(lists.shape[0] - 1):
        if lists[i + 1] < lists[i]:
            return 1
    for y in range(rows.shape[0] - 1):
        if rows[y + 1] < rows[y] or rows[y + 1] > columns.shape[0]:
            return 1
        before = -1
        for p in range(rows[y], rows[y + 1]):
            column = columns[p]
            if column < 0 or column >= width:
                return 2
            if column <= before:
                return 3
            before = column
    return 0
