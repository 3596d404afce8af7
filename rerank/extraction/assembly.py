"""From blocks in the spool to the table of the features that are kept, and to the shards of a corpus."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rerank.base.errors import RunError
from rerank.data.corpus import Corpus, concatenate
from rerank.data.shards import Sizes, part_directory
from rerank.extraction.spool import Numbering, Shared, Spool, Texts
from rerank.features.counting import CollisionCount, KeptFeatures, add_counts, symbols_of
from rerank.features.rows import ListRows, RowsPart, kept_entries, make_corpus, origins
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

    sizes: np.ndarray  # int64 [L]: bytes that each list will take
    dense: Corpus | None  # the lists with their free columns alone, where these are to be scaled


def measure_block(numbering: Numbering, block: int) -> Measured:
    """How large the lists of a block will be, and what their free columns hold, before they are scaled."""
    rows, column = numbering.spool.load(block, ListRows), numbering.of_block(block)
    candidate = 8 * (3 + rows.stats.shape[1])  # offset, score, gain, statistics
    one = 8 * (2 + rows.reference.shape[1])  # offset, weight, statistics of the reference
    sizes = 8 * kept_entries(rows, column) + candidate * np.diff(rows.lists) + one
    if column is None or not (free := numbering.free):
        return Measured(sizes, None)
    part = RowsPart(rows, np.where(column < free, column, -1).astype(np.int32), 0, rows.lists.size - 1)
    return Measured(sizes, make_corpus(part, free, {}, np.ones(free)))


class BlockPart(NamedTuple):
    """Lists first..last - 1 of a block."""

    block: int
    first: int
    last: int


@dataclass(frozen=True)
class ShardJob:
    """How shards are written: with these columns, ``scale`` (see ``make_corpus``) and ``about``, to ``corpus`` and,
    where what was subtracted from values is kept, to ``origins``."""

    numbering: Numbering
    scale: np.ndarray | None
    about: dict[str, Any]
    corpus: Path
    origins: Path | None


def write_shard(job: ShardJob, task: tuple[int, tuple[BlockPart, ...]]) -> list[Sizes]:
    """Write a shard, given its number and lists; returns the sizes of its corpus and, if they are kept, its origins.

    Raises
    ------
    RunError: it cannot be written.
    """
    number, sections = task
    sizes = []
    for place in filter(None, (job.corpus, job.origins)):
        pieces = []
        for block, first, last in sections:
            rows = job.numbering.spool.load(block, ListRows)
            rows = origins(rows) if place == job.origins else rows
            part = RowsPart(rows, job.numbering.of_block(block), first, last)
            pieces.append(make_corpus(part, job.numbering.width, job.about, job.scale))
        if not place.is_dir():
            raise RunError("the extraction was stopped")  # by the process waiting for this one
        shard = concatenate(pieces)
        shard.save(part_directory(place, number))
        sizes.append((shard.list_count, shard.candidate_count, shard.nonzeros))
    return sizes


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
