"""From the features of lists, stored by feature, to a corpus, stored by candidate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.features.collecting import ListFeatures
from rerank.kernels.compile import kernel

LARGEST = np.finfo(np.float32).max


class ListRows(NamedTuple):
    """L lists whose features have no columns yet, in the smallest types that hold them; read-only.

    N candidates, F features that vary in a list (counted once per list) and their E values; otherwise as in Corpus.
    """

    lists: np.ndarray  # int64 [L + 1]: candidates of list i are lists[i]..lists[i + 1]
    features: np.ndarray  # int64 [L + 1]: features of list i are features[i]..features[i + 1]
    ids: np.ndarray  # int32 [F]: numbers of the features
    entries: np.ndarray  # int32 [F]: the number of entries of a feature
    origin: np.ndarray  # int8 or float32 [F]: what was subtracted from its values
    candidate: np.ndarray  # uint8, uint16 or int32 [E], counted in its list
    value: np.ndarray  # int8 or float32 [E]
    base: np.ndarray  # float64 [N]
    gain: np.ndarray  # float64 [N]
    stats: np.ndarray  # float64 [N, K]
    reference: np.ndarray  # float64 [L, R]


class RowsPart(NamedTuple):
    """Lists first..last - 1 of ``rows``; ``column`` (int32), if not None, maps numbers of features to columns."""

    rows: ListRows
    column: np.ndarray | None
    first: int
    last: int


@kernel
def count_rows(column: np.ndarray, first: np.ndarray, candidate: np.ndarray, lengths: np.ndarray) -> int:
    """Count the kept entries of every candidate (``lengths`` int64 [N]); returns the number for the whole list."""
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
    """Write the entries of the features ``order`` (by column) to their rows, which continue at ``at`` (int64 [N])."""
    for k in range(order.shape[0]):
        i = order[k]
        for e in range(first[i], first[i + 1]):
            p = at[candidate[e]]
            columns[p], values[p] = column[i], value[e]
            at[candidate[e]] = p + 1


@kernel
def scale_values(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, scale: np.ndarray) -> None:
    """Multiply the values of the first columns by ``scale`` (float64, one per column)."""
    for y in range(rows.shape[0] - 1):
        for p in range(rows[y], rows[y + 1]):
            if columns[p] >= scale.shape[0]:
                break
            values[p] *= scale[columns[p]]


@kernel
def limit_values(values: np.ndarray) -> None:
    """Limit values (float32) that have become too large for their type to its largest number."""
    for p in range(values.shape[0]):
        if abs(values[p]) > LARGEST:
            values[p] = LARGEST if values[p] > 0.0 else -LARGEST


class RowBuilder:
    """Collects lists.

    Each list comes with the numbers of its features (``ids``: provisional ids, or columns already), base scores, gains
    and statistics.
    """

    def __init__(self) -> None:
        self._lists: list[tuple[np.ndarray, ...]] = []

    def add(
        self,
        features: ListFeatures,
        ids: np.ndarray,
        base: np.ndarray,
        gain: np.ndarray,
        stats: np.ndarray,
        reference: np.ndarray,
    ) -> None:
        """Add one list: base and gain float64 [N], stats float64 [N, K], reference float64 [R]."""
        candidate = features.candidate
        if base.size <= 1 << 16:
            candidate = candidate.astype(np.uint8 if base.size <= 1 << 8 else np.uint16)
        entries = np.diff(features.first).astype(np.int32)
        values = _compact(features.origin), candidate, _compact(features.value)
        self._lists.append((ids, entries, *values, base, gain, stats, reference))

    def rows(self, number: np.ndarray | None = None) -> ListRows:
        """What was added; ``number`` (int32), if not None, maps ids to numbers of features."""
        if not self._lists:
            return ListRows(*map(_frozen, (_offsets([]), _offsets([]), *_NOTHING)))
        ids, *flat, reference = zip(*self._lists, strict=True)
        numbers = np.concatenate(ids)
        return ListRows(
            *map(
                _frozen,
                (
                    _offsets([base.size for *_, base, _, _, _ in self._lists]),
                    _offsets([part.size for part in ids]),
                    numbers if number is None else number[numbers],
                    *map(np.concatenate, flat),
                    np.stack(reference),
                ),
            )
        )

    def finish(
        self, column: np.ndarray | None, width: int, about: dict[str, Any], scale: np.ndarray | None = None
    ) -> Corpus:
        """The corpus; ``column`` (int32) maps ids to columns; None: ids are columns. See ``make_corpus``."""
        return make_corpus([RowsPart(self.rows(), column, 0, len(self._lists))], width, about, scale)


_NOTHING = (
    *(np.empty(0, kind) for kind in (np.int32, np.int32, np.int8, np.uint8, np.int8, np.float64, np.float64)),
    *np.empty((2, 0, 0)),
)


def _compact(values: np.ndarray) -> np.ndarray:
    """Values (float32) in the smallest type that holds them."""
    with np.errstate(invalid="ignore"):  # values beyond int8 are kept as they are
        small = values.astype(np.int8)
    return small if np.array_equal(small, values) else values.copy()


def origins(rows: ListRows) -> ListRows:
    """What was subtracted from the values of every list, as those of one candidate without scores or statistics."""
    kept, lists = np.flatnonzero(rows.origin), rows.lists.size - 1
    features = np.searchsorted(kept, rows.features).astype(np.int64)
    own = rows.ids[kept], np.ones(kept.size, np.int32), np.zeros(kept.size, np.int8), np.zeros(kept.size, np.uint8)
    flat, wide = np.zeros(lists), np.zeros((lists, 0))
    return ListRows(*map(_frozen, (np.arange(lists + 1), features, *own, rows.origin[kept], flat, flat, wide, wide)))


def make_corpus(
    pieces: Iterable[RowsPart], width: int, about: dict[str, Any], scale: np.ndarray | None = None
) -> Corpus:
    """The lists of ``pieces``, one after the other, as a corpus; features with a negative column are dropped.

    pieces: iterated over twice, so that pieces may be mapped one at a time. The table's ``scale`` (float64 [free])
    multiplies the values of the first columns, which are the corpus's free ones; see dense.py.
    """
    lengths, sizes, dense = [np.zeros(1, np.int64)], [np.zeros(0, np.int64)], []
    for piece in pieces:
        sizes.append(np.diff(piece.rows.lists[piece.first : piece.last + 1]))
        lengths.append(_row_lengths(piece))
        dense.append(_dense_part(piece))
    rows = np.cumsum(np.concatenate(lengths))
    columns, values = np.empty(int(rows[-1]), np.int32), np.empty(int(rows[-1]), np.float32)
    before = 0
    for piece in pieces:
        for first, last, column, offsets, candidate, value in _lists_of(piece):
            at = rows[before + first : before + last].copy()
            fill_rows(_by_column(column), column, offsets, candidate, value, at, columns, values)
        before += int(piece.rows.lists[piece.last] - piece.rows.lists[piece.first])
    if scale is not None and scale.size:
        scale_values(rows, columns, values, scale)
    limit_values(values)
    base, gain, stats, reference = map(np.concatenate, zip(*dense, strict=True))
    lists = _offsets(np.concatenate(sizes))
    return Corpus(
        lists=lists,
        rows=rows,
        columns=columns,
        values=values,
        base=base,
        gain=gain,
        stats=stats,
        reference=reference,
        weight=np.ones(lists.size - 1),
        width=width,
        about=about,
        free=0 if scale is None else scale.size,
    )


def kept_entries(rows: ListRows, column: np.ndarray) -> np.ndarray:
    """int64 [L]: how many nonzeros each list has once its features have columns (negative: dropped)."""
    total = _offsets(np.where(column[rows.ids] >= 0, rows.entries, 0))
    return np.asarray(np.diff(total[rows.features]))


def _row_lengths(piece: RowsPart) -> np.ndarray:
    """int64 [N]: how many nonzeros each candidate has."""
    lists = piece.rows.lists
    lengths = np.zeros(int(lists[piece.last] - lists[piece.first]), np.int64)
    for first, last, column, offsets, candidate, _ in _lists_of(piece):
        count_rows(column, offsets, candidate, lengths[first:last])
    return lengths


def _dense_part(piece: RowsPart) -> tuple[np.ndarray, ...]:
    """base, gain, stats and reference of a piece."""
    rows = piece.rows
    candidates = slice(int(rows.lists[piece.first]), int(rows.lists[piece.last]))
    parts = rows.base[candidates], rows.gain[candidates], rows.stats[candidates]
    return *map(np.array, parts), np.array(rows.reference[piece.first : piece.last])


def _lists_of(piece: RowsPart) -> Iterator[tuple[int, int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """For every list: its candidates (first, last + 1, from 0), the columns of its features (int32), where their
    entries begin (int64, and where those of the last one end), the entries' candidates and values."""
    rows = piece.rows
    columns = rows.ids if piece.column is None else piece.column[rows.ids]
    starts = _offsets(rows.entries)
    origin = rows.lists[piece.first]
    for i in range(piece.first, piece.last):
        a, b = int(rows.features[i]), int(rows.features[i + 1])
        p, q = int(starts[a]), int(starts[b])
        first, last = int(rows.lists[i] - origin), int(rows.lists[i + 1] - origin)
        yield first, last, columns[a:b], starts[a : b + 1] - p, rows.candidate[p:q], rows.value[p:q]


def _by_column(column: np.ndarray) -> np.ndarray:
    """Indices of the features that have a column, in column order (one sort of packed 64-bit keys)."""
    kept = np.flatnonzero(column >= 0)
    packed = (column[kept].astype(np.int64) << 32) | kept
    packed.sort()
    return packed & 0xFFFFFFFF


def _offsets(lengths: Any) -> np.ndarray:
    """int64 [n + 1]: where pieces of these lengths begin, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _frozen(array: np.ndarray) -> np.ndarray:
    """A read-only view: for kernels, read-only and writable arrays are different types."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
