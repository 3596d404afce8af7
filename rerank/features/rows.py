"""From the features of lists, stored by feature, to a corpus, stored by candidate."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus
from rerank.features.collecting import ListFeatures
from rerank.kernels.compile import kernel

LARGEST = np.finfo(np.float32).max
LONG = np.int8(-128)  # in place of a value that is no whole number from -127 to 127


class ListRows(NamedTuple):
    """L lists whose features have no columns yet, in the smallest types that hold them; read-only.

    N candidates, F features that vary in a list (counted once per list) and their E values; otherwise as in Corpus.
    """

    lists: np.ndarray  # int64 [L + 1]: candidates of list i are lists[i]..lists[i + 1]
    features: np.ndarray  # int64 [L + 1]: features of list i are features[i]..features[i + 1]
    ids: np.ndarray  # int32 [F]: numbers of the features
    entries: np.ndarray  # uint8, uint16 or int32 [F]: the number of entries of a feature
    origin: np.ndarray  # int8 [F]: what was subtracted from its values, LONG where that is in ``long_origin``
    long_origin: np.ndarray  # float32, in the order of the features
    candidate: np.ndarray  # uint8, uint16 or int32 [E], counted in its list
    value: np.ndarray  # int8 [E], LONG where the value is in ``long_value``
    long_value: np.ndarray  # float32, in the order of the entries
    longs: np.ndarray  # int64 [L + 1]: those of list i are long_value[longs[i]:longs[i + 1]]
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
        for e in range(np.uint64(first[i]), np.uint64(first[i + 1])):
            y = np.uint64(candidate[e])
            p = np.uint64(at[y])
            columns[p], values[p] = column[i], value[e]
            at[y] += 1


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
        candidate, entries = features.candidate, np.diff(features.first)
        if base.size <= 1 << 16:
            candidate = candidate.astype(np.uint8 if base.size <= 1 << 8 else np.uint16)
        if base.size < 1 << 16:
            entries = entries.astype(np.uint8 if base.size < 1 << 8 else np.uint16)
        values = *short(features.origin), candidate, *short(features.value)
        self._lists.append((ids, entries, *values, base, gain, stats, reference))

    def rows(self, number: np.ndarray | None = None) -> ListRows:
        """What was added; ``number`` (int32), if not None, maps ids to numbers of features."""
        if not self._lists:
            return ListRows(*map(_frozen, (_offsets([]), _offsets([]), *_NOTHING)))
        ids, *flat, longs, base, gain, stats, reference = zip(*self._lists, strict=True)
        numbers = np.concatenate(ids)
        return ListRows(
            *map(
                _frozen,
                (
                    _offsets([own.size for own in base]),
                    _offsets([part.size for part in ids]),
                    numbers if number is None else number[numbers],
                    *map(np.concatenate, (*flat, longs)),
                    _offsets([part.size for part in longs]),
                    *map(np.concatenate, (base, gain, stats)),
                    np.stack(reference),
                ),
            )
        )

    def finish(
        self, column: np.ndarray | None, width: int, about: dict[str, Any], scale: np.ndarray | None = None
    ) -> Corpus:
        """The corpus; ``column`` (int32) maps ids to columns; None: ids are columns. See ``make_corpus``."""
        return make_corpus(RowsPart(self.rows(), column, 0, len(self._lists)), width, about, scale)


_NOTHING = (
    *(np.empty(0, kind) for kind in (np.int32, np.uint8, np.int8, np.float32, np.uint8, np.int8, np.float32)),
    np.zeros(1, np.int64),
    *np.empty((2, 0)),
    *np.empty((2, 0, 0)),
)


def short(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values (float32) as int8, with LONG in place of those that are in the second array (float32)."""
    with np.errstate(invalid="ignore"):  # those beyond int8
        small = values.astype(np.int8)
    long = np.flatnonzero((small != values) | (small == LONG))
    small[long] = LONG
    return small, values[long]


def restored(small: np.ndarray, long: np.ndarray) -> np.ndarray:
    """The inverse of ``short``."""
    values = small.astype(np.float32)
    if long.size:
        values[small == LONG] = long
    return values


