"""Features of lists, stored by feature, and how they become a corpus, stored by candidate."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rerank.data.corpus import FLOAT32_MAX, Corpus, freeze, offsets
from rerank.features.sink import ListFeatures
from rerank.kernels.compile import kernel

# Lists are kept by feature until all of train has been counted: only then is it known which features get columns. As
# this takes more room than anything else in an extraction, it is packed. Most features count how often something
# occurs, relative to the list: whole numbers around 0, which fit into a byte. Others (scores, rates) are kept apart as
# float32, in order, with LONG as a mark in their places. Lists are short, so that the place of a candidate in its list,
# and the number of candidates in which a feature fires, fit into one or two bytes as well.
LONG = np.int8(-128)  # in place of a value that is no whole number from -127 to 127


class ListRows(NamedTuple):
    """L lists whose features may have no columns yet, in the smallest types that hold them; read-only.

    N candidates, F features that vary in a list (counted once per list) and their E values; otherwise as in Corpus.
    """

    lists: np.ndarray  # int64 [L + 1]: candidates of list i are lists[i]..lists[i + 1]
    features: np.ndarray  # int64 [L + 1]: features of list i are features[i]..features[i + 1]
    ids: np.ndarray  # int32 [F]: numbers of the features, or their columns, negative for those without one
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

    def renumber(self, number: np.ndarray | None) -> "ListRows":
        """The same lists with other ``ids``: ``number`` (int32) maps the old ones to the new ones; None: the same."""
        return self if number is None else self._replace(ids=freeze(number[self.ids]))

    def nonzeros(self) -> np.ndarray:
        """int64 [L]: how many entries each list has of features with a column."""
        total = offsets(np.where(self.ids >= 0, self.entries, 0))
        return np.asarray(np.diff(total[self.features]))

    def origins(self) -> "ListRows":
        """The amounts that were subtracted from the values of every list, as those of one candidate without scores or
        statistics."""
        indices, lists = np.flatnonzero(self.origin), self.lists.size - 1
        features = np.searchsorted(indices, self.features).astype(np.int64)
        origin, zeros = self.origin[indices], np.zeros(indices.size, np.uint8)
        longs = offsets(origin == LONG)[features]
        flat, wide = np.zeros(lists), np.zeros((lists, 0))
        entries = self.ids[indices], np.ones(indices.size, np.uint8), zeros.view(np.int8), self.long_origin[:0], zeros
        values = origin, self.long_origin, longs
        return ListRows(*map(freeze, (np.arange(lists + 1), features, *entries, *values, flat, flat, wide, wide)))


class RowRun(NamedTuple):
    """Lists among others: as many as have ``RUN_FEATURES`` features, or one with more."""

    order: np.ndarray  # int64: indices of the features that have a column, list by list in column order
    column: np.ndarray  # int32: of its features
    begin: np.ndarray  # int64: the first candidate of a feature's list
    offsets: np.ndarray  # int64: where the entries of each begin, and where those of the last one end
    candidate: np.ndarray  # of its entries, as are ``value`` and ``long_value``
    value: np.ndarray
    long_value: np.ndarray


@kernel
def count_rows(run: RowRun, lengths: np.ndarray) -> None:
    """Count the kept entries of every candidate (``lengths`` int64 [N])."""
    for i in range(run.column.shape[0]):
        if run.column[i] >= 0:
            for e in range(run.offsets[i], run.offsets[i + 1]):
                lengths[run.begin[i] + run.candidate[e]] += 1


@kernel
def fill_rows(run: RowRun, value: np.ndarray, at: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
    """Write the entries of a run, with each ``value``, to their rows, which continue at ``at`` (int64 [N])."""
    # Each row has a pointer to its end. As features come by column, every row is sorted by column without being sorted.
    for k in range(run.order.shape[0]):
        i = run.order[k]
        for e in range(np.uint64(run.offsets[i]), np.uint64(run.offsets[i + 1])):
            y = np.uint64(run.begin[i] + run.candidate[e])
            p = np.uint64(at[y])
            columns[p], values[p] = run.column[i], value[e]
            at[y] += 1


class RowBuilder:
    """Collects lists.

    They come with the numbers of their features (``ids``: provisional ids, or columns already), base scores, gains and
    statistics.
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
        self.add_lists(
            np.array([base.size]), np.array([ids.size]), ids, np.diff(features.first), features.origin,
            features.candidate, features.value, base, gain, stats, reference[None],
        )  # fmt: skip

    def add_lists(
        self,
        sizes: np.ndarray,
        counts: np.ndarray,
        ids: np.ndarray,
        entries: np.ndarray,
        origin: np.ndarray,
        candidate: np.ndarray,
        value: np.ndarray,
        *scores: np.ndarray,
    ) -> None:
        """Add L lists with ``sizes`` candidates and ``counts`` features each (int64 [L]), one after the other."""
        # The last of 256 candidates has the number 255, but a feature of all of them has 256 entries.
        longest = int(sizes.max(initial=0))
        if longest <= 1 << 16:
            candidate = candidate.astype(np.uint8 if longest <= 1 << 8 else np.uint16)
        if longest < 1 << 16:
            entries = entries.astype(np.uint8 if longest < 1 << 8 else np.uint16)
        small, long = pack(value)
        of_lists = offsets(entries)[offsets(counts)]
        longs = np.diff(offsets(small == LONG)[of_lists])
        values = *pack(origin), candidate, small, long
        self._lists.append((sizes, counts, longs, ids, entries, *values, *scores))

    def rows(self) -> ListRows:
        """The lists that were added."""
        if not self._lists:
            return ListRows(*map(freeze, (offsets([]), offsets([]), *_NOTHING)))
        sizes, counts, longs, *flat = map(np.concatenate, zip(*self._lists, strict=True))
        return ListRows(*map(freeze, (offsets(sizes), offsets(counts), *flat[:7], offsets(longs), *flat[7:])))

    def finish(
        self, column: np.ndarray | None, width: int, about: dict[str, Any], scale: np.ndarray | None = None
    ) -> Corpus:
        """The corpus; ``column`` (int32) maps ids to columns; None: ids are columns. See ``make_corpus``."""
        return make_corpus(self.rows().renumber(column), width, about, scale)


