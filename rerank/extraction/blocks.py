"""Lists, block by block: cut by the process that reads them, parsed, measured and counted by the workers.

A worker leaves what it finds in a directory of the spool. Training lists have no columns there: these are not known
until all blocks are counted. Where one block ends and the next begins depends on the lists alone.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import tee
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rerank.base.encoding import decoded, encoded
from rerank.base.errors import RerankError, Warnings, collected_warnings
from rerank.data.corpus import offsets
from rerank.data.symbols import HashIndex, SymbolTable, index_of, numbers_of
from rerank.extraction.content import Content
from rerank.extraction.kinds import content_of
from rerank.extraction.sample import ListSampler
from rerank.features.counting import CollisionCount, FeatureCounter
from rerank.features.rows import RowBuilder
from rerank.features.table import FeatureTable, HashedTable, hashed_columns
from rerank.metrics.metric import gains_of
from rerank.pool import Engine, check_visible
from rerank.readers.inputs import Stretch
from rerank.readers.lines import Place
from rerank.readers.lists import Lists
from rerank.readers.reader import ScoreColumns, SkipCount
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.sections import SplitSettings
from rerank.storage.documents import as_json
from rerank.storage.files import new_directory, new_file, read_array, remove, save_arrays

ABOUT = "about.json"  # in a block's directory
TABLE = "table.npy"  # in the spool: the hashes of the table's features
BLOCK_LISTS, BLOCK_BYTES = 1 << 9, 1 << 21  # at most this many lists, and bytes of texts, in a block
T = TypeVar("T")


class Texts(NamedTuple):
    """The texts of a block's symbols."""

    text_hashes: np.ndarray  # uint64 [n]
    text_first: np.ndarray  # int64 [n + 1]: text i is text_bytes[text_first[i]:text_first[i + 1]]
    text_bytes: np.ndarray  # uint8

    @staticmethod
    def of(symbols: SymbolTable) -> "Texts":
        """All texts of a table."""
        texts = [encoded(symbols.text(i)) for i in range(len(symbols))]
        data = np.frombuffer(b"".join(texts), np.uint8)
        return Texts(np.array(symbols.hashes), offsets(list(map(len, texts))), data)

    def some(self, hashes: np.ndarray) -> dict[int, str]:
        """The texts of those ``hashes`` (uint64) that are here, by hash."""
        indices = np.flatnonzero(np.isin(self.text_hashes, hashes)).tolist()
        spans = {i: slice(*self.text_first[i : i + 2].tolist()) for i in indices}
        return {int(self.text_hashes[i]): decoded(self.text_bytes[span].tobytes()) for i, span in spans.items()}


@dataclass(frozen=True)
class Spool:
    """Where blocks are left, by number and name of array: a directory or, without one, the memory of this process."""

    directory: str | None
    memory: dict[int, dict[str, np.ndarray]] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        return Spool, (self.directory,)  # a worker sends back what it would leave

    def path(self, number: int) -> Path:
        """The directory of a block."""
        return Path(str(self.directory)) / f"{number:06d}"

    def save(self, number: int, arrays: dict[str, np.ndarray], about: Mapping[str, Any]) -> None:
        """Leave a block; one that is there already, of a task that was done twice, is the same."""
        check_visible(str(self.directory))
        with new_directory(self.path(number), keep=True, synced=False) as new:
            save_arrays(new, arrays)
            sizes = {file.name: file.stat().st_size for file in new.iterdir()}
            (new / ABOUT).write_text(as_json({**about, "sizes": sizes}))

    def about(self, number: int) -> dict[str, Any] | None:
        """The record of a block that an extraction has left which was stopped; None where it is not all there."""
        if self.directory is None:
            return None
        path = self.path(number)
        with suppress(OSError, ValueError, KeyError):  # not there, or not all of it: blocks are not synced
            about = json.loads((path / ABOUT).read_text())
            if all((path / name).stat().st_size == size for name, size in about.pop("sizes").items()):
                return dict(about)
        remove(path)
        return None

    def array(self, number: int, name: str) -> np.ndarray:
        """An array of a block, memory-mapped."""
        if self.directory is None:
            return self.memory[number][name]
        return np.asarray(read_array(self.path(number) / f"{name}.npy", mmap=True))

    def load(self, number: int, kind: Callable[..., T]) -> T:
        """Arrays of a block, memory-mapped; ``kind`` is one of the tuples of arrays here."""
        return kind(*(self.array(number, name) for name in kind._fields))  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Numbering:
    """The columns that the features of blocks have.

    table: a file with a FeatureTable's hashes, or their index, None for hashed columns; width, free: how many columns
    there are, and how many of them are free; in_blocks: whether blocks have the
    columns, which were known before the lists were read.
    """

    spool: Spool
    table: str | HashIndex | None
    width: int
    free: int
    in_blocks: bool

    @staticmethod
    def of(table: FeatureTable, spool: Spool, *, in_blocks: bool) -> "Numbering":
        """The columns of ``table``, which is left in the spool."""
        if isinstance(table, HashedTable):
            return Numbering(spool, None, table.width, 0, in_blocks)
        if spool.directory is None:
            return Numbering(spool, index_of(table.hashes), table.width, table.free, in_blocks)
        with new_file(path := Path(spool.directory, TABLE)) as new, new.open("wb") as out:
            np.save(out, table.hashes, allow_pickle=False)
        return Numbering(spool, str(path), table.width, table.free, in_blocks)

    def of_block(self, block: int) -> np.ndarray | None:
        """int32 [U]: the columns of a block's features; None if it has columns."""
        return None if self.in_blocks else self.of_features(self.spool.array(block, "hashes"))

    def of_features(self, hashes: np.ndarray) -> np.ndarray:
        """int32 [F]: the columns of features, ABSENT for those that have none."""
        if self.table is None:
            return hashed_columns(hashes)
        if isinstance(self.table, str):
            return numbers_of(_index(self.table, Path(self.table).stat().st_ino), hashes)
        return numbers_of(self.table, hashes)


