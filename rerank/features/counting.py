"""Counts of the lists in which every feature varies: block by block, added up exactly, and turned into a table.

A block is a run of lists that one process counts. Blocks are added up range by range of hashes: no step
needs memory for more than its range, and the sums do not depend on the blocks or on who counted them. The names of
features that are kept come from the first block that has them: every block is looked into once.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rerank.data.corpus import freeze, indices_of, offsets, ranges_of
from rerank.data.symbols import enlarge, enter_all, lengthen, new_index
from rerank.features.sink import ListFeatures
from rerank.features.table import FeatureTable


class FeatureCounts(NamedTuple):
    """U features, sorted by hash, and the number of lists of a block in which each varies; counts and templates are
    unsigned, in the smallest type that holds them."""

    hashes: np.ndarray  # uint64 [U]
    counts: np.ndarray  # [U]
    template: np.ndarray  # [U]

    def between(self, first: int, last: int) -> "FeatureCounts":
        """The features with hashes first..last, copied: of many blocks, not all that is on disk can stay mapped."""
        a = int(np.searchsorted(self.hashes, np.uint64(first)))
        b = int(np.searchsorted(self.hashes, np.uint64(last), side="right"))
        return FeatureCounts(*(array[a:b].copy() for array in self))


class FeatureSymbols(NamedTuple):
    """The symbols of the U features of a block: those of feature i are symbol_count[i] of ``symbols``, from
    symbol_first[i] on, each by its index in ``names``; unsigned, in the smallest types."""

    symbol_first: np.ndarray  # [U]
    symbol_count: np.ndarray  # [U]
    symbols: np.ndarray  # [S]
    names: np.ndarray  # uint64 [M]

    def some(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of symbols of the features ``indices`` (int64), and these symbols (uint64)."""
        lengths = self.symbol_count[indices].astype(np.int64)
        return lengths, self.names[self.symbols[indices_of(self.symbol_first[indices].astype(np.int64), lengths)]]


class FeatureCounter:
    """Counts the features of the lists of a block."""

    def __init__(self) -> None:
        self.size = 0
        self._index = new_index(1 << 16)
        self._counts = np.zeros(1 << 16, np.int32)
        self._new: list[tuple[np.ndarray, ...]] = []
        self._symbols, self._end = np.empty(1 << 22, np.int32), 0  # most blocks fit; unused memory costs nothing
        self._names, self._name_count, self._name_index = np.empty(1 << 12, np.uint64), 0, new_index(1 << 12)

    def add(self, features: ListFeatures, lists: np.ndarray | None = None) -> np.ndarray:
        """Count the features of one list, or of as many as each varies in (``lists`` int64 [F]); returns their ids
        (int32 [F]), numbered in order of first appearance."""
        ids, before = np.empty(features.hashes.size, np.int32), self.size
        self._index = enlarge(self._index, before + ids.size)
        self.size = enter_all(self._index, freeze(features.hashes), before, ids)
        self._counts = lengthen(self._counts, self.size)
        self._counts[ids] += 1 if lists is None else lists
        new = np.flatnonzero(ids >= before)
        lengths = features.symbol_last[new] - features.symbol_first[new]
        symbols = features.symbols[indices_of(features.symbol_first[new], lengths)]
        begin, self._end = self._end, self._end + symbols.size
        self._new.append((features.hashes[new], features.template[new], begin + np.cumsum(lengths)))
        # Features share their symbols with many others: numbers of symbols take one to four bytes each, hashes eight.
        self._symbols, self._name_index = (
            lengthen(self._symbols, self._end),
            enlarge(self._name_index, self._name_count + symbols.size),
        )
        numbers = self._symbols[begin : self._end]
        self._name_count = enter_all(self._name_index, freeze(symbols), self._name_count, numbers)
        self._names = lengthen(self._names, self._name_count)
        self._names[numbers] = symbols
        return ids

    def finish(self) -> tuple[FeatureCounts, FeatureSymbols, np.ndarray]:
        """The counts, the symbols, and the rank of every id in the order of hashes (int32 [size])."""
        hashes, template, last = (np.concatenate(parts) for parts in zip(_NOTHING, *self._new, strict=True))
        order = np.argsort(hashes)
        rank = np.empty(self.size, np.int32)
        rank[order] = np.arange(self.size, dtype=np.int32)
        first = np.concatenate([[0], last[:-1]])[: self.size]
        counts, kinds, begins, sizes = map(narrow, (self._counts[: self.size], template, first, last - first))
        symbols = begins[order], sizes[order], narrow(self._symbols[: self._end]), self._names[: self._name_count]
        return FeatureCounts(hashes[order], counts[order], kinds[order]), FeatureSymbols(*symbols), rank