_NOTHING = (
    *(np.empty(0, kind) for kind in (np.int32, np.uint8, np.int8, np.float32, np.uint8, np.int8, np.float32)),
    np.zeros(1, np.int64),
    *np.empty((2, 0)),
    *np.empty((2, 0, 0)),
)


def pack(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values (float32) as int8, with LONG in place of those that are in the second array (float32)."""
    with np.errstate(invalid="ignore"):  # those beyond int8
        small = values.astype(np.int8)
    long = np.flatnonzero((small != values) | (small == LONG))
    small[long] = LONG
    return small, values[long]


def unpack(small: np.ndarray, long: np.ndarray) -> np.ndarray:
    """The inverse of ``pack``."""
    values = small.astype(np.float32)
    if long.size:
        values[small == LONG] = long
    return values


def make_corpus(rows: ListRows, width: int, about: dict[str, Any], scale: np.ndarray | None = None) -> Corpus:
    """The lists of ``rows``, whose ids are columns, as a corpus.

    The table's ``scale`` (float64 [free]) multiplies the values of the first columns, which are the corpus's free ones.
    """
    starts = np.zeros(int(rows.lists[-1]) + 1, np.int64)
    for part in _runs_of(rows):
        count_rows(part, starts[1:])
    np.cumsum(starts, out=starts)
    at, columns, values = starts[:-1].copy(), np.empty(int(starts[-1]), np.int32), np.empty(int(starts[-1]), np.float32)
    for part in _runs_of(rows):
        fill_rows(part, unpack(part.value, part.long_value), at, columns, values)
    if scale is not None and scale.size:
        free = columns < scale.size
        values[free] = values[free] * scale[columns[free]]
    np.clip(values, -FLOAT32_MAX, FLOAT32_MAX, out=values)  # scaled, they may have become too large for their type
    return Corpus(
        lists=np.array(rows.lists),
        rows=starts,
        columns=columns,
        values=values,
        base=np.array(rows.base),
        gain=np.array(rows.gain),
        stats=np.array(rows.stats),
        reference=np.array(rows.reference),
        weight=np.ones(rows.lists.size - 1),
        width=width,
        about=about,
        free=0 if scale is None else scale.size,
    )


RUN_FEATURES = 1 << 16  # features of lists that are looked at together


def _runs_of(rows: ListRows) -> Iterator[RowRun]:
    """The lists in runs."""
    first, last, before, columns = 0, rows.lists.size - 1, 0, freeze(rows.ids)
    while first < last:
        end = max(first + 1, int(np.searchsorted(rows.features, rows.features[first] + RUN_FEATURES, side="right")) - 1)
        end = min(end, first + RUN_FEATURES, last)
        a, b = int(rows.features[first]), int(rows.features[end])
        starts = offsets(rows.entries[a:b])
        counts = np.diff(rows.features[first : end + 1])
        begin = np.repeat(rows.lists[first:end], counts)
        order = _by_column(columns[a:b], np.repeat(np.arange(end - first), counts))
        entries, long = slice(before, before + int(starts[-1])), slice(int(rows.longs[first]), int(rows.longs[end]))
        yield RowRun(
            order, columns[a:b], begin, starts, rows.candidate[entries], rows.value[entries], rows.long_value[long]
        )
        first, before = end, before + int(starts[-1])


def _by_column(column: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Indices of the features that have a column, by the ``number`` of their list, then by column."""
    indices = np.flatnonzero(column >= 0)
    # Number, column and index in one 64-bit number: a plain sort of these is several times as fast as an argsort. One
    # list may have any number of features, several have no more than RUN_FEATURES.
    bits = 16 if number[-1:].any() else 32
    keys = (number[indices] << 47) | (column[indices].astype(np.int64) << bits) | indices
    keys.sort()
    return keys & ((1 << bits) - 1)
