"""Extracted splits on disk, each under the digest of everything that it was made from."""

import glob
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rerank.base.encoding import file_name
from rerank.base.errors import DataError, RerankError, RunError
from rerank.data.corpus import Corpus
from rerank.extraction.extraction import ExtractedSplit, Extraction, keeps_origins
from rerank.extraction.kinds import metric_of
from rerank.extraction.sample import ListSample
from rerank.features.table import FeatureTable, load_table
from rerank.kernels.sources import EXTRACTION, code_digest, user_digest
from rerank.pool import Engine
from rerank.recipes.recipe import ListRecipe
from rerank.storage import files as storage
from rerank.storage.documents import as_json
from rerank.storage.streams import Inputs

log = logging.getLogger("rerank")
T = TypeVar("T")
BLOCKS = ".blocks"  # what the names of their directories end in


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
