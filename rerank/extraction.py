"""From files to corpora: read lists and gold trees, score candidates, extract features, number the columns."""

from __future__ import annotations

import hashlib
import json
import logging
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from rerank.corpus import Corpus
from rerank.errors import DataError, RecipeError, RerankError
from rerank.features import parse  # noqa: F401 - registers the templates
from rerank.features.extract import Extractor, UserTemplate
from rerank.features.heads import Rules
from rerank.features.rows import RowBuilder
from rerank.features.sets import SETS
from rerank.features.table import CollisionCount, HashedTable, Table, TableBuilder, load_table
from rerank.features.template import make_template
from rerank.files import new_directory
from rerank.metrics.base import metrics
from rerank.metrics.parseval import Parseval
from rerank.progress import track
from rerank.readers.base import NBestList, Reader, SkipCount, readers
from rerank.readers.pairs import read_pairs
from rerank.readers.streams import open_stream
from rerank.readers.trees import Trees
from rerank.recipe import FeatureSettings, Recipe, Settings
from rerank.registry import Registry, build, nearest
from rerank.symbols import SymbolTable

log = logging.getLogger("rerank")
user_templates: Registry[UserTemplate] = Registry("feature")  # entry points: rerank.features


@dataclass(frozen=True)
class Extracted:
    """A split as the learners see it: its corpus, the ids of its lists, what was skipped, and the time it took."""

    corpus: Corpus
    ids: list[str]
    about: dict[str, Any]


def make_extractor(settings: FeatureSettings, symbols: SymbolTable, *, centred: bool | None = None) -> Extractor:
    """The extractor that a recipe (or a model) describes."""
    if settings.set is not None and settings.set not in SETS:
        raise RecipeError(f"unknown template set {settings.set!r}; {nearest(settings.set, SETS)}", key="features.set")
    specs = [*(SETS[settings.set] if settings.set else []), *settings.templates]
    if not specs and not settings.user:
        raise RecipeError("no template; name a set or templates", key="features")
    user = {name: user_templates.get(path) for name, path in settings.user.items()}
    return Extractor(
        [make_template(spec) for spec in specs],
        symbols,
        user=user,
        heads=cast(dict[str, Rules], settings.heads),
        centred=settings.centred if centred is None else centred,
        bits=settings.hash_bits or 64,
    )


def make_reader(spec: Settings) -> Reader:
    """The reader that a recipe (or a model) describes."""
    return build(readers, spec, "data.reader")


def make_metric(spec: Settings) -> Parseval:
    """The metric that a recipe (or a model) describes; ``prm`` names an EVALB parameter file."""
    spec = dict(spec)
    prm = spec.pop("prm", None)
    if prm is not None:
        if set(spec) - {"name", "punctuation"}:
            raise RecipeError("an EVALB parameter file leaves no room for other settings", key="metric.prm")
        return Parseval.from_prm(prm, punctuation=spec.get("punctuation", "reference"))
    return cast(Parseval, build(metrics, spec, "metric"))


class _Collector:
    """What every split needs while it is read."""

    def __init__(self, recipe: Recipe, split: str) -> None:
        self.recipe, self.split = recipe, split
        self.symbols = SymbolTable()
        self.metric = make_metric(recipe.metric)
        self.extractor = make_extractor(recipe.features, self.symbols)
        self.count = SkipCount(recipe.data.on_bad_list)
        self.rows, self.ids = RowBuilder(), list[str]()

    def lists(self) -> Iterator[tuple[NBestList, Trees, Trees]]:
        """The usable lists with their trees and gold trees."""
        data = self.recipe.data
        paths = data.path("nbest", self.split), data.path("gold", self.split)
        pairs = read_pairs(make_reader(data.reader), *paths, self.symbols, count=self.count)
        yield from track(pairs, f"extract {self.split}")
        if not self.count.lists:
            raise DataError("no usable list in the file", path=paths[0])

    def run(self, table: Table | None, builder: TableBuilder | None) -> None:
        """Read everything; features get provisional ids from ``builder``, or columns from ``table``."""
        user = bool(self.recipe.features.user)
        collisions = CollisionCount(table.bits) if isinstance(table, HashedTable) else None
        for nbest, trees, gold in self.lists():
            reference, stats = self.metric.stats(gold, trees, self.symbols)
            gain = self.metric.gain(stats, np.broadcast_to(reference, (len(nbest), reference.size)))
            base = nbest.base
            features = self.extractor.features(trees, base, nbest.candidates if user else ())
            numbers = builder.add(features) if builder is not None else cast(Table, table).columns(features)
            if collisions is not None:
                collisions.add(numbers, features.full)
            self.rows.add(features, numbers, base, gain, stats, reference)
            self.ids.append(nbest.id)
        if collisions is not None and isinstance(table, HashedTable) and not table.about:
            table.about.update(collisions.about())

    def finish(self, column: np.ndarray | None, width: int, seconds: float) -> Extracted:
        """The split; ``column`` maps provisional ids to columns."""
        for line in str(self.count).splitlines()[1:]:
            log.warning("%s: %s", self.split, line)
        corpus = self.rows.finish(column, width, {"metric": self.metric.signature, "split": self.split})
        return Extracted(corpus, self.ids, {**self.count.as_dict(), "seconds": seconds})