@lru_cache(maxsize=1)
def _index(table: str, inode: int) -> HashIndex:  # noqa: ARG001 - inode: another table may get the same name
    return index_of(read_array(Path(table), np.uint64, 1))


class Block(NamedTuple):
    """A task: lists as they are read, or a stretch of a file. ``number`` counts blocks from 0; ``earlier``: the places
    of earlier lists with ids that lists of the stretch have too; ``visits``: what is known of its lists already."""

    number: int
    lists: list[Lists] | Stretch
    earlier: Mapping[str, Place] = {}
    visits: Any = None

    def read(self, id_places: dict[str, Place]) -> Iterable[Lists]:
        """Its lists; the places of those of a stretch are added to ``id_places``."""
        return self.lists.lists(id_places) if isinstance(self.lists, Stretch) else self.lists

    @property
    def first(self) -> Sequence[Lists]:
        """Its lists or, where it begins a file, the first of this."""
        return self.lists.first if isinstance(self.lists, Stretch) else self.lists

    @property
    def list_count(self) -> int:
        """The number of lists, bad ones included."""
        return self.lists.list_count if isinstance(self.lists, Stretch) else sum(of.list_count for of in self.lists)

    def __str__(self) -> str:
        return f"block {self.number + 1} of the lists"


class Summary(NamedTuple):
    """The report on a block in addition to what is written."""

    ids: list[str]  # of the usable lists,
    indices: list[int]  # and their indices among all of the block
    skips: SkipCount
    features: int  # how many different features vary; 0 where they have columns
    warnings: Warnings
    id_places: Mapping[str, Place]  # the places of the lists of a stretch, by their ids
    arrays: dict[str, np.ndarray] | None = None  # what is left in memory


@dataclass(frozen=True)
class BlockJob:
    """The settings that all blocks of a split share. imports: further places that users' templates may be in; columns:
    the score columns that lists are held to; scored: whether they must have base scores; numbering: the columns of
    features, where a table is known."""

    recipe: ListRecipe
    spool: Spool
    imports: tuple[str, ...]
    columns: ScoreColumns | None = None
    scored: bool = False
    numbering: Numbering | None = None

    def content(self) -> Content[Any]:
        """The kind of candidates in the lists; a new one, with no symbols."""
        sys.path += [path for path in self.imports if path not in sys.path]
        content = content_of(self.recipe, columns=self.columns)
        content.needs_scores = self.scored
        return content


