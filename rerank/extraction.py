"""From files to corpora: read lists and references, score candidates, extract features, number the columns."""

from __future__ import annotations

import hashlib
import json
import logging
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from rerank.content import content_of, metric_of
from rerank.content.base import user_templates
from rerank.corpus import Corpus
from rerank.errors import DataError, RerankError
from rerank.features.dense import standardised
from rerank.features.rows import RowBuilder
from rerank.features.table import CollisionCount, FeatureTable, HashedTable, Table, TableBuilder, load_table
from rerank.files import new_directory
from rerank.progress import track
from rerank.readers.base import SkipCount
from rerank.readers.streams import open_stream
from rerank.recipe import ListRecipe, TemplateSettings
from rerank.shards import Lists, Shards, part_of, parts, write_shards

log = logging.getLogger("rerank")


@dataclass(frozen=True)
class Extracted:
    """A split as the learners see it: its corpus, the ids of its lists, what was skipped, and the time it took."""

    corpus: Lists
    ids: list[str]
    about: dict[str, Any]


class _Collector:
    """What every split needs while it is read."""

    def __init__(self, recipe: ListRecipe, split: str) -> None:
        self.recipe, self.split = recipe, split
        self.content = content_of(recipe)
        self.count = SkipCount(recipe.data.on_bad_list)
        self.rows, self.ids = RowBuilder(), list[str]()
        self.scores: tuple[str, ...] = ()  # the names of the score columns, where the lists say them

    def run(self, table: Table | None, builder: TableBuilder | None) -> None:
        """Read everything; features get provisional ids from ``builder``, or columns from ``table``."""
        content, data = self.content, self.recipe.data
        collisions = CollisionCount(table.bits) if isinstance(table, HashedTable) else None
        for nbest, candidates, gold in track(content.pairs(data, self.split, self.count), f"extract {self.split}"):
            reference, stats = content.stats(nbest, candidates, gold)
            gain = content.metric.gain(stats, np.broadcast_to(reference, (len(nbest), reference.size)))
            features = content.features(nbest, candidates)
            numbers = builder.add(features) if builder is not None else cast(Table, table).columns(features)
            if collisions is not None:
                collisions.add(numbers, features.full)
            self.rows.add(features, numbers, nbest.base, gain, stats, reference)
            self.ids.append(nbest.id)
            self.scores = self.scores or getattr(nbest, "names", ())
        if not self.count.lists:
            raise DataError("no usable list in the file", path=data.files(self.split)["nbest"][0])
        if collisions is not None and isinstance(table, HashedTable) and not table.about:
            table.about.update(collisions.about())

    def corpus(self, column: np.ndarray | None, table: Table) -> Corpus:
        """The corpus; ``column`` maps provisional ids to columns."""
        about = {"metric": self.content.metric.signature, "split": self.split}
        scale = table.scale if isinstance(table, FeatureTable) else None
        return self.rows.finish(column, table.width, about, scale=scale)

    def finish(self, corpus: Corpus, seconds: float) -> Extracted:
        """The split, and what was met on the way."""
        for line in str(self.count).splitlines()[1:]:
            log.warning("%s: %s", self.split, line)
        return Extracted(corpus, self.ids, {**self.count.as_dict(), "seconds": seconds})


def extract_training(recipe: ListRecipe) -> tuple[Extracted, Table]:
    """The training split, and the table of the features that it keeps.

    Raises
    ------
    DataError, RecipeError: see the readers, metrics and templates.
    """
    start = time.process_time()
    collector = _Collector(recipe, recipe.data.train)
    names = collector.content.names
    if recipe.features.hash_bits:
        hashed = HashedTable(recipe.features.hash_bits, tuple(names), {})
        collector.run(hashed, None)
        if collector.scores:
            hashed.about["scores"] = list(collector.scores)
        return collector.finish(collector.corpus(None, hashed), time.process_time() - start), hashed
    builder = TableBuilder(names, recipe.features.min_lists, collector.content.free)
    collector.run(None, builder)
    table, column = builder.finish(collector.content.symbols)
    if collector.scores:
        table.about["scores"] = list(collector.scores)
    log.info("features: %s seen, %s kept", f"{table.about['seen']:,}", f"{table.about['kept']:,}")
    corpus, table = standardised(collector.corpus(column, table), table)
    return collector.finish(corpus, time.process_time() - start), table


