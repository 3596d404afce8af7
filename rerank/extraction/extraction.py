"""From files to corpora: read lists and references, score candidates, extract features, number the columns.

Blocks are in the spool until the table of the features that are kept is known; then they become a corpus, in memory or
in a cache on disk.
"""

import glob
import hashlib
import json
import logging
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rerank.base.encoding import amount, file_name
from rerank.base.errors import DataError, RecipeError, RerankError, RunError
from rerank.base.progress import counting
from rerank.data.corpus import MAX_COLUMNS, ColumnSpread, Corpus, concatenate, save_joined
from rerank.extraction.blocks import Block, BlockJob, Numbering, Spool, Texts, cut_blocks, extract_block, run_blocks
from rerank.extraction.content import columns_of
from rerank.extraction.kinds import content_of, metric_of
from rerank.extraction.list_checks import doubts_of_lists, inputs_of, mixed_answers
from rerank.extraction.sample import ListSample, sample
from rerank.features.counting import (
    CollisionCount,
    FeatureCounts,
    FeatureSymbols,
    FrequentFeatures,
    Pruning,
    add_counts,
    by_block,
    make_table,
)
from rerank.features.rows import ListRows, make_corpus
from rerank.features.table import FeatureTable, HashedTable, dense_columns, hashed_columns, load_table
from rerank.kernels.sources import EXTRACTION, code_digest, user_digest
from rerank.metrics.gain import Gain
from rerank.pool import Engine, require
from rerank.readers.detection import ACCOUNT_LISTS, Account, account_entry, with_candidates
from rerank.readers.lists import Lists
from rerank.readers.reader import ScoreColumns, SkipCount, make_reader
from rerank.readers.texts.answers import with_answers
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.sections import SplitSettings
from rerank.storage import files as storage
from rerank.storage.documents import as_json
from rerank.storage.streams import Inputs

log = logging.getLogger("rerank")
T = TypeVar("T")
RANGE = 1 << 21  # about how many counts are added up at once
SMALL_TABLE = 1 << 20  # columns that fit into the memory of any machine
COLUMN_BYTES = 200  # of memory that making a table takes at its peak, a column with symbols of its own
MAX_MIXED_SHARE = 0.05  # of lists, with answers whose candidates have several gains, is no accident
BLOCKS = ".blocks"  # what the names of directories of blocks end in
LONG_READ_BYTES = 1 << 22  # bytes of compressed lists that take long


def count_range(spool: Spool, blocks: int, limits: np.ndarray, hashes: tuple[int, int]) -> FrequentFeatures:
    """The features of a range of hashes, the last one included, that are kept; limits: see ``add_counts``."""
    return add_counts([spool.load(block, FeatureCounts).between(*hashes) for block in range(blocks)], limits)


def name_features(spool: Spool, task: tuple[int, np.ndarray]) -> tuple[tuple[np.ndarray, np.ndarray], dict[int, str]]:
    """The symbols of features of a block, given its number and their hashes (see ``FeatureSymbols.some``), and the
    texts of these."""
    block, hashes = task
    indices = np.searchsorted(spool.array(block, "hashes"), hashes)
    lengths, symbols = spool.load(block, FeatureSymbols).some(indices)
    return (lengths, symbols), spool.load(block, Texts).some(np.unique(symbols))


def measure_block(numbering: Numbering, block: int) -> tuple[np.ndarray, Corpus | None]:
    """The bytes that each list of a block will take (int64 [L]), and the lists with their free columns alone, not yet
    scaled; None where there is nothing to be scaled."""
    column = numbering.of_block(block)
    rows = numbering.spool.load(block, ListRows).renumber(column)
    candidate = 8 * (3 + rows.stats.shape[1])  # offset, score, gain, statistics
    one = 8 * (2 + rows.reference.shape[1])  # offset, weight, statistics of the reference
    sizes = 8 * rows.nonzeros() + candidate * np.diff(rows.lists) + one
    if column is None or not (free := numbering.free):
        return sizes, None
    dense = rows._replace(ids=np.where(rows.ids < free, rows.ids, -1).astype(np.int32))
    return sizes, make_corpus(dense, free, {}, np.ones(free))


