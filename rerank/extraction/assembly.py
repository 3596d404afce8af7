"""From blocks in the spool to the table of the features that are kept, and to the shards of a corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rerank.base.errors import RunError
from rerank.data.corpus import Corpus
from rerank.extraction.blocks import Shared, Spool, Texts
from rerank.features.counting import CollisionCount, KeptFeatures, add_counts, symbols_of
from rerank.features.dense import ColumnSpread
from rerank.features.rows import ListRows, RowsPart, kept_entries, make_corpus, origins
from rerank.features.table import HashedTable, Table, columns_of, hashed_columns
from rerank.storage.arrays import read_array
from rerank.storage.checkpoints import KeptResult

RANGE = 1 << 20  # about how many counts are added up at once
TABLE = "table"  # in the spool: the hashes of the table's features


class HashRange(NamedTuple):
    """Hashes first..last, in blocks 0..blocks - 1."""

    first: int
    last: int
    blocks: int


def divide_hashes(features: Sequence[int]) -> list[HashRange]:
    """All hashes, divided into ranges; ``features``: how many each block has."""
    number = max(1, -(-sum(features) // RANGE))
    bounds = [(i << 64) // number for i in range(number + 1)]
    return [HashRange(first, last - 1, len(features)) for first, last in pairwise(bounds)]


def count_range(spool: Spool, limits: np.ndarray, task: HashRange) -> KeptFeatures:
    """The features of a range of hashes that are kept; limits: see ``add_counts``."""
    blocks, places = [], []
    for block in range(task.blocks):
        hashes = spool.array(block, "hashes")
        a = int(np.searchsorted(hashes, np.uint64(task.first)))
        b = int(np.searchsorted(hashes, np.uint64(task.last), side="right"))
        counts, template = spool.array(block, "counts"), spool.array(block, "template")
        blocks.append((hashes[a:b].copy(), counts[a:b].copy(), template[a:b].copy()))  # too many to stay mapped
        places.append(a)
    kept, seen = add_counts(blocks, limits)
    kept = kept._replace(place=kept.place + np.array(places, np.int64)[kept.block])
    arrays = ("symbol_first", "symbol_last", "symbols")
    names = ([spool.array(block, name) for name in arrays] for block in range(task.blocks))
    return KeptFeatures(kept.hashes, kept.template, *symbols_of(kept, names), seen)


def texts_of(spool: Spool, blocks: int, symbols: np.ndarray) -> dict[int, str]:
    """The texts of ``symbols`` (uint64, rising) that the blocks have, by hash."""
    texts: dict[int, str] = {}
    for block in range(blocks):
        more = spool.load(block, Texts).some(symbols)
        symbols = symbols[~np.isin(symbols, np.array(list(more), np.uint64))]
        texts |= more
    return texts


def count_collisions(table: HashedTable, spool: Spool, blocks: int) -> dict[str, int]:
    """How many columns are used, and by more than one feature."""
    collisions = CollisionCount(table.width)
    for block in range(blocks):
        owner, shared = spool.load(block, Shared)
        collisions.add(hashed_columns(spool.array(block, "hashes")), owner, shared)
    return collisions.about()


@dataclass(frozen=True)
class Numbering:
    """Which columns the features of blocks have. table: a file with a FeatureTable's hashes, None for hashed columns;
    width, free: how many columns there are, and how many of them are free."""

    spool: Spool
    table: str | None
    width: int
    free: int

    @staticmethod
    def of(table: Table, spool: Spool) -> Numbering:
        """The columns of ``table``, which is left in the spool."""
        if isinstance(table, HashedTable):
            return Numbering(spool, None, table.width, 0)
        place = Path(spool.directory) / TABLE
        KeptResult(place, "", synced=False).save({}, {"hashes": table.hashes})
        return Numbering(spool, str(place / "hashes.npy"), table.width, table.free)

    def columns(self, block: int) -> np.ndarray:
        """int32 [U]: the columns of a block's features."""
        hashes = self.spool.array(block, "hashes")
        if self.table is None:
            return hashed_columns(hashes)
        return columns_of(hashes, read_array(Path(self.table), np.uint64, 1, mmap=True), self.free)