def cut_blocks(
    content: Content[Any], data: SplitSettings, split: str, failure: list[RerankError], *, again: bool = False
) -> Iterator[Block]:
    """The lists of a split in blocks; ``again``: of one that was read before, with what is needed to write them. A
    reading error ends them and is left in ``failure``: the lists before it may hold an earlier one.
    """
    number, lists, count, size = 0, list[Lists](), 0, 0
    try:
        for nbest in content.read_stretches(data, split, BLOCK_LISTS, BLOCK_BYTES, again=again):
            if lists and (isinstance(nbest, Stretch) or count >= BLOCK_LISTS or size >= BLOCK_BYTES):
                yield Block(number, lists)
                number, lists, count, size = number + 1, [], 0, 0
            if isinstance(nbest, Stretch):
                yield Block(number, nbest)
                number += 1
                continue
            lists.append(nbest if again else nbest.without_raw())
            count += nbest.list_count
            size += sum(map(len, nbest.texts))
    except RerankError as error:
        failure.append(error)
    if lists:
        yield Block(number, lists)


def run_blocks(
    engine: Engine, function: Callable[[Block], Any], blocks: Iterable[Block]
) -> Iterator[tuple[Block, Any]]:
    """Blocks with what ``function`` makes of each, in their order: by the workers of ``engine``.

    What it makes of a stretch tells the places of its lists, ``id_places``: where earlier lists of the file have ids of
    theirs, it is given the stretch again, with those, as one in which such lists are bad.
    """
    id_places, (blocks, queue) = defaultdict[str, dict[str, Place]](dict), tee(blocks)
    for result in engine.map(function, blocks):
        block = next(queue)
        ids = id_places[block.lists.file.prefix if isinstance(block.lists, Stretch) else ""]
        if again := result.id_places.keys() & ids.keys():
            result = function(block._replace(earlier={name: ids[name] for name in again}))
        ids.update(result.id_places)
        yield block, result


def extract_block(job: BlockJob, block: Block) -> Summary:
    """Parse the lists of a block, measure them, and leave their features in the spool, if they are not there yet."""
    if block.earlier and job.spool.directory is not None:
        remove(job.spool.path(block.number))
    if (record := job.spool.about(block.number)) is not None:
        skips, warnings = SkipCount(**record["skips"]), [(level, text) for level, text in record["warnings"]]
        return Summary(record["ids"], record["indices"], skips, record["features"], warnings, record["id_places"])
    with collected_warnings() as warnings:
        summary, arrays = _extract(job, block)
    summary = summary._replace(warnings=warnings)
    if job.spool.directory is None:
        return summary._replace(arrays=arrays)
    job.spool.save(block.number, arrays, summary._asdict() | {"skips": vars(summary.skips)})
    return summary


def _extract(job: BlockJob, block: Block) -> tuple[Summary, dict[str, np.ndarray]]:
    """The summary of a block, and the arrays that are left in the spool."""
    content, numbering = job.content(), job.numbering
    hashed = bool(job.recipe.features.hash_bits) and numbering is None
    count = SkipCount(job.recipe.data.on_bad_list)
    rows, counter, ids, indices = RowBuilder(), FeatureCounter(), list[str](), list[int]()
    collisions, sample, id_places = CollisionCount(0), ListSampler(content.column_names), dict(block.earlier)
    for part in content.measure(block.read(id_places), count):
        lists, stats, reference = part.pair.nbest, part.stats, part.reference
        sizes, features = np.diff(lists.first), content.block_features(part.pair)
        table, _, varying, which, *values = features
        numbers = counter.add(table, features.times) if numbering is None else numbering.of_features(table.hashes)
        if hashed:
            collisions.add(numbers, table.full)
        gain = gains_of(content.metric, stats, np.repeat(reference, sizes, axis=0))
        rows.add_lists(sizes, varying, numbers[which], *values, lists.base, gain, stats, reference)
        sample.add(lists)
        ids += lists.ids
        end = count.lists + count.skipped  # up to the last of these
        indices += range(end - lists.list_count, end)
    id_places = {name: place for name, place in id_places.items() if name not in block.earlier}
    if numbering is not None:
        return Summary(ids, indices, count, 0, [], id_places), rows.rows()._asdict() | sample.finish()._asdict()
    counts, symbols, which = counter.finish()
    arrays = rows.rows().renumber(which)._asdict() | sample.finish()._asdict() | counts._asdict() | symbols._asdict()
    arrays |= Texts.of(content.symbols)._asdict()
    if hashed:  # the whole hash of the first of every identity (uint64 [U]), and whether others share it (bool [U])
        order = np.argsort(which)
        arrays |= {"owner": collisions.owner[order], "shared": collisions.shared[order]}
    return Summary(ids, indices, count, counter.size, [], id_places), arrays
