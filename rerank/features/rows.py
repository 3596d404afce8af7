"""From the features of lists, feature by feature, to a corpus, candidate by candidate."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rerank.compile import kernel
from rerank.corpus import Corpus
from rerank.errors import RunError
from rerank.features.extract import ListFeatures

IN_MEMORY = 1 << 26  # bytes of lists that are kept in memory; more go to a temporary file


class _Spooled(NamedTuple):
    """What is kept of a list until the columns are known, in the smallest types that hold it."""

    ids: np.ndarray  # int32 [F]
    entries: np.ndarray  # int32 [F]: how many entries a feature has
    candidate: np.ndarray  # uint8, uint16 or int32 [E]
    value: np.ndarray  # int8 or float32 [E]


class _Spool:
    """Lists in a temporary file, read back one by one in their order: as many as one likes, in constant memory."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - it lives as long as the spool
        self._shapes: list[list[tuple[np.dtype[Any], int]]] = []

    def add(self, spooled: _Spooled) -> None:
        """Append a list."""
        self._shapes.append([(array.dtype, array.size) for array in spooled])
        try:
            for array in spooled:
                self._file.write(np.ascontiguousarray(array).tobytes())
        except OSError as error:
            raise RunError(
                f"cannot write temporary files: {error.strerror or error}; set TMPDIR to a larger disk"
            ) from error

    def __del__(self) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[_Spooled]:
        self._file.seek(0)
        for shapes in self._shapes:
            yield _Spooled(*(np.frombuffer(self._file.read(dtype.itemsize * n), dtype) for dtype, n in shapes))


@kernel
def count_rows(column: np.ndarray, first: np.ndarray, candidate: np.ndarray, lengths: np.ndarray) -> int:
    """Number of kept entries of every candidate (``lengths`` int64 [N]) and of the list."""
    total = 0
    for i in range(column.shape[0]):
        if column[i] >= 0:
            for e in range(first[i], first[i + 1]):
                lengths[candidate[e]] += 1
            total += first[i + 1] - first[i]
    return total


@kernel
def fill_rows(
    order: np.ndarray,
    column: np.ndarray,
    first: np.ndarray,
    candidate: np.ndarray,
    value: np.ndarray,
    at: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
) -> None:
    """Write the entries of features ``order`` (by column) to their rows; ``at`` (int64 [N]) is where each goes on."""
    for k in range(order.shape[0]):
        i = order[k]
        for e in range(first[i], first[i + 1]):
            p = at[candidate[e]]
            columns[p], values[p] = column[i], value[e]
            at[candidate[e]] = p + 1


@kernel
def scale_values(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, scale: np.ndarray) -> None:
    """Multiply the values of the first columns by ``scale`` (float64, one a column)."""
    for y in range(rows.shape[0] - 1):
        for p in range(rows[y], rows[y + 1]):
            if columns[p] >= scale.shape[0]:
                break
            values[p] *= scale[columns[p]]


class RowBuilder:
    """Collects lists and gives a Corpus once the column of every feature is known.

    Each list brings the numbers of its features (``ids``: provisional ids, or columns already), base scores, gains and
    statistics.
    """

    def __init__(self) -> None:
        self._spool = _Spool()
        self._sizes: list[int] = []
        self._dense: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []

    def add(
        self,
        features: ListFeatures,
        ids: np.ndarray,
        base: np.ndarray,
        gain: np.ndarray,
        stats: np.ndarray,
        reference: np.ndarray,
    ) -> None:
        """One list: base and gain float64 [N], stats float64 [N, K], reference float64 [R]."""
        candidate, value = features.candidate, features.value
        if base.size <= 1 << 16:
            candidate = candidate.astype(np.uint8 if base.size <= 1 << 8 else np.uint16)
        with np.errstate(invalid="ignore"):  # values beyond int8 are kept as they are
            small = value.astype(np.int8)
        if np.array_equal(small, value):
            value = small
        self._spool.add(_Spooled(ids, np.diff(features.first).astype(np.int32), candidate, value))
        self._sizes.append(base.size)
        self._dense.append((base, gain, stats, reference))

    def finish(
        self, column: np.ndarray | None, width: int, about: dict[str, Any], scale: np.ndarray | None = None
    ) -> Corpus:
        """The corpus; ``column`` (int32) maps ids to columns, None where ids are columns. Negative: dropped.

        The table's ``scale`` (float64 [free]) multiplies the values of the first columns, which are the corpus's free
        ones; see dense.py for what it is.
        """
        lists = np.concatenate([[0], np.cumsum(self._sizes, dtype=np.int64)]).astype(np.int64)
        rows = np.zeros(int(lists[-1]) + 1, np.int64)
        for i, spooled in enumerate(self._spool):
            columns_of, first = _offsets(spooled, column)
            count_rows(columns_of, first, spooled.candidate, rows[lists[i] + 1 : lists[i + 1] + 1])
        np.cumsum(rows, out=rows)
        columns, values = np.empty(int(rows[-1]), np.int32), np.empty(int(rows[-1]), np.float32)
        for i, spooled in enumerate(self._spool):
            columns_of, first = _offsets(spooled, column)
            at = rows[lists[i] : lists[i + 1]].copy()
            fill_rows(_by_column(columns_of), columns_of, first, spooled.candidate, spooled.value, at, columns, values)
        if scale is not None and scale.size:
            scale_values(rows, columns, values, scale)
        base, gain, stats, reference = zip(*self._dense, strict=True) if self._dense else ((), (), (), ())
        return Corpus(
            lists=lists,
            rows=rows,
            columns=columns,
            values=values,
            base=_join(base, 1),
            gain=_join(gain, 1),
            stats=_join(stats, 2),
            reference=np.stack(reference) if reference else np.empty((0, 0)),
            weight=np.ones(len(self._sizes)),
            width=width,
            about=about,
            free=0 if scale is None else scale.size,
        )


def _offsets(spooled: _Spooled, column: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The column of every feature of a list (int32 [F]), and where its entries begin (int64 [F + 1])."""
    first = np.zeros(spooled.entries.size + 1, np.int64)
    np.cumsum(spooled.entries, out=first[1:])
    return (spooled.ids if column is None else column[spooled.ids]), first


def _by_column(column: np.ndarray) -> np.ndarray:
    """Indices of the features with a column, in column order (one sort of packed 64-bit keys)."""
    kept = np.flatnonzero(column >= 0)
    packed = (column[kept].astype(np.int64) << 32) | kept
    packed.sort()
    return packed & 0xFFFFFFFF


def _join(parts: tuple[np.ndarray, ...], ndim: int) -> np.ndarray:
    return np.concatenate(parts) if parts else np.empty((0,) * ndim)