def divide(sizes: np.ndarray, limit: float) -> list[int]:
    """The places of lists (``sizes`` in bytes) between which are the fewest parts of equal size of ``limit`` bytes at
    most. A list stays whole: a part may exceed the limit by one list."""
    total = np.concatenate([[0], np.cumsum(sizes)])
    count = max(1, int(-(-float(total[-1]) // limit)))
    cuts = np.searchsorted(total, [total[-1] * k // count for k in range(count)]).tolist()
    return sorted({*cuts, total.size - 1})


def check_width(columns: int) -> None:
    """Refuse a table of more columns than have numbers, or than fit into memory. Raises RecipeError."""
    advice = "raise features.min_lists, or set features.hash_bits to share columns"
    if columns > MAX_COLUMNS:
        message = f"{columns:,} features vary in enough lists; a table has at most {MAX_COLUMNS:,} columns"
        raise RecipeError(f"{message}; {advice}", key="features.min_lists")
    if columns > SMALL_TABLE:
        require(columns * COLUMN_BYTES, f"a table of {columns:,} columns", advice, "features.min_lists")


@dataclass(frozen=True)
class ExtractedSplit:
    """A split as the learners see it: its corpus, the ids of its lists, their indices among all lists of the files,
    those left out included (int64 [L]), what was skipped, the time it took, and what its lists were like, those set
    apart included.

    key: the digest of everything that it was made from; empty where it is not from a cache. origins: of a test split
    with centred values, what was subtracted from the values of every list, as lists of one candidate: what a model
    scores these adds up with the scores in the corpus to those for values as they are.
    """

    corpus: Corpus
    ids: list[str]
    indices: np.ndarray
    about: dict[str, Any]
    sample: ListSample
    key: str = ""
    origins: Corpus | None = None


class Extraction:
    """A split on its way from its files to a corpus, in an existing directory, or in memory.

    spool: another directory, for the blocks; without one they are in memory too, and workers parse alone.
    inputs: where the files of the split are open, or will be.
    known_table: that of its columns, by which its lists are held to score columns; without one, the score columns are
    those of its first list, and ``table`` makes the table.

    Lists are read here, but for large files that fall into stretches, which the workers of ``engine`` read, who do
    everything else. What they find does not depend on how many there are.
    """

    def __init__(
        self, recipe: ListRecipe, split: str, directory: Path | None, spool: Path | None, engine: Engine,
        inputs: Inputs, known_table: FeatureTable | None = None,
    ) -> None:  # fmt: skip
        self._recipe, self._split, self._engine, self._inputs = recipe, split, engine, inputs
        self._here = Engine() if spool is None else engine  # for what reads the blocks
        self._directory, self._start = directory, time.monotonic()
        imports = tuple(sys.path) if recipe.features.user else ()
        job = BlockJob(recipe, Spool(None if spool is None else str(spool)), imports)
        if known_table is not None:
            columns, scored = ScoreColumns.of_table(known_table.about), bool(known_table.about.get("scored"))
            numbering = Numbering.of(known_table, job.spool, in_blocks=True)
            job = replace(job, columns=columns, scored=scored, numbering=numbering)
        self._known_table, self._job = known_table, job
        self._content = content_of(recipe, columns=job.columns)
        self._count = SkipCount(recipe.data.on_bad_list)
        self._ids, self._indices = list[str](), list[int]()
        self._features = list[int]()  # of every block
        self._first = list[Lists]()  # lists, which tell what all were taken for

    def run(self) -> tuple[ExtractedSplit, FeatureTable]:
        """The split and its table."""
        self.read()
        return self.corpus(self.table() if self._known_table is None else self._known_table)

    def read(self) -> None:
        """Read all lists, parse them, and leave what they hold in the spool."""
        failure: list[RerankError] = []
        if self._inputs.size(paths_of(self._recipe.data, self._split)) >= LONG_READ_BYTES:
            self._engine.expect_long()
        blocks = cut_blocks(self._content, self._recipe.data, self._split, failure)
        with counting(f"extract {self._split}") as progress:
            for lists in self._summaries(blocks):
                progress.advance(more=lists)
        if failure:
            raise failure[0]
        for line in str(self._count).splitlines()[1:]:
            log.warning("%s: %s", self._split, line)
        if self._count.empty:
            metric = self._content.metric
            how = "are not measured" if isinstance(metric, Gain) and metric.lower else "count as an empty choice"
            log.info("%s: %s without candidates %s", self._split, amount(self._count.empty, "list"), how)
        for source, lists in self._sources().items():
            if not lists:
                files = self._recipe.data.files(source).get("nbest", [""])
                raise self._count.nothing(files[0])
        self._content.check(self._count)
        conflicts, every = mixed_answers(self._first)
        if conflicts > MAX_MIXED_SHARE * every and {"Dense", "BaseScore"}.intersection(self._content.names):
            why = f"in {conflicts} of {every} lists some candidates with the same answer have different gains"
            advice = "features 'Dense(answers=own)' and 'BaseScore(answers=own)' tell them apart"
            log.warning("%s: %s, but numbers are means over those with the same answer; %s", self._split, why, advice)
        rule = getattr(self._recipe.data, "answer", None)
        if rule and self._first and not any(any(with_answers(nbest, rule).answers or ()) for nbest in self._first):
            log.warning("%s: no candidate has an answer by the rule %s; see data.answer", self._split, rule)

    def _sources(self) -> dict[str, int]:
        """The number of lists that the split has from each of its sources."""
        names = self._recipe.data.sources_of(self._split)
        if len(names) == 1:
            return {self._split: self._count.lists}
        counts = Counter(name.partition("/")[0] for name in self._ids)
        return {name: counts[name] for name in names}

    def _summaries(self, blocks: Iterator[Block]) -> Iterator[int]:
        """Add up the summaries of the blocks, of which the first lists are kept; yields how many lists each has."""
        messages, head = set[tuple[int, str]](), list[Block]()
        while self._job.columns is None and (block := next(blocks, None)) is not None:  # tells the score columns
            head.append(block)
            self._job = replace(self._job, columns=next(map(columns_of, with_candidates(block.first)), None))
        for block, summary in run_blocks(self._engine, partial(extract_block, self._job), chain(head, blocks)):
            self._first += islice(with_candidates(block.first), ACCOUNT_LISTS - len(self._first))
            offset = self._count.lists + self._count.skipped
            self._indices += [offset + index for index in summary.indices]
            self._ids += summary.ids
            self._count.add(summary.skips)
            if summary.arrays is not None:
                self._job.spool.memory[len(self._features)] = summary.arrays
            self._features.append(summary.features)
            for warning in summary.warnings:
                if warning not in messages:
                    log.log(warning[0], "%s", warning[1])
                messages.add(warning)
            yield len(summary.ids)

    def table(self) -> FeatureTable:
        """The table of the features kept from the training split, or columns for hashes."""
        features, content, spool = self._recipe.features, self._content, self._job.spool
        names, blocks = tuple(content.names), len(self._features)
        scores = self._job.columns.as_dict() if self._job.columns and self._job.columns.names else {}
        scores |= {"scored": any(spool.load(block, ListSample).scored for block in range(blocks))}
        if features.hash_bits:
            hash_table = HashedTable.of(features.hash_bits, names, {})
            collisions = CollisionCount(hash_table.width)
            for block in range(blocks):
                hashes, owner, shared = (spool.array(block, name) for name in ("hashes", "owner", "shared"))
                collisions.add(hashed_columns(hashes), owner, shared)
            hash_table.about.update(collisions.about(), **scores)
            self._check_kept(hash_table)
            return hash_table
        pruning = Pruning(names, features.min_lists, content.free)
        number = max(1, -(-sum(self._features) // RANGE))
        ranges = (((i << 64) // number, ((i + 1 << 64) // number) - 1) for i in range(number))
        parts = list(self._here.map(partial(count_range, spool, blocks, pruning.limits), ranges))
        check_width(sum(part.hashes.size for part in parts))
        symbol_arrays, texts = list[tuple[np.ndarray, np.ndarray]](), dict[int, str]()
        for symbols, more in self._here.map(partial(name_features, spool), by_block(parts)):
            symbol_arrays.append(symbols)
            texts |= more
        table = make_table(parts, symbol_arrays, pruning, texts)
        table.about.update(scores)
        self._check_kept(table)
        log.info("features: %s seen, %s kept", f"{table.about['seen']:,}", f"{table.about['kept']:,}")
        return table

    def _check_kept(self, table: FeatureTable) -> None:
        """Refuse a table without features, unless there are no templates that could give any."""
        if table.about["kept"] or not self._content.names:
            return
        least = self._recipe.features.min_lists
        if table.about.get("seen"):
            reason = f"none of {table.about['seen']:,} features varies in {least}"
            advice = f"set features.min_lists below {least}, or use more lists"
        else:
            names = ", ".join(self._content.names[:8]) + ", ..." * (len(self._content.names) > 8)
            reason, advice = f"the templates {names} give nothing that varies within any", "name other templates"
        reason += f" of the {self._count.lists:,} training lists"
        if (columns := self._job.columns) and columns.names:
            reason += f"; score columns: {', '.join(columns.names)}"
        message = f"no feature is left: {reason}; {advice}, or set features.set: base for the base score alone"
        raise RecipeError(message, key="features")

    def corpus(self, table: FeatureTable) -> tuple[ExtractedSplit, FeatureTable]:
        """Write the corpus; the table with the scale of its free columns, which one that was known has already."""
        numbering = self._job.numbering or Numbering.of(table, self._job.spool, in_blocks=False)
        sizes, spread = list[np.ndarray](), ColumnSpread(table.free)
        for of_lists, dense in self._here.map(partial(measure_block, numbering), range(len(self._features))):
            sizes.append(of_lists)
            if dense is not None:
                spread.add(dense)
        if self._known_table is None and not isinstance(table, HashedTable):
            table = replace(table, scale=spread.scale())
        about: dict[str, Any] = {"metric": self._content.metric.signature, "split": self._split}
        if len(sources := self._sources()) > 1:
            about["sources"] = [list(source) for source in sources.items()]  # in this order
        names = ("corpus", "origins")[: 1 + keeps_origins(self._recipe, self._split)]
        scale = table.scale if table.free else None
        if self._known_table is None and (columns := getattr(self._recipe.features, "apart", ())):
            scale = np.array(table.scale)
            scale[dense_columns(table, columns, "features.apart")] = 0.0
        cuts = divide(np.concatenate(sizes), self._recipe.data.shard_size * 1e6)

        def pieces(name: str) -> Iterator[Corpus]:
            for block in (block for block, of_block in enumerate(sizes) if of_block.size):
                rows = numbering.spool.load(block, ListRows)
                rows = (rows.origins() if name == "origins" else rows).renumber(numbering.of_block(block))
                yield make_corpus(rows, numbering.width, about, scale)

        if self._directory is None:
            corpus, *origins = [concatenate(list(pieces(name))) for name in names]
        else:
            for name in names:
                save_joined(self._directory / name, pieces(name), cuts=cuts, synced=False)
            corpus, *origins = [Corpus.load(self._directory / name, trusted=True) for name in names]
        facts = {**self._count.as_dict(), "seconds": time.monotonic() - self._start}
        account = Account.of("", self._first, metric=self._content.metric)
        roles = self._first[0].roles if self._first else None
        facts |= account_entry(account) | {"roles": {} if roles is None else roles.key_roles}
        user_roles = getattr(self._recipe.data, "roles", None)
        facts["amiss"] = doubts_of_lists(self._first, self._content.metric, user_roles)
        facts["inputs"] = inputs_of(make_reader(self._recipe.data.reader), self._first)
        sketch = sample(self._job.spool.load(block, ListSample) for block in range(len(self._features)))
        indices = np.array(self._indices, np.int64)
        return ExtractedSplit(corpus, self._ids, indices, facts, sketch, origins=origins[0] if origins else None), table


def extract_training(recipe: ListRecipe, engine: Engine | None = None) -> tuple[ExtractedSplit, FeatureTable]:
    """The training split in memory, and the table of the features that it keeps."""
    with Inputs() as inputs:
        return Extraction(recipe, recipe.data.training, None, None, engine or Engine(), inputs).run()


def extract_split(recipe: ListRecipe, split: str, table: FeatureTable, engine: Engine | None = None) -> ExtractedSplit:
    """A split in memory, with the columns of ``table``; features that it does not hold are left out."""
    with Inputs() as inputs:
        return Extraction(recipe, split, None, None, engine or Engine(), inputs, table).run()[0]


def keeps_origins(recipe: ListRecipe, split: str) -> bool:
    """Whether a split's lists are written with scores for values as they are, which its corpus does not have."""
    return recipe.features.centred and split in recipe.data.tests


def paths_of(data: SplitSettings, split: str) -> list[str]:
    """The paths of all files of a split."""
    return [path for paths in data.files(split).values() for path in paths]


class CorpusCache:
    """Extracted splits on disk, each under the digest of everything that it was made from.

    A split is reused only when the bytes of its files, the templates and all other settings, and the code that reads
    and extracts agree; entries appear under their names only when complete. Where nothing was extracted with the same
    settings and code, the digest of the files is taken while they are read for the extraction.

    inputs: where the files are open, or will be; by default they are closed after each call.
    """

    def __init__(self, directory: Path, inputs: Inputs | None = None) -> None:
        self.directory, self._inputs = directory, inputs

    def training(self, recipe: ListRecipe, engine: Engine | None = None) -> tuple[ExtractedSplit, FeatureTable, str]:
        """The training split, its table, and the digest of both; extracted by ``engine`` if it is not cached yet."""
        entry = self._entry(recipe, recipe.data.training, None, None, engine)
        return _load_verified(entry, _load), _load_verified(entry, load_table, "table"), entry.name

    def split(
        self, recipe: ListRecipe, split: str, table: FeatureTable, training: str, engine: Engine | None = None
    ) -> ExtractedSplit:
        """Another split with the columns of the training split ``training`` (its digest)."""
        return _load_verified(self._entry(recipe, split, table, training, engine), _load)

    def _entry(
        self, recipe: ListRecipe, split: str, table: FeatureTable | None, training: str | None, engine: Engine | None
    ) -> Path:
        """The directory of a split, which is written if need be."""
        path, files = self.directory / _settings_key(recipe, split, training), recipe.data.files(split)
        with nullcontext(self._inputs) if self._inputs is not None else Inputs() as inputs:
            if (entry := _find_entry(path, files, inputs)) is not None:
                return entry
            with _locked(path), storage.scratch(path) as new:
                if (entry := _find_entry(path, files, inputs)) is not None:  # another process has just made it
                    return entry
                with _blocks(path, files) as spool:
                    result, own_table = Extraction(recipe, split, new, spool, engine or Engine(), inputs, table).run()
                if table is None:
                    (new / "table").mkdir()
                    own_table.save(new / "table")
                    storage.seal(new / "table")
                header = {"ids": result.ids, "indices": result.indices.tolist(), "about": result.about}
                (new / "split.json").write_text(as_json(header | {"origins": result.origins is not None}))
                storage.save_arrays(new, {f"sample_{name}": array for name, array in result.sample._asdict().items()})
                storage.seal(new)
                contents = {} if files else {"sample": result.sample.digests.tolist()}
                return new.rename(_entry_path(path, files, inputs, **contents))


@contextmanager
def _locked(entry: Path) -> Iterator[None]:
    """Within the block, this process alone makes ``entry``; others wait."""
    path = entry.with_name(f".{entry.name}.lock")
    with storage.write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if (lock := storage.lock(path)) is None:
            log.info("waiting for another run, which extracts the same lists")
            lock = storage.lock(path, wait=True)
    assert lock is not None
    with lock:
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink()


@contextmanager
def _blocks(entry: Path, files: dict[str, list[str]]) -> Iterator[Path]:
    """The directory for the blocks of ``files``. It stays where the run is stopped, for the next one of the same files,
    which are taken to be the same by their names, sizes and times."""
    every = [path for paths in files.values() for path in paths]
    # Of a URL or a pipe nobody knows whether it is the same the next time.
    stats = [(path, at.st_size, at.st_mtime_ns) for path in every if os.path.isfile(path) and (at := os.stat(path))]
    stable = len(stats) == len(every)
    directory = entry.with_name(f".{entry.name}.{_short(stats)}{BLOCKS}") if stable else storage.temporary_path(entry)
    for other in entry.parent.glob(f".{glob.escape(entry.name)}.*{BLOCKS}"):
        if other != directory:
            storage.remove(other)
    with storage.write_errors(directory):
        directory.mkdir(exist_ok=True)
    resumable = False
    try:
        yield directory
    except (KeyboardInterrupt, RunError):
        resumable = stable
        raise
    finally:
        if not resumable:
            shutil.rmtree(directory, ignore_errors=True)


def _find_entry(path: Path, files: dict[str, list[str]], inputs: Inputs) -> Path | None:
    """The entry of ``files``, whose digests are only taken if there is one with the same settings and code."""
    if not any(path.parent.glob(f"{glob.escape(path.name)}-*")):
        return None
    entry = _entry_path(path, files, inputs)
    return entry if entry.exists() else None


def _load_verified(entry: Path, load: Callable[[Path], T], part: str = "") -> T:
    """The result of ``load`` for an entry, or of a directory in it; a DataError if it is damaged."""
    try:
        storage.verify(entry / part)
        return load(entry / part)
    except (*storage.DAMAGE, RerankError) as error:
        message = f"the cached corpus is damaged ({error}); remove {entry} and run again"
        raise DataError(message, path=str(entry)) from None


def _load(entry: Path) -> ExtractedSplit:
    header = json.loads((entry / "split.json").read_text())
    corpus = Corpus.load(entry / "corpus", entry)
    origins = Corpus.load(entry / "origins", entry) if header["origins"] else None
    sample = ListSample(*(storage.read_array(entry / f"sample_{name}.npy") for name in ListSample._fields))
    ids, indices = list(header["ids"]), np.array(header["indices"], np.int64)
    split = ExtractedSplit(corpus, ids, indices, dict(header["about"]), sample, entry.name, origins)
    if not len(ids) == indices.size == corpus.list_count:
        raise ValueError(f"{len(split.ids)} ids for {corpus.list_count} lists")
    return split


def _entry_path(entry: Path, files: dict[str, list[str]], inputs: Inputs, **contents: Any) -> Path:
    """``entry``, the name of which is that of settings and code, with the digest of the contents of ``files``, or of
    the ``contents`` of lists that no file has."""
    digests = {kind: [inputs.digest(path) for path in paths] for kind, paths in files.items()} | contents
    return entry.with_name(f"{entry.name}-{_short(digests)}")


def _settings_key(recipe: ListRecipe, split: str, training: str | None) -> str:
    """The first part of the key of a split in the cache: everything but its files."""
    data = recipe.data
    parts = {
        "code": code_digest(EXTRACTION),
        "user": user_digest(data.reader, recipe.features.model_dump(), recipe.metric),
        "files": {kind: len(paths) for kind, paths in data.files(split).items()},
        "sources": data.sources_of(split)[1:] and data.sources_of(split),  # they name the lists if there are several
        "data": data.model_dump(mode="json", exclude={"root", "train", "dev", "holdout", "tests", "nbest"}),
        "features": recipe.features.model_dump(mode="json"),
        "metric": metric_of(recipe).signature,
        "origins": keeps_origins(recipe, split),
        "training": training,
    }
    return f"{file_name(split)}-{_short(parts)}"


def _short(value: Any) -> str:
    return hashlib.sha256(as_json(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