def narrow(numbers: np.ndarray) -> np.ndarray:
    """Whole numbers from 0 up in the smallest type that holds them."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


_NOTHING = tuple(np.empty(0, kind) for kind in (np.uint64, np.int32, np.int64))


class FrequentFeatures(NamedTuple):
    """The K features of some blocks that vary in enough lists, sorted by hash."""

    hashes: np.ndarray  # uint64 [K]
    template: np.ndarray  # int32 [K]
    block: np.ndarray  # int32 [K]: the first block that has each
    totals: np.ndarray  # int64 [T]: features seen of every template, kept or not


def add_counts(blocks: Sequence[FeatureCounts], limits: np.ndarray) -> FrequentFeatures:
    """Add up the counts of ``blocks``.

    limits: int32 [T], the number of lists in which a feature of each template must vary to be kept.
    """
    sizes = [block.hashes.size for block in blocks]
    hashes, counts, template = (
        np.concatenate([empty, *arrays]) for empty, *arrays in zip(_NOTHING, *blocks, strict=True)
    )
    order = np.argsort(hashes, kind="stable")  # fast on sorted runs; the first block's feature comes first
    sorted_hashes = hashes[order]
    first = np.flatnonzero(np.concatenate([[True], sorted_hashes[1:] != sorted_hashes[:-1]])[: hashes.size])
    total = np.add.reduceat(counts[order], first, dtype=np.int64) if first.size else first
    origin = order[first]
    totals = np.bincount(template[origin], minlength=limits.size)
    origin = origin[total >= limits[template[origin]]]
    block = np.searchsorted(offsets(np.array(sizes, np.int64)), origin, side="right") - 1
    return FrequentFeatures(hashes[origin], template[origin].astype(np.int32), block.astype(np.int32), totals)


def by_block(ranges: Sequence[FrequentFeatures]) -> list[tuple[int, np.ndarray]]:
    """The hashes (uint64) of the features of ``ranges`` by the first block that has them, in the order of blocks."""
    hashes, block = (np.concatenate([getattr(part, name) for part in ranges]) for name in ("hashes", "block"))
    order = np.argsort(block, kind="stable")
    numbers, first = np.unique(block[order], return_index=True)
    return list(zip(numbers.tolist(), np.split(hashes[order], first)[1:], strict=True))


class Pruning(NamedTuple):
    """The features that are kept: those that vary in at least ``min_lists`` lists, or in one if of a ``free`` template.

    The features of the templates ``free`` (see an extractor's ``free``) get the first columns.
    """

    templates: tuple[str, ...]
    min_lists: int
    free: Collection[str] = ()

    @property
    def is_free(self) -> np.ndarray:
        """bool [T]: which templates are free."""
        return np.array([name in self.free for name in self.templates], np.bool_)

    @property
    def limits(self) -> np.ndarray:
        """int32 [T]: the number of lists in which a template's features must vary."""
        return np.where(self.is_free, 1, self.min_lists).astype(np.int32)


def make_table(
    ranges: Sequence[FrequentFeatures], names: Sequence[tuple[np.ndarray, np.ndarray]], pruning: Pruning,
    texts: Mapping[int, str],
) -> FeatureTable:  # fmt: skip
    """The table of the features of ``ranges``, in increasing order; names: their symbols ``by_block`` (see
    ``FeatureSymbols.some``); texts: those of the symbols, where known."""
    hashes, template, block, _ = (np.concatenate(parts) for parts in zip(*ranges, strict=True))
    lengths, symbols = (np.concatenate([empty, *parts]) for empty, *parts in zip(_NOTHING[::-2], *names, strict=True))
    totals = np.sum([part.totals for part in ranges], axis=0)
    free = pruning.is_free[template]
    order, starts, index = np.argsort(~free, kind="stable"), offsets(lengths), np.empty(block.size, np.int64)
    index[np.argsort(block, kind="stable")] = np.arange(block.size)
    index = index[order]
    first, symbols = offsets(lengths[index]), symbols[ranges_of(starts, index)]
    counts = np.bincount(template, minlength=len(pruning.templates))
    total = int(np.sum(totals))
    about: dict[str, Any] = {
        "seen": total,
        "kept": int(order.size),
        "pruned": total - int(order.size),
        "min_lists": pruning.min_lists,
        "templates": {
            name: {"seen": int(s), "kept": int(k)} for name, s, k in zip(pruning.templates, totals, counts, strict=True)
        },
    }
    scale = np.ones(np.count_nonzero(free))
    return FeatureTable(
        hashes[order], template[order], first, symbols, pruning.templates, dict(sorted(texts.items())), about, scale
    )


class CollisionCount:
    """Counts how many columns of a HashedTable, or ids of a block, are used, and how many by several features."""

    def __init__(self, size: int) -> None:
        self.owner, self.shared = np.zeros(size, np.uint64), np.zeros(size, np.bool_)

    def add(self, columns: np.ndarray, owners: np.ndarray, shared: np.ndarray | None = None) -> None:
        """Add columns of further lists (int32 [F], without repetition) and the full hashes of the first features to use
        them (uint64 [F]).

        shared: bool [F], whether other features of these lists use them too.
        """
        need = int(columns.max(initial=-1)) + 1
        self.owner, self.shared = lengthen(self.owner, need), lengthen(self.shared, need)
        previous = self.owner[columns]
        again = (previous != 0) & (previous != owners)
        self.shared[columns[again if shared is None else again | shared]] = True
        self.owner[columns[previous == 0]] = owners[previous == 0]

    def about(self) -> dict[str, int]:
        """Counts for provenance."""
        count = int(np.count_nonzero(self.owner))
        return {"kept": count, "shared": int(np.count_nonzero(self.shared)), "columns": int(self.owner.size)}
