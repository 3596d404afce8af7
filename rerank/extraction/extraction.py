"""From files to corpora: read lists and references, score candidates, extract features, number the columns."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rerank.base.errors import DataError, RecipeError, RerankError
from rerank.base.progress import track
from rerank.data.corpus import concatenate
from rerank.data.shards import Lists, Shards, ShardWriter, part_directory, part_of, parts
from rerank.engines.settings import Engine, LocalEngine
from rerank.extraction.assembly import (
    Numbering,
    Shard,
    count_collisions,
    count_range,
    divide,
    divide_hashes,
    measure_block,
    standard_scale,
    texts_of,
    write_shard,
)
from rerank.extraction.blocks import Block, BlockJob, Clock, cut, extract_block, timed
from rerank.extraction.content import content_of, metric_of
from rerank.features.counting import Pruning, make_table
from rerank.features.table import FeatureTable, HashedTable, Table, load_table
from rerank.kernels.sources import EXTRACTION, code_digest, user_digest
from rerank.readers.base import NBestList, SkipCount
from rerank.readers.score_columns import ScoreColumns
from rerank.readers.streams import open_stream
from rerank.recipes.recipe import ListRecipe
from rerank.storage.arrays import DAMAGE
from rerank.storage.checksums import seal, verify
from rerank.storage.files import new_directory
from rerank.storage.kept_spool import drop_spool, kept_spool
from rerank.storage.strict_json import as_json

log = logging.getLogger("rerank")


LONG = 8  # if an interrupted extraction has left so many blocks, this one is known to take long


@dataclass(frozen=True)
class Extracted:
    """A split as the learners see it: its corpus, the ids of its lists, what was skipped, and the time it took.

    key: the digest of everything that it was made from; empty where it is not from a cache.
    """

    corpus: Lists
    ids: list[str]
    about: dict[str, Any]
    key: str = ""


class Extraction:
    """A split on its way from its files to the shards of a corpus, in an existing directory.

    spool: another directory, for the blocks; by default one within, which is removed in the end.
    columns: the score columns that its lists are held to; those of its first list where None.

    The lists are read here; everything else is done by the workers of ``engine``. What they find does not depend on
    how many there are.
    """

    def __init__(
        self,
        recipe: ListRecipe,
        split: str,
        directory: Path,
        engine: Engine,
        spool: Path | None,
        columns: ScoreColumns | None = None,
    ) -> None:
        self._recipe, self._split, self._engine = recipe, split, engine
        self._directory, self._clock = directory, Clock()
        self._content = content_of(recipe, columns=columns)
        self._own = directory / "spool" if spool is None else None  # removed when the shards are there
        if self._own is not None:
            self._own.mkdir()
        self._job = replace(BlockJob.of(recipe, spool or directory / "spool"), columns=columns)
        self._count = SkipCount(recipe.data.on_bad_list)
        self._ids = list[str]()
        self._features = list[int]()  # of every block

    def read(self) -> None:
        """Read all lists, parse them, and leave what they hold in the spool.

        Raises
        ------
        DataError, RecipeError: see the readers, metrics and templates; that of the first list which has one.
        """
        if self._job.spool.path(LONG - 1).with_suffix(".json").exists():
            self._engine.expect_long()
        failure: list[RerankError] = []
        blocks = cut(self._content.read(self._recipe.data, self._split), failure)
        for _ in track(self._summaries(self._held(blocks)), f"extract {self._split}"):
            pass
        if failure:
            raise failure[0]
        for line in str(self._count).splitlines()[1:]:
            log.warning("%s: %s", self._split, line)
        if not self._count.lists:
            raise DataError("no usable list in the file", path=self._recipe.data.files(self._split)["nbest"][0])

    def _held(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """The blocks, after it is settled which score columns their lists are held to."""
        ahead = list[Block]()
        while self._job.columns is None and (block := next(blocks, None)) is not None:
            ahead.append(block)
            lists = (raw.nbest for raw in block.lists if isinstance(raw.nbest, NBestList))
            found = next(filter(None, map(self._content.columns_of, lists)), None)
            self._job = replace(self._job, columns=found)
        return chain(ahead, blocks)

    def _summaries(self, blocks: Iterator[Block]) -> Iterator[str]:
        """Add up the summaries of the blocks; yields the ids of their lists."""
        warned = set[tuple[int, str]]()
        for found in self._map(partial(extract_block, self._job), blocks):
            self._count.add(found.met)
            self._ids += found.ids
            self._features.append(found.features)
            for warning in found.warnings:
                if warning not in warned:
                    log.log(warning[0], "%s", warning[1])
                warned.add(warning)
            yield from found.ids

    def table(self) -> Table:
        """The table of the features kept from the training split, or columns for hashes."""
        features, content, spool = self._recipe.features, self._content, self._job.spool
        names = tuple(content.names)
        scores = self._job.columns.as_dict() if self._job.columns is not None else {}
        if features.hash_bits:
            hashed = HashedTable(features.hash_bits, names, {})
            hashed.about.update(count_collisions(hashed, spool, len(self._features)), **scores)
            self._check_kept(hashed)
            return hashed
        pruning = Pruning(names, features.min_lists, content.free)
        ranges = divide_hashes(self._features)
        columns = list(self._map(partial(count_range, spool, pruning.limits), ranges))
        symbols = np.unique(np.concatenate([part.symbols for part in columns]))
        table = make_table(columns, pruning, texts_of(spool, len(self._features), symbols))
        table.about.update(scores)
        self._check_kept(table)
        log.info("features: %s seen, %s kept", f"{table.about['seen']:,}", f"{table.about['kept']:,}")
        return table

    def _check_kept(self, table: Table) -> None:
        """Refuse a table without features, unless there are no templates that could give any.

        Raises
        ------
        RecipeError: says what was found, and what can be done.
        """
        if table.about["kept"] or not self._content.names:
            return
        lists, least = f"{self._count.lists:,}", self._recipe.features.min_lists
        shown = ", ".join(self._content.names[:8]) + (", ..." if len(self._content.names) > 8 else "")
        if table.about.get("seen"):
            found = f"none of {table.about['seen']:,} features varies in {least} of the {lists} training lists"
            advice = f"set features.min_lists below {least}, or use more lists"
        else:
            found = f"the templates {shown} give nothing that varies within any of the {lists} training lists"
            advice = "name other templates"
        if columns := self._job.columns:
            found += f"; score columns: {', '.join(columns.names)}"
        message = f"no feature is left: {found}; {advice}, or set features.set: base for the base score alone"
        raise RecipeError(message, key="features")

    def shards(self, table: Table, *, scaled: bool) -> tuple[Extracted, Table]:
        """Write the shards; the table with the scale of its free columns, which it may already have (``scaled``).

        Raises
        ------
        RunError: they cannot be written.
        """
        numbering = Numbering.of(table, self._job.spool)
        measured = self._map(partial(measure_block, numbering), range(len(self._features)))
        sizes, scale = standard_scale(measured, 0 if scaled else table.free)
        if isinstance(table, FeatureTable) and not scaled:
            table = replace(table, scale=scale)
        target = self._directory / "corpus"
        target.mkdir()
        about = {"metric": self._content.metric.signature, "split": self._split}
        shards = [
            Shard(sections, str(part_directory(target, number)))
            for number, sections in enumerate(divide(sizes, self._recipe.data.shard_size * 1e6))
        ]
        write = partial(write_shard, numbering, about, table.scale if isinstance(table, FeatureTable) else None)
        writer = ShardWriter(target)
        for written in self._map(write, shards):
            writer.add_saved(written, (table.width, table.free))
        writer.close(about)
        if self._own is not None:
            shutil.rmtree(self._own)
        found = {**self._count.as_dict(), "seconds": self._clock.seconds}
        return Extracted(Shards.load(target), self._ids, found), table

    def _map(self, function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        """``Engine.map``, timed."""
        return map(self._clock.take, self._engine.map(partial(timed, function), tasks))


def extract_training(recipe: ListRecipe, engine: Engine | None = None) -> tuple[Extracted, Table]:
    """The training split in memory, and the table of the features that it keeps.

    Raises
    ------
    DataError, RecipeError: see the readers, metrics and templates.
    """
    with TemporaryDirectory() as directory:
        extracted, table = write_training(recipe, Path(directory), engine or LocalEngine())
        return _in_memory(extracted), table


def extract_split(recipe: ListRecipe, split: str, table: Table, engine: Engine | None = None) -> Extracted:
    """A split in memory, with the columns of ``table``; features that it does not hold are left out."""
    with TemporaryDirectory() as directory:
        return _in_memory(write_split(recipe, split, table, Path(directory), engine or LocalEngine()))


def write_training(
    recipe: ListRecipe, directory: Path, engine: Engine, spool: Path | None = None
) -> tuple[Extracted, Table]:
    """``extract_training`` to the shards ``corpus`` in an existing directory; see Extraction."""
    extraction = Extraction(recipe, recipe.data.train, directory, engine, spool)
    extraction.read()
    return extraction.shards(extraction.table(), scaled=False)


def write_split(
    recipe: ListRecipe, split: str, table: Table, directory: Path, engine: Engine, spool: Path | None = None
) -> Extracted:
    """``extract_split`` to the shards ``corpus`` in an existing directory; see Extraction."""
    extraction = Extraction(recipe, split, directory, engine, spool, ScoreColumns.of_table(table.about))
    extraction.read()
    return extraction.shards(table, scaled=True)[0]


def _in_memory(extracted: Extracted) -> Extracted:
    """A split whose shards may be removed."""
    corpus = concatenate([part for _, part in parts(extracted.corpus)])
    return replace(extracted, corpus=corpus)


class CorpusCache:
    """Extracted splits on disk, each under the digest of everything that it was made from.

    A split is reused only when the bytes of its files, the templates and all other settings, and the code that reads
    and extracts agree; entries appear under their names only when complete.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def training(self, recipe: ListRecipe, engine: Engine | None = None) -> tuple[Extracted, Table, str]:
        """The training split, its table, and the digest of both; extracted by ``engine`` if it is not cached yet."""
        key = _digest(recipe, recipe.data.train, None)
        entry = self.directory / key
        if not entry.exists():
            with kept_spool(entry) as spool, new_directory(entry, keep=True) as new:
                extracted, table = write_training(recipe, new, engine or LocalEngine(), spool)
                (new / "table").mkdir()
                table.save(new / "table")
                seal(new / "table")
                _save(extracted, new)
        drop_spool(entry)
        return _load(entry), _load_table(entry), key

    def split(
        self, recipe: ListRecipe, split: str, table: Table, training: str, engine: Engine | None = None
    ) -> Extracted:
        """Another split with the columns of the training split ``training`` (its digest)."""
        entry = self.directory / _digest(recipe, split, training)
        if not entry.exists():
            with kept_spool(entry) as spool, new_directory(entry, keep=True) as new:
                _save(write_split(recipe, split, table, new, engine or LocalEngine(), spool), new)
        drop_spool(entry)
        return _load(entry)