def extract_split(recipe: ListRecipe, split: str, table: Table) -> Extracted:
    """A split with the columns of ``table``; features that it does not hold are left out."""
    start = time.process_time()
    collector = _Collector(recipe, split)
    collector.run(table, None)
    return collector.finish(collector.corpus(None, table), time.process_time() - start)


class CorpusCache:
    """Extracted splits on disk, each under the digest of everything that it was made from.

    A split is reused only when the bytes of its files, the templates and all other settings, and the code that reads
    and extracts agree; entries appear under their names only when complete.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def training(self, recipe: ListRecipe) -> tuple[Extracted, Table, str]:
        """The training split, its table, and the digest of both; extracted if it is not here yet."""
        key = _digest(recipe, recipe.data.train, None)
        entry = self.directory / key
        if not entry.exists():
            extracted, table = extract_training(recipe)
            self._store(entry, extracted, table)
            del extracted
        return _load(entry), _load_table(entry), key

    def split(self, recipe: ListRecipe, split: str, table: Table, training: str) -> Extracted:
        """Another split with the columns of the training split ``training`` (its digest)."""
        entry = self.directory / _digest(recipe, split, training)
        if not entry.exists():
            self._store(entry, extract_split(recipe, split, table), None)
        return _load(entry)

    def _store(self, entry: Path, extracted: Extracted, table: Table | None) -> None:
        with new_directory(entry, keep=True) as new:
            (new / "corpus").mkdir()
            write_shards(new / "corpus", [part for _, part in parts(extracted.corpus)], {})
            (new / "split.json").write_text(json.dumps({"ids": extracted.ids, "about": extracted.about}))
            if table is not None:
                (new / "table").mkdir()
                table.save(new / "table")


def _load(entry: Path) -> Extracted:
    try:
        header = json.loads((entry / "split.json").read_text())
        found = Extracted(Shards.load(entry / "corpus"), list(header["ids"]), dict(header["about"]))
        part_of(found.corpus, 0)  # the others are looked at when they are needed
        if len(found.ids) != found.corpus.list_count:
            raise ValueError(f"{len(found.ids)} ids for {found.corpus.list_count} lists")
        return found
    except (OSError, ValueError, KeyError, TypeError, RerankError) as error:
        raise DataError(f"the cached corpus is damaged ({error}); remove it and run again", path=str(entry)) from None


def _load_table(entry: Path) -> Table:
    try:
        return load_table(entry / "table")
    except RerankError as error:
        raise DataError(f"the cached table is damaged ({error}); remove it and run again", path=str(entry)) from None


@cache
def code_digest() -> str:
    """Digest of the sources that decide what a corpus holds."""
    package = Path(__file__).parent
    sources = [package / name for name in ("corpus.py", "extraction.py", "symbols.py", "tokens.py")]
    for part in ("readers", "features", "metrics", "content"):
        sources += sorted((package / part).rglob("*.py"))
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    return digest.hexdigest()


def user_digest(settings: TemplateSettings) -> dict[str, str]:
    """Digest of the source files that hold users' templates, by name of the template."""
    found = {}
    for name, path in settings.user.items():
        function = user_templates.get(path)
        file = getattr(sys.modules.get(getattr(function, "__module__", "")), "__file__", None)
        source = Path(file).read_bytes() if file else b""
        found[name] = hashlib.sha256(source).hexdigest()
    return found


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
        "code": code_digest(),
        "user": user_digest(recipe.features),
        "files": {kind: [file_digest(path) for path in paths] for kind, paths in data.files(split).items()},
        "data": data.model_dump(mode="json", exclude={"root", "train", "dev", "tests", "nbest"}),
        "features": recipe.features.model_dump(mode="json"),
        "metric": metric_of(recipe).signature,
        "training": training,
    }
    text = json.dumps(parts, sort_keys=True, default=str)
    return f"{split}-{hashlib.sha256(text.encode()).hexdigest()[:24]}".replace("/", "_")
