"""From blocks in the spool to the table of the features that are kept, and to the shards of a corpus."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rerank.base.errors import RunError
from rerank.data.corpus import Corpus
from rerank.data.pieces import Extent, Piece, lay_corpus
from rerank.extraction.spool import Numbering, Shared, Spool, Texts
from rerank.features.counting import CollisionCount, KeptFeatures, add_counts, symbols_of
from rerank.features.dense import ColumnSpread
from rerank.features.rows import ListRows, RowsPart, kept_entries, make_corpus, origins
from rerank.features.table import HashedTable, hashed_columns
from rerank.storage.files import reported

RANGE = 1 << 20  # about how many counts are added up at once


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
    arrays = ("symbol_first", "symbol_count", "symbols", "names")
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


class Measured(NamedTuple):
    """A block once the columns are known."""

    candidates: np.ndarray  # int64 [L]: of every list
    nonzeros: np.ndarray  # int64 [L]
    origins: np.ndarray  # int64 [L]: how many columns something was subtracted from
    wide: tuple[int, int]  # how many statistics candidates and references have
    dense: Corpus | None  # the lists with their free columns alone, where these are to be scaled

    @property
    def sizes(self) -> np.ndarray:
        """int64 [L]: bytes that each list will take."""
        candidate, one = 8 * (3 + self.wide[0]), 8 * (2 + self.wide[1])  # offset, score, gain; offset, weight
        return np.asarray(8 * self.nonzeros + candidate * self.candidates + one)

    def extents(self, first: int, last: int) -> tuple[Extent, Extent]:
        """What lists first..last - 1 have, and what their origins have."""
        nonzeros, subtracted = (int(of[first:last].sum()) for of in (self.nonzeros, self.origins))
        lists = last - first
        return Extent(lists, int(self.candidates[first:last].sum()), nonzeros), Extent(lists, lists, subtracted)


def measure_block(numbering: Numbering, block: int) -> Measured:
    """How large the lists of a block will be, and what their free columns hold, before they are scaled."""
    rows, column = numbering.spool.load(block, ListRows), numbering.of_block(block)
    found = np.diff(rows.lists), kept_entries(rows, column), kept_entries(origins(rows), column)
    wide, free = (rows.stats.shape[1], rows.reference.shape[1]), numbering.free
    if column is None or not free:
        return Measured(*found, wide, None)
    part = RowsPart(rows, np.where(column < free, column, -1).astype(np.int32), 0, rows.lists.size - 1)
    return Measured(*found, wide, make_corpus(part, free, {}, np.ones(free)))


def standard_scale(measured: Iterable[Measured], free: int) -> tuple[list[Measured], np.ndarray]:
    """The blocks without their free columns, and the scale of these (see dense.py)."""
    spread, found = ColumnSpread(free), []
    for block in measured:
        found.append(block._replace(dense=None))
        if block.dense is not None:
            spread.add(block.dense)
    return found, spread.scale()


class BlockPart(NamedTuple):
    """Lists first..last - 1 of a block."""

    block: int
    first: int
    last: int


class PartTask(NamedTuple):
    """Lists of a block, where they go, and where their origins go, if these are kept."""

    part: BlockPart
    pieces: tuple[Piece, ...]


def lay_shard(
    sections: Sequence[BlockPart], measured: Sequence[Measured], directories: Sequence[Path]
) -> tuple[list[PartTask], list[Extent]]:  # fmt: skip
    """Lay out a shard of some lists, and one of their origins if there are two ``directories``; returns what is to be
    written to them, and how large they are.

    Raises
    ------
    RunError: they cannot be made.
    """
    before, tasks = [Extent(0, 0, 0)] * len(directories), []
    for part in sections:
        places = zip(directories, before, strict=True)
        tasks.append(PartTask(part, tuple(Piece(str(directory), own) for directory, own in places)))
        more = measured[part.block].extents(part.first, part.last)
        before = [own.and_those_of(each) for own, each in zip(before, more, strict=False)]
    wide = measured[sections[0].block].wide
    for directory, extent, (stats, reference) in zip(directories, before, (wide, (0, 0)), strict=False):
        with reported(directory):
            lay_corpus(directory, extent, stats, reference)
    return tasks, before


def write_part(numbering: Numbering, scale: np.ndarray | None, task: PartTask) -> None:
    """Write lists to where they go. scale: see ``make_corpus``.

    Raises
    ------
    RunError: they cannot be written.
    """
    block, first, last = task.part
    rows, column = numbering.spool.load(block, ListRows), numbering.of_block(block)
    for number, piece in enumerate(task.pieces):
        own = origins(rows) if number else rows
        lists = make_corpus(RowsPart(own, column, first, last), numbering.width, {}, scale)
        if not Path(piece.directory).is_dir():
            raise RunError("the extraction was stopped")  # by the process waiting for this one
        with reported(Path(piece.directory)):
            piece.write(lists)


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