def _save(extracted: Extracted, directory: Path) -> None:
    """Write what is known of a split next to its shards."""
    (directory / "split.json").write_text(as_json({"ids": extracted.ids, "about": extracted.about}))
    seal(directory)


def _load(entry: Path) -> Extracted:
    try:
        verify(entry)
        header = json.loads((entry / "split.json").read_text())
        shards = Shards.load(entry / "corpus", entry)
        found = Extracted(shards, list(header["ids"]), dict(header["about"]), entry.name)
        if len(found.ids) != shards.list_count:
            raise ValueError(f"{len(found.ids)} ids for {shards.list_count} lists")
    except (*DAMAGE, RerankError) as error:
        raise _damaged(entry, error) from None
    part_of(found.corpus, 0)  # the others are checked when they are needed
    return found


def _load_table(entry: Path) -> Table:
    try:
        verify(entry / "table")
        return load_table(entry / "table")
    except (*DAMAGE, RerankError) as error:
        raise _damaged(entry, error) from None


def _damaged(entry: Path, error: Exception) -> DataError:
    return DataError(f"the cached corpus is damaged ({error}); remove {entry} and run again", path=str(entry))


def file_digest(path: str) -> str:
    """SHA-256 of a file's contents after decompression."""
    digest = hashlib.sha256()
    with open_stream(path) as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _digest(recipe: ListRecipe, split: str, training: str | None) -> str:
    """The key of a split in the cache."""
    data = recipe.data
    parts = {
        "code": code_digest(EXTRACTION),
        "user": user_digest(data.reader, recipe.features.model_dump(), recipe.metric),
        "files": {kind: [file_digest(path) for path in paths] for kind, paths in data.files(split).items()},
        "data": data.model_dump(mode="json", exclude={"root", "train", "dev", "tests", "nbest"}),
        "features": recipe.features.model_dump(mode="json"),
        "metric": metric_of(recipe).signature,
        "training": training,
    }
    text = as_json(parts, sort_keys=True, default=str)
    return f"{split}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"