def origins(rows: ListRows) -> ListRows:
    """What was subtracted from the values of every list, as those of one candidate without scores or statistics."""
    kept, lists = np.flatnonzero(rows.origin), rows.lists.size - 1
    features = np.searchsorted(kept, rows.features).astype(np.int64)
    own, nothing = rows.origin[kept], np.zeros(kept.size, np.uint8)
    longs = _offsets(own == LONG)[features]
    flat, wide = np.zeros(lists), np.zeros((lists, 0))
    entries = rows.ids[kept], np.ones(kept.size, np.uint8), nothing.view(np.int8), rows.long_origin[:0], nothing
    values = own, rows.long_origin, longs
    return ListRows(*map(_frozen, (np.arange(lists + 1), features, *entries, *values, flat, flat, wide, wide)))


def make_corpus(piece: RowsPart, width: int, about: dict[str, Any], scale: np.ndarray | None = None) -> Corpus:
    """The lists of ``piece`` as a corpus; features with a negative column are dropped.

    The table's ``scale`` (float64 [free]) multiplies the values of the first columns, which are the corpus's free ones;
    see dense.py.
    """
    first, last, own = piece.first, piece.last, piece.rows
    lists = own.lists[first : last + 1] - own.lists[first]
    candidates = slice(int(own.lists[first]), int(own.lists[last]))
    rows = np.zeros(int(lists[-1]) + 1, np.int64)
    for part in _lists_of(piece):
        count_rows(part.column, part.offsets, part.candidate, rows[1 + part.first : 1 + part.last])
    np.cumsum(rows, out=rows)
    columns, values = np.empty(int(rows[-1]), np.int32), np.empty(int(rows[-1]), np.float32)
    for part in _lists_of(piece):
        at, value = rows[part.first : part.last].copy(), restored(part.value, part.long_value)
        fill_rows(_by_column(part.column), part.column, part.offsets, part.candidate, value, at, columns, values)
    if scale is not None and scale.size:
        scale_values(rows, columns, values, scale)
    limit_values(values)
    return Corpus(
        lists=lists,
        rows=rows,
        columns=columns,
        values=values,
        base=np.array(own.base[candidates]),
        gain=np.array(own.gain[candidates]),
        stats=np.array(own.stats[candidates]),
        reference=np.array(own.reference[first:last]),
        weight=np.ones(last - first),
        width=width,
        about=about,
        free=0 if scale is None else scale.size,
    )


def kept_entries(rows: ListRows, column: np.ndarray | None) -> np.ndarray:
    """int64 [L]: how many nonzeros each list has once its features have columns (negative: dropped), as in RowsPart."""
    columns = rows.ids if column is None else column[rows.ids]
    total = _offsets(np.where(columns >= 0, rows.entries, 0))
    return np.asarray(np.diff(total[rows.features]))


class _OneList(NamedTuple):
    """A list of a piece."""

    first: int  # of its candidates, counted in the piece
    last: int  # + 1
    column: np.ndarray  # int32: of its features
    offsets: np.ndarray  # int64: where the entries of each begin, and where those of the last one end
    candidate: np.ndarray  # of its entries, as are ``value`` and ``long_value``
    value: np.ndarray
    long_value: np.ndarray


def _lists_of(piece: RowsPart) -> Iterator[_OneList]:
    """All lists of a piece."""
    rows = piece.rows
    begin, end = int(rows.features[piece.first]), int(rows.features[piece.last])
    ids = rows.ids[begin:end]
    columns = _frozen(ids if piece.column is None else piece.column[ids])
    before = int(np.sum(rows.entries[:begin], dtype=np.int64))
    starts = _offsets(rows.entries[begin:end])
    origin = rows.lists[piece.first]
    for i in range(piece.first, piece.last):
        a, b = int(rows.features[i]) - begin, int(rows.features[i + 1]) - begin
        p, q = int(starts[a]), int(starts[b])
        own, long = slice(before + p, before + q), rows.long_value[rows.longs[i] : rows.longs[i + 1]]
        first, last = int(rows.lists[i] - origin), int(rows.lists[i + 1] - origin)
        entries = starts[a : b + 1] - p, rows.candidate[own], rows.value[own], long
        yield _OneList(first, last, columns[a:b], *entries)


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