class Measured(NamedTuple):
    """A block once the columns are known."""

    sizes: np.ndarray  # int64 [L]: bytes that each list will take
    dense: Corpus | None  # the lists with their free columns alone, where there are any


def measure_block(numbering: Numbering, block: int) -> Measured:
    """How large the lists of a block will be, and what their free columns hold, before they are scaled."""
    rows, column = numbering.spool.load(block, ListRows), numbering.columns(block)
    candidate = 8 * (3 + rows.stats.shape[1])  # row offset, base score, gain and statistics
    lists = 8 * (2 + rows.reference.shape[1])  # offset, weight and reference
    sizes = 8 * kept_entries(rows, column) + candidate * np.diff(rows.lists) + lists
    free = numbering.free
    if not free:
        return Measured(sizes, None)
    pieces = [RowsPart(rows, np.where(column < free, column, -1).astype(np.int32), 0, sizes.size)]
    return Measured(sizes, make_corpus(pieces, free, {}, np.ones(free)))


def standard_scale(measured: Iterator[Measured], free: int) -> tuple[list[np.ndarray], np.ndarray]:
    """The sizes of all blocks, and the scale of the free columns (see dense.py)."""
    spread, sizes = ColumnSpread(free), []
    for block in measured:
        sizes.append(block.sizes)
        if block.dense is not None:
            spread.add(block.dense)
    return sizes, spread.scale()


class BlockPart(NamedTuple):
    """Lists first..last - 1 of a block."""

    block: int
    first: int
    last: int


class Shard(NamedTuple):
    """What a shard is made of, where it goes, and where to what was subtracted from its values, if anywhere."""

    sections: tuple[BlockPart, ...]
    target: str
    origins: str | None = None


Sizes = tuple[int, int, int]  # lists, candidates, nonzeros


class _Pieces:
    """Sections of blocks, or their origins, mapped one at a time; can be iterated over repeatedly."""

    def __init__(self, numbering: Numbering, sections: tuple[BlockPart, ...], *, origins: bool = False) -> None:
        self._numbering, self._sections, self._origins = numbering, sections, origins

    def __iter__(self) -> Iterator[RowsPart]:
        numbering = self._numbering
        for block, first, last in self._sections:
            rows = numbering.spool.load(block, ListRows)
            yield RowsPart(origins(rows) if self._origins else rows, numbering.columns(block), first, last)


def write_shard(numbering: Numbering, about: dict[str, Any], scale: np.ndarray | None, shard: Shard) -> list[Sizes]:
    """Write a shard, and its origins if they have a place; returns the sizes of both. scale: see ``make_corpus``.

    Raises
    ------
    RunError: it cannot be written.
    """
    target = Path(shard.target)
    if not target.parent.is_dir():
        raise RunError("the extraction was stopped")  # by the process waiting for this one

    def write(place: str, pieces: _Pieces) -> Sizes:
        corpus = make_corpus(pieces, numbering.width, about, scale)
        corpus.save(Path(place))
        return corpus.list_count, corpus.candidate_count, corpus.nonzeros

    found = [write(shard.target, _Pieces(numbering, shard.sections))]
    if shard.origins is not None:
        found.append(write(shard.origins, _Pieces(numbering, shard.sections, origins=True)))
    return found


def divide(sizes: Sequence[np.ndarray], limit: float) -> list[tuple[BlockPart, ...]]:
    """The lists of all blocks (``sizes`` in bytes) in the fewest shards of equal size of ``limit`` bytes at most.

    A list stays whole: a shard may exceed the limit by one list.
    """
    total = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    count = max(1, int(-(-float(total[-1]) // limit)))
    cuts = np.searchsorted(total, [total[-1] * k // count for k in range(count)]).tolist()
    cuts = sorted({*cuts, total.size - 1})
    starts = np.concatenate([[0], np.cumsum([block.size for block in sizes])])
    shards = []
    for first, last in pairwise(cuts):
        sections = []
        for block in range(int(np.searchsorted(starts, first, side="right")) - 1, len(sizes)):
            if starts[block] >= last:
                break
            a, b = max(first, int(starts[block])), min(last, int(starts[block + 1]))
            if a < b:
                sections.append(BlockPart(block, a - int(starts[block]), b - int(starts[block])))
        shards.append(tuple(sections))
    return shards