def extract_training(recipe: Recipe) -> tuple[Extracted, Table]:
    """The training split, and the table of the features that it keeps.

    Raises
    ------
    DataError, RecipeError: see the readers, metrics and templates.
    """
    start = time.process_time()
    collector = _Collector(recipe, recipe.data.train)
    names = collector.extractor.names
    if recipe.features.hash_bits:
        hashed = HashedTable(recipe.features.hash_bits, tuple(names), {})
        collector.run(hashed, None)
        return collector.finish(None, hashed.width, time.process_time() - start), hashed
    builder = TableBuilder(names, recipe.features.min_lists)
    collector.run(None, builder)
    table, column = builder.finish(collector.symbols)
    log.info("features: %s seen, %s kept", f"{table.about['seen']:,}", f"{table.about['kept']:,}")
    return collector.finish(column, table.width, time.process_time() - start), table


def extract_split(recipe: Recipe, split: str, table: Table) -> Extracted:
    """A split with the columns of ``table``; features that it does not hold are left out."""
    start = time.process_time()
    collector = _Collector(recipe, split)
    collector.run(table, None)
    return collector.finish(None, table.width, time.process_time() - start)


class CorpusCache:
    """Extracted splits on disk, each under the digest of everything that it was made from.

    A split is reused only when the bytes of its files, the templates and all other settings, and the code that reads
    and extracts agree; entries appear under their names only when complete.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def training(self, recipe: Recipe) -> tuple[Extracted, Table, str]:
        """The training split, its table, and the digest of both; extracted if it is not here yet."""
        key = _digest(recipe, recipe.data.train, None)
        entry = self.directory / key
        if not entry.exists():
            extracted, table = extract_training(recipe)
            self._store(entry, extracted, table)
            del extracted
        return _load(entry), _load_table(entry), key

    def split(self, recipe: Recipe, split: str, table: Table, training: str) -> Extracted:
        """Another split with the columns of the training split ``training`` (its digest)."""
        entry = self.directory / _digest(recipe, split, training)
        if not entry.exists():
            self._store(entry, extract_split(recipe, split, table), None)
        return _load(entry)

    def _store(self, entry: Path, extracted: Extracted, table: Table | None) -> None:
        with new_directory(entry) as new:
            extracted.corpus.save(new / "corpus")
            (new / "split.json").write_text(json.dumps({"ids": extracted.ids, "about": extracted.about}))
            if table is not None:
                (new / "table").mkdir()
                table.save(new / "table")


def _load(entry: Path) -> Extracted:
    try:
        header = json.loads((entry / "split.json").read_text())
        found = Extracted(Corpus.load(entry / "corpus"), list(header["ids"]), dict(header["about"]))
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
    sources = [package / name for name in ("corpus.py", "extraction.py", "symbols.py")]
    for part in ("readers", "features", "metrics"):
        sources += sorted((package / part).rglob("*.py"))
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    return digest.hexdigest()


def user_digest(settings: FeatureSettings) -> dict[str, str]:
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


def _digest(recipe: Recipe, split: str, training: str | None) -> str:
    """The key of a split in the cache."""
    data = recipe.data
    parts = {
        "code": code_digest(),
        "user": user_digest(recipe.features),
        "files": [file_digest(data.path("nbest", split)), file_digest(data.path("gold", split))],
        "reader": data.reader,
        "on_bad_list": data.on_bad_list,
        "features": recipe.features.model_dump(mode="json"),
        "metric": make_metric(recipe.metric).signature,
        "training": training,
    }
    text = json.dumps(parts, sort_keys=True, default=str)
    return f"{split}-{hashlib.sha256(text.encode()).hexdigest()[:24]}".replace("/", "_")
