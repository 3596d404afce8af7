"""From blocks in the spool to the table of the features that are kept, and to the shards of a corpus."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rerank.data.corpus import Corpus, Sizes, save_joined
from rerank.data.shards import part_directory
from rerank.engines.workers import check_visible
from rerank.extraction.spool import Numbering, Shared, Spool, Texts
from rerank.features.counting import CollisionCount, FeatureCounts, KeptFeatures, add_counts
from rerank.features.rows import ListRows, make_corpus
from rerank.features.table import HashedTable, hashed_columns

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
    blocks = [spool.load(block, FeatureCounts).between(task.first, task.last) for block in range(task.blocks)]
    return add_counts(blocks, limits)


def texts_of(spool: Spool, blocks: int, symbols: np.ndarray) -> dict[int, str]:
    """The texts of ``symbols`` (uint64, rising) that the blocks have, by hash."""
    texts: dict[int, str] = {}
    for block in range(blocks):
        more = spool.load(block, Texts).some(symbols)
        symbols = symbols[~np.isin(symbols, np.array(list(more), np.uint64))]
        texts |= more
    return texts


def count_collisions(table: HashedTable, spool: Spool, blocks: int) -> dict[str, int]:
    """The numbers of columns that are used, and used by more than one feature."""
    collisions = CollisionCount(table.width)
    for block in range(blocks):
        owner, shared = spool.load(block, Shared)
        collisions.add(hashed_columns(spool.array(block, "hashes")), owner, shared)
    return collisions.about()


def measure_block(numbering: Numbering, block: int) -> tuple[np.ndarray, Corpus | None]:
    """The bytes that each list of a block will take (int64 [L]), and the lists with their free columns alone, not yet
    scaled; None where there is nothing to be scaled."""
    column = numbering.of_block(block)
    rows = numbering.spool.load(block, ListRows).numbered(column)
    candidate = 8 * (3 + rows.stats.shape[1])  # offset, score, gain, statistics
    one = 8 * (2 + rows.reference.shape[1])  # offset, weight, statistics of the reference
    sizes = 8 * rows.nonzeros() + candidate * np.diff(rows.lists) + one
    if column is None or not (free := numbering.free):
        return sizes, None
    dense = rows._replace(ids=np.where(rows.ids < free, rows.ids, -1).astype(np.int32))
    return sizes, make_corpus(dense, 0, sizes.size, free, {}, np.ones(free))


class BlockPart(NamedTuple):
    """Lists first..last - 1 of a block."""

    block: int
    first: int
    last: int


@dataclass(frozen=True)
class ShardJob:
    """A way to write shards: with these columns, ``scale`` (see ``make_corpus``) and ``about``, to ``corpus`` and,
    where what was subtracted from values is kept, to ``origins``."""

    numbering: Numbering
    scale: np.ndarray | None
    about: dict[str, Any]
    corpus: Path
    origins: Path | None


def write_shard(job: ShardJob, task: tuple[int, tuple[BlockPart, ...]]) -> list[Sizes]:
    """Write a shard, given its number and lists; returns the sizes of its corpus and, if they are kept, its origins."""
    number, sections = task
    sizes = []
    for place in filter(None, (job.corpus, job.origins)):
        check_visible(place)
        pieces = (_piece(job, section, origins=place == job.origins) for section in sections)
        sizes.append(save_joined(part_directory(place, number), pieces, synced=False))
    return sizes


def _piece(job: ShardJob, section: BlockPart, *, origins: bool) -> Corpus:
    """Lists of a block, or what was subtracted from their values."""
    rows, numbering = job.numbering.spool.load(section.block, ListRows), job.numbering
    rows = (rows.origins() if origins else rows).numbered(numbering.of_block(section.block))
    return make_corpus(rows, section.first, section.last, numbering.width, job.about, job.scale)


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
